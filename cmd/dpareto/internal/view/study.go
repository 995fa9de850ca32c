package view

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
	"github.com/dpareto/dpareto/internal/show"
)

// Columns of several tables.
const (
	adjacencyColumn = "adjacency"
	createdColumn   = "created"
	deltaColumn     = "delta"
	epsilonColumn   = "epsilon"
	mechanismColumn = "mechanism"
)

// ID returns the last part of a resource name: the id of a study, the number of a trial.
func ID(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// Studies returns a table of studies, one row each.
func Studies(studies []*dparetov1.Study) *output.Table {
	t := &output.Table{Columns: []string{"study", "state", "done", "open", "budget", "algorithm", createdColumn, "name"}}
	for _, s := range studies {
		var budget any
		if n := s.GetSpec().GetBudget().GetMaxTrials(); n > 0 {
			budget = n
		}
		done, open := any(Done(s.GetTrialCounts())), any(Open(s.GetTrialCounts()))
		if s.GetSpec().GetRandomStopping() != nil {
			done, open = nil, nil // secret
		}
		t.Rows = append(t.Rows, []any{
			ID(s.GetName()),
			enum.Name(s.GetState()),
			done, open, budget,
			enum.Name(s.GetSpec().GetAlgorithm().GetName()),
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
func Study(s *dparetov1.Study) *output.Table {
	t := output.FieldTable()
	add := func(field, value string) {
		if value != "" {
			t.Rows = append(t.Rows, []any{field, value})
		}
	}
	spec := s.GetSpec()
	add("study", ID(s.GetName()))
	add("name", s.GetDisplayName())
	add("description", strings.Join(strings.Fields(s.GetDescription()), " "))
	add("labels", labelList(s.GetLabels()))
	add("state", studyState(s))
	if p := s.GetPreparation(); p.GetTotal() > 0 {
		add("prepared", fmt.Sprintf("%d of %d mechanisms priced", p.GetDone(), p.GetTotal()))
	}
	add(createdColumn, output.Cell(s.GetCreateTime().AsTime()))
	add("trials", trialsOf(spec, s.GetTrialCounts()))
	add("stops after", limits(spec.GetBudget()))
	add("algorithm", algorithm(spec.GetAlgorithm()))
	add("features", show.Features(spec))
	if spec.GetRandomStopping() == nil {
		add("seed", strconv.FormatUint(s.GetSeed(), 10))
	}
	add("trainer", spec.GetTrainer().GetName())
	for _, p := range spec.GetParameters() {
		add("parameter", p.GetId()+": "+show.Parameter(p))
	}
	for _, constraint := range spec.GetParameterConstraints() {
		add("constraint", constraint)
	}
	for _, m := range spec.GetMetrics() {
		add("metric", m.GetId()+": "+show.Metric(m))
	}
	if checkpoint := spec.GetCheckpointParameter(); checkpoint != "" {
		add("checkpoints", "every value of "+checkpoint+" on the way of a run is a point")
	}
	if spec.GetDisableEarlyStopping() {
		add("early stopping", "off")
	}
	if n := spec.GetReplicates(); n > 1 {
		add("replicates", strconv.Itoa(int(n))+" runs per trial")
	}
	add("cost", cost(spec))
	for _, prior := range spec.GetPriorStudies() {
		add("prior study", ID(prior))
	}
	add("privacy", show.PrivacyStatement(spec))
	if n := spec.GetPrivateMode().GetTrainingShards(); n > 1 {
		add("shards", strconv.Itoa(int(n))+" disjoint ones of the training records, one per trial")
	}
	if c := s.GetDesignChange(); c != nil && spec.GetTestLedger() != "" {
		add("design changed", strings.Join(c.GetFields(), ", ")+", "+output.Cell(c.GetTime().AsTime())+", after the first trial")
	}
	add("test ledger", ID(spec.GetTestLedger()))
	add("train ledger", ID(spec.GetTrainLedger()))
	for _, line := range publicationLines(s.GetPublication()) {
		add(line[0], line[1])
	}
	if show.IsGenerated(spec) {
		add("data", output.GeneratedLabel)
	}
	for _, w := range s.GetWarnings() {
		add("warning", w.GetMessage()+" ("+w.GetCode()+")")
	}
	return t
}

// trialsOf says how many trials a study has, and how many it may have.
func trialsOf(spec *dparetov1.StudySpec, counts *dparetov1.TrialCounts) string {
	if stopping := spec.GetRandomStopping(); stopping != nil {
		shown := "the best by " + stopping.GetMetric() + " is shown"
		if stopping.GetRelease() == dparetov1.RandomStoppingRelease_RANDOM_STOPPING_RELEASE_CURVE {
			shown = "the best learning curve by hypervolume is shown"
		}
		if stopping.GetPortfolio() > 1 {
			shown = "the one with the best learning curves is shown"
		}
		if final := stopping.GetFinalRun(); final != nil {
			shown = "the best by " + stopping.GetMetric() + " is run again: they see a secret " + show.Plain(100*stopping.GetSubsetShare()) +
				" % of the training records, the final run, which is shown, all " + strconv.FormatInt(final.GetDatasetSize(), 10)
		}
		return show.RandomTrials(stopping) + ", of which " + shown
	}
	parts := []string{strconv.FormatInt(counts.GetSucceeded(), 10) + " succeeded"}
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
			parts = append(parts, strconv.FormatInt(c.n, 10)+" "+c.what)
		}
	}
	if n := spec.GetBudget().GetMaxTrials(); n > 0 {
		parts = append(parts, "budget "+strconv.FormatInt(n, 10))
	}
	return strings.Join(parts, ", ")
}

// algorithm returns the algorithm of a study in words.
func algorithm(a *dparetov1.AlgorithmSpec) string {
	name := enum.Name(a.GetName())
	if a.GetPublishedAcquisition() {
		name += " with the published code's acquisition"
	}
	if n := a.GetInitialTrials(); n > 0 {
		name += " after " + strconv.Itoa(int(n)) + " initial trials"
	}
	return name
}

// limits returns the limits of a study besides the number of trials, in words, or "".
func limits(b *dparetov1.Budget) string {
	var parts []string
	if n := b.GetMaxStagnantTrials(); n > 0 {
		parts = append(parts, strconv.FormatInt(n, 10)+" trials without a better front")
	}
	if d := b.GetMaxDuration(); d != nil {
		parts = append(parts, show.Duration(d.AsDuration()))
	}
	return strings.Join(parts, ", or ")
}

// cost returns what a trial costs in words, or "" if all cost the same.
func cost(spec *dparetov1.StudySpec) string {
	switch measure := spec.GetCost().GetMeasure().(type) {
	case *dparetov1.CostSpec_CheckpointParameter:
		return "of a trial: its " + spec.GetCheckpointParameter()
	case *dparetov1.CostSpec_Metric:
		return "of a trial: its " + measure.Metric
	default:
		return ""
	}
}

// Title returns the name of a study for headings, labelled if its data are generated.
func Title(study *dparetov1.Study) string {
	title := study.GetDisplayName()
	if title == "" {
		title = ID(study.GetName())
	}
	if show.IsGenerated(study.GetSpec()) && !strings.Contains(title, output.GeneratedLabel) {
		title += " (" + output.GeneratedLabel + ")"
	}
	return title
}
