package dpareto

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// Update sets fields of the study from a message, and returns the changed study. The
// fields are paths such as "labels" or "spec.budget.max_trials"; "*" stands for
// everything that can change, absent fields included. Fields on which existing trials
// depend cannot change, and domains can only grow: the error names every field that
// violates this.
//
// If the message has an etag, as Get returned it, the study must still have the same one.
// Otherwise the study has changed since, and the error has the code FailedPrecondition.
func (s *Study) Update(ctx context.Context, study *dparetov1.Study, fields ...string) (*dparetov1.Study, error) {
	study = proto.CloneOf(study)
	study.Name = s.name
	resp, err := s.client.Studies.UpdateStudy(ctx, &dparetov1.UpdateStudyRequest{
		Study: study, UpdateMask: &fieldmaskpb.FieldMask{Paths: fields},
	})
	if err != nil {
		return nil, newCallError(ctx, "update "+s.name, err)
	}
	return resp.GetStudy(), nil
}

// Pause makes the study hand out no trials until Resume. Workers continue with the trials
// that they hold. Pausing a paused study changes nothing.
func (s *Study) Pause(ctx context.Context) (*dparetov1.Study, error) {
	resp, err := s.client.Studies.PauseStudy(ctx, &dparetov1.PauseStudyRequest{Name: s.name})
	if err != nil {
		return nil, newCallError(ctx, "pause "+s.name, err)
	}
	return resp.GetStudy(), nil
}

// Resume makes the study hand out trials again. Resuming a study that is not paused
// changes nothing.
func (s *Study) Resume(ctx context.Context) (*dparetov1.Study, error) {
	resp, err := s.client.Studies.ResumeStudy(ctx, &dparetov1.ResumeStudyRequest{Name: s.name})
	if err != nil {
		return nil, newCallError(ctx, "resume "+s.name, err)
	}
	return resp.GetStudy(), nil
}

// Delete deletes the study with all its trials. If there is no such study the error has
// the code NotFound.
func (s *Study) Delete(ctx context.Context) error {
	if _, err := s.client.Studies.DeleteStudy(ctx, &dparetov1.DeleteStudyRequest{Name: s.name}); err != nil {
		return newCallError(ctx, "delete "+s.name, err)
	}
	return nil
}

// UpdateTrial sets the fields "labels" or "note" of a trial in any state from a message,
// and returns the changed trial. An etag works as in Update.
func (s *Study) UpdateTrial(ctx context.Context, number int64, trial *dparetov1.Trial, fields ...string) (*dparetov1.Trial, error) {
	trial = proto.CloneOf(trial)
	trial.Name = s.trialName(number)
	resp, err := s.client.Studies.UpdateTrial(ctx, &dparetov1.UpdateTrialRequest{
		Trial: trial, UpdateMask: &fieldmaskpb.FieldMask{Paths: fields},
	})
	if err != nil {
		return nil, newCallError(ctx, "update "+trial.GetName(), err)
	}
	return resp.GetTrial(), nil
}

// StopTrial asks the worker that holds a trial to complete it with its results so far; a
// queued trial fails. The reason may be empty; it is cut at 2,000 characters.
func (s *Study) StopTrial(ctx context.Context, number int64, reason string) (*dparetov1.Trial, error) {
	name := s.trialName(number)
	resp, err := s.client.Studies.StopTrial(ctx, &dparetov1.StopTrialRequest{Name: name, Reason: clip(reason)})
	if err != nil {
		return nil, newCallError(ctx, "stop "+name, err)
	}
	return resp.GetTrial(), nil
}

// DeleteTrial deletes a trial that no worker holds.
func (s *Study) DeleteTrial(ctx context.Context, number int64) error {
	name := s.trialName(number)
	if _, err := s.client.Studies.DeleteTrial(ctx, &dparetov1.DeleteTrialRequest{Name: name}); err != nil {
		return newCallError(ctx, "delete "+name, err)
	}
	return nil
}

// trialName returns the resource name of a trial.
func (s *Study) trialName(number int64) string { return fmt.Sprintf("%s/trials/%d", s.name, number) }
