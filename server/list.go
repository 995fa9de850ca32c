package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/auth"
	"github.com/dpareto/dpareto/server/filter"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/store"
)

const (
	// defaultPageSize and maxPageSize bound the length of a page.
	defaultPageSize = 100
	maxPageSize     = 1000
	// maxScanned bounds the resources that are read for a page in the order in which they
	// are stored: where few pass the filter the page is shorter instead.
	maxScanned = 10_000
)

// pageSize returns the length of a page.
func pageSize(requested int32) (int, error) {
	switch {
	case requested < 0 || requested > maxPageSize:
		return 0, invalid.Field("page_size", "must be in [0, %d], is %d", maxPageSize, requested)
	case requested == 0:
		return defaultPageSize, nil
	default:
		return int(requested), nil
	}
}

// query is what the pages of one list have in common.
type query struct {
	digest   [8]byte
	size     int
	position string // of the last resource of the page before; "" for the first page
	revision int64  // of the first page; 0 for the first page
}

// newQuery returns the query of a page. The parts tell it from others.
func newQuery(size int32, token string, parts ...any) (*query, error) {
	n, err := pageSize(size)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v", parts))
	q := &query{digest: [8]byte(sum[:8]), size: n}
	if token == "" {
		return q, nil
	}
	decoded, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(decoded) < 16 || [8]byte(decoded) != q.digest {
		return nil, invalid.Field("page_token", "is not a token of this list with this filter and order")
	}
	q.revision = int64(binary.BigEndian.Uint64(decoded[8:]))
	q.position = string(decoded[16:])
	return q, nil
}

// token returns the token of the page after a position.
func (q *query) token(position string) string {
	decoded := binary.BigEndian.AppendUint64(q.digest[:], uint64(q.revision))
	return base64.RawURLEncoding.EncodeToString(append(decoded, position...))
}

// number returns the position as a number, 0 for the first page.
func (q *query) number() int64 {
	if len(q.position) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64([]byte(q.position)))
}

// numberKey returns a number as a position. Positions sort as non-negative numbers do.
func numberKey(n int64) string { return string(binary.BigEndian.AppendUint64(nil, uint64(n))) }

// page gathers the resources of a page.
type page[T any] struct {
	*query
	resources []T
	scanned   int
	last      string // position of the last resource that was looked at
	next      string // token of the next page
}

// add adds a resource, or not, if it does not belong to the list; resources come in the
// order of their positions. It returns false when the page is full.
func (p *page[T]) add(position string, belongs bool, resource T) bool {
	if len(p.resources) == p.size || p.scanned == maxScanned {
		p.next = p.token(p.last)
		return false
	}
	p.scanned++
	p.last = position
	if belongs {
		p.resources = append(p.resources, resource)
	}
	return true
}

// sorted gathers the resources of a page whose order is not that in which they come.
type sorted[T any] struct {
	*query
	items []item[T]
}

type item[T any] struct {
	position string
	resource T
}

// add adds a resource, which must belong to the list.
func (s *sorted[T]) add(position string, resource T) {
	if position <= s.position {
		return // on an earlier page
	}
	s.items = append(s.items, item[T]{position, resource})
	if len(s.items) > 2*s.size+1 {
		s.cut()
	}
}

// cut drops what does not belong to the page but for the first of the next.
func (s *sorted[T]) cut() {
	slices.SortFunc(s.items, func(a, b item[T]) int { return cmp.Compare(a.position, b.position) })
	if len(s.items) > s.size+1 {
		clear(s.items[s.size+1:])
		s.items = s.items[:s.size+1]
	}
}

// page returns the resources of the page, and the token of the next.
func (s *sorted[T]) page() (resources []T, next string) {
	s.cut()
	for i, item := range s.items {
		if i == s.size {
			return resources, s.token(s.items[i-1].position)
		}
		resources = append(resources, item.resource)
	}
	return resources, ""
}

// restriction compiles the filter and the order of a list.
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
func (s *studyService) ListStudies(ctx context.Context, req *dparetov1.ListStudiesRequest) (*dparetov1.ListStudiesResponse, error) {
	q, err := newQuery(req.GetPageSize(), req.GetPageToken(), "studies", req.GetFilter(), req.GetOrderBy())
	if err != nil {
		return nil, err
	}
	belongs, order, err := restriction(req.GetFilter(), req.GetOrderBy(), studyField)
	if err != nil {
		return nil, err
	}
	// Nothing tells that there are others, not even a page token.
	readable := func(study *dparetov1.Study) bool {
		return auth.CanRead(ctx, strings.TrimPrefix(study.GetName(), studyName("")))
	}
	resp := new(dparetov1.ListStudiesResponse)
	err = s.store.View(ctx, func(tx *store.ReadTx) error {
		if len(order) > 0 {
			all := sorted[*dparetov1.Study]{query: q}
			err := tx.Studies("", func(record *storev1.StudyRecord) (bool, error) {
				study := s.present(record)
				if readable(study) && belongs(study) {
					all.add(order.Key(study)+study.GetName(), study)
				}
				return true, ctx.Err()
			})
			resp.Studies, resp.NextPageToken = all.page()
			return err
		}
		studies := page[*dparetov1.Study]{query: q}
		err := tx.Studies(q.position, func(record *storev1.StudyRecord) (bool, error) {
			study := s.present(record)
			if !readable(study) {
				return true, ctx.Err()
			}
			id := strings.TrimPrefix(study.GetName(), studyName(""))
			return studies.add(id, belongs(study), study), ctx.Err()
		})
		resp.Studies, resp.NextPageToken = studies.resources, studies.next
		return err
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// ListTrials implements StudyService.
func (s *studyService) ListTrials(ctx context.Context, req *dparetov1.ListTrialsRequest) (*dparetov1.ListTrialsResponse, error) {
	id, err := parseStudyName("parent", req.GetParent())
	if err != nil {
		return nil, err
	}
	after := req.GetAfterRevision()
	q, err := newQuery(req.GetPageSize(), req.GetPageToken(), req.GetParent(), req.GetFilter(), req.GetOrderBy(), after)
	if err != nil {
		return nil, err
	}
	switch {
	case after < 0:
		return nil, invalid.Field("after_revision", "must not be negative, is %d", after)
	case after > 0 && req.GetOrderBy() != "":
		return nil, invalid.Field("order_by", "must be empty with after_revision: changes have an order of their own")
	}
	resp := new(dparetov1.ListTrialsResponse)
	err = s.store.View(ctx, func(tx *store.ReadTx) error {
		study, err := findStudy(tx, id)
		if err != nil {
			return err
		}
		belongs, order, err := restriction(req.GetFilter(), req.GetOrderBy(), trialFields(study.GetStudy().GetSpec()))
		if err != nil {
			return err
		}
		if q.position == "" {
			q.revision = study.GetStudy().GetRevision()
		}
		resp.Revision = q.revision
		switch {
		case after > 0:
			if err := checkRevision("after_revision", after, study.GetStudy()); err != nil {
				return err
			}
			return listChanges(ctx, tx, id, q, after, belongs, resp)
		case len(order) > 0:
			all := sorted[*dparetov1.Trial]{query: q}
			err = tx.Trials(id, 0, func(record *storev1.TrialRecord) (bool, error) {
				if trial := record.GetTrial(); belongs(trial) {
					all.add(order.Key(trial)+numberKey(trial.GetNumber()), trial)
				}
				return true, ctx.Err()
			})
			resp.Trials, resp.NextPageToken = all.page()
			return err
		default:
			trials := page[*dparetov1.Trial]{query: q}
			err = tx.Trials(id, q.number(), func(record *storev1.TrialRecord) (bool, error) {
				trial := record.GetTrial()
				return trials.add(numberKey(trial.GetNumber()), belongs(trial), trial), ctx.Err()
			})
			resp.Trials, resp.NextPageToken = trials.resources, trials.next
			return err
		}
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// checkRevision refuses a revision that a study has not reached.
func checkRevision(field string, revision int64, study *dparetov1.Study) error {
	if revision > study.GetRevision() {
		return status.Errorf(codes.OutOfRange, "%s is %d, %s has only reached %d: it is not the study that had this revision, or was restored from a backup; read it from 0 on",
			field, revision, study.GetName(), study.GetRevision())
	}
	return nil
}

// listChanges sets a page of the trials that changed after a revision, and of the names
// of those that were deleted.
func listChanges(ctx context.Context, tx *store.ReadTx, id string, q *query, after int64, belongs filter.Filter[*dparetov1.Trial], resp *dparetov1.ListTrialsResponse) error {
	changes := page[*storev1.RevisionRecord]{query: q}
	err := tx.Changes(id, max(after, q.number()), func(revision int64, change *storev1.RevisionRecord) (bool, error) {
		isListed := change.GetDeletedTrial() > 0
		var trial *dparetov1.Trial
		if n := change.GetTrial(); n > 0 {
			record, err := tx.Trial(id, n)
			if err != nil {
				return false, err
			}
			trial = record.GetTrial()
			isListed = belongs(trial)
		}
		more := changes.add(numberKey(revision), isListed, change)
		switch {
		case !more || !isListed:
		case trial != nil:
			resp.Trials = append(resp.Trials, trial)
		default:
			resp.DeletedTrials = append(resp.DeletedTrials, trialName(id, change.GetDeletedTrial()))
		}
		return more, ctx.Err()
	})
	resp.NextPageToken = changes.next
	return err
}
