package fronts

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/dpareto/dpareto/cmd/internal/plot"
	"github.com/dpareto/dpareto/suggest/pareto"
)

// divide returns as many disjoint parts of a size as there are.
func divide(outcomes []outcome, size int) [][]outcome {
	parts := slices.Collect(slices.Chunk(outcomes, size))
	if last := len(parts) - 1; len(parts[last]) < size {
		parts = parts[:last]
	}
	return parts
}

// each returns a number of each study.
func each(all [][]outcome, of func([]outcome) float64) []float64 {
	values := make([]float64, len(all))
	for i, outcomes := range all {
		values[i] = of(outcomes)
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

// band is a mean of several courses, with a range around it.
type band struct{ x, mean, lower, upper []float64 }

// bandOf returns the mean of courses of one length, and the range from one quantile of them to another: from 0 to 1 it
// holds all.
func bandOf(courses [][]float64, from, to float64) band {
	var b band
	for i := range courses[0] {
		at := make([]float64, len(courses))
		for k := range courses {
			at[k] = courses[k][i]
		}
		slices.Sort(at)
		b.x = append(b.x, float64(i+1))
		b.mean = append(b.mean, stat.Mean(at, nil))
		b.lower = append(b.lower, stat.Quantile(from, stat.Empirical, at, nil))
		b.upper = append(b.upper, stat.Quantile(to, stat.Empirical, at, nil))
	}
	return b
}

// resamples is how often random samples are drawn again.
const resamples = 1000

// resampled returns courses of random sampling: of as many samples as given, drawn from all without putting back.
func resampled(all []outcome, size int) [][]float64 {
	rng := rand.New(rand.NewPCG(1, uint64(size)))
	courses := make([][]float64, resamples)
	drawn := slices.Clone(all)
	for i := range courses {
		for k := range size {
			j := k + rng.IntN(len(drawn)-k)
			drawn[k], drawn[j] = drawn[j], drawn[k]
		}
		courses[i] = trace(drawn[:size])
	}
	return courses
}

// onFront returns the outcomes that no other one beats by ε and mean error, within the anti-ideal point.
func onFront(outcomes []outcome) []outcome {
	var front []outcome
	points := pareto.NewFront(costs(outcomes, mean), anti).Points()
	for _, o := range outcomes {
		if slices.ContainsFunc(points, func(p []float64) bool { return p[0] == o.epsilon && p[1] == o.mean }) {
			front = append(front, o)
		}
	}
	return front
}

// untouchedHypervolume returns the hypervolume that the front has on examples that the search has not seen, NaN
// where there are none.
func untouchedHypervolume(outcomes []outcome) float64 {
	front := onFront(outcomes)
	if slices.ContainsFunc(front, func(o outcome) bool { return math.IsNaN(o.untouched) }) {
		return math.NaN()
	}
	return pareto.Hypervolume(costs(front, func(o outcome) float64 { return o.untouched }), anti)
}

// confidence returns the mean of values with its 95 % interval by Student's t; without an interval for one value.
func confidence(values []float64) (mean float64, lower, upper any) {
	mean = stat.Mean(values, nil)
	if len(values) < 2 {
		return mean, nil, nil
	}
	c := compareOne(0, values)
	return mean, -c.upper, -c.lower
}

// known returns a cell that is empty for NaN.
func known(x float64) any {
	if math.IsNaN(x) {
		return nil
	}
	return x
}

// meanUntouched returns the mean of [untouchedHypervolume] over studies, as a cell.
func meanUntouched(studies [][]outcome) any {
	return known(stat.Mean(each(studies, untouchedHypervolume), nil))
}

// attainment returns the fronts that half of the studies, all of them, and one of them reach: at each ε the
// median, the largest and the least of their errors.
func attainment(studies [][]outcome) (median, worst, best []plot.Point) {
	var at []float64
	for _, outcomes := range studies {
		for _, o := range onFront(outcomes) {
			at = append(at, o.epsilon)
		}
	}
	slices.Sort(at)
	for _, epsilon := range slices.Compact(at) {
		least := make([]float64, len(studies))
		for i, outcomes := range studies {
			least[i] = leastError(outcomes, epsilon)
		}
		slices.Sort(least)
		median = appendReached(median, epsilon, least[(len(least)-1)/2])
		worst = appendReached(worst, epsilon, least[len(least)-1])
		best = appendReached(best, epsilon, least[0])
	}
	return median, worst, best
}

// appendReached appends a point unless its error is infinite.
func appendReached(points []plot.Point, epsilon, errorRate float64) []plot.Point {
	if math.IsInf(errorRate, 1) {
		return points
	}
	return append(points, plot.Point{X: epsilon, Y: errorRate})
}

// leastError returns the least mean error with ε up to a bound, infinite where there is none.
func leastError(outcomes []outcome, epsilon float64) float64 {
	least := math.Inf(1)
	for _, o := range outcomes {
		if o.epsilon <= epsilon {
			least = min(least, o.mean)
		}
	}
	return least
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
	const rounding = 1e-12 // a course adds up what a hypervolume is
	for i, v := range trace(outcomes) {
		if v >= hypervolume*(1-rounding) {
			return i + 1
		}
	}
	return 0
}
