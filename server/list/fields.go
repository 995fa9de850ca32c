package list

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/filter"
)

// labelsField is the name of the field with the labels of studies and trials.
const labelsField = "labels"

// studyField returns a field of studies for filters and order_by.
func studyField(path []string) (filter.Field[*dparetov1.Study], error) {
	type study = *dparetov1.Study
	switch name := strings.Join(path, "."); name {
	case "name":
		return textField(study.GetName), nil
	case "uid":
		return textField(study.GetUid), nil
	case "display_name":
		return textField(study.GetDisplayName), nil
	case "description":
		return textField(study.GetDescription), nil
	case labelsField:
		return filter.Field[study]{Kind: filter.Map}, nil
	case "state":
		return enumField(study.GetState), nil
	case "algorithm":
		return enumField(func(s study) dparetov1.Algorithm { return s.GetSpec().GetAlgorithm().GetName() }), nil
	case "trainer":
		return textField(func(s study) string { return s.GetSpec().GetTrainer().GetName() }), nil
	case "create_time":
		return timeField(study.GetCreateTime), nil
	case "update_time":
		return timeField(study.GetUpdateTime), nil
	case "revision":
		return numberField(study.GetRevision), nil
	case "trial_counts.queued":
		return numberField(func(s study) int64 { return s.GetTrialCounts().GetQueued() }), nil
	case "trial_counts.active":
		return numberField(func(s study) int64 { return s.GetTrialCounts().GetActive() }), nil
	case "trial_counts.stopping":
		return numberField(func(s study) int64 { return s.GetTrialCounts().GetStopping() }), nil
	case "trial_counts.succeeded":
		return numberField(func(s study) int64 { return s.GetTrialCounts().GetSucceeded() }), nil
	case "trial_counts.infeasible":
		return numberField(func(s study) int64 { return s.GetTrialCounts().GetInfeasible() }), nil
	case "trial_counts.failed":
		return numberField(func(s study) int64 { return s.GetTrialCounts().GetFailed() }), nil
	default:
		if path[0] == labelsField {
			return labelField(study.GetLabels, path[1:]), nil
		}
		return filter.Field[study]{}, fmt.Errorf("%.100q is not a field of studies; the fields are name, uid, display_name, description, labels, state, algorithm, "+
			"trainer, create_time, update_time, revision and trial_counts.{state}", name)
	}
}

// trialFields returns the fields of a study's trials for filters and order_by.
func trialFields(spec *dparetov1.StudySpec) filter.Fields[*dparetov1.Trial] {
	type trial = *dparetov1.Trial
	return func(path []string) (filter.Field[trial], error) {
		switch name := strings.Join(path, "."); name {
		case "number":
			return numberField(trial.GetNumber), nil
		case "state":
			return enumField(trial.GetState), nil
		case "state_reason":
			return textField(trial.GetStateReason), nil
		case "origin":
			return enumField(trial.GetOrigin), nil
		case "parameters", "metrics", labelsField:
			return filter.Field[trial]{Kind: filter.Map}, nil
		case "note":
			return textField(trial.GetNote), nil
		case "replicate_of":
			return textField(trial.GetReplicateOf), nil
		case "replicates":
			return numberField(trial.GetReplicates), nil
		case "worker":
			return textField(trial.GetWorkerId), nil
		case "attempt":
			return numberField(trial.GetAttempt), nil
		case "algorithm":
			return textField(func(t trial) string { return t.GetProvenance().GetAlgorithm() }), nil
		case "revision":
			return numberField(trial.GetRevision), nil
		case "create_time":
			return timeField(trial.GetCreateTime), nil
		case "start_time":
			return timeField(trial.GetStartTime), nil
		case "end_time":
			return timeField(trial.GetEndTime), nil
		default:
			rest := strings.Join(path[1:], ".")
			switch path[0] {
			case labelsField:
				return labelField(trial.GetLabels, path[1:]), nil
			case "parameters":
				return parameterField(spec, rest)
			case "metrics":
				return metricField(spec, rest)
			}
			return filter.Field[trial]{}, fmt.Errorf("%.100q is not a field of trials; the fields are number, state, state_reason, origin, parameters, metrics, labels, "+
				"note, replicate_of, replicates, worker, attempt, algorithm, revision, create_time, start_time and end_time", name)
		}
	}
}

// parameterField returns the field of a parameter's value.
func parameterField(spec *dparetov1.StudySpec, id string) (filter.Field[*dparetov1.Trial], error) {
	i := slices.IndexFunc(spec.GetParameters(), func(p *dparetov1.ParameterSpec) bool { return p.GetId() == id })
	if i < 0 {
		return filter.Field[*dparetov1.Trial]{}, fmt.Errorf("the study has no parameter %.100q", id)
	}
	if spec.GetParameters()[i].GetCategoricalDomain() != nil {
		return textField(func(t *dparetov1.Trial) string { return t.GetParameters()[id].GetStringValue() }), nil
	}
	return filter.Field[*dparetov1.Trial]{Kind: filter.Number, Get: func(t *dparetov1.Trial) filter.Value {
		switch value := t.GetParameters()[id].GetKind().(type) {
		case *dparetov1.Value_DoubleValue:
			return filter.NumberValue(value.DoubleValue)
		case *dparetov1.Value_IntValue:
			return filter.NumberValue(float64(value.IntValue))
		default:
			return filter.Value{}
		}
	}}, nil
}

// metricField returns the field of a metric's value: the measured value, or the one computed from
// the configuration.
func metricField(spec *dparetov1.StudySpec, id string) (filter.Field[*dparetov1.Trial], error) {
	if !slices.ContainsFunc(spec.GetMetrics(), func(m *dparetov1.MetricSpec) bool { return m.GetId() == id }) {
		return filter.Field[*dparetov1.Trial]{}, fmt.Errorf("the study has no metric %.100q", id)
	}
	return filter.Field[*dparetov1.Trial]{Kind: filter.Number, Get: func(t *dparetov1.Trial) filter.Value {
		value := t.GetFinalMeasurement().GetMetrics()[id]
		if value == nil {
			value = t.GetComputedMetrics()[id]
		}
		if value == nil || value.Value == nil {
			return filter.Value{}
		}
		return filter.NumberValue(value.GetValue())
	}}, nil
}

// The functions below make fields of each kind for resources of type T.

func textField[T any](get func(T) string) filter.Field[T] {
	return filter.Field[T]{Kind: filter.Text, Get: func(t T) filter.Value { return filter.TextValue(get(t)) }}
}

func numberField[T any, N int32 | int64](get func(T) N) filter.Field[T] {
	return filter.Field[T]{Kind: filter.Number, Get: func(t T) filter.Value { return filter.NumberValue(float64(get(t))) }}
}

func timeField[T any](get func(T) *timestamppb.Timestamp) filter.Field[T] {
	return filter.Field[T]{Kind: filter.Time, Get: func(t T) filter.Value {
		at := get(t)
		if at == nil {
			return filter.Value{}
		}
		return filter.TimeValue(at.AsTime())
	}}
}

func enumField[T any, E protoreflect.Enum](get func(T) E) filter.Field[T] {
	var zero E
	return filter.Field[T]{Kind: filter.Enum, Enum: zero.Descriptor(), Get: func(t T) filter.Value { return filter.EnumValue(get(t)) }}
}

// labelField returns the field of a label. Keys can contain dots.
func labelField[T any](get func(T) map[string]string, key []string) filter.Field[T] {
	name := strings.Join(key, ".")
	return filter.Field[T]{Kind: filter.Text, Get: func(t T) filter.Value { return filter.TextValue(get(t)[name]) }}
}
