package study

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/spec"
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

// CreateStudy implements StudyService.
func (s *Studies) CreateStudy(ctx context.Context, req *dparetov1.CreateStudyRequest) (*dparetov1.CreateStudyResponse, error) {
	id := req.GetStudyId()
	if err := ValidateStudy(id, req.GetStudy()); err != nil {
		return nil, err
	}
	compiled, err := spec.Compile("study.spec", req.GetStudy().GetSpec())
	if err != nil {
		return nil, err
	}
	if namesLedger(req.GetStudy().GetSpec()) {
		if err := s.ledgers.CheckCaller(ctx, nil, req.GetStudy().GetSpec()); err != nil {
			return nil, err
		}
	}
	study, err := s.newStudy(id, req.GetStudy())
	if err != nil {
		return nil, err
	}
	study.Warnings = compiled.Warnings
	policy := s.Policy(study.GetSpec())
	created := &storev1.StudyRecord{Study: study, NextTrialNumber: 1, OwnRevision: study.GetRevision()}
	if err := policy.Begin(ctx, created, compiled); err != nil {
		return nil, err
	}
	resp := new(dparetov1.CreateStudyResponse)
	r, err := NewRequest(req, resp)
	if err != nil {
		return nil, err
	}
	// existing replaces study with the stored one if their specs are equal.
	existing := func(tx *store.ReadTx) error {
		record, err := tx.Study(id)
		if errors.Is(err, store.ErrNotFound) {
			if importing := checkNotImporting(tx, id); importing != nil {
				return importing
			}
		}
		if err != nil {
			return err
		}
		if paths := Differences(record.GetStudy().GetSpec(), study.GetSpec()); len(paths) > 0 {
			return status.Errorf(codes.AlreadyExists, "study %s exists with another spec; fields that differ: %s",
				resource.StudyName(id), strings.Join(paths, ", "))
		}
		study = s.Present(record)
		return nil
	}
	if req.GetValidateOnly() {
		err := s.store.View(ctx, func(tx *store.ReadTx) error {
			err := existing(tx)
			if errors.Is(err, store.ErrNotFound) {
				study = s.Present(created)
				if err := checkPriorStudies(tx, study.GetSpec()); err != nil {
					return err
				}
				return s.CheckLedgers(tx, study.GetSpec())
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		return &dparetov1.CreateStudyResponse{Study: study}, nil
	}
	err = s.Update(ctx, r, store.StudyScope(id), LedgerScopes(study.GetSpec()), func(tx *store.Tx) error {
		study = created.GetStudy()
		err := existing(&tx.ReadTx)
		if errors.Is(err, store.ErrNotFound) {
			if err := checkPriorStudies(tx.Unprotected(), study.GetSpec()); err != nil {
				return err
			}
			if err := s.CheckLedgers(&tx.ReadTx, study.GetSpec()); err != nil {
				return err
			}
			if err := tx.CheckWhole(store.StudyScope(id)); err != nil {
				return err // the study exists, but its record is lost
			}
			if err := s.CheckStudies(tx.Unprotected()); err != nil {
				return err
			}
			if err := policy.Pay(tx, created, compiled, s.now()); err != nil {
				return err
			}
			err = tx.PutStudy(id, created)
			study = s.Present(proto.CloneOf(created))
		}
		resp.Study = study
		return err
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// newStudy returns a new study as requested, with a fresh uid and seed.
func (s *Studies) newStudy(id string, requested *dparetov1.Study) (*dparetov1.Study, error) {
	var random [24]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, err
	}
	study := &dparetov1.Study{
		Name:        resource.StudyName(id),
		Uid:         hex.EncodeToString(random[:16]),
		DisplayName: requested.GetDisplayName(),
		Description: requested.GetDescription(),
		Labels:      requested.GetLabels(),
		Spec:        proto.CloneOf(requested.GetSpec()),
		State:       dparetov1.StudyState_STUDY_STATE_ACTIVE,
		Revision:    1,
		Seed:        binary.BigEndian.Uint64(random[16:]),
		TrialCounts: new(dparetov1.TrialCounts),
		CreateTime:  timestamppb.New(s.now()),
	}
	study.Etag = Etag(study.GetUid(), study.GetRevision())
	study.UpdateTime = study.GetCreateTime()
	if requested.GetSpec().Seed != nil {
		study.Seed = requested.GetSpec().GetSeed()
	}
	return study, nil
}

// Etag returns the etag of a resource last changed at a revision of its study. The uid tells apart
// studies that reuse a name.
func Etag(studyUID string, revision int64) string {
	return studyUID[:8] + "-" + strconv.FormatInt(revision, 16)
}

// ValidateStudy checks everything in a new study except its spec.
func ValidateStudy(id string, study *dparetov1.Study) error {
	var fields invalid.Fields
	if !resource.StudyID.MatchString(id) {
		fields.Addf("study_id", "must be %s, is %.200q", resource.StudyIDRule, id)
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
	ValidateLabels("study.labels", study.GetLabels(), &fields)
	return fields.Err()
}

// ValidateLabels adds violations by the labels in a field of a request to fields.
func ValidateLabels(field string, labels map[string]string, fields *invalid.Fields) {
	if n := len(labels); n > maxLabels {
		fields.Addf(field, "must hold at most %d labels, holds %d", maxLabels, n)
	}
	for key, value := range labels {
		if len(key) < 1 || len(key) > maxLabelKey || len(value) > MaxLabelValue {
			fields.Addf(field, "key %.63q must have 1 to %d bytes and a value of at most %d", key, maxLabelKey, MaxLabelValue)
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
	if err := s.Importing.await(ctx, id); err != nil {
		return nil, err
	}
	defer s.Importing.End(id)
	var uid string
	err = s.Update(ctx, r, store.StudyScope(id), []store.Scope{store.StoreScope}, func(tx *store.Tx) error {
		record, err := FindStudy(&tx.ReadTx, id)
		if err != nil {
			return err
		}
		if err := checkEtag(req.GetEtag(), record.GetStudy().GetEtag()); err != nil {
			return err
		}
		uid = record.GetStudy().GetUid()
		if spec.IsPublication(record.GetStudy().GetSpec()) {
			tx.PutEnded(uid, record.GetStudy().GetRevision())
		}
		tx.AfterCommit(func() { s.watchers.notify(id) })
		return tx.DeleteStudy(id)
	})
	if err != nil {
		return nil, err
	}
	s.cache.forget(uid)
	s.DropRemains(ctx, id)
	return resp, nil
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

// CheckLedgers refuses a spec that names ledgers which do not exist or do not fit the study.
func (s *Studies) CheckLedgers(tx *store.ReadTx, spec *dparetov1.StudySpec) error {
	if !namesLedger(spec) {
		return nil
	}
	return s.ledgers.Check(tx, spec)
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

// CheckStudies returns RESOURCE_EXHAUSTED if the store has no room for another study.
func (s *Studies) CheckStudies(tx *store.ReadTx) error {
	most := s.limits.OrDefault().Studies
	if full, err := tx.HasStudies(most); err != nil || !full {
		return err
	}
	return s.limits.CheckStudies(most)
}
