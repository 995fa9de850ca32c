package fronts

import (
	"gonum.org/v1/gonum/stat/distuv"
)

// published is a row of the paper's Table 2: the mean difference of hypervolumes, with its 95 % interval.
type published struct{ difference, lower, upper float64 }

// publishedTable2 has the rows in the order of adult().
var publishedTable2 = []published{
	{0.158, 0.053, 0.264}, // LogReg+SGD
	{0.439, 0.272, 0.607}, // LogReg+ADAM
	{0.282, 0.161, 0.402}, // SVM+SGD
}

// publishedParts is the number of parts of the paper's random samples.
const publishedParts = 19

// p returns the significance that follows from the interval, by Student's t with 18 degrees of freedom.
func (r published) p() float64 {
	student := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: publishedParts - 1}
	standardError := (r.upper - r.lower) / 2 / student.Quantile(0.975)
	return 2 * student.Survival(r.difference/standardError)
}
