package fronts

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/dpareto/dpareto/suggest/pareto"
)

// parts is the number of parts of the random samples in the paper's Table 2.
const parts = 19

// divide returns the first number of disjoint parts of equal size.
func divide(outcomes []outcome, number, size int) [][]outcome {
	all := make([][]outcome, number)
	for i := range all {
		all[i] = outcomes[i*size : (i+1)*size]
	}
	return all
}

// hypervolumes returns the hypervolume of each.
func hypervolumes(all [][]outcome) []float64 {
	values := make([]float64, len(all))
	for i, outcomes := range all {
		values[i] = hypervolume(outcomes)
	}
	return values
}

// comparison is a mean difference with its 95 % interval and the test that it is 0.
type comparison struct{ difference, lower, upper, t, p float64 }

// compareOne compares a value that is taken to be certain with the mean of a sample, as the paper's
// Table 2 does: by Student's t with len(sample) - 1 degrees of freedom.
func compareOne(value float64, sample []float64) comparison {
	n := float64(len(sample))
	return newComparison(value-stat.Mean(sample, nil), stat.StdDev(sample, nil)/math.Sqrt(n), n-1)
}

// compareTwo compares the means of two samples of at least two values by Welch's t (Welch, "The
// generalization of Student's problem when several different population variances are involved",
// Biometrika 34, 1947).
func compareTwo(a, b []float64) comparison {
	va, vb := stat.Variance(a, nil)/float64(len(a)), stat.Variance(b, nil)/float64(len(b))
	freedom := (va + vb) * (va + vb) / (va*va/float64(len(a)-1) + vb*vb/float64(len(b)-1))
	return newComparison(stat.Mean(a, nil)-stat.Mean(b, nil), math.Sqrt(va+vb), freedom)
}

func newComparison(difference, standardError, freedom float64) comparison {
	student := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}
	reach := student.Quantile(0.975) * standardError
	t := difference / standardError
	return comparison{difference, difference - reach, difference + reach, t, 2 * student.Survival(math.Abs(t))}
}

// trace returns the hypervolume after 1, 2, ... trials.
func trace(outcomes []outcome) []float64 { return pareto.Trace(costs(outcomes, mean), anti) }

// band is a mean of several courses, with the least and the largest.
type band struct{ x, mean, lower, upper []float64 }

// bandOf returns the mean of courses of one length, and the range that all of them are in.
func bandOf(courses [][]float64) band {
	var b band
	for i := range courses[0] {
		at := make([]float64, len(courses))
		lowest, highest := math.Inf(1), math.Inf(-1)
		for k := range courses {
			at[k] = courses[k][i]
			lowest, highest = min(lowest, at[k]), max(highest, at[k])
		}
		b.x = append(b.x, float64(i+1))
		b.mean = append(b.mean, stat.Mean(at, nil))
		b.lower, b.upper = append(b.lower, lowest), append(b.upper, highest)
	}
	return b
}

// dominated returns the fraction of a front's points, within the anti-ideal point, that another front has a
// point for that is at least as good in both.
func dominated(front, by []outcome) float64 {
	of, others := pareto.NewFront(costs(front, mean), anti).Points(), pareto.NewFront(costs(by, mean), anti).Points()
	n := 0
	for _, p := range of {
		for _, q := range others {
			if q[0] <= p[0] && q[1] <= p[1] {
				n++
				break
			}
		}
	}
	return float64(n) / float64(max(1, len(of)))
}

// reached returns the number of outcomes after which a hypervolume is reached, or 0 if it is not.
func reached(outcomes []outcome, hypervolume float64) int {
	for i, v := range trace(outcomes) {
		if v >= hypervolume {
			return i + 1
		}
	}
	return 0
}
