package view

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
)

// Change returns a change of a study as a line for people: its time and revision, and the
// new state of the trial or the study.
func Change(spec *dparetov1.StudySpec, change *dparetov1.WatchStudyResponse) string {
	line := []string{change.GetTime().AsTime().Local().Format("2006-01-02 15:04:05"), "revision " + strconv.FormatInt(change.GetRevision(), 10)}
	switch c := change.GetChange().(type) {
	case *dparetov1.WatchStudyResponse_Study:
		line = append(line, "study "+ID(c.Study.GetName())+" "+studyState(c.Study))
		if n := c.Study.GetSpec().GetBudget().GetMaxTrials(); n > 0 {
			line = append(line, "budget "+strconv.FormatInt(n, 10))
		}
	case *dparetov1.WatchStudyResponse_Trial:
		line = append(line, "trial "+ID(c.Trial.GetName())+" "+enum.Name(c.Trial.GetState()))
		for _, m := range spec.GetMetrics() {
			if value := result(c.Trial, m.GetId()); value != nil {
				line = append(line, m.GetId()+" "+output.Cell(value))
			}
		}
		if step := lastStep(c.Trial); step != nil && spec.GetCheckpointParameter() != "" {
			line = append(line, "step "+output.Cell(step))
		}
		if worker := c.Trial.GetWorkerId(); worker != "" {
			line = append(line, "worker "+worker)
		}
		if remark := note(spec, c.Trial, replicateOf(c.Trial), true); remark != "" {
			line = append(line, remark)
		}
	case *dparetov1.WatchStudyResponse_DeletedTrial:
		line = append(line, "trial "+ID(c.DeletedTrial)+" deleted")
	}
	return strings.Join(line, "  ")
}

// DeletedTrials adds a row for every deleted trial, given by its name, to a table of trials.
func DeletedTrials(t *output.Table, names []string) {
	for _, name := range names {
		row := make([]any, len(t.Columns))
		row[0], row[1] = ID(name), "deleted"
		t.Rows = append(t.Rows, row)
	}
}

// studyState returns the state of a study, and why.
func studyState(s *dparetov1.Study) string {
	state := enum.Name(s.GetState())
	if s.GetStateReason() != "" {
		state += ": " + s.GetStateReason()
	}
	return state
}

// replicateOf returns the number of the trial that a trial is a replicate of, or "".
func replicateOf(trial *dparetov1.Trial) string {
	if trial.GetReplicateOf() == "" {
		return ""
	}
	return ID(trial.GetReplicateOf())
}

// labelList returns labels in the order of their keys.
func labelList(labels map[string]string) string {
	list := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, key+"="+labels[key])
	}
	return strings.Join(list, ", ")
}
