package spec

import (
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// Limits of a RandomStoppingSpec that releases curves.
const (
	maxPortfolio   = 100
	maxCurvePoints = 1000
)

// curve checks what random stopping releases of the best candidate.
func (c *randomStoppingCompiler) curve() {
	const field = "random_stopping."
	spec := c.study.Spec
	stopping := spec.GetRandomStopping()
	if k := stopping.GetPortfolio(); k < 0 || k > maxPortfolio {
		c.addf(field+"portfolio", "must be in [1, %d], or 0 for 1, is %d", maxPortfolio, k)
	}
	switch stopping.GetRelease() {
	case dparetov1.RandomStoppingRelease_RANDOM_STOPPING_RELEASE_CURVE:
	case dparetov1.RandomStoppingRelease_RANDOM_STOPPING_RELEASE_UNSPECIFIED, dparetov1.RandomStoppingRelease_RANDOM_STOPPING_RELEASE_BEST_VALUE:
		c.value()
		return
	default:
		c.addf(field+"release", "is unknown: %v", stopping.GetRelease())
		return
	}
	if n := stopping.GetCurvePoints(); n < 0 || n > maxCurvePoints {
		c.addf(field+"curve_points", "must be in [1, %d], or 0 for %d, is %d", maxCurvePoints, defaultCurvePoints, n)
	}
	if spec.GetCheckpointParameter() == "" {
		c.addf("checkpoint_parameter", "must be set with RANDOM_STOPPING_RELEASE_CURVE: a curve has the states of a run")
	}
}

// value checks that a study that releases one value asks for nothing of a curve.
func (c *randomStoppingCompiler) value() {
	spec := c.study.Spec
	stopping := spec.GetRandomStopping()
	const curve = "RANDOM_STOPPING_RELEASE_CURVE"
	if stopping.GetPortfolio() > 1 {
		c.addf("random_stopping.portfolio", "must be 1 or unset without %s: several runs have no single value, is %d", curve, stopping.GetPortfolio())
	}
	if stopping.GetCurvePoints() != 0 {
		c.addf("random_stopping.curve_points", "must be unset without %s, is %d", curve, stopping.GetCurvePoints())
	}
	if spec.GetCheckpointParameter() != "" {
		c.addf("checkpoint_parameter", "must not be set with random_stopping, except with %s: a run is one candidate, at its end", curve)
	}
}

// curveMechanism checks that the ε of a state of a run is an objective, and covers everything before it.
func (c *randomStoppingCompiler) curveMechanism() {
	study := c.study
	if !study.ReleasesCurve() {
		return
	}
	id, function := study.Metrics.Mechanism("")
	if function == nil {
		return // mechanism says so
	}
	i := study.Metrics.index(id)
	if study.Metrics.all[i].spec.GetRole() != dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE {
		c.addf("random_stopping.release", "needs metric %q, the ε of a run, to be an objective: curves are compared by their hypervolume", id)
	}
	if !function.CoversCheckpoints() {
		c.addf("random_stopping.release", "must be RANDOM_STOPPING_RELEASE_BEST_VALUE with the mechanism of metric %q, which covers the last state of a run only; dp_sgd covers all states", id)
	}
}
