package front

import (
	"fmt"
	"math"
	"slices"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// A thinned front keeps its ends, its knee and its order, and covers the rest evenly.
func TestSpread(t *testing.T) {
	spec := &dparetov1.StudySpec{Metrics: []*dparetov1.MetricSpec{
		{Id: "epsilon", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Transform: dparetov1.Transform_TRANSFORM_LOG},
		{Id: "error", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE},
	}}
	front := &dparetov1.Front{Hypervolume: 7}
	add := func(x float64, knee bool) { // x in [0, 1]: where on the front
		front.Points = append(front.Points, &dparetov1.FrontPoint{
			Trial: fmt.Sprint(len(front.GetPoints())), Knee: knee,
			Values: map[string]*dparetov1.FrontValue{"epsilon": {Value: math.Pow(10, 4*x-2)}, "error": {Value: 0.5 - 0.4*x}},
		})
	}
	for i := range 50 { // half of the points within a hundredth of the front
		add(0.01*float64(i)/50, false)
	}
	for i := range 50 {
		add(0.01+0.99*float64(i)/49, i == 30)
	}
	const n = 12
	thinned := spread(spec, front, n)
	if len(front.GetPoints()) != 100 || len(thinned.GetPoints()) != n || thinned.GetHypervolume() != 7 {
		t.Fatalf("%d points of %d", len(thinned.GetPoints()), len(front.GetPoints()))
	}
	var xs []float64
	for _, p := range thinned.GetPoints() {
		xs = append(xs, (0.5-p.GetValues()["error"].GetValue())/0.4)
	}
	if !slices.IsSorted(xs) || xs[0] != 0 || math.Abs(xs[n-1]-1) > 1e-12 || !slices.ContainsFunc(thinned.GetPoints(), (*dparetov1.FrontPoint).GetKnee) {
		t.Errorf("points at %.3f", xs)
	}
	for i := 1; i < n; i++ {
		if gap := xs[i] - xs[i-1]; gap < 0.03 || gap > 0.2 {
			t.Errorf("points at %.3f: a gap of %.3f", xs, gap)
		}
	}
	if spread(spec, front, 100) != front {
		t.Error("a front of so many points changed")
	}

	// Equal points stand for each other.
	front.Points = front.GetPoints()[:1]
	for range 30 {
		add(0, false)
	}
	if n := len(spread(spec, front, 20).GetPoints()); n != 1 {
		t.Errorf("%d of 31 equal points", n)
	}
}
