package spec

import (
	"fmt"
	"math"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/suggest/space"
)

// CheckStored checks a measurement of an imported study, as Accept returned it: its
// input as Accept does, and that its derived values are possible. It does not compute
// metrics again, which takes long: another version may compute them better. Field paths begin
// with path.
func (c *Measurements) CheckStored(path string, point space.Point, m *dparetov1.Measurement, final bool) error {
	if m == nil {
		return invalid.Field(path, "must be set")
	}
	reported := &dparetov1.Measurement{Step: m.GetStep(), Elapsed: m.GetElapsed(), Metrics: make(map[string]*dparetov1.MetricValue)}
	computed := make(map[string]*dparetov1.MetricValue)
	var fields invalid.Fields
	if t := m.GetReportTime(); t != nil && t.CheckValid() != nil {
		fields.Addf(path+".report_time", "is not a valid time")
	}
	for id, value := range m.GetMetrics() {
		field := fmt.Sprintf("%s.metrics[%q]", path, id)
		if value == nil {
			fields.Addf(field, "must be set")
			continue
		}
		if c.metrics.isComputed(id) {
			computed[id] = value
			if value.Reported != nil {
				reported.Metrics[id] = &dparetov1.MetricValue{Value: value.Reported}
			}
			continue
		}
		checkDerived(field, value, &fields)
		switch {
		case len(value.GetRuns()) > 0:
			reported.Metrics[id] = &dparetov1.MetricValue{Runs: value.GetRuns()}
		default:
			reported.Metrics[id] = &dparetov1.MetricValue{Value: value.Value, StandardError: value.StandardError}
		}
	}
	checkComputed(path+".metrics", computed, &fields)
	if err := fields.Err(); err != nil {
		return err
	}
	return c.checkMeasurement(path, point, reported, final)
}

// CheckComputed checks the computed metrics of an imported trial: they are metrics of the
// study, with possible values.
func (c *Measurements) CheckComputed(path string, values map[string]*dparetov1.MetricValue) error {
	var fields invalid.Fields
	for id := range values {
		if !c.metrics.isComputed(id) {
			fields.Addf(fmt.Sprintf("%s[%q]", path, id), "is not a computed metric of the study")
		}
	}
	checkComputed(path, values, &fields)
	return fields.Err()
}

// checkComputed checks values of computed metrics. A computed ε can be infinite.
func checkComputed(path string, values map[string]*dparetov1.MetricValue, fields *invalid.Fields) {
	for id, value := range values {
		field := fmt.Sprintf("%s[%q]", path, id)
		if v := value.GetValue(); math.IsNaN(v) || math.IsInf(v, -1) {
			fields.Addf(field+".value", "is %g", v)
		}
		if len(value.GetRuns()) > 0 || value.StandardError != nil || value.Min != nil || value.Max != nil {
			fields.Addf(field, "runs, standard_error, min and max must not be set for a computed metric")
		}
		p := value.GetPrivacy()
		if p == nil {
			continue
		}
		if epsilon, delta := p.GetEpsilon(), p.GetDelta(); !(epsilon >= 0) || !(delta >= 0 && delta < 1) {
			fields.Addf(field+".privacy", "is no guarantee: epsilon %g, delta %g", epsilon, delta)
		}
	}
}

// checkDerived checks the fields that summarize sets.
func checkDerived(field string, v *dparetov1.MetricValue, fields *invalid.Fields) {
	if v.Reported != nil || v.GetPrivacy() != nil {
		fields.Addf(field, "reported and privacy are only for computed metrics")
	}
	if len(v.GetRuns()) == 0 {
		if v.Min != nil || v.Max != nil {
			fields.Addf(field, "min and max must not be set without runs")
		}
		return
	}
	if v.Value == nil || v.Min == nil || v.Max == nil || !(v.GetMin() <= v.GetValue() && v.GetValue() <= v.GetMax()) {
		fields.Addf(field, "value, min and max must summarize the runs")
	}
	if se := v.StandardError; (se != nil) != (len(v.GetRuns()) > 1) || (se != nil && !(*se >= 0)) {
		fields.Addf(field+".standard_error", "must be set for two or more runs, and only for them")
	}
}
