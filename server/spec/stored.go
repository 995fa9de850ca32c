package spec

import (
	"fmt"
	"math"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/suggest/space"
)

// CheckStored checks a measurement as Measurement returned it, of a study that comes from
// elsewhere: everything that it checks, and that what it derives is possible. Computed
// metrics are not computed again: that takes long, and another version may compute them
// better. Field paths begin with path.
func (s *Study) CheckStored(path string, point space.Point, m *dparetov1.Measurement, final bool) error {
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
		if s.isComputed(id) {
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
		case s.IsNoisy() && value.Value != nil && math.Abs(value.GetValue()) <= maxMagnitude: // the noise may leave the range
			reported.Metrics[id] = &dparetov1.MetricValue{Value: new(min(max(value.GetValue(), 0), 1)), StandardError: value.StandardError}
		default:
			reported.Metrics[id] = &dparetov1.MetricValue{Value: value.Value, StandardError: value.StandardError}
		}
	}
	s.checkComputed(path+".metrics", computed, &fields)
	s.checkNoisy(path, m, &fields)
	if err := fields.Err(); err != nil {
		return err
	}
	return s.checkMeasurement(path, point, reported, final)
}

// CheckComputed checks the computed metrics of a trial that comes from elsewhere: that
// they are metrics of the study with values that can be computed.
func (s *Study) CheckComputed(path string, values map[string]*dparetov1.MetricValue) error {
	var fields invalid.Fields
	for id := range values {
		if !s.isComputed(id) {
			fields.Addf(fmt.Sprintf("%s[%q]", path, id), "is not a computed metric of the study")
		}
	}
	s.checkComputed(path, values, &fields)
	return fields.Err()
}

func (s *Study) isComputed(id string) bool {
	for i := range s.metrics {
		if s.metrics[i].spec.GetId() == id {
			return s.metrics[i].computed != nil
		}
	}
	return false
}

// checkComputed checks values of computed metrics. A computed ε can be infinite.
func (s *Study) checkComputed(path string, values map[string]*dparetov1.MetricValue, fields *invalid.Fields) {
	for id, value := range values {
		field := fmt.Sprintf("%s[%q]", path, id)
		if v := value.GetValue(); math.IsNaN(v) || math.IsInf(v, -1) {
			fields.Addf(field+".value", "is %g", v)
		}
		if len(value.GetRuns()) > 0 || value.StandardError != nil || value.Min != nil || value.Max != nil {
			fields.Addf(field, "runs, standard_error, min and max are not those of a computed metric")
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

// checkDerived checks what summarize derives.
func checkDerived(field string, v *dparetov1.MetricValue, fields *invalid.Fields) {
	if v.Reported != nil || v.GetPrivacy() != nil {
		fields.Addf(field, "reported and privacy are of computed metrics only")
	}
	if len(v.GetRuns()) == 0 {
		if v.Min != nil || v.Max != nil {
			fields.Addf(field, "min and max are derived from runs, of which there are none")
		}
		return
	}
	if v.Value == nil || v.Min == nil || v.Max == nil || !(v.GetMin() <= v.GetValue() && v.GetValue() <= v.GetMax()) {
		fields.Addf(field, "value, min and max must be those of the runs")
	}
	if se := v.StandardError; (se != nil) != (len(v.GetRuns()) > 1) || (se != nil && !(*se >= 0)) {
		fields.Addf(field+".standard_error", "must be that of the runs")
	}
}
