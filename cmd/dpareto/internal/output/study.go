package output

import (
	"strconv"
	"strings"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// ID returns the last part of a resource name: the id of a study, the number of a trial.
func ID(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// short returns the name of an enum value in lower case and without its prefix.
func short(name, prefix string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, prefix)), "_", "-")
}

// Studies returns a table of studies, one row each.
func Studies(studies []*dparetov1.Study) *Table {
	t := &Table{Columns: []string{"study", "state", "done", "open", "budget", "algorithm", "created", "name"}}
	for _, s := range studies {
		var budget any
		if n := s.GetSpec().GetBudget().GetMaxTrials(); n > 0 {
			budget = n
		}
		t.Rows = append(t.Rows, []any{
			ID(s.GetName()),
			short(s.GetState().String(), "STUDY_STATE_"),
			Done(s.GetTrialCounts()), Open(s.GetTrialCounts()), budget,
			short(s.GetSpec().GetAlgorithm().GetName().String(), "ALGORITHM_"),
			s.GetCreateTime().AsTime(),
			s.GetDisplayName(),
		})
	}
	return t
}

// Done returns the number of trials in a terminal state.
func Done(c *dparetov1.TrialCounts) int64 {
	return c.GetSucceeded() + c.GetInfeasible() + c.GetFailed()
}

// Open returns the number of trials that are not in a terminal state.
func Open(c *dparetov1.TrialCounts) int64 {
	return c.GetQueued() + c.GetActive() + c.GetStopping()
}

// Study returns a table of what a study is, a row for every field.
func Study(s *dparetov1.Study) *Table {
	t := &Table{Columns: []string{"field", "value"}}
	add := func(field, value string) {
		if value != "" {
			t.Rows = append(t.Rows, []any{field, value})
		}
	}
	spec, counts := s.GetSpec(), s.GetTrialCounts()
	add("study", ID(s.GetName()))
	add("name", s.GetDisplayName())
	state := short(s.GetState().String(), "STUDY_STATE_")
	if s.GetStateReason() != "" {
		state += ": " + s.GetStateReason()
	}
	add("state", state)
	add("created", text(s.GetCreateTime().AsTime()))
	trials := []string{strconv.FormatInt(counts.GetSucceeded(), 10) + " succeeded"}
	for _, c := range []struct {
		n    int64
		what string
	}{
		{counts.GetInfeasible(), "infeasible"},
		{counts.GetFailed(), "failed"},
		{counts.GetQueued(), "queued"},
		{counts.GetActive() + counts.GetStopping(), "active"},
	} {
		if c.n > 0 {
			trials = append(trials, strconv.FormatInt(c.n, 10)+" "+c.what)
		}
	}
	if n := spec.GetBudget().GetMaxTrials(); n > 0 {
		trials = append(trials, "budget "+strconv.FormatInt(n, 10))
	}
	add("trials", strings.Join(trials, ", "))
	add("algorithm", short(spec.GetAlgorithm().GetName().String(), "ALGORITHM_"))
	add("seed", strconv.FormatUint(s.GetSeed(), 10))
	add("trainer", spec.GetTrainer().GetName())
	for _, p := range spec.GetParameters() {
		add("parameter", p.GetId()+" "+domain(p))
	}
	for _, m := range spec.GetMetrics() {
		add("metric", metric(m))
	}
	add("privacy", PrivacyStatement(spec))
	if IsGenerated(spec) {
		add("data", GeneratedLabel)
	}
	for _, w := range s.GetWarnings() {
		add("warning", w.GetMessage()+" ("+w.GetCode()+")")
	}
	return t
}

// domain returns the domain of a parameter in words.
func domain(p *dparetov1.ParameterSpec) string {
	scale := ""
	if p.GetScale() == dparetov1.Scale_SCALE_LOG {
		scale = ", logarithmic"
	}
	switch d := p.GetDomain().(type) {
	case *dparetov1.ParameterSpec_DoubleDomain:
		return "in [" + Plain(d.DoubleDomain.GetMin()) + ", " + Plain(d.DoubleDomain.GetMax()) + "]" + scale
	case *dparetov1.ParameterSpec_IntegerDomain:
		return "in {" + strconv.FormatInt(d.IntegerDomain.GetMin(), 10) + ", …, " + strconv.FormatInt(d.IntegerDomain.GetMax(), 10) + "}" + scale
	case *dparetov1.ParameterSpec_DiscreteDomain:
		values := make([]string, len(d.DiscreteDomain.GetValues()))
		for i, v := range d.DiscreteDomain.GetValues() {
			values[i] = Plain(v)
		}
		return "in {" + strings.Join(values, ", ") + "}" + scale
	case *dparetov1.ParameterSpec_CategoricalDomain:
		return "in {" + strings.Join(d.CategoricalDomain.GetCategories(), ", ") + "}"
	default:
		return ""
	}
}

// metric returns a metric in words.
func metric(m *dparetov1.MetricSpec) string {
	text := m.GetId()
	if m.GetUnit() != "" {
		text += " (" + m.GetUnit() + ")"
	}
	if m.GetRole() == dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE {
		text += " " + short(m.GetGoal().String(), "GOAL_") + " below "
		if m.GetGoal() == dparetov1.Goal_GOAL_MAXIMIZE {
			text = strings.TrimSuffix(text, "below ") + "above "
		}
		text += Plain(m.GetReferenceValue())
	} else {
		text += " " + short(m.GetRole().String(), "METRIC_ROLE_")
	}
	if m.GetComputed() != nil {
		text += ", computed"
	}
	return text
}
