package front

import (
	"math"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// maxOthers bounds the configurations beside a front that GetFront lists.
const maxOthers = 5000

// choice is a front and the configurations that were not chosen.
type choice struct {
	front  *dparetov1.Front
	others []int // indices in Results.Configurations, of those with values that a front could have
}

// others returns the configurations beside the chosen ones.
func (d *Data) others(kind dparetov1.FrontKind, chosen []int) []int {
	isChosen := make([]bool, len(d.Configurations))
	for _, c := range chosen {
		isChosen[c] = true
	}
	var others []int
	for c, values := range d.values(kind) {
		if !isChosen[c] && !slices.ContainsFunc(values, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }) {
			others = append(others, c)
		}
	}
	return others
}

// withOthers returns a choice's front, with at most limit of the configurations beside it. The choice
// is shared, and stays as it is.
func (r *Results) withOthers(c *choice, limit int) *dparetov1.Front {
	if limit == 0 {
		return c.front
	}
	front := new(dparetov1.Front)
	c.front.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		front.ProtoReflect().Set(field, value)
		return true
	})
	for _, n := range evenly(len(c.others), limit) {
		front.Others = append(front.Others, r.measuredPoint(&r.Configurations[c.others[n-1]], front.GetKind()))
	}
	return front
}

// measuredPoint builds the message of a configuration beside a front of some kind.
func (d *Data) measuredPoint(c *Configuration, kind dparetov1.FrontKind) *dparetov1.MeasuredPoint {
	first := &d.Measurements[c.Measurements[0]]
	point := &dparetov1.MeasuredPoint{
		Trial:        d.TrialOf(first),
		Values:       make(map[string]float64),
		Intermediate: !slices.ContainsFunc(c.Measurements, func(k int) bool { return d.Measurements[k].Last }),
	}
	if d.Compiled.Points.Checkpoints() {
		point.Step = first.Step
	}
	values := d.value(c.Measurements, kind)
	for j, objective := range d.Compiled.Objectives() {
		point.Values[objective] = values[j]
	}
	return point
}
