package study

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/pause"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/pool"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/suggest/space"
)

// maxKeptValues bounds the values, of a few hundred bytes each, that one re-accounting computes
// before its transaction. The rest are computed inside.
const maxKeptValues = 500_000

// ReaccountStudy implements PrivacyService.
//
// Accounting takes up to milliseconds for every configuration. So values are computed outside
// transactions, from a view, and then written in one transaction, which also covers trials added
// meanwhile: readers see all trials before, or all after.
func (s *Studies) ReaccountStudy(ctx context.Context, req *dparetov1.ReaccountStudyRequest) (*dparetov1.ReaccountStudyResponse, error) {
	id, err := resource.ParseStudyName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	if req.GetMetric() == "" {
		return nil, invalid.Field("metric", "must be set")
	}
	var plan *reaccounting
	resp, err := answerPlanned(ctx, s, id, req, func() (func(*Change, *dparetov1.ReaccountStudyResponse) error, error) {
		err := s.pool.Run(ctx, pool.Analysis, func(ctx context.Context) (err error) {
			plan, err = planReaccounting(ctx, s, id, req)
			return err
		})
		if err == nil && req.GetValidateOnly() {
			err = errOnlyValidated
		}
		return func(c *Change, resp *dparetov1.ReaccountStudyResponse) error {
			if err := plan.write(ctx, c); err != nil {
				return err
			}
			proto.Merge(resp, plan.response)
			return nil
		}, err
	})
	if errors.Is(err, errOnlyValidated) {
		return plan.response, nil
	}
	return resp, err
}

// reaccounting is one change of the mechanism of a metric.
type reaccounting struct {
	id       string // of the study
	metric   string
	etag     string // of the study when it was planned
	compiled *spec.Study
	known    map[string]computedMetric // by configuration

	// Reset by every pass over the trials.
	response      *dparetov1.ReaccountStudyResponse
	before, after []float64 // values
}

// computedMetric is the value of a metric at a configuration. It is immutable.
type computedMetric struct {
	value   *dparetov1.MetricValue
	warning *dparetov1.Warning
}

// reaccountPage is the number of trials read at a time, to keep views short.
const reaccountPage = 500

// planReaccounting computes the metric of all trials with the new mechanism.
func planReaccounting(ctx context.Context, s *Studies, id string, req *dparetov1.ReaccountStudyRequest) (*reaccounting, error) {
	r := &reaccounting{id: id, metric: req.GetMetric(), known: make(map[string]computedMetric)}
	err := s.store.View(ctx, func(tx *store.ReadTx) error {
		record, err := FindStudy(tx, id)
		if err != nil {
			return err
		}
		study := record.GetStudy()
		if s.Policy(study.GetSpec()).Traits().Prepaid {
			return status.Errorf(codes.FailedPrecondition, "%s has private_mode or random_stopping: its budget holds only with the accounting that charged its runs", study.GetName())
		}
		if err := checkEtag(req.GetEtag(), study.GetEtag()); err != nil {
			return err
		}
		cached, err := s.Get(record)
		if err != nil {
			return err
		}
		if r.compiled, err = cached.Compiled.Reaccounted(r.metric, req.GetPrivacy()); err != nil {
			return err
		}
		r.etag = study.GetEtag()
		r.begin(study)
		r.response.Revision = study.GetRevision()
		return nil
	})
	if err != nil {
		return nil, err
	}
	page := make([]*dparetov1.Trial, 0, reaccountPage)
	for last := int64(0); last == 0 || len(page) == reaccountPage; {
		page = page[:0]
		err := s.store.View(ctx, func(tx *store.ReadTx) error {
			return tx.Trials(id, last, func(t *storev1.TrialRecord) (bool, error) {
				page = append(page, t.GetTrial())
				return len(page) < reaccountPage, tx.JoinAttempts(id, t)
			})
		})
		if err != nil {
			return nil, err
		}
		for _, trial := range page {
			if err := r.change(ctx, trial); err != nil {
				return nil, err
			}
			last = trial.GetNumber()
		}
		if len(page) == 0 {
			break
		}
	}
	r.end()
	return r, nil
}

// begin starts a pass over all trials of a study.
func (r *reaccounting) begin(study *dparetov1.Study) {
	summary := func(of *dparetov1.StudySpec) *dparetov1.AccountingSummary {
		for _, m := range of.GetMetrics() {
			if m.GetId() == r.metric {
				return &dparetov1.AccountingSummary{Privacy: m.GetComputed().GetPrivacy(), Accountants: make(map[string]int64)}
			}
		}
		panic("study: no such metric")
	}
	r.response = &dparetov1.ReaccountStudyResponse{Before: summary(study.GetSpec()), After: summary(r.compiled.Spec)}
	r.before, r.after = nil, nil
}

// change computes the metric of a trial again and replaces it in place.
func (r *reaccounting) change(ctx context.Context, trial *dparetov1.Trial) error {
	if err := pause.Check(ctx); err != nil {
		return err
	}
	point, err := PointOf(r.compiled, trial)
	if err != nil {
		return err
	}
	r.before = count(r.response.GetBefore(), r.before, trial.GetComputedMetrics()[r.metric])
	if r.compiled.Measurements.Recompute(trial, point, r.metric, r.compute) {
		r.response.DifferingReports++
	}
	r.after = count(r.response.GetAfter(), r.after, trial.GetComputedMetrics()[r.metric])
	r.response.Trials++
	return nil
}

// compute returns the metric at a configuration.
func (r *reaccounting) compute(point space.Point) (*dparetov1.MetricValue, *dparetov1.Warning) {
	key := point.Key()
	if known, ok := r.known[key]; ok {
		return known.value, known.warning
	}
	value, warning := r.compiled.Metrics.ComputeOne(r.metric, point)
	if len(r.known) < maxKeptValues {
		r.known[key] = computedMetric{value, warning}
	}
	return value, warning
}

// count adds a value to a summary.
func count(summary *dparetov1.AccountingSummary, values []float64, value *dparetov1.MetricValue) []float64 {
	if value == nil || value.Value == nil {
		summary.NotComputable++
		return values
	}
	summary.Accountants[value.GetPrivacy().GetAccountant().String()]++
	return append(values, value.GetValue())
}

// end completes the summaries at the end of a pass.
func (r *reaccounting) end() {
	for summary, values := range map[*dparetov1.AccountingSummary][]float64{r.response.GetBefore(): r.before, r.response.GetAfter(): r.after} {
		if n := len(values); n > 0 {
			slices.Sort(values)
			median := (values[(n-1)/2] + values[n/2]) / 2
			summary.SmallestEpsilon, summary.MedianEpsilon, summary.LargestEpsilon = &values[0], &median, &values[n-1]
		}
	}
}

// write changes the study and all its trials. It fails with errRaced if the study is not the
// one that was planned for.
func (r *reaccounting) write(ctx context.Context, c *Change) error {
	study := c.Study.GetStudy()
	if study.GetEtag() != r.etag {
		return errRaced
	}
	c.Compiled = r.compiled
	r.begin(study)
	var completed []*storev1.TrialRecord // for stagnation
	err := c.Tx.Trials(r.id, 0, func(t *storev1.TrialRecord) (bool, error) {
		if err := c.Tx.JoinAttempts(r.id, t); err != nil {
			return false, err
		}
		if err := r.change(ctx, t.GetTrial()); err != nil {
			return false, err
		}
		if err := c.Tx.PutParts(r.id, t); err != nil {
			return false, err
		}
		if c.Study.GetStagnation() != nil && IsTerminal(t.GetTrial().GetState()) {
			completed = append(completed, t)
		}
		return true, (&trialChange{c, t}).put(t.GetTrial().GetState())
	})
	if err != nil {
		return err
	}
	r.end()
	c.noteDesignChange(r.compiled.Spec)
	study.Spec, study.Warnings = r.compiled.Spec, r.compiled.Warnings
	c.TouchStudy()
	r.response.Revision = study.GetRevision()
	if c.Study.GetStagnation() != nil {
		c.Study.Stagnation = nil
		slices.SortFunc(completed, func(a, b *storev1.TrialRecord) int {
			return cmp.Compare(a.GetCompletionOrder(), b.GetCompletionOrder())
		})
		for _, t := range completed {
			c.updateStagnation(t.GetTrial())
		}
	}
	return nil
}
