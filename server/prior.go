package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/suggest"
)

const (
	// maxPriorStudies bounds the prior studies of a study.
	maxPriorStudies = 20
	// maxPriorEvaluations bounds the evaluations of prior studies that a model is given.
	maxPriorEvaluations = 1000
)

// checkPriorStudies refuses a spec whose prior studies do not exist or have another
// space or other objectives.
func checkPriorStudies(tx *store.ReadTx, asked *dparetov1.StudySpec) error {
	var fields invalid.Fields
	if n := len(asked.GetPriorStudies()); n > maxPriorStudies {
		return invalid.Field("study.spec.prior_studies", "must hold at most %d studies, holds %d", maxPriorStudies, n)
	}
	for i, name := range asked.GetPriorStudies() {
		field := fmt.Sprintf("study.spec.prior_studies[%d]", i)
		id, err := parseStudyName(field, name)
		if err != nil {
			return err
		}
		prior, err := tx.Study(id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			fields.Addf(field, "%s does not exist", name)
		case err != nil:
			return err
		case slices.Index(asked.GetPriorStudies(), name) < i:
			fields.Addf(field, "%s occurs twice", name)
		default:
			if difference := incompatibility(asked, prior.GetStudy().GetSpec()); difference != "" {
				fields.Addf(field, "%s cannot be a prior: %s", name, difference)
			}
		}
	}
	return fields.Err()
}

// incompatibility returns what keeps the trials of a prior study from meaning the same
// in another study, or "".
func incompatibility(asked, prior *dparetov1.StudySpec) string {
	domains := func(s *dparetov1.StudySpec) map[string]*dparetov1.ParameterSpec {
		all := make(map[string]*dparetov1.ParameterSpec)
		for _, p := range s.GetParameters() {
			all[p.GetId()] = &dparetov1.ParameterSpec{Domain: p.GetDomain()}
		}
		return all
	}
	objectives := func(s *dparetov1.StudySpec) map[string]*dparetov1.MetricSpec {
		all := make(map[string]*dparetov1.MetricSpec)
		for _, m := range s.GetMetrics() {
			if m.GetRole() == dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE {
				all[m.GetId()] = &dparetov1.MetricSpec{Goal: m.GetGoal(), Transform: m.GetTransform()}
			}
		}
		return all
	}
	if d := firstDifference(domains(asked), domains(prior)); d != "" {
		return "parameter " + d
	}
	if d := firstDifference(objectives(asked), objectives(prior)); d != "" {
		return "objective " + d
	}
	return ""
}

// firstDifference tells the first id, in their order, that only one of two studies has
// or that means something else in the other.
func firstDifference[M proto.Message](asked, prior map[string]M) string {
	var ids []string
	for id := range asked {
		ids = append(ids, id)
	}
	for id := range prior {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		a, inAsked := asked[id]
		b, inPrior := prior[id]
		switch {
		case !inPrior:
			return id + " is not one of its"
		case !inAsked:
			return id + " of it is missing here"
		case !proto.Equal(a, b):
			return fmt.Sprintf("%s is {%v} here and {%v} there", id, a, b)
		}
	}
	return ""
}

// priorCache keeps the evaluations of the prior studies of a study, for the trials that
// these had completed.
type priorCache struct {
	key         string
	evaluations []suggest.Evaluation
}

// read returns the evaluations of the prior studies. A study that is gone, or has been
// replaced by another of its name that is not comparable, is passed over with a warning.
func (p *priorCache) read(ctx context.Context, s *Server, tx *store.ReadTx, compiled *spec.Study, checkpoints bool) ([]suggest.Evaluation, error) {
	names := compiled.Spec.GetPriorStudies()
	if len(names) == 0 {
		return nil, nil
	}
	var key strings.Builder
	priors := make([]*storev1.StudyRecord, len(names))
	for i, name := range names {
		id, err := parseStudyName("name", name)
		if err != nil {
			return nil, err
		}
		record, err := tx.Study(id)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		if err == nil {
			priors[i] = record
			fmt.Fprintf(&key, "%s %v;", record.GetStudy().GetUid(), settledKey(record))
		} else {
			key.WriteString("gone;")
		}
	}
	if p.key == key.String() {
		return p.evaluations, nil
	}
	var evaluations []suggest.Evaluation
	for i, record := range priors {
		var reason string
		if record == nil {
			reason = "it does not exist any more"
		} else {
			reason = incompatibility(compiled.Spec, record.GetStudy().GetSpec())
		}
		if reason != "" {
			s.logger.WarnContext(ctx, "prior study passed over", "prior_study", names[i], "reason", reason)
			continue
		}
		var err error
		if evaluations, err = appendPrior(evaluations, tx, record.GetStudy(), compiled, checkpoints); err != nil {
			return nil, err
		}
	}
	p.key, p.evaluations = key.String(), thin(evaluations, maxPriorEvaluations, maxPriorEvaluations)
	return p.evaluations, nil
}

// appendPrior appends the evaluations of a prior study's successful trials. Their runs
// have negative numbers: those of the study itself are other runs.
func appendPrior(dst []suggest.Evaluation, tx *store.ReadTx, prior *dparetov1.Study, compiled *spec.Study, checkpoints bool) ([]suggest.Evaluation, error) {
	id := strings.TrimPrefix(prior.GetName(), studyName(""))
	sameSteps := prior.GetSpec().GetCheckpointParameter() == compiled.Spec.GetCheckpointParameter()
	run := int64(0)
	if n := len(dst); n > 0 {
		run = dst[n-1].Run
	}
	err := tx.Trials(id, 0, func(t *storev1.TrialRecord) (bool, error) {
		trial := t.GetTrial()
		if trial.GetState() != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED {
			return true, nil
		}
		point, err := pointOf(compiled, trial)
		if err != nil {
			return false, err
		}
		if !sameSteps { // they say nothing here
			trial.Measurements = nil
			trial.FinalMeasurement.Step = 0
		}
		first := len(dst)
		dst = appendEvaluations(dst, compiled, point, trial, checkpoints)
		run--
		for i := first; i < len(dst); i++ {
			dst[i].Run = run
		}
		return true, nil
	})
	return dst, err
}

// thin returns at most n of the evaluations: of evenly spaced runs the last checkpoint
// and at most each-1 others, spaced evenly in the logarithm of their number.
func thin(all []suggest.Evaluation, n, each int) []suggest.Evaluation {
	if len(all) <= min(n, each) {
		return all
	}
	var runs [][]suggest.Evaluation
	for i := range all {
		if i == 0 || all[i].Run == 0 || all[i].Run != all[i-1].Run {
			runs = append(runs, nil)
		}
		last := len(runs) - 1
		runs[last] = append(runs[last], all[i])
	}
	kept := min(n, len(runs))
	each = min(each, n/kept)
	var out []suggest.Evaluation
	for i := range kept {
		run := runs[(i+1)*len(runs)/kept-1]
		next := 0
		for j := range each {
			k := int(math.Round(math.Pow(float64(len(run)), float64(j+1)/float64(each)))) - 1
			if k >= next {
				out = append(out, run[k])
				next = k + 1
			}
		}
	}
	return out
}
