package study

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/pool"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/specchange"
	"github.com/dpareto/dpareto/server/store"
)

// Limits on the descriptive fields of studies and trials: labels in bytes, all others in characters.
const (
	maxDisplayName = 200
	MaxText        = 10_000
	maxLabels      = 64
	maxLabelKey    = 63
	MaxLabelValue  = 255
	maxReason      = 2000
	MaxWorkerID    = 200
)

// CreateStudy implements StudyService. A study that exists with an equal spec is the answer.
func (s *Studies) CreateStudy(ctx context.Context, req *dparetov1.CreateStudyRequest) (*dparetov1.CreateStudyResponse, error) {
	id := req.GetStudyId()
	var created *storev1.StudyRecord
	var compiled *spec.Study
	err := s.pool.Run(ctx, pool.Analysis, func(ctx context.Context) (err error) {
		created, compiled, err = newRecord(ctx, s, id, req.GetStudy())
		return err
	})
	if err != nil {
		return nil, err
	}
	resp := new(dparetov1.CreateStudyResponse)
	if req.GetValidateOnly() {
		if created.GetStudy().GetState() == dparetov1.StudyState_STUDY_STATE_PREPARING {
			if err := s.preparing.tryPublication(ctx, created, compiled); err != nil {
				return nil, err
			}
		}
		return resp, s.store.View(ctx, func(tx *store.ReadTx) error {
			resp.Study, err = wouldCreate(s, tx, id, created)
			return err
		})
	}
	r, err := NewRequest(req, resp)
	if err != nil {
		return nil, err
	}
	err = s.Update(ctx, r, store.StudyScope(id), LedgerScopes(compiled.Spec), func(tx *store.Tx) error {
		resp.Study, err = create(s, tx, id, created, compiled)
		return err
	})
	if err != nil {
		return nil, err
	}
	resp.Study, err = s.preparing.await(ctx, id, resp.GetStudy())
	return resp, err
}

// newRecord returns the record of a study that a caller asks for.
func newRecord(ctx context.Context, s *Studies, id string, requested *dparetov1.Study) (*storev1.StudyRecord, *spec.Study, error) {
	var fields invalid.Fields
	ValidateStudy(id, requested, &fields)
	compiled := s.compile(&fields, requested.GetSpec(), nil)
	if err := fields.Err(); err != nil {
		return nil, nil, err
	}
	if namesLedger(requested.GetSpec()) {
		if err := s.ledgers.CheckCaller(ctx, nil, requested.GetSpec()); err != nil {
			return nil, nil, err
		}
	}
	created := &storev1.StudyRecord{Study: newStudy(id, requested, compiled.Spec, s.times.wall()), NextTrialNumber: 1, OwnRevision: 1}
	created.Study.Warnings = compiled.Warnings
	policy := s.Policy(compiled.Spec)
	if err := policy.FixTerms(ctx, created, compiled); err != nil {
		return nil, nil, err
	}
	if isUnprepared(policy, created) {
		created.Study.State = dparetov1.StudyState_STUDY_STATE_PREPARING
	}
	return created, compiled, nil
}

// newStudy returns a new study as requested but for its spec, with a fresh uid and seed.
func newStudy(id string, requested *dparetov1.Study, asked *dparetov1.StudySpec, now time.Time) *dparetov1.Study {
	var random [24]byte
	if _, err := rand.Read(random[:]); err != nil {
		panic(err) // crypto/rand does not fail (see its documentation)
	}
	study := &dparetov1.Study{
		Name:        resource.StudyName(id),
		Uid:         hex.EncodeToString(random[:16]),
		DisplayName: requested.GetDisplayName(),
		Description: requested.GetDescription(),
		Labels:      requested.GetLabels(),
		Spec:        proto.CloneOf(asked),
		State:       dparetov1.StudyState_STUDY_STATE_ACTIVE,
		Revision:    1,
		Seed:        binary.BigEndian.Uint64(random[16:]),
		TrialCounts: new(dparetov1.TrialCounts),
		CreateTime:  timestamppb.New(now),
	}
	study.Etag = Etag(study.GetUid(), study.GetRevision())
	study.UpdateTime = study.GetCreateTime()
	if asked.Seed != nil {
		study.Seed = asked.GetSeed()
	}
	return study
}

// findEqual returns the study with an id, store.ErrNotFound if there is none, and ALREADY_EXISTS if
// it has another spec.
func findEqual(tx *store.ReadTx, id string, asked *dparetov1.StudySpec) (*storev1.StudyRecord, error) {
	record, err := tx.Study(id)
	if errors.Is(err, store.ErrNotFound) {
		if importing := checkNotImporting(tx, id); importing != nil {
			return nil, importing
		}
	}
	if err != nil {
		return nil, err
	}
	if paths := specchange.Differences(record.GetStudy().GetSpec(), asked); len(paths) > 0 {
		return nil, status.Errorf(codes.AlreadyExists, "study %s exists with another spec; fields that differ: %s",
			resource.StudyName(id), strings.Join(paths, ", "))
	}
	return record, nil
}

// create writes a new study unless there is an equal one, and returns the study that exists then.
func create(s *Studies, tx *store.Tx, id string, created *storev1.StudyRecord, compiled *spec.Study) (*dparetov1.Study, error) {
	existing, err := findEqual(&tx.ReadTx, id, created.GetStudy().GetSpec())
	if err == nil {
		return s.Present(existing), nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	if err := checkPriorStudies(tx.Unprotected(), created.GetStudy().GetSpec()); err != nil {
		return nil, err
	}
	if err := CheckNew(s, tx, id, created.GetStudy().GetSpec()); err != nil {
		return nil, err
	}
	if policy := s.Policy(compiled.Spec); !isUnprepared(policy, created) {
		if err := policy.Pay(tx, created, compiled, s.times.wallIn(&tx.ReadTx)); err != nil {
			return nil, err
		}
	}
	if err := tx.PutStudy(id, created); err != nil {
		return nil, err
	}
	return s.Present(proto.CloneOf(created)), nil
}

// wouldCreate returns what create would.
func wouldCreate(s *Studies, tx *store.ReadTx, id string, created *storev1.StudyRecord) (*dparetov1.Study, error) {
	existing, err := findEqual(tx, id, created.GetStudy().GetSpec())
	if err == nil {
		return s.Present(existing), nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	if err := checkPriorStudies(tx, created.GetStudy().GetSpec()); err != nil {
		return nil, err
	}
	return s.Present(created), checkLedgers(s.ledgers, tx, created.GetStudy().GetSpec())
}

// checkPriorStudies refuses a spec whose prior studies do not exist or do not fit it.
func checkPriorStudies(tx *store.ReadTx, asked *dparetov1.StudySpec) error {
	return specchange.CheckPriors(asked, func(field, name string) (*dparetov1.StudySpec, error) {
		id, err := resource.ParseStudyName(field, name)
		if err != nil {
			return nil, err
		}
		record, err := tx.Study(id)
		if errors.Is(err, store.ErrNotFound) {
			return nil, nil
		}
		return record.GetStudy().GetSpec(), err
	})
}

// CheckNew refuses a new study that names ledgers which do not exist or do not fit it, whose record
// was lost, or for which the store has no room.
func CheckNew(s *Studies, tx *store.Tx, id string, asked *dparetov1.StudySpec) error {
	if err := checkLedgers(s.ledgers, &tx.ReadTx, asked); err != nil {
		return err
	}
	if err := tx.CheckWhole(store.StudyScope(id)); err != nil {
		return err
	}
	most := s.limits.OrDefault().Studies
	if full, err := tx.Unprotected().HasStudies(most); err != nil || !full {
		return err
	}
	return s.limits.CheckStudies(most)
}

// checkLedgers refuses a spec that names ledgers which do not exist or do not fit the study.
func checkLedgers(ledgers Ledgers, tx *store.ReadTx, asked *dparetov1.StudySpec) error {
	if !namesLedger(asked) {
		return nil
	}
	return ledgers.Check(tx, asked)
}

// Etag returns the etag of a resource last changed at a revision of its study. The uid tells apart
// studies that reuse a name.
func Etag(studyUID string, revision int64) string {
	return studyUID[:8] + "-" + strconv.FormatInt(revision, 16)
}

// ValidateStudy adds violations by everything in a new study except its spec to fields.
func ValidateStudy(id string, study *dparetov1.Study, fields *invalid.Fields) {
	if !resource.IsID(id) {
		fields.Addf("study_id", "must be %s, is %.200q", resource.IDRule, id)
	}
	if name := study.GetName(); name != "" && name != resource.StudyName(id) {
		fields.Addf("study.name", "must be empty or %q, is %.200q", resource.StudyName(id), name)
	}
	if n := len([]rune(study.GetDisplayName())); n > maxDisplayName {
		fields.Addf("study.display_name", "must have at most %d characters, has %d", maxDisplayName, n)
	}
	if n := len([]rune(study.GetDescription())); n > MaxText {
		fields.Addf("study.description", "must have at most %d characters, has %d", MaxText, n)
	}
	ValidateLabels("study.labels", study.GetLabels(), fields)
}

// ValidateLabels adds violations by the labels in a field of a request to fields.
func ValidateLabels(field string, labels map[string]string, fields *invalid.Fields) {
	if n := len(labels); n > maxLabels {
		fields.Addf(field, "must hold at most %d labels, holds %d", maxLabels, n)
	}
	for key, value := range labels {
		if len(key) < 1 || len(key) > maxLabelKey || len(value) > MaxLabelValue {
			fields.Addf(field, "key %.63q must have 1 to %d bytes and a value of at most %d", key, maxLabelKey, MaxLabelValue)
		} else if reason := invalid.Hidden(key); reason != "" {
			fields.Addf(field, "key %.63q %s", key, reason)
		}
	}
}

// GetStudy implements StudyService.
func (s *Studies) GetStudy(ctx context.Context, req *dparetov1.GetStudyRequest) (*dparetov1.GetStudyResponse, error) {
	id, err := resource.ParseStudyName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	resp := new(dparetov1.GetStudyResponse)
	err = s.store.View(ctx, func(tx *store.ReadTx) error {
		record, err := FindStudy(tx, id)
		if err == nil {
			resp.Study = s.Present(record)
		}
		return err
	})
	if study := resp.GetStudy(); study.GetState() == dparetov1.StudyState_STUDY_STATE_PREPARING {
		s.preparing.TakeOver(id, study.GetUid()) //nolint:contextcheck // it outlives the call
	}
	return resp, err
}

// DeleteStudy implements StudyService.
func (s *Studies) DeleteStudy(ctx context.Context, req *dparetov1.DeleteStudyRequest) (*dparetov1.DeleteStudyResponse, error) {
	id, err := resource.ParseStudyName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	resp := new(dparetov1.DeleteStudyResponse)
	r, err := NewRequest(req, resp)
	if err != nil {
		return nil, err
	}
	free, err := s.store.Lock(ctx, resource.StudyName(id)) // imports also hold it
	if err != nil {
		return nil, err
	}
	defer free()
	ledger, err := findTestLedger(ctx, s, id)
	if err != nil {
		return nil, err
	}
	err = s.Update(ctx, r, store.StudyScope(id), []store.Scope{store.StoreScope, ledger}, func(tx *store.Tx) error {
		record, err := FindStudy(&tx.ReadTx, id)
		if err != nil {
			return err
		}
		if err := checkEtag(req.GetEtag(), record.GetStudy().GetEtag()); err != nil {
			return err
		}
		if testLedgerScope(s, record.GetStudy().GetSpec()) != ledger {
			return status.Errorf(codes.Aborted, "%s has changed during the call, try again", resource.StudyName(id))
		}
		if err := noteStudy(s, tx, id, record); err != nil {
			return err
		}
		tx.AfterCommit(func() { announce(s, id) })
		return tx.DeleteStudy(id)
	})
	if err != nil {
		return nil, err
	}
	s.cache.forget(resource.StudyName(id))
	DropRemains(ctx, s.store, s.logger, id)
	return resp, nil
}

// findTestLedger returns the scope of the ledger that remembers a study, "" if none does or there is no study.
func findTestLedger(ctx context.Context, s *Studies, id string) (scope store.Scope, err error) {
	err = s.store.View(ctx, func(tx *store.ReadTx) error {
		record, err := tx.Study(id)
		if errors.Is(err, store.ErrNotFound) {
			return nil // the request may have been answered
		}
		scope = testLedgerScope(s, record.GetStudy().GetSpec())
		return err
	})
	return scope, err
}

// FindStudy returns a study's record, or NOT_FOUND.
func FindStudy(tx *store.ReadTx, id string) (*storev1.StudyRecord, error) {
	record, err := tx.Study(id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, resource.StudyNotFound(id)
	}
	return record, err
}

// checkEtag refuses a request whose etag is set and differs from the resource's.
func checkEtag(requested, actual string) error {
	if requested != "" && requested != actual {
		return status.Errorf(codes.FailedPrecondition, "etag is %q, but the resource has changed and has %q", requested, actual)
	}
	return nil
}

// LedgerScopes returns the scopes of the ledgers that a spec names.
func LedgerScopes(spec *dparetov1.StudySpec) (scopes []store.Scope) {
	for _, name := range []string{spec.GetTestLedger(), spec.GetTrainLedger()} {
		if id, err := resource.ParseLedgerName("", name); err == nil {
			scopes = append(scopes, store.LedgerScope(id))
		}
	}
	return scopes
}
