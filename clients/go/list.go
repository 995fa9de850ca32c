package dpareto

import (
	"context"
	"iter"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// Query restricts and orders a list. The zero value is the whole list.
type Query struct {
	// Filter is a condition on the listed resources, for example `state = SUCCEEDED AND
	// metrics.epsilon <= 1`. Its syntax is AIP-160; ListStudiesRequest and
	// ListTrialsRequest list the fields.
	Filter string
	// OrderBy names the fields to sort by, for example "metrics.error desc". Default: the
	// names of studies, the numbers of trials.
	OrderBy string
}

// FindStudies returns the studies of a query, page after page. An error ends the
// sequence.
func (c *Client) FindStudies(ctx context.Context, q Query) iter.Seq2[*dparetov1.Study, error] {
	request := &dparetov1.ListStudiesRequest{Filter: q.Filter, OrderBy: q.OrderBy}
	return pages(func(token string) ([]*dparetov1.Study, string, error) {
		request.PageToken = token
		resp, err := c.Studies.ListStudies(ctx, request)
		if err != nil {
			return nil, "", newCallError(ctx, "list the studies", err)
		}
		return resp.GetStudies(), resp.GetNextPageToken(), nil
	})
}

// Trials returns all trials of the study in ascending order of their numbers, page
// after page. An error ends the sequence.
func (s *Study) Trials(ctx context.Context) iter.Seq2[*dparetov1.Trial, error] {
	return s.FindTrials(ctx, Query{})
}

// FindTrials returns the trials of a query, page after page. An error ends the sequence.
func (s *Study) FindTrials(ctx context.Context, q Query) iter.Seq2[*dparetov1.Trial, error] {
	request := &dparetov1.ListTrialsRequest{Parent: s.name, Filter: q.Filter, OrderBy: q.OrderBy}
	return pages(func(token string) ([]*dparetov1.Trial, string, error) {
		request.PageToken = token
		resp, err := s.client.Studies.ListTrials(ctx, request)
		if err != nil {
			return nil, "", newCallError(ctx, "list the trials of "+s.name, err)
		}
		return resp.GetTrials(), resp.GetNextPageToken(), nil
	})
}

// pages returns the elements of all pages. read returns one page and the token of the
// next.
func pages[T any](read func(token string) ([]T, string, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		token := ""
		for {
			page, next, err := read(token)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, element := range page {
				if !yield(element, nil) {
					return
				}
			}
			if token = next; token == "" {
				return
			}
		}
	}
}

// Changes are the trials of a study that changed after a revision.
type Changes struct {
	// Trials were created or changed; they come in the order of their last changes.
	Trials []*dparetov1.Trial
	// Deleted holds the resource names of deleted trials.
	Deleted []string
	// Revision is the study's revision, from which to ask for the next changes.
	Revision int64
}

// Changes reads the trials that changed after a revision of the study and match the
// filter (see Query.Filter; "" for all). Revision 0 returns all trials, in the order of
// their numbers. If the study has no such revision, because it was restored from a backup
// or is another study of the same name, the error has the code OutOfRange.
func (s *Study) Changes(ctx context.Context, after int64, filter string) (*Changes, error) {
	changes := new(Changes)
	request := &dparetov1.ListTrialsRequest{Parent: s.name, AfterRevision: after, Filter: filter}
	for {
		resp, err := s.client.Studies.ListTrials(ctx, request)
		if err != nil {
			return nil, newCallError(ctx, "list the changes of "+s.name, err)
		}
		changes.Trials = append(changes.Trials, resp.GetTrials()...)
		changes.Deleted = append(changes.Deleted, resp.GetDeletedTrials()...)
		changes.Revision = resp.GetRevision()
		if request.PageToken = resp.GetNextPageToken(); request.GetPageToken() == "" {
			return changes, nil
		}
	}
}
