package study

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/attachment"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/specchange"
	"github.com/dpareto/dpareto/server/store"
)

// labelsField is the name of the field with the labels of studies and trials.
const labelsField = "labels"

// Fields that clients may change. For the spec see specchange.Check.
var (
	mutableStudyFields = []string{"display_name", "description", labelsField, "spec"}
	mutableTrialFields = []string{labelsField, "note", "attributes", "artifacts"}
)

// TouchStudy gives the study itself the next revision, after a change of its own fields.
func (c *Change) TouchStudy() {
	study := c.Study.GetStudy()
	study.Revision++
	c.Study.OwnRevision = study.GetRevision()
	// The random part tells apart two states with the same revision, after a crash lost the first.
	of := study.GetRevision()
	if c.Policy.Traits().Hidden {
		of = 1 // a revision counts the changes of trials
	}
	study.Etag = Etag(study.GetUid(), of) + "-" + NewToken()[:8]
	study.UpdateTime = timestamppb.New(c.Now)
}

// UpdateStudy implements StudyService.
func (s *Studies) UpdateStudy(ctx context.Context, req *dparetov1.UpdateStudyRequest) (*dparetov1.UpdateStudyResponse, error) {
	id, err := resource.ParseStudyName("study.name", req.GetStudy().GetName())
	if err != nil {
		return nil, err
	}
	return answerPlanned(ctx, s, id, req, func() (func(*Change, *dparetov1.UpdateStudyResponse) error, error) {
		before, after, err := updatedStudy(ctx, s, id, req)
		return func(c *Change, resp *dparetov1.UpdateStudyResponse) error {
			study := c.Study.GetStudy()
			if study.GetEtag() != before.GetEtag() {
				return errRaced
			}
			if !proto.Equal(before, after) {
				study.DisplayName, study.Description, study.Labels = after.GetDisplayName(), after.GetDescription(), after.GetLabels()
				c.noteDesignChange(after.GetSpec())
				study.Spec, study.Warnings = after.GetSpec(), after.GetWarnings()
				c.TouchStudy()
			}
			resp.Study = s.Present(proto.CloneOf(c.Study))
			return nil
		}, err
	})
}

// noteDesignChange notes that a new spec changes which trials the study will have, or which of them
// a release may choose, if it comes after the first trial was created. From then on a worker may
// know a result, before the server does. The first change stays noted: undoing it may also depend
// on results.
func (c *Change) noteDesignChange(after *dparetov1.StudySpec) {
	study := c.Study.GetStudy()
	if c.Study.GetNextTrialNumber() == 1 || study.GetDesignChange() != nil || c.Policy.Traits().Prepaid {
		return
	}
	if fields := specchange.DesignDifferences(study.GetSpec(), after); len(fields) > 0 {
		study.DesignChange = &dparetov1.DesignChange{Fields: fields, Time: timestamppb.New(c.Now)}
	}
}

// updatedStudy returns a study before and after an update. It compiles the spec, which is too slow
// for a write transaction.
func updatedStudy(ctx context.Context, s *Studies, id string, req *dparetov1.UpdateStudyRequest) (before, after *dparetov1.Study, err error) {
	var record *storev1.StudyRecord
	err = s.store.View(ctx, func(tx *store.ReadTx) error {
		record, err = FindStudy(tx, id)
		before = record.GetStudy()
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if err := checkEtag(req.GetStudy().GetEtag(), before.GetEtag()); err != nil {
		return nil, nil, err
	}
	after = proto.CloneOf(before)
	if err := specchange.ApplyMask(after, req.GetStudy(), req.GetUpdateMask(), mutableStudyFields); err != nil {
		return nil, nil, err
	}
	after.Spec = spec.WithDefaults(after.GetSpec())
	var fields invalid.Fields
	ValidateStudy(id, after, &fields)
	if err := fields.Err(); err != nil {
		return nil, nil, err
	}
	if proto.Equal(before.GetSpec(), after.GetSpec()) {
		return before, after, nil
	}
	traits := s.Policy(before.GetSpec()).Traits()
	if err := specchange.Check(before.GetSpec(), after.GetSpec(), specchange.Fixed{Domains: traits.OwnDraws, Ledgers: traits.Prepaid}); err != nil {
		return nil, nil, err
	}
	if namesLedger(after.GetSpec()) {
		if err := s.ledgers.CheckCaller(ctx, before.GetSpec(), after.GetSpec()); err != nil {
			return nil, nil, err
		}
		err = s.store.View(ctx, func(tx *store.ReadTx) error { return s.ledgers.Check(tx, after.GetSpec()) })
		if err != nil {
			return nil, nil, err
		}
	}
	compiled := s.compile(&fields, after.GetSpec(), record)
	if err := fields.Err(); err != nil {
		return nil, nil, err
	}
	after.Warnings = compiled.Warnings
	return before, after, nil
}

// UpdateTrial implements StudyService.
func (t *Trials) UpdateTrial(ctx context.Context, req *dparetov1.UpdateTrialRequest) (*dparetov1.UpdateTrialResponse, error) {
	id, number, err := resource.ParseTrialName("trial.name", req.GetTrial().GetName())
	if err != nil {
		return nil, err
	}
	return answer(ctx, t.studies, id, req, func(c *Change, resp *dparetov1.UpdateTrialResponse) error {
		tc, err := c.trial(number)
		if err != nil {
			return err
		}
		trial := tc.record.GetTrial()
		if err := checkEtag(req.GetTrial().GetEtag(), trial.GetEtag()); err != nil {
			return err
		}
		before := proto.CloneOf(trial)
		change := proto.CloneOf(req.GetTrial())
		change.Attributes = attachment.Attributes(trial.GetAttributes(), change.GetAttributes())
		change.Artifacts = attachment.Artifacts(trial.GetArtifacts(), change.GetArtifacts())
		if err := specchange.ApplyMask(trial, change, req.GetUpdateMask(), mutableTrialFields); err != nil {
			return err
		}
		if err := c.checkTrialFields(trial); err != nil {
			return err
		}
		resp.Trial = trial
		if proto.Equal(before, trial) {
			return c.skipAnswerIfFull()
		}
		if err := c.checkSize(); err != nil {
			return err
		}
		return tc.put(trial.GetState())
	})
}

// checkTrialFields checks the fields that clients may set besides configuration and result.
func (c *Change) checkTrialFields(trial *dparetov1.Trial) error {
	var fields invalid.Fields
	ValidateTrialFields("trial", trial, &fields)
	if c.Policy.Traits().Prepaid {
		attachment.CheckNone("trial", trial, &fields)
	}
	return fields.Err()
}

// ValidateTrialFields adds violations by the fields of a trial at a path that clients may set besides
// configuration and result to fields.
func ValidateTrialFields(path string, trial *dparetov1.Trial, fields *invalid.Fields) {
	ValidateLabels(path+".labels", trial.GetLabels(), fields)
	if n := len([]rune(trial.GetNote())); n > MaxText {
		fields.Addf(path+".note", "must have at most %d characters, has %d", MaxText, n)
	}
	attachment.Check(path, trial, fields)
}

// PauseStudy implements StudyService.
func (s *Studies) PauseStudy(ctx context.Context, req *dparetov1.PauseStudyRequest) (*dparetov1.PauseStudyResponse, error) {
	id, err := resource.ParseStudyName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	return answer(ctx, s, id, req, func(c *Change, resp *dparetov1.PauseStudyResponse) error {
		if isUnprepared(c.Policy, c.Study) {
			return status.Errorf(codes.FailedPrecondition, "%s hands out no trials that a pause could stop: its preparation is not complete", req.GetName())
		}
		resp.Study = c.setState(dparetov1.StudyState_STUDY_STATE_PAUSED)
		return nil
	})
}

// ResumeStudy implements StudyService.
func (s *Studies) ResumeStudy(ctx context.Context, req *dparetov1.ResumeStudyRequest) (*dparetov1.ResumeStudyResponse, error) {
	id, err := resource.ParseStudyName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	resp, err := answer(ctx, s, id, req, func(c *Change, resp *dparetov1.ResumeStudyResponse) error {
		state := dparetov1.StudyState_STUDY_STATE_ACTIVE
		if isUnprepared(c.Policy, c.Study) { // it could not be paid for; perhaps it can now
			state = dparetov1.StudyState_STUDY_STATE_PREPARING
		}
		resp.Study = c.setState(state)
		return nil
	})
	if err != nil {
		return nil, err
	}
	resp.Study, err = s.preparing.await(ctx, id, resp.GetStudy())
	return resp, err
}

// setState sets the state of the study, and returns the study as clients see it.
func (c *Change) setState(state dparetov1.StudyState) *dparetov1.Study {
	if study := c.Study.GetStudy(); study.GetState() != state {
		study.State, study.StateReason = state, ""
		c.TouchStudy()
	}
	return c.studies.Present(proto.CloneOf(c.Study))
}
