package spec

import (
	"math"
	"slices"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/suggest/space"
)

// defaultCurvePoints is the number of steps of a run that are scored, unless the spec says another.
const defaultCurvePoints = 10

// curve says which values of a run are scored and released in a study whose random stopping
// releases curves. The steps depend on nothing but the length of the run, so that their number bounds
// what a candidate takes from a test record.
type curve struct {
	spec   *dparetov1.StudySpec
	points *Points
}

// ReleasesCurve reports whether random stopping releases runs with all their scored states.
func (c *curve) ReleasesCurve() bool {
	return c.spec.GetRandomStopping().GetRelease() == dparetov1.RandomStoppingRelease_RANDOM_STOPPING_RELEASE_CURVE
}

// Portfolio returns the number of trials that make a candidate of random stopping.
func (c *curve) Portfolio() int64 { return max(1, int64(c.spec.GetRandomStopping().GetPortfolio())) }

// curvePoints returns the number of steps that are scored of a run that is long enough.
func (c *curve) curvePoints() int64 {
	if n := c.spec.GetRandomStopping().GetCurvePoints(); n != 0 {
		return int64(n)
	}
	return defaultCurvePoints
}

// CandidateValues returns the largest number of measured values in a candidate of random stopping.
func (c *curve) CandidateValues() int64 {
	if !c.ReleasesCurve() {
		return 1
	}
	longest := int64(c.points.space.Parameters[c.points.checkpoint].Max)
	return c.Portfolio() * min(c.curvePoints(), longest)
}

// IsScored reports whether the value of a configuration's run at a step is scored.
func (c *curve) IsScored(point space.Point, step int64) bool {
	_, found := slices.BinarySearch(scoredSteps(c.points.LastStep(point), c.curvePoints()), step)
	return found
}

// scoredSteps returns min(n, last) different steps from 1 to last, in rising order and as evenly spaced
// in the logarithm as integers are. The last one is always among them.
func scoredSteps(last, n int64) []int64 {
	n = min(n, last)
	return EvenSteps(last, n, func(i int64) float64 {
		if n == 1 {
			return 1
		}
		return float64(i) / float64(n-1)
	})
}

// EvenSteps returns n different steps in rising order, the i-th at a share of the logarithm of last, as nearly as
// integers are: it is above the one before. Shares must be in [0, 1] and rise by equal amounts. As that scale is
// convex in the index, no step is pushed beyond last for n <= last.
func EvenSteps(last, n int64, share func(i int64) float64) []int64 {
	steps := make([]int64, n)
	before := int64(0)
	for i := range steps {
		before = max(before+1, int64(math.Round(math.Pow(float64(last), share(int64(i))))))
		steps[i] = before
	}
	return steps
}
