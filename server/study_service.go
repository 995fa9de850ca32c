package server

import (
	"context"

	"google.golang.org/grpc"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/engine"
	"github.com/dpareto/dpareto/server/list"
	"github.com/dpareto/dpareto/server/study"
)

// studyService implements StudyService.
type studyService struct {
	dparetov1.UnimplementedStudyServiceServer

	studies *study.Studies
	trials  *study.Trials
	engine  *engine.Engine
	lists   *list.Lists
}

func (s *studyService) CreateStudy(ctx context.Context, req *dparetov1.CreateStudyRequest) (*dparetov1.CreateStudyResponse, error) {
	return s.studies.CreateStudy(ctx, req)
}

func (s *studyService) GetStudy(ctx context.Context, req *dparetov1.GetStudyRequest) (*dparetov1.GetStudyResponse, error) {
	return s.studies.GetStudy(ctx, req)
}

func (s *studyService) ListStudies(ctx context.Context, req *dparetov1.ListStudiesRequest) (*dparetov1.ListStudiesResponse, error) {
	return s.lists.ListStudies(ctx, req)
}

func (s *studyService) UpdateStudy(ctx context.Context, req *dparetov1.UpdateStudyRequest) (*dparetov1.UpdateStudyResponse, error) {
	return s.studies.UpdateStudy(ctx, req)
}

func (s *studyService) DeleteStudy(ctx context.Context, req *dparetov1.DeleteStudyRequest) (*dparetov1.DeleteStudyResponse, error) {
	return s.studies.DeleteStudy(ctx, req)
}

func (s *studyService) PauseStudy(ctx context.Context, req *dparetov1.PauseStudyRequest) (*dparetov1.PauseStudyResponse, error) {
	return s.studies.PauseStudy(ctx, req)
}

func (s *studyService) ResumeStudy(ctx context.Context, req *dparetov1.ResumeStudyRequest) (*dparetov1.ResumeStudyResponse, error) {
	return s.studies.ResumeStudy(ctx, req)
}

func (s *studyService) WatchStudy(req *dparetov1.WatchStudyRequest, stream grpc.ServerStreamingServer[dparetov1.WatchStudyResponse]) error {
	return s.studies.WatchStudy(req, stream)
}

func (s *studyService) SuggestTrials(ctx context.Context, req *dparetov1.SuggestTrialsRequest) (*dparetov1.SuggestTrialsResponse, error) {
	return s.engine.SuggestTrials(ctx, req)
}

func (s *studyService) CreateTrial(ctx context.Context, req *dparetov1.CreateTrialRequest) (*dparetov1.CreateTrialResponse, error) {
	return s.trials.CreateTrial(ctx, req)
}

func (s *studyService) GetTrial(ctx context.Context, req *dparetov1.GetTrialRequest) (*dparetov1.GetTrialResponse, error) {
	return s.trials.GetTrial(ctx, req)
}

func (s *studyService) ListTrials(ctx context.Context, req *dparetov1.ListTrialsRequest) (*dparetov1.ListTrialsResponse, error) {
	return s.lists.ListTrials(ctx, req)
}

func (s *studyService) UpdateTrial(ctx context.Context, req *dparetov1.UpdateTrialRequest) (*dparetov1.UpdateTrialResponse, error) {
	return s.trials.UpdateTrial(ctx, req)
}

func (s *studyService) DeleteTrial(ctx context.Context, req *dparetov1.DeleteTrialRequest) (*dparetov1.DeleteTrialResponse, error) {
	return s.trials.DeleteTrial(ctx, req)
}

func (s *studyService) AddMeasurement(ctx context.Context, req *dparetov1.AddMeasurementRequest) (*dparetov1.AddMeasurementResponse, error) {
	return s.trials.AddMeasurement(ctx, req)
}

func (s *studyService) RenewLeases(ctx context.Context, req *dparetov1.RenewLeasesRequest) (*dparetov1.RenewLeasesResponse, error) {
	return s.trials.RenewLeases(ctx, req)
}

func (s *studyService) CompleteTrial(ctx context.Context, req *dparetov1.CompleteTrialRequest) (*dparetov1.CompleteTrialResponse, error) {
	return s.trials.CompleteTrial(ctx, req)
}

func (s *studyService) ReleaseTrial(ctx context.Context, req *dparetov1.ReleaseTrialRequest) (*dparetov1.ReleaseTrialResponse, error) {
	return s.trials.ReleaseTrial(ctx, req)
}

func (s *studyService) StopTrial(ctx context.Context, req *dparetov1.StopTrialRequest) (*dparetov1.StopTrialResponse, error) {
	return s.trials.StopTrial(ctx, req)
}
