package server

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
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
)

// Limits of the descriptive fields of studies and trials.
const (
	maxDisplayName = 200
	maxText        = 10_000
	maxLabels      = 64
	maxLabelKey    = 63
	maxLabelValue  = 255
	maxReason      = 2000
	maxWorkerID    = 200
)

// CreateStudy implements StudyService.
func (s *studyService) CreateStudy(ctx context.Context, req *dparetov1.CreateStudyRequest) (*dparetov1.CreateStudyResponse, error) {
	id := req.GetStudyId()
	if err := validateStudy(id, req.GetStudy()); err != nil {
		return nil, err
	}
	compiled, err := spec.Compile("study.spec", req.GetStudy().GetSpec())
	if err != nil {
		return nil, err
	}
	if err := checkNamesLedgers(ctx, nil, req.GetStudy().GetSpec()); err != nil {
		return nil, err
	}
	study, err := s.newStudy(id, req.GetStudy())
	if err != nil {
		return nil, err
	}
	study.Warnings = compiled.Warnings
	terms, err := privateTerms(ctx, "study.spec", compiled)
	if err != nil {
		return nil, err
	}
	created := &storev1.StudyRecord{Study: study, NextTrialNumber: 1, OwnRevision: study.GetRevision(), PrivateMode: terms}
	if isSearch(study) {
		if err := s.prepareSearch(ctx, created, compiled); err != nil {
			return nil, err
		}
	}
	resp := new(dparetov1.CreateStudyResponse)
	m, err := newMutation(req, resp)
	if err != nil {
		return nil, err
	}
	// existing replaces study by the one that exists, if its spec is equal.
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
		if paths := differences(record.GetStudy().GetSpec(), study.GetSpec()); len(paths) > 0 {
			return status.Errorf(codes.AlreadyExists, "study %s exists with another spec; fields that differ: %s",
				studyName(id), strings.Join(paths, ", "))
		}
		study = s.present(record)
		return nil
	}
	if req.GetValidateOnly() {
		err := s.store.View(ctx, func(tx *store.ReadTx) error {
			err := existing(tx)
			if errors.Is(err, store.ErrNotFound) {
				study = s.present(created)
				if err := checkPriorStudies(tx, study.GetSpec()); err != nil {
					return err
				}
				return checkLedgers(tx, study.GetSpec())
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		return &dparetov1.CreateStudyResponse{Study: study}, nil
	}
	err = s.update(ctx, m, store.StudyScope(id), ledgerScopes(study.GetSpec()), func(tx *store.Tx) error {
		study = created.GetStudy()
		err := existing(&tx.ReadTx)
		if errors.Is(err, store.ErrNotFound) {
			if err := checkPriorStudies(tx.Unprotected(), study.GetSpec()); err != nil {
				return err
			}
			if err := checkLedgers(&tx.ReadTx, study.GetSpec()); err != nil {
				return err
			}
			if err := tx.CheckWhole(store.StudyScope(id)); err != nil {
				return err // a study is there that cannot be found
			}
			if err := s.checkStudies(tx.Unprotected()); err != nil {
				return err
			}
			if err := chargeRecord(tx, created, compiled, s.now()); err != nil {
				return err
			}
			err = tx.PutStudy(id, created)
			study = s.present(proto.CloneOf(created))
		}
		resp.Study = study
		return err
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// newStudy returns the study that a request asks for.
func (s *Server) newStudy(id string, requested *dparetov1.Study) (*dparetov1.Study, error) {
	var random [24]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, err
	}
	study := &dparetov1.Study{
		Name:        studyName(id),
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
	study.Etag = etag(study.GetUid(), study.GetRevision())
	study.UpdateTime = study.GetCreateTime()
	if requested.GetSpec().Seed != nil {
		study.Seed = requested.GetSpec().GetSeed()
	}
	return study, nil
}

// etag returns the etag of a resource last changed at a revision of its study. It
// differs between studies that had the same name one after the other.
func etag(studyUID string, revision int64) string {
	return studyUID[:8] + "-" + strconv.FormatInt(revision, 16)
}

// validateStudy checks everything of a new study but its spec.
func validateStudy(id string, study *dparetov1.Study) error {
	var fields invalid.Fields
	if !studyID.MatchString(id) {
		fields.Addf("study_id", "must be %s, is %.200q", studyIDRule, id)
	}
	if name := study.GetName(); name != "" && name != studyName(id) {
		fields.Addf("study.name", "must be empty or %q, is %.200q", studyName(id), name)
	}
	if n := len([]rune(study.GetDisplayName())); n > maxDisplayName {
		fields.Addf("study.display_name", "must have at most %d characters, has %d", maxDisplayName, n)
	}
	if n := len([]rune(study.GetDescription())); n > maxText {
		fields.Addf("study.description", "must have at most %d characters, has %d", maxText, n)
	}
	validateLabels("study.labels", study.GetLabels(), &fields)
	return fields.Err()
}

func validateLabels(field string, labels map[string]string, fields *invalid.Fields) {
	if n := len(labels); n > maxLabels {
		fields.Addf(field, "must hold at most %d labels, holds %d", maxLabels, n)
	}
	for key, value := range labels {
		if len(key) < 1 || len(key) > maxLabelKey || len(value) > maxLabelValue {
			fields.Addf(field, "key %.63q must have 1 to %d bytes and a value of at most %d", key, maxLabelKey, maxLabelValue)
		}
	}
}

// GetStudy implements StudyService.
func (s *studyService) GetStudy(ctx context.Context, req *dparetov1.GetStudyRequest) (*dparetov1.GetStudyResponse, error) {
	id, err := parseStudyName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	resp := new(dparetov1.GetStudyResponse)
	err = s.store.View(ctx, func(tx *store.ReadTx) error {
		record, err := findStudy(tx, id)
		if err == nil {
			resp.Study = s.present(record)
		}
		return err
	})
	return resp, err
}

// DeleteStudy implements StudyService.
func (s *studyService) DeleteStudy(ctx context.Context, req *dparetov1.DeleteStudyRequest) (*dparetov1.DeleteStudyResponse, error) {
	id, err := parseStudyName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	resp := new(dparetov1.DeleteStudyResponse)
	m, err := newMutation(req, resp)
	if err != nil {
		return nil, err
	}
	if err := s.importing.await(ctx, id); err != nil {
		return nil, err
	}
	defer s.importing.end(id)
	var uid string
	err = s.update(ctx, m, store.StudyScope(id), []store.Scope{store.StoreScope}, func(tx *store.Tx) error {
		record, err := findStudy(&tx.ReadTx, id)
		if err != nil {
			return err
		}
		if err := checkEtag(req.GetEtag(), record.GetStudy().GetEtag()); err != nil {
			return err
		}
		uid = record.GetStudy().GetUid()
		if isPublication(record.GetStudy().GetSpec()) {
			tx.PutEnded(uid, record.GetStudy().GetRevision())
		}
		tx.AfterCommit(func() { s.watchers.notify(id) })
		return tx.DeleteStudy(id)
	})
	if err != nil {
		return nil, err
	}
	s.studies.forget(uid)
	s.dropRemains(ctx, id)
	return resp, nil
}

// findStudy returns a study's record, or NOT_FOUND.
func findStudy(tx *store.ReadTx, id string) (*storev1.StudyRecord, error) {
	record, err := tx.Study(id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, studyNotFound(id)
	}
	return record, err
}

// checkEtag refuses a request made with another etag than the resource has.
func checkEtag(requested, actual string) error {
	if requested != "" && requested != actual {
		return status.Errorf(codes.FailedPrecondition, "etag is %q, the resource has changed and has %q", requested, actual)
	}
	return nil
}

// present returns a study as clients see it now. It changes record.
func (s *Server) present(record *storev1.StudyRecord) *dparetov1.Study {
	study := record.GetStudy()
	study.State, study.StateReason = s.state(record)
	if isSearch(study) {
		return withoutSecrets(study)
	}
	study.Publication = s.publication(record)
	return study
}

// state returns the state of a study now, and why: an active study whose budget is
// spent is complete when its last trial is.
func (s *Server) state(record *storev1.StudyRecord) (dparetov1.StudyState, string) {
	study := record.GetStudy()
	if study.GetState() == dparetov1.StudyState_STUDY_STATE_ACTIVE && openTrials(study.GetTrialCounts()) == 0 {
		if reason := s.spent(record); reason != "" {
			return dparetov1.StudyState_STUDY_STATE_COMPLETED, reason
		}
	}
	return study.GetState(), study.GetStateReason()
}

// spent returns which limit of the budget keeps new trials from being created, or "".
func (s *Server) spent(record *storev1.StudyRecord) string {
	if isSearch(record.GetStudy()) {
		if searchLeft(record) <= 0 {
			return "all of its trials have been run"
		}
		return ""
	}
	if reason := privateSpent(record); reason != "" {
		return reason
	}
	budget := record.GetStudy().GetSpec().GetBudget()
	if n := budget.GetMaxTrials(); n > 0 && record.GetNextTrialNumber() > n {
		return "the budget of " + strconv.FormatInt(n, 10) + " trials is spent"
	}
	if d := budget.GetMaxDuration(); d != nil && s.now().Sub(record.GetStudy().GetCreateTime().AsTime()) >= d.AsDuration() {
		return "the budget of " + d.AsDuration().String() + " is spent"
	}
	return stagnant(record)
}

// openTrials returns the number of trials that are not in a terminal state.
func openTrials(counts *dparetov1.TrialCounts) int64 {
	return counts.GetQueued() + counts.GetActive() + counts.GetStopping()
}
