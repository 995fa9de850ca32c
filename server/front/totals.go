package front

import (
	"context"
	"slices"
	"strings"
	"sync"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/metrics"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
)

const (
	// maxRecent is the number of studies whose hypervolumes are exported as metrics.
	maxRecent = 20
	// maxExportedRuns is the number of runs above which a study's hypervolume is not exported:
	// reading them all would slow down the scrape.
	maxExportedRuns = 2000
	// maxExportedObjectives is the number of objectives above which it is not exported: the cost is
	// exponential in it.
	maxExportedObjectives = 3
)

// Totals counts studies and trials for metrics. It is safe for concurrent use.
type Totals struct {
	studies *study.Studies
	store   *store.Store
	fronts  *Fronts
	metrics *metrics.Metrics
	recent  recentStudies
}

// NewTotals returns the totals of studies. It observes their changes and answers every scrape of the
// metrics.
func NewTotals(studies *study.Studies, db *store.Store, fronts *Fronts, m *metrics.Metrics) *Totals {
	t := &Totals{studies: studies, store: db, fronts: fronts, metrics: m}
	studies.Observe(t.observe)
	m.CountStudies(t.totals)
	return t
}

// observe counts the events of a study.
func (t *Totals) observe(events *study.Events) {
	if events.Hidden {
		return
	}
	for _, m := range events.Moves {
		t.metrics.TrialMoved(m.From, m.To)
		if m.To == dparetov1.TrialState_TRIAL_STATE_SUCCEEDED {
			t.recent.add(events.ID, events.Study.GetUid())
		}
	}
	for _, p := range events.Suggested {
		t.metrics.Suggested(p.GetAlgorithm(), p.GetFallbackReason() != "")
	}
	if events.Expired > 0 {
		t.metrics.LeasesExpired(events.Expired)
	}
}

// recentStudies are the studies with the latest results, latest first.
type recentStudies struct {
	mu      sync.Mutex
	studies []*recentStudy

	// computing guards the hypervolumes, and is held while they are computed. Calls that complete
	// trials need only mu.
	computing sync.Mutex
}

// recentStudy is a study and its hypervolume.
type recentStudy struct {
	id, uid     string
	revision    int64 // of hypervolume
	hypervolume float64
}

// add moves a study to the front, since it has a new result.
func (r *recentStudies) add(id, uid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.studies, func(s *recentStudy) bool { return s.uid == uid })
	if i == 0 {
		return
	}
	study := &recentStudy{id: id, uid: uid}
	if i > 0 {
		study = r.studies[i]
		r.studies = slices.Delete(r.studies, i, i+1)
	}
	r.studies = slices.Insert(r.studies, 0, study)
	r.studies = r.studies[:min(len(r.studies), maxRecent)]
}

// existing drops the studies not in uids, and returns the rest.
func (r *recentStudies) existing(uids map[string]int64) []*recentStudy {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.studies = slices.DeleteFunc(r.studies, func(s *recentStudy) bool { _, ok := uids[s.uid]; return !ok })
	return slices.Clone(r.studies)
}

// totals returns the totals for the metrics.
func (t *Totals) totals(ctx context.Context) (*metrics.Totals, error) {
	totals := &metrics.Totals{Studies: make(map[string]int64), Hypervolumes: make(map[string]float64)}
	for state, name := range dparetov1.StudyState_name {
		if state != 0 {
			totals.Studies[stateLabel(name)] = 0
		}
	}
	uids := make(map[string]int64) // runs, by uid
	err := t.store.View(ctx, func(tx *store.ReadTx) error {
		return tx.Studies("", func(record *storev1.StudyRecord) (bool, error) {
			state, _ := t.studies.State(record)
			totals.Studies[stateLabel(state.String())]++
			if t.studies.Policy(record.GetStudy().GetSpec()).Traits().Hidden {
				return ctx.Err() == nil, nil
			}
			counts := record.GetStudy().GetTrialCounts()
			for state, n := range map[dparetov1.TrialState]int64{
				dparetov1.TrialState_TRIAL_STATE_QUEUED:     counts.GetQueued(),
				dparetov1.TrialState_TRIAL_STATE_ACTIVE:     counts.GetActive(),
				dparetov1.TrialState_TRIAL_STATE_STOPPING:   counts.GetStopping(),
				dparetov1.TrialState_TRIAL_STATE_SUCCEEDED:  counts.GetSucceeded(),
				dparetov1.TrialState_TRIAL_STATE_INFEASIBLE: counts.GetInfeasible(),
				dparetov1.TrialState_TRIAL_STATE_FAILED:     counts.GetFailed(),
			} {
				store.AddToCounts(&totals.Trials, state, n)
			}
			uids[record.GetStudy().GetUid()] = study.SettledTrials(counts)
			return ctx.Err() == nil, nil
		})
	})
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	t.recent.computing.Lock()
	defer t.recent.computing.Unlock()
	for _, study := range t.recent.existing(uids) {
		if uids[study.uid] > maxExportedRuns || !t.updateHypervolume(ctx, study) {
			continue
		}
		totals.Hypervolumes[study.id] = study.hypervolume
	}
	return totals, nil
}

// updateHypervolume recomputes the hypervolume of a study's observed front if the study has changed.
// It reports whether the hypervolume is known.
func (t *Totals) updateHypervolume(ctx context.Context, study *recentStudy) bool {
	r, err := t.fronts.Results(ctx, study.id, false)
	if err != nil || r.Study.GetUid() != study.uid || len(r.problem.Objectives) > maxExportedObjectives {
		return false // deleted, or ctx has ended
	}
	if r.revision != study.revision {
		study.hypervolume, study.revision = r.measuredHypervolume(dparetov1.FrontKind_FRONT_KIND_OBSERVED), r.revision
	}
	return true
}

// stateLabel returns the metric label for a state's enum name.
func stateLabel(name string) string {
	return strings.ToLower(strings.TrimPrefix(name, "STUDY_STATE_"))
}
