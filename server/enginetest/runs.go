package enginetest

import (
	"context"
	"testing"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// SimpleSpec is a study of one parameter x and one reported metric y.
func SimpleSpec() *dparetov1.StudySpec {
	return &dparetov1.StudySpec{
		Parameters: []*dparetov1.ParameterSpec{{
			Id: "x", Scale: dparetov1.Scale_SCALE_LINEAR,
			Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Max: 1}},
		}},
		Metrics: []*dparetov1.MetricSpec{{
			Id: "y", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE,
			Transform: dparetov1.Transform_TRANSFORM_IDENTITY, ReferenceValue: new(1.0),
			Source: &dparetov1.MetricSpec_Reported{Reported: &dparetov1.ReportedSource{}},
		}},
		Algorithm: &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_RANDOM},
	}
}

// Simple creates the study studies/s from SimpleSpec.
func (s *Service) Simple(t testing.TB) *dparetov1.Study {
	t.Helper()
	return s.create(t, "s", SimpleSpec())
}

// Ask returns the first trial of studies/s that a worker gets.
func (s *Service) Ask(t testing.TB, worker string) *dparetov1.Trial {
	t.Helper()
	resp, err := s.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/s", WorkerId: worker})
	require.NoError(t, err)
	return resp.GetTrials()[0]
}

// epochs is the checkpoint parameter of RunSpec.
const epochs = "epochs"

// RunSpec is a study of runs of up to 64 epochs, with two objectives: the privacy loss epochs·x,
// which is known, and an error.
func RunSpec() *dparetov1.StudySpec {
	return &dparetov1.StudySpec{
		Parameters: []*dparetov1.ParameterSpec{
			{
				Id: "x", Scale: dparetov1.Scale_SCALE_LINEAR,
				Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Max: 1}},
			},
			{
				Id: epochs, Scale: dparetov1.Scale_SCALE_LINEAR,
				Domain: &dparetov1.ParameterSpec_IntegerDomain{IntegerDomain: &dparetov1.IntegerDomain{Min: 1, Max: 64}},
			},
		},
		Metrics: []*dparetov1.MetricSpec{
			{
				Id: "loss", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE,
				Transform: dparetov1.Transform_TRANSFORM_IDENTITY, ReferenceValue: new(32.0),
				Source: &dparetov1.MetricSpec_Computed{Computed: &dparetov1.ComputedSource{
					Function: &dparetov1.ComputedSource_Expression{Expression: "double(epochs) * x"},
				}},
			},
			{
				Id: "error", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE,
				Transform: dparetov1.Transform_TRANSFORM_IDENTITY, ReferenceValue: new(1.0),
				Source: &dparetov1.MetricSpec_Reported{Reported: &dparetov1.ReportedSource{}},
			},
		},
		CheckpointParameter: epochs,
		Seed:                new(uint64(1)),
		Algorithm:           &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_RANDOM},
	}
}

// Checkpoints gives a study an algorithm that learns from every measurement of a run.
func Checkpoints(asked *dparetov1.StudySpec) {
	asked.Algorithm.Name = dparetov1.Algorithm_ALGORITHM_DEFAULT
}

// ModelBased gives a study an algorithm whose suggestions are prepared, and which learns from
// complete runs only.
func ModelBased(asked *dparetov1.StudySpec) {
	asked.Algorithm.Name = dparetov1.Algorithm_ALGORITHM_DPARETO
}

// Accounted replaces the privacy loss of a study by ε of a mechanism whose accountant takes too
// long for transactions.
func Accounted(asked *dparetov1.StudySpec) {
	asked.GetMetrics()[0].GetComputed().Function = &dparetov1.ComputedSource_Privacy{Privacy: &dparetov1.PrivacySpec{
		Mechanism: &dparetov1.PrivacySpec_DpSgd{DpSgd: &dparetov1.DpSgdMechanism{
			Sampling: dparetov1.Sampling_SAMPLING_POISSON, Convention: dparetov1.Convention_CONVENTION_ROUNDED, DatasetSize: "1000", BatchSize: "10", NoiseMultiplier: "1.0 + x",
			Length: &dparetov1.DpSgdMechanism_Epochs{Epochs: epochs},
		}},
		Delta: 1e-5, Adjacency: dparetov1.Adjacency_ADJACENCY_ADD_REMOVE,
	}}
}

// Runs creates the study studies/runs from RunSpec, changed unless change is nil.
func (s *Service) Runs(t testing.TB, change func(*dparetov1.StudySpec)) *dparetov1.Study {
	t.Helper()
	asked := RunSpec()
	if change != nil {
		change(asked)
	}
	return s.create(t, "runs", asked)
}

func (s *Service) create(t testing.TB, id string, asked *dparetov1.StudySpec) *dparetov1.Study {
	t.Helper()
	resp, err := s.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: id, Study: &dparetov1.Study{Spec: asked}})
	require.NoError(t, err)
	return resp.GetStudy()
}

// At returns a designer that always suggests one configuration.
func At(q ...float64) Designer {
	return func(_ context.Context, _ *suggest.Problem, _ *suggest.History, r suggest.Request) ([]suggest.Suggestion, error) {
		suggestions := make([]suggest.Suggestion, r.Count)
		for i := range suggestions {
			suggestions[i] = suggest.Suggestion{Point: space.Point(q).Clone(), Designer: "fake"}
		}
		return suggestions, nil
	}
}

// ErrorAt returns a measurement of an error.
func ErrorAt(step int64, value float64) *dparetov1.Measurement {
	return &dparetov1.Measurement{Step: step, Metrics: map[string]*dparetov1.MetricValue{"error": {Value: &value}}}
}

// AskRun returns a new trial of studies/runs.
func (s *Service) AskRun(t testing.TB) *dparetov1.Trial {
	t.Helper()
	resp, err := s.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/runs", WorkerId: "w", Resume: new(false)})
	if err != nil || len(resp.GetTrials()) != 1 {
		t.Fatalf("%v, %v", resp, err)
	}
	return resp.GetTrials()[0]
}

// Report adds measurements to a trial and returns the last answer.
func (s *Service) Report(t testing.TB, trial *dparetov1.Trial, measurements ...*dparetov1.Measurement) (last *dparetov1.AddMeasurementResponse) {
	t.Helper()
	for _, m := range measurements {
		var err error
		last, err = s.AddMeasurement(t.Context(), &dparetov1.AddMeasurementRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: m,
		})
		require.NoError(t, err)
	}
	return last
}

// Complete completes a trial with a final measurement, its last one if it is nil.
func (s *Service) Complete(t testing.TB, trial *dparetov1.Trial, final *dparetov1.Measurement) *dparetov1.Trial {
	t.Helper()
	req := &dparetov1.CompleteTrialRequest{Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken()}
	req.Outcome = &dparetov1.CompleteTrialRequest_Measurement{Measurement: final}
	if final == nil {
		req.Outcome = &dparetov1.CompleteTrialRequest_UseLastMeasurement{UseLastMeasurement: &dparetov1.UseLastMeasurement{}}
	}
	resp, err := s.CompleteTrial(t.Context(), req)
	require.NoError(t, err)
	return resp.GetTrial()
}

// Insert creates, within a change of studies/runs, a successful trial with measurements, the last
// of which is its result. It is for benchmarks of studies with many trials.
func Insert(c *study.Change, point space.Point, measurements ...*dparetov1.Measurement) error {
	_, err := c.Create(point, dparetov1.TrialOrigin_TRIAL_ORIGIN_IMPORTED, func(record *storev1.TrialRecord) error {
		trial := record.GetTrial()
		for i, reported := range measurements {
			m, _, err := c.Compiled.Measurements.Accept("m", point, reported, i == len(measurements)-1)
			if err != nil {
				return err
			}
			trial.Measurements = append(trial.Measurements, m)
		}
		last := len(measurements) - 1
		trial.FinalMeasurement = trial.GetMeasurements()[last]
		trial.Measurements = trial.GetMeasurements()[:last]
		trial.State = dparetov1.TrialState_TRIAL_STATE_SUCCEEDED
		c.Study.CompletedTrials++
		record.CompletionOrder = c.Study.GetCompletedTrials()
		return nil
	})
	return err
}
