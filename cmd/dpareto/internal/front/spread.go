package front

import (
	"cmp"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
)

// spread returns a front with at most n of its points, at least 2, in their order. They stand for the
// others: the ends of each objective and the knee, and then, one by one, the point that is farthest from
// those chosen, with every objective scaled to the range of the front.
func spread(spec *dparetov1.StudySpec, front *dparetov1.Front, n int) *dparetov1.Front {
	points := front.GetPoints()
	if len(points) <= n {
		return front
	}
	places := scaled(spec, front)
	var chosen []int
	distance := make([]float64, len(points)) // to the nearest of the chosen
	for i := range distance {
		distance[i] = math.Inf(1)
	}
	choose := func(i int) {
		if len(chosen) == n || distance[i] == 0 {
			return
		}
		chosen = append(chosen, i)
		for k := range distance {
			sum := 0.0
			for d := range places {
				sum += (places[d][k] - places[d][i]) * (places[d][k] - places[d][i])
			}
			distance[k] = min(distance[k], sum)
		}
	}
	for _, place := range places {
		choose(slices.Index(place, slices.Min(place)))
		choose(slices.Index(place, slices.Max(place)))
	}
	choose(max(0, slices.IndexFunc(points, (*dparetov1.FrontPoint).GetKnee)))
	for farthest := 1.0; len(chosen) < n && farthest > 0; {
		farthest = slices.Max(distance)
		choose(slices.Index(distance, farthest))
	}
	slices.SortFunc(chosen, cmp.Compare[int])
	thinned := proto.CloneOf(front)
	for i, k := range chosen {
		thinned.Points[i] = points[k]
	}
	thinned.Points = thinned.GetPoints()[:len(chosen)]
	return thinned
}

// scaled returns the values of each objective of all points between 0 and 1, on the scale of the
// objective's transform.
func scaled(spec *dparetov1.StudySpec, front *dparetov1.Front) [][]float64 {
	var all [][]float64
	for _, m := range show.Objectives(spec) {
		values := make([]float64, len(front.GetPoints()))
		for i, p := range front.GetPoints() {
			values[i] = p.GetValues()[m.GetId()].GetValue()
		}
		lo, hi := slices.Min(values), slices.Max(values)
		if positive := slices.DeleteFunc(slices.Clone(values), func(x float64) bool { return x <= 0 }); lo == 0 && len(positive) > 0 && m.GetTransform() == dparetov1.Transform_TRANSFORM_LOG {
			lo = slices.Min(positive) // a constant point's ε = 0 is no measure of the others
		}
		isLog := m.GetTransform() == dparetov1.Transform_TRANSFORM_LOG && lo > 0
		for i, x := range values {
			switch {
			case !(hi > lo):
				values[i] = 0
			case isLog:
				values[i] = max(0, math.Log(x/lo)/math.Log(hi/lo))
			default:
				values[i] = (x - lo) / (hi - lo)
			}
		}
		all = append(all, values)
	}
	return all
}
