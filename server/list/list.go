package list

import (
	"context"
	"errors"
	"strings"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/pause"
	"github.com/dpareto/dpareto/server/auth"
	"github.com/dpareto/dpareto/server/filter"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/pagination"
	"github.com/dpareto/dpareto/server/pool"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
)

// Lists lists studies and trials. It is safe for concurrent use.
type Lists struct {
	studies *study.Studies
	store   *store.Store
	pool    *pool.Pool
}

// New returns the lists of studies. Lists that take long share the pool.
func New(studies *study.Studies, db *store.Store, processors *pool.Pool) *Lists {
	return &Lists{studies, db, processors}
}

// chunk is how many trials a list reads between two pauses. No transaction is open at a pause: it would
// keep a file from growing, and so hold up workers.
const chunk = 256

// run calls fn, which makes a page of a list. Pages that take long wait behind the computations for
// workers, and few are made at once.
func (l *Lists) run(ctx context.Context, size int32, filter, order string, fn func(context.Context) error) error {
	if pagination.IsQuick(size, filter, order) {
		return fn(ctx)
	}
	return l.pool.Run(ctx, pool.Analysis, fn)
}

// restriction compiles the filter and order_by of a list request.
func restriction[T any](source, by string, fields filter.Fields[T]) (filter.Filter[T], filter.Order[T], error) {
	belongs, err := filter.Parse(source, fields)
	if err != nil {
		return nil, nil, invalid.Field("filter", "%v", err)
	}
	order, err := filter.ParseOrder(by, fields)
	if err != nil {
		return nil, nil, invalid.Field("order_by", "%v", err)
	}
	return belongs, order, nil
}

// ListStudies implements StudyService.
func (l *Lists) ListStudies(ctx context.Context, req *dparetov1.ListStudiesRequest) (*dparetov1.ListStudiesResponse, error) {
	q, err := pagination.NewQuery(req.GetPageSize(), req.GetPageToken(), "studies", req.GetFilter(), req.GetOrderBy())
	if err != nil {
		return nil, err
	}
	belongs, order, err := restriction(req.GetFilter(), req.GetOrderBy(), studyField)
	if err != nil {
		return nil, err
	}
	resp := new(dparetov1.ListStudiesResponse)
	err = l.run(ctx, req.GetPageSize(), req.GetFilter(), req.GetOrderBy(), func(ctx context.Context) error {
		return l.pageOfStudies(ctx, q, belongs, order, resp)
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// pageOfStudies sets a page of the studies that belong to a list.
func (l *Lists) pageOfStudies(ctx context.Context, q *pagination.Query, belongs filter.Filter[*dparetov1.Study], order filter.Order[*dparetov1.Study], resp *dparetov1.ListStudiesResponse) error {
	// Studies that the caller may not read leave no trace, not even a page token.
	readable := func(study *dparetov1.Study) bool {
		return auth.CanRead(ctx, resource.StudyID(study.GetName()))
	}
	return l.store.View(ctx, func(tx *store.ReadTx) error {
		if len(order) > 0 {
			all := pagination.Sorted[*dparetov1.Study]{Query: q}
			err := tx.Studies("", func(record *storev1.StudyRecord) (bool, error) {
				study := l.studies.Present(record)
				if readable(study) && belongs(study) {
					all.Add(order.Key(study)+study.GetName(), study)
				}
				return true, ctx.Err()
			})
			resp.Studies, resp.NextPageToken = all.Page()
			return err
		}
		studies := pagination.Page[*dparetov1.Study]{Query: q}
		err := tx.Studies(q.Position, func(record *storev1.StudyRecord) (bool, error) {
			study := l.studies.Present(record)
			if !readable(study) {
				return true, ctx.Err()
			}
			id := resource.StudyID(study.GetName())
			return studies.Add(id, belongs(study), study), ctx.Err()
		})
		resp.Studies, resp.NextPageToken = studies.Resources, studies.Next
		return err
	})
}

// ListTrials implements StudyService.
func (l *Lists) ListTrials(ctx context.Context, req *dparetov1.ListTrialsRequest) (*dparetov1.ListTrialsResponse, error) {
	id, err := resource.ParseStudyName("parent", req.GetParent())
	if err != nil {
		return nil, err
	}
	after := req.GetAfterRevision()
	q, err := pagination.NewQuery(req.GetPageSize(), req.GetPageToken(), req.GetParent(), req.GetFilter(), req.GetOrderBy(), after)
	if err != nil {
		return nil, err
	}
	switch {
	case after < 0:
		return nil, invalid.Field("after_revision", "must not be negative, is %d", after)
	case after > 0 && req.GetOrderBy() != "":
		return nil, invalid.Field("order_by", "must be empty with after_revision: changes are listed by revision")
	}
	resp := new(dparetov1.ListTrialsResponse)
	sorted := req.GetOrderBy()
	if isNewestFirst(sorted) {
		sorted = ""
	}
	err = l.run(ctx, req.GetPageSize(), req.GetFilter(), sorted, func(ctx context.Context) error {
		return l.pageOfTrials(ctx, id, q, req, resp)
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// pageOfTrials sets a page of the trials of a study.
func (l *Lists) pageOfTrials(ctx context.Context, id string, q *pagination.Query, req *dparetov1.ListTrialsRequest, resp *dparetov1.ListTrialsResponse) error {
	var (
		after   = req.GetAfterRevision()
		uid     string
		belongs filter.Filter[*dparetov1.Trial]
		order   filter.Order[*dparetov1.Trial]
		done    bool
	)
	err := l.store.View(ctx, func(tx *store.ReadTx) error {
		record, err := study.FindStudy(tx, id)
		if err != nil {
			return err
		}
		belongs, order, err = restriction(req.GetFilter(), req.GetOrderBy(), trialFields(record.GetStudy().GetSpec()))
		if err != nil {
			return err
		}
		if q.Position == "" {
			q.Revision = record.GetStudy().GetRevision()
		}
		resp.Revision, uid = q.Revision, record.GetStudy().GetUid()
		switch {
		case after > 0:
			done = true
			if err := study.CheckRevision("after_revision", after, record.GetStudy()); err != nil {
				return err
			}
			if q.Position == "" {
				if err := tx.CheckChanges(id); err != nil {
					return err
				}
			}
			return listing{id, q, belongs, resp}.changes(ctx, tx, after)
		case isNewestFirst(req.GetOrderBy()):
			done = true
			return listing{id, q, belongs, resp}.newest(ctx, tx, record.GetNextTrialNumber())
		default:
			return nil
		}
	})
	if err != nil || done {
		return err
	}
	if len(order) > 0 {
		all := pagination.Sorted[*dparetov1.Trial]{Query: q}
		err = l.scan(ctx, id, uid, 0, func(trial *dparetov1.Trial) bool {
			if belongs(trial) {
				all.Add(order.Key(trial)+pagination.NumberKey(trial.GetNumber()), trial)
			}
			return true
		})
		resp.Trials, resp.NextPageToken = all.Page()
		return err
	}
	trials := pagination.Page[*dparetov1.Trial]{Query: q}
	err = l.scan(ctx, id, uid, q.Number(), func(trial *dparetov1.Trial) bool {
		return trials.Add(pagination.NumberKey(trial.GetNumber()), belongs(trial), trial)
	})
	resp.Trials, resp.NextPageToken = trials.Resources, trials.Next
	return err
}

// scan calls fn for the trials of a study with numbers above after, until it returns false, and pauses
// now and then. A trial that changes meanwhile comes in its state before or after, so it may be later than
// the list's revision; nothing between is left out.
func (l *Lists) scan(ctx context.Context, id, uid string, after int64, fn func(*dparetov1.Trial) bool) error {
	for more := true; more; {
		more = false
		err := l.store.View(ctx, func(tx *store.ReadTx) error {
			record, err := study.FindStudy(tx, id)
			if err == nil && record.GetStudy().GetUid() != uid {
				err = resource.StudyNotFound(id)
			}
			if err != nil {
				return err
			}
			read := 0
			return tx.Trials(id, after, func(t *storev1.TrialRecord) (bool, error) {
				if read == chunk {
					more = true
					return false, nil
				}
				read++
				after = t.GetTrial().GetNumber()
				return fn(t.GetTrial()), ctx.Err()
			})
		})
		if err != nil {
			return err
		}
		if more {
			if err := pause.Check(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// listing is a page of the trials of a study in the making.
type listing struct {
	id      string // of the study
	query   *pagination.Query
	belongs filter.Filter[*dparetov1.Trial]
	resp    *dparetov1.ListTrialsResponse
}

// changes sets a page of the trials that changed after a revision, and of the names of deleted
// ones.
func (l listing) changes(ctx context.Context, tx *store.ReadTx, after int64) error {
	changes := pagination.Page[*dparetov1.Trial]{Query: l.query}
	err := tx.Changes(l.id, max(after, l.query.Number()), func(revision int64, change *storev1.RevisionRecord) (bool, error) {
		isListed := change.GetDeletedTrial() > 0
		trial := new(dparetov1.Trial)
		if n := change.GetTrial(); n > 0 {
			record, err := tx.Trial(l.id, n)
			if err != nil {
				return false, err
			}
			trial = record.GetTrial()
			isListed = l.belongs(trial)
		}
		more := changes.Add(pagination.NumberKey(revision), isListed, trial)
		switch {
		case !more || !isListed:
		case change.GetTrial() > 0:
			l.resp.Trials = append(l.resp.Trials, trial)
		default:
			l.resp.DeletedTrials = append(l.resp.DeletedTrials, resource.TrialName(l.id, change.GetDeletedTrial()))
		}
		return more, ctx.Err()
	})
	l.resp.NextPageToken = changes.Next
	return err
}

// isNewestFirst reports whether an order is by descending number, which needs no sorting.
func isNewestFirst(order string) bool {
	return strings.Join(strings.Fields(order), " ") == "number desc"
}

// newest sets a page of the trials with numbers below next, in descending order. The numbers of
// deleted trials count as read.
func (l listing) newest(ctx context.Context, tx *store.ReadTx, next int64) error {
	if l.query.Position != "" {
		next = l.query.Number()
	}
	trials := pagination.Page[*dparetov1.Trial]{Query: l.query}
	for number := next - 1; number > 0; number-- {
		record, err := tx.Trial(l.id, number)
		exists := !errors.Is(err, store.ErrNotFound)
		if err != nil && exists {
			return err
		}
		trial := record.GetTrial()
		if !trials.Add(pagination.NumberKey(number), exists && l.belongs(trial), trial) {
			break
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	l.resp.Trials, l.resp.NextPageToken = trials.Resources, trials.Next
	return nil
}
