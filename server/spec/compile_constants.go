package spec

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// Limits of the constant points.
const (
	maxConstantPoints       = 10
	maxConstantName         = 200
	maxConstantsDescription = 1000
)

// constantPoints checks the results that can be had without a run.
func (c *compiler) constantPoints(study *Study) {
	points := c.spec.GetConstantPoints()
	if n := len(points); n > maxConstantPoints {
		c.addf("constant_points", "must hold at most %d points, holds %d", maxConstantPoints, n)
		return
	}
	seen := make(map[string]bool)
	for i, p := range points {
		field := fmt.Sprintf("constant_points[%d]", i)
		switch {
		case !identifier.MatchString(p.GetId()):
			c.addf(field+".id", "must be a letter followed by at most 63 letters, digits and underscores, is %.100q", p.GetId())
		case seen[p.GetId()]:
			c.addf(field+".id", "%q occurs twice", p.GetId())
		}
		seen[p.GetId()] = true
		if n := utf8.RuneCountInString(p.GetDisplayName()); n > maxConstantName {
			c.addf(field+".display_name", "must have at most %d characters, has %d", maxConstantName, n)
		}
		if n := utf8.RuneCountInString(p.GetDescription()); n > maxConstantsDescription {
			c.addf(field+".description", "must have at most %d characters, has %d", maxConstantsDescription, n)
		}
		c.constantValues(field+".values", study, p.GetValues())
	}
}

// constantValues checks the values of a constant point.
func (c *compiler) constantValues(field string, study *Study, values map[string]float64) {
	for _, i := range study.Metrics.objectives {
		m := study.Metrics.all[i].spec
		v, ok := values[m.GetId()]
		at := fmt.Sprintf("%s[%q]", field, m.GetId())
		switch {
		case !ok:
			c.addf(at, "must be set: a constant point has a value for every objective")
		case math.IsNaN(v) || math.IsInf(v, 0):
			c.addf(at, "must be finite, is %g", v)
		case math.Abs(v) > maxMagnitude:
			c.addf(at, "must be at most %g in magnitude, is %g", maxMagnitude, v)
		case v < 0 && (m.GetComputed().GetPrivacy() != nil || m.GetTransform() == dparetov1.Transform_TRANSFORM_LOG):
			c.addf(at, "must not be negative, is %g", v)
		case !(v >= 0 && v <= 1) && m.GetTransform() == dparetov1.Transform_TRANSFORM_LOGIT:
			c.addf(at, "must be in [0, 1] under TRANSFORM_LOGIT, is %g", v)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(values)) {
		isObjective := func(i int) bool { return study.Metrics.all[i].id() == id }
		if !slices.ContainsFunc(study.Metrics.objectives, isObjective) {
			c.addf(fmt.Sprintf("%s[%q]", field, id), "is not an objective")
		}
	}
}
