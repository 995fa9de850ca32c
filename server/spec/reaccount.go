package spec

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/suggest/space"
)

// Reaccounted returns the study with another privacy spec for a metric. It refuses a spec
// for runs of DP-SGD that never took place: another sampler, less or more noise. Field paths
// of the mechanism in the returned INVALID_ARGUMENT error begin with "privacy".
func (s *Study) Reaccounted(metric string, privacy *dparetov1.PrivacySpec) (*Study, error) {
	i := slices.IndexFunc(s.Spec.GetMetrics(), func(m *dparetov1.MetricSpec) bool { return m.GetId() == metric })
	if i < 0 || s.Spec.GetMetrics()[i].GetComputed().GetPrivacy() == nil {
		return nil, invalid.Field("metric", "%q is not a metric of the study that is computed from a mechanism", metric)
	}
	if privacy == nil {
		return nil, invalid.Field("privacy", "must be set")
	}
	if err := sameTrainer("privacy", s.Spec.GetMetrics()[i].GetComputed().GetPrivacy(), privacy); err != nil {
		return nil, err
	}
	changed := proto.CloneOf(s.Spec)
	changed.Metrics[i].GetComputed().Function = &dparetov1.ComputedSource_Privacy{Privacy: proto.CloneOf(privacy)}
	const path = "study.spec"
	study, err := Compile(path, changed)
	return study, renamed(err, fmt.Sprintf("%s.metrics[%d].computed.privacy", path, i), "privacy")
}

// sameTrainer refuses a new spec of DP-SGD whose trainer would have drawn its lots or its
// noise differently. It compares the mechanisms of nested specs one by one, if there are as
// many as before.
func sameTrainer(path string, before, after *dparetov1.PrivacySpec) error {
	old, changed := trainers(path, before), trainers(path, after)
	if len(old) != len(changed) {
		return nil
	}
	var fields invalid.Fields
	for i, m := range changed {
		was := old[i]
		if m.GetSampling() != was.GetSampling() {
			fields.Addf(m.path+".sampling", "must be %v, which drew the trials' lots: only the trainer can change its sampler", was.GetSampling())
		}
		if before.GetAdjacency() != after.GetAdjacency() && m.GetNoiseMultiplier() == was.GetNoiseMultiplier() {
			rule := "half"
			if after.GetAdjacency() == dparetov1.Adjacency_ADJACENCY_ADD_REMOVE {
				rule = "twice"
			}
			fields.Addf(m.path+".noise_multiplier", "must be %s of %s: the trials' noise has not changed, but the sensitivity under %v has",
				rule, was.GetNoiseMultiplier(), after.GetAdjacency())
		}
	}
	return fields.Err()
}

// trainer is a DP-SGD mechanism and the path of its field.
type trainer struct {
	*dparetov1.DpSgdMechanism
	path string
}

// trainers returns the DP-SGD mechanisms of a spec, in order. Compile bounds the depth of
// specs, the parser the depth of messages.
func trainers(path string, privacy *dparetov1.PrivacySpec) []trainer {
	switch m := privacy.GetMechanism().(type) {
	case *dparetov1.PrivacySpec_DpSgd:
		return []trainer{{m.DpSgd, path + ".dp_sgd"}}
	case *dparetov1.PrivacySpec_RepeatedSelection:
		return trainers(path+".repeated_selection.base", m.RepeatedSelection.GetBase())
	case *dparetov1.PrivacySpec_Composition:
		var all []trainer
		for i, part := range m.Composition.GetParts() {
			all = append(all, trainers(fmt.Sprintf("%s.composition.parts[%d].mechanism", path, i), part.GetMechanism())...)
		}
		return all
	default:
		return nil
	}
}

// renamed replaces the beginning of the field paths in an error.
func renamed(err error, from, to string) error {
	var fields invalid.Fields
	for _, detail := range status.Convert(err).Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok {
			for _, v := range bad.GetFieldViolations() {
				field := v.GetField()
				if rest, found := strings.CutPrefix(field, from); found {
					field = to + rest
				}
				fields.Addf(field, "%s", v.GetDescription())
			}
		}
	}
	if fields.Empty() {
		return err
	}
	return fields.Err()
}

// Recompute replaces a metric of a trial and of its measurements, past attempts included, and the
// warnings about it. compute returns the metric at a configuration, like ComputeOne. It reports
// whether a worker's own value differs from the computed one.
func (c *Measurements) Recompute(trial *dparetov1.Trial, point space.Point, metric string, compute func(space.Point) (*dparetov1.MetricValue, *dparetov1.Warning)) (differs bool) {
	if trial.ComputedMetrics == nil {
		trial.ComputedMetrics = make(map[string]*dparetov1.MetricValue)
	}
	value, warning := compute(point)
	trial.ComputedMetrics[metric] = value
	measurements := trial.GetMeasurements()
	if final := trial.GetFinalMeasurement(); final != nil {
		measurements = append(slices.Clone(measurements), final)
	}
	again, differs := c.recompute(measurements, point, metric, compute)
	if warning != nil {
		again = slices.Insert(again, 0, warning)
	}
	trial.Warnings = AddWarnings(without(trial.GetWarnings(), metric), again...)
	for _, attempt := range trial.GetPastAttempts() {
		again, differed := c.recompute(attempt.GetMeasurements(), point, metric, compute)
		attempt.Warnings = AddWarnings(without(attempt.GetWarnings(), metric), again...)
		differs = differs || differed
	}
	return differs
}

// without returns the warnings that are not about a metric.
func without(warnings []*dparetov1.Warning, metric string) []*dparetov1.Warning {
	return slices.DeleteFunc(slices.Clone(warnings), func(w *dparetov1.Warning) bool {
		return w.GetCode() == warnNotComputable && strings.HasPrefix(w.GetMessage(), notComputable(metric)) ||
			w.GetCode() == WarnReportDiffers && strings.HasPrefix(w.GetMessage(), reportOf(metric))
	})
}

// recompute replaces a metric of measurements, and returns the warnings about it.
func (c *Measurements) recompute(measurements []*dparetov1.Measurement, point space.Point, metric string, compute func(space.Point) (*dparetov1.MetricValue, *dparetov1.Warning)) (warnings []*dparetov1.Warning, differs bool) {
	computed := &c.metrics.all[c.metrics.index(metric)]
	for _, m := range measurements {
		value, warning := compute(c.points.At(point, m.GetStep()))
		if warning != nil {
			warnings = append(warnings, warning)
		}
		value = proto.CloneOf(value)
		if before := m.GetMetrics()[metric]; before != nil {
			value.Reported = before.Reported
		}
		if difference := computed.difference(value, m.GetStep()); difference != nil {
			warnings = append(warnings, difference)
			differs = true
		}
		if m.Metrics == nil {
			m.Metrics = make(map[string]*dparetov1.MetricValue)
		}
		m.Metrics[metric] = value
	}
	return warnings, differs
}
