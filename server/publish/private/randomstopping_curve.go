package private

import (
	"cmp"
	"math"
	"slices"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/suggest/space"
)

// defaultCurvePoints is the number of steps of a run that are scored, unless the spec says another.
const defaultCurvePoints = 10

// Of a study that releases curves some values of each run are scored and released. Their steps depend on
// nothing but the length of the run, so that their number bounds what a candidate takes from a test
// record.

// releasesCurve reports whether random stopping releases runs with all their scored states.
func releasesCurve(compiled *spec.Study) bool {
	return compiled.Spec.GetRandomStopping().GetRelease() == dparetov1.RandomStoppingRelease_RANDOM_STOPPING_RELEASE_CURVE
}

// portfolio returns the number of trials that make a candidate of random stopping.
func portfolio(compiled *spec.Study) int64 {
	return max(1, int64(compiled.Spec.GetRandomStopping().GetPortfolio()))
}

// curvePoints returns the number of steps that are scored of a run that is long enough.
func curvePoints(compiled *spec.Study) int64 {
	return int64(cmp.Or(compiled.Spec.GetRandomStopping().GetCurvePoints(), defaultCurvePoints))
}

// candidateValues returns the largest number of measured values in a candidate of random stopping.
func candidateValues(compiled *spec.Study) int64 {
	if !releasesCurve(compiled) {
		return 1
	}
	for _, p := range compiled.Problem.Space.Parameters {
		if p.Name == compiled.Spec.GetCheckpointParameter() {
			return portfolio(compiled) * min(curvePoints(compiled), int64(p.Max))
		}
	}
	panic("private: a curve without checkpoints") // the compiler refuses it
}

// isScored reports whether the value of a configuration's run at a step is scored.
func isScored(compiled *spec.Study, point space.Point, step int64) bool {
	_, found := slices.BinarySearch(scoredSteps(compiled.Points.LastStep(point), curvePoints(compiled)), step)
	return found
}

// scoredSteps returns min(n, last) different steps from 1 to last, in rising order and as evenly spaced
// in the logarithm as integers are. The last one is always among them.
func scoredSteps(last, n int64) []int64 {
	n = min(n, last)
	return evenSteps(last, n, func(i int64) float64 {
		if n == 1 {
			return 1
		}
		return float64(i) / float64(n-1)
	})
}

// evenSteps returns n different steps in rising order, the i-th at a share of the logarithm of last, as nearly as
// integers are: it is above the one before. Shares must be in [0, 1] and rise by equal amounts. As that scale is
// convex in the index, no step is pushed beyond last for n <= last.
func evenSteps(last, n int64, share func(i int64) float64) []int64 {
	steps := make([]int64, n)
	before := int64(0)
	for i := range steps {
		before = max(before+1, int64(math.Round(math.Pow(float64(last), share(int64(i))))))
		steps[i] = before
	}
	return steps
}
