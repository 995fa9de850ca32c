package release

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/privacy/selection"
	"github.com/dpareto/dpareto/server/auth"
	"github.com/dpareto/dpareto/server/front"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/pagination"
	"github.com/dpareto/dpareto/server/publish/ledger"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/spending"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
)

const (
	// maxReleases bounds the releases of a study, and the selections from a ledger.
	maxReleases = 10_000
	// maxUtilities bounds the candidates of SelectPrivately.
	maxUtilities = 100_000
)

// Options configures Releases. All fields are required.
type Options struct {
	Studies  *study.Studies
	Store    *store.Store
	Fronts   *front.Fronts
	Spending *spending.Spending
	// Entropy is the source of all noise.
	Entropy *noise.Source
	Now     func() time.Time
}

// Releases implements the ReleaseService calls on releases. It is safe for concurrent use.
type Releases struct {
	studies  *study.Studies
	store    *store.Store
	fronts   *front.Fronts
	spending *spending.Spending
	entropy  *noise.Source
	now      func() time.Time
}

// New returns the releases of the studies and ledgers in a store.
func New(o Options) *Releases {
	return &Releases{studies: o.Studies, store: o.Store, fronts: o.Fronts, spending: o.Spending, entropy: o.Entropy, now: o.Now}
}

// releaseRequest is a request for a release. Its response is stored with the release and never
// expires, unlike other requests'.
type releaseRequest struct {
	parent string // "studies/{study}" or "ledgers/{ledger}"
	caller string
	*study.Request
}

// find returns the release that the request made earlier, or nil.
func (r *releaseRequest) find(tx *store.ReadTx) (*dparetov1.Release, error) {
	if r.ID == "" {
		return nil, nil
	}
	digest, err := r.Digest()
	if err != nil {
		return nil, err
	}
	record, err := tx.RepeatedRelease(r.parent, r.caller, r.ID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case record.GetRequestType() != r.Kind:
		return nil, invalid.Field(string(study.RequestID), "%.100q was already used for a %s: another release needs another id", r.ID, record.GetRequestType())
	case string(record.GetRequestDigest()) != string(digest):
		return nil, invalid.Field(string(study.RequestID), "%.100q was already used for a different %s: another release needs another id", r.ID, record.GetRequestType())
	default:
		return record.GetRelease(), nil
	}
}

// once returns the release of a parent that the same request made earlier, or what publish returns. It returns
// NOT_FOUND if the study or ledger does not exist.
func (s *Releases) once(
	ctx context.Context, parent string, req study.Identified, publish func(*releaseRequest) (*dparetov1.Release, error),
) (release *dparetov1.Release, err error) {
	asked, err := study.NewRequest(req, nil)
	if err != nil {
		return nil, err
	}
	r := &releaseRequest{parent: parent, caller: auth.FromContext(ctx).Name, Request: asked}
	err = s.store.View(ctx, func(tx *store.ReadTx) error {
		if err := findParent(tx, parent); err != nil {
			return err
		}
		release, err = r.find(tx)
		return err
	})
	if err != nil || release != nil {
		return release, err
	}
	return publish(r)
}

// draft is a release that is not yet published.
type draft struct {
	release *dparetov1.Release // without name and time
	reason  string             // for the charge to the release's ledger
	field   string             // request or spec field that names the ledger, for errors

	// The study behind the release, if any, must still exist at publication. If the release depends
	// on all trials (isWhole), the study must be unchanged.
	studyUID string
	isWhole  bool
}

// publish names a release and writes it with its charge in one transaction. It returns the release
// once that is durable. If a concurrent call has answered the request, it returns that call's
// release. A failed transaction publishes nothing, and its draws are never seen.
func (s *Releases) publish(ctx context.Context, r *releaseRequest, d *draft) (*dparetov1.Release, error) {
	release := d.release
	err := s.store.Update(ctx, store.In(store.Scope(r.parent), store.Scope(d.release.GetLedger())), func(tx *store.Tx) error {
		release = d.release
		if err := findParent(&tx.ReadTx, r.parent); err != nil {
			return err
		}
		before, err := r.find(&tx.ReadTx)
		if err != nil {
			return err
		}
		if before != nil {
			release = before
			return nil
		}
		if err := d.checkStudy(&tx.ReadTx, r.parent); err != nil {
			return err
		}
		number, err := tx.LastRelease(r.parent)
		if err != nil {
			return err
		}
		if number >= maxReleases {
			return status.Errorf(codes.ResourceExhausted, "%s has %d releases, the maximum", r.parent, maxReleases)
		}
		release.CreateTime = timestamppb.New(s.now())
		number++
		if release.GetLedger() != "" {
			if number, err = d.charge(tx, r.parent, number); err != nil {
				return err
			}
		}
		release.Name = resource.ReleaseName(r.parent, number)
		record, err := r.record(release)
		if err != nil {
			return err
		}
		return tx.PutRelease(r.parent, number, record)
	})
	if err != nil {
		return nil, err
	}
	return release, nil
}

// record returns the stored form of the request's release.
func (r *releaseRequest) record(release *dparetov1.Release) (*storev1.ReleaseRecord, error) {
	record := &storev1.ReleaseRecord{Release: release}
	if r.ID == "" {
		return record, nil
	}
	digest, err := r.Digest()
	record.Caller, record.RequestId, record.RequestType, record.RequestDigest = r.caller, r.ID, r.Kind, digest
	return record, err
}

// checkStudy refuses to publish a release of a study that has changed.
func (d *draft) checkStudy(tx *store.ReadTx, parent string) error {
	if d.studyUID == "" {
		return nil
	}
	if err := tx.CheckWhole(store.Scope(parent)); err != nil {
		return err
	}
	record, err := study.FindStudy(tx, resource.StudyID(parent))
	if err != nil {
		return err
	}
	study := record.GetStudy()
	if study.GetUid() != d.studyUID || d.isWhole && study.GetRevision() != d.release.GetStudyRevision() {
		return status.Errorf(codes.Aborted, "%s has changed during the call; nothing was released, try again", parent)
	}
	return nil
}

// charge charges the ledger of the release, and returns the release's number, one that was never
// charged for. A study imported from a backup may have made releases that it does not know.
func (d *draft) charge(tx *store.Tx, parent string, number int64) (int64, error) {
	open, err := ledger.Open(&tx.ReadTx, d.release.GetLedger(), d.field, d.release.GetGuarantee().GetAdjacency(), 0)
	if err != nil {
		return 0, err
	}
	for open.Account.Charges[store.ChargeKey{Resource: resource.ReleaseName(parent, number), StudyUID: d.studyUID}] != nil {
		number++
	}
	return number, open.Charge(tx, ledger.Charge{
		Guarantee: d.release.GetGuarantee(),
		Resource:  resource.ReleaseName(parent, number),
		StudyUID:  d.studyUID,
		Reason:    d.reason,
		At:        d.release.GetCreateTime().AsTime(),
	})
}

// findParent returns NOT_FOUND if the study or ledger does not exist.
func findParent(tx *store.ReadTx, parent string) error {
	if id := resource.StudyID(parent); id != "" {
		err := tx.FindStudy(id)
		if errors.Is(err, store.ErrNotFound) {
			return resource.StudyNotFound(id)
		}
		return err
	}
	_, err := ledger.Find(tx, resource.LedgerID(parent))
	return err
}

// SelectPrivately implements ReleaseService. It never stores or logs utilities, nor names them in an
// error.
func (s *Releases) SelectPrivately(ctx context.Context, req *dparetov1.SelectPrivatelyRequest) (*dparetov1.SelectPrivatelyResponse, error) {
	method, err := validateSelection(req)
	if err != nil {
		return nil, err
	}
	ledger := req.GetLedger()
	release, err := s.once(ctx, ledger, &dparetov1.SelectPrivatelyRequest{
		Sensitivity: req.GetSensitivity(), Epsilon: req.GetEpsilon(), RequestId: req.GetRequestId(), Ledger: ledger, Method: req.GetMethod(),
	}, func(r *releaseRequest) (*dparetov1.Release, error) { return s.selectPrivately(ctx, r, method, req) })
	if err != nil {
		return nil, err
	}
	return &dparetov1.SelectPrivatelyResponse{Index: release.GetIndex(), Guarantee: release.GetGuarantee(), Release: release}, nil
}

// validateSelection checks a request and returns its method.
func validateSelection(req *dparetov1.SelectPrivatelyRequest) (method privacy.SelectionMethod, err error) {
	var fields invalid.Fields
	if n := len(req.GetUtilities()); n < 1 || n > maxUtilities {
		fields.Addf("utilities", "must hold 1 to %d numbers, holds %d", maxUtilities, n)
	}
	for i, u := range req.GetUtilities() {
		if math.IsNaN(u) || math.IsInf(u, 0) {
			fields.Addf(fmt.Sprintf("utilities[%d]", i), "must be finite")
			break
		}
	}
	fields.CheckPositive("sensitivity", req.GetSensitivity())
	fields.CheckPositive("epsilon", req.GetEpsilon())
	if _, err := resource.ParseLedgerName("ledger", req.GetLedger()); err != nil {
		fields.Addf("ledger", "must have the form ledgers/{ledger}, is %.200q", req.GetLedger())
	}
	switch req.GetMethod() {
	case dparetov1.SelectionMethod_SELECTION_METHOD_UNSPECIFIED, dparetov1.SelectionMethod_SELECTION_METHOD_PERMUTE_AND_FLIP:
		method = privacy.PermuteAndFlip
	case dparetov1.SelectionMethod_SELECTION_METHOD_EXPONENTIAL:
		method = privacy.Exponential
	case dparetov1.SelectionMethod_SELECTION_METHOD_REPORT_NOISY_MAX:
		method = privacy.ReportNoisyMax
	default:
		fields.Addf("method", "is unknown: %d", req.GetMethod())
	}
	return method, fields.Err()
}

// selectPrivately draws a selection and publishes it.
func (s *Releases) selectPrivately(ctx context.Context, r *releaseRequest, method privacy.SelectionMethod, req *dparetov1.SelectPrivatelyRequest) (*dparetov1.Release, error) {
	guarantee := &dparetov1.PrivacyGuarantee{
		Epsilon:    req.GetEpsilon(),
		Accountant: dparetov1.Accountant_ACCOUNTANT_PURE,
		Steps:      1,
		Assumptions: show.Assumptions([]privacy.Assumption{
			privacy.PremiseFixedInAdvance.Assume("the candidates were fixed before anyone saw the data"),
			privacy.PremiseSensitivity.Assume(fmt.Sprintf("no utility changes by more than %g between neighbouring datasets", req.GetSensitivity())),
			privacy.PremiseFixedInAdvance.Assume("whether to ask for this selection, with which method, sensitivity and epsilon, was decided without looking at the utilities"),
		}),
	}
	records, err := s.affordable(ctx, r.parent, "ledger", guarantee)
	if err != nil {
		return nil, err
	}
	index, err := selection.Select(method, s.entropy, req.GetUtilities(), req.GetSensitivity(), req.GetEpsilon())
	if err != nil {
		return nil, invalid.Field("epsilon", "%v", err)
	}
	selected := int64(index)
	mechanism := fmt.Sprintf("%s among %d candidates", strings.ReplaceAll(privacy.Selection{Method: method}.Name(), "_", "-"), len(req.GetUtilities()))
	return s.publish(ctx, r, &draft{
		reason: mechanism,
		field:  "ledger",
		release: &dparetov1.Release{
			Guarantee:   guarantee,
			Protects:    fmt.Sprintf("each of the %d records of %s", records, r.parent),
			Assumptions: guarantee.GetAssumptions(),
			NotCovered: []string{
				"the utilities themselves, which are known where they were computed",
				"the data on which the candidates were trained, unless they are the records of the ledger and the sensitivity is stated for them",
			},
			Mechanism: mechanism,
			Ledger:    r.parent,
			Index:     &selected,
		},
	})
}

// affordable returns an error if a guarantee does not fit into a ledger now, before anything is
// drawn. It gives a guarantee without an adjacency the ledger's, and returns the ledger's number of
// records. publish spends the budget, and may still refuse.
func (s *Releases) affordable(ctx context.Context, name, field string, guarantee *dparetov1.PrivacyGuarantee) (records int64, err error) {
	err = s.store.View(ctx, func(tx *store.ReadTx) error {
		open, err := ledger.Open(tx, name, field, guarantee.GetAdjacency(), 0)
		if err != nil {
			return err
		}
		guarantee.Adjacency = open.Ledger.GetAdjacency()
		records = open.Ledger.GetRecords()
		return open.Check(guarantee)
	})
	return records, err
}

// GetRelease implements ReleaseService.
func (s *Releases) GetRelease(ctx context.Context, req *dparetov1.GetReleaseRequest) (*dparetov1.GetReleaseResponse, error) {
	parent, number, err := resource.ParseReleaseName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	resp := new(dparetov1.GetReleaseResponse)
	err = s.store.View(ctx, func(tx *store.ReadTx) error {
		if err := findParent(tx, parent); err != nil {
			return err
		}
		record, err := tx.Release(parent, number)
		if errors.Is(err, store.ErrNotFound) {
			return status.Errorf(codes.NotFound, "release %s does not exist", resource.ReleaseName(parent, number))
		}
		resp.Release = record.GetRelease()
		return err
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// ListReleases implements ReleaseService.
func (s *Releases) ListReleases(ctx context.Context, req *dparetov1.ListReleasesRequest) (*dparetov1.ListReleasesResponse, error) {
	parent, err := resource.ParseParentName("parent", req.GetParent())
	if err != nil {
		return nil, err
	}
	q, err := pagination.NewQuery(req.GetPageSize(), req.GetPageToken(), "releases", parent)
	if err != nil {
		return nil, err
	}
	releases := pagination.Page[*dparetov1.Release]{Query: q}
	err = s.store.View(ctx, func(tx *store.ReadTx) error {
		if err := findParent(tx, parent); err != nil {
			return err
		}
		return tx.Releases(parent, q.Number(), func(number int64, record *storev1.ReleaseRecord) (bool, error) {
			return releases.Add(pagination.NumberKey(number), true, record.GetRelease()), ctx.Err()
		})
	})
	if err != nil {
		return nil, err
	}
	return &dparetov1.ListReleasesResponse{Releases: releases.Resources, NextPageToken: releases.Next}, nil
}
