package words

import (
	"math"
	"slices"
	"strconv"
	"strings"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
)

// usualEpsilon is the ε at which studies are compared.
const usualEpsilon = 1

// Result is a point of a front as a headline: its value in the first objective that is not an ε.
type Result struct {
	Label, Value string
	// Basis says what the value rests on: an interval and a trial, a measurement, or no run.
	Basis string
	// Metric is the objective, Point the point; nil while there is none.
	Metric *dparetov1.MetricSpec
	Point  *dparetov1.FrontPoint
}

// Best returns the best result of a front at an ε of at most 1, or at its smallest ε where that is larger.
// All views show it for the front of the model, and fall back to the measured front. It is nil for a study
// whose objectives are all an ε.
func Best(spec *dparetov1.StudySpec, front *dparetov1.Front) *Result {
	y, epsilon := headline(spec)
	if y == nil {
		return nil
	}
	best := &Result{Label: "Best " + y.GetId(), Value: "–", Basis: "No trial has finished yet.", Metric: y}
	limit := math.Inf(1)
	if epsilon != nil {
		limit = usualEpsilon
		if lowest := lowestOf(front, epsilon); lowest > limit {
			limit, _ = strconv.ParseFloat(show.NumberUp(lowest), 64)
		}
		best.Label += " at ε ≤ " + show.Plain(limit)
	}
	if p := BestWithin(front, y, epsilon, limit); p != nil {
		best.Value, best.Basis, best.Point = Three(y, p.GetValues()[y.GetId()].GetValue()), basis(spec, y, p), p
	}
	return best
}

// Knee returns the knee of a front, nil for a front without.
func Knee(spec *dparetov1.StudySpec, front *dparetov1.Front) *Result {
	y, _ := headline(spec)
	i := slices.IndexFunc(front.GetPoints(), (*dparetov1.FrontPoint).GetKnee)
	if y == nil || i < 0 {
		return nil
	}
	p := front.GetPoints()[i]
	return &Result{Label: "Knee of the front", Value: Three(y, p.GetValues()[y.GetId()].GetValue()), Basis: basis(spec, y, p), Metric: y, Point: p}
}

// headline returns the first objective that is not an ε, and the ε if it is an objective.
func headline(spec *dparetov1.StudySpec) (y, epsilon *dparetov1.MetricSpec) {
	all := show.Objectives(spec)
	if i := slices.IndexFunc(all, func(m *dparetov1.MetricSpec) bool { return m.GetComputed().GetPrivacy() == nil }); i >= 0 {
		y = all[i]
	}
	if m := show.PrivacyMetric(spec); slices.Contains(all, m) {
		epsilon = m
	}
	return y, epsilon
}

// lowestOf returns the smallest value of a metric on a front, 0 for an empty one.
func lowestOf(front *dparetov1.Front, m *dparetov1.MetricSpec) float64 {
	lowest := math.Inf(1)
	for _, p := range front.GetPoints() {
		lowest = min(lowest, p.GetValues()[m.GetId()].GetValue())
	}
	if math.IsInf(lowest, 1) {
		return 0
	}
	return lowest
}

// BestWithin returns the point of a front that is best in y with at most some ε, nil for none. Without an
// ε all points count.
func BestWithin(front *dparetov1.Front, y, epsilon *dparetov1.MetricSpec, limit float64) *dparetov1.FrontPoint {
	var best *dparetov1.FrontPoint
	for _, p := range front.GetPoints() {
		if epsilon != nil && p.GetValues()[epsilon.GetId()].GetValue() > limit {
			continue
		}
		v := p.GetValues()[y.GetId()].GetValue()
		if was := best.GetValues()[y.GetId()].GetValue(); best == nil || v < was != (y.GetGoal() == dparetov1.Goal_GOAL_MAXIMIZE) && v != was {
			best = p
		}
	}
	return best
}

// id returns the last part of a resource's name.
func id(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// basis says what the value of a point rests on.
func basis(spec *dparetov1.StudySpec, y *dparetov1.MetricSpec, p *dparetov1.FrontPoint) string {
	v := p.GetValues()[y.GetId()]
	switch {
	case p.GetConstantPoint() != "":
		return "No run: " + show.ConstantPoint(spec, p.GetConstantPoint())
	case v.Lower != nil && v.Upper != nil:
		return Three(y, v.GetLower()) + " to " + Three(y, v.GetUpper()) + " (90 %), trial " + id(p.GetTrial())
	default:
		return "Measured in trial " + id(p.GetTrial()) + ", which may be luck."
	}
}
