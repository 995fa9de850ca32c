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
	if prior.GetRandomStopping() != nil {
		return "with random_stopping it shows nothing but its best trial"
	}
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
	if d := firstDifference(domains(asked), domains(prior), holdsDomain); d != "" {
		return "parameter " + d
	}
	sameObjective := func(a, b *dparetov1.MetricSpec) bool { return proto.Equal(a, b) }
	if d := firstDifference(objectives(asked), objectives(prior), sameObjective); d != "" {
		return "objective " + d
	}
	return ""
}

// holdsDomain reports whether a parameter can have all values of a parameter of a prior
// study: its domain may have grown since.
func holdsDomain(asked, prior *dparetov1.ParameterSpec) bool {
	_, reason, sameKind := missing(prior, asked)
	return sameKind && reason == ""
}

// firstDifference tells the first id, in their order, that only one of two studies has
// or that does not mean the same in the other.
func firstDifference[M proto.Message](asked, prior map[string]M, same func(asked, prior M) bool) string {
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
		case !same(a, b):
			return fmt.Sprintf("%s is {%v} here and {%v} there", id, a, b)
		}
	}
	return ""
}

// priorCache keeps the evaluations of the prior studies of a study: of each what was
// converted already, so that only trials that it has completed since are read.
type priorCache struct {
	key         string // the trials of the studies that evaluations are of
	evaluations []suggest.Evaluation
	studies     map[string]*historyCache // by version; their own locks are not used
}

// versionOf identifies a study with its spec: as long as that is the same, trials that
// are complete do not change.
func versionOf(study *dparetov1.Study) string { return study.GetUid() + "/" + study.GetEtag() }

// priorRuns is the distance between the numbers of the runs of two prior studies, and
// between those of the study itself and of the first: more than any number of a trial.
const priorRuns = 1 << 32

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
			fmt.Fprintf(&key, "%s %v;", versionOf(record.GetStudy()), settledKey(record))
		} else {
			key.WriteString("gone;")
		}
	}
	if p.key == key.String() {
		return p.evaluations, nil
	}
	var evaluations []suggest.Evaluation
	studies := make(map[string]*historyCache)
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
		prior := record.GetStudy()
		h := p.studies[versionOf(prior)]
		if h == nil {
			h = &historyCache{otherSteps: prior.GetSpec().GetCheckpointParameter() != compiled.Spec.GetCheckpointParameter()}
		}
		studies[versionOf(prior)] = h
		id := strings.TrimPrefix(prior.GetName(), studyName(""))
		history, err := h.read(tx, id, record, compiled, checkpoints)
		if err != nil {
			return nil, err
		}
		for _, e := range history.Evaluations {
			if e.Run != 0 { // their runs are not those of the study itself
				e.Run += int64(i+1) * priorRuns
			}
			evaluations = append(evaluations, e)
		}
	}
	p.key, p.studies = key.String(), studies
	p.evaluations = thin(evaluations, maxPriorEvaluations, maxPriorEvaluations)
	return p.evaluations, nil
}

// size returns the number of evaluations that are kept.
func (p *priorCache) size() int {
	size := len(p.evaluations)
	for _, h := range p.studies {
		size += len(h.evaluations)
	}
	return size
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
