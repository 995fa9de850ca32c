package server

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/suggest"
)

// runSpec is a study of runs of up to 64 epochs, with two objectives: the privacy loss
// epochs·x, which is known, and an error. Its designer counts as one that uses models
// where serviceWith's Server is told so.
func runSpec() *dparetov1.StudySpec {
	reference, worst, seed := 32.0, 1.0, uint64(1)
	return &dparetov1.StudySpec{
		Parameters: []*dparetov1.ParameterSpec{
			{
				Id: "x", Scale: dparetov1.Scale_SCALE_LINEAR,
				Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Max: 1}},
			},
			{
				Id: "epochs", Scale: dparetov1.Scale_SCALE_LINEAR,
				Domain: &dparetov1.ParameterSpec_IntegerDomain{IntegerDomain: &dparetov1.IntegerDomain{Min: 1, Max: 64}},
			},
		},
		Metrics: []*dparetov1.MetricSpec{
			{
				Id: "loss", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE,
				Transform: dparetov1.Transform_TRANSFORM_IDENTITY, ReferenceValue: &reference,
				Source: &dparetov1.MetricSpec_Computed{Computed: &dparetov1.ComputedSource{
					Function: &dparetov1.ComputedSource_Expression{Expression: "double(epochs) * x"},
				}},
			},
			{
				Id: "error", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE,
				Transform: dparetov1.Transform_TRANSFORM_IDENTITY, ReferenceValue: &worst,
				Source: &dparetov1.MetricSpec_Reported{Reported: &dparetov1.ReportedSource{}},
			},
		},
		CheckpointParameter: "epochs",
		Seed:                &seed,
		Algorithm:           &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_RANDOM},
	}
}

// checkpoints gives a study an algorithm that learns from every measurement of a run.
func checkpoints(asked *dparetov1.StudySpec) {
	asked.Algorithm.Name = dparetov1.Algorithm_ALGORITHM_DEFAULT
}

// modelBased gives a study an algorithm whose suggestions are prepared, and which learns
// from complete runs only.
func modelBased(asked *dparetov1.StudySpec) {
	asked.Algorithm.Name = dparetov1.Algorithm_ALGORITHM_DPARETO
}

// runs creates the study studies/runs.
func runs(t testing.TB, s *studyService, change func(*dparetov1.StudySpec)) *dparetov1.Study {
	t.Helper()
	asked := runSpec()
	if change != nil {
		change(asked)
	}
	resp, err := s.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "runs", Study: &dparetov1.Study{Spec: asked}})
	if err != nil {
		t.Fatal(err)
	}
	return resp.GetStudy()
}

// errorAt returns a measurement of an error.
func errorAt(step int64, value float64) *dparetov1.Measurement {
	return &dparetov1.Measurement{Step: step, Metrics: map[string]*dparetov1.MetricValue{"error": {Value: &value}}}
}

// askRun returns a new trial of studies/runs.
func askRun(t testing.TB, s *studyService) *dparetov1.Trial {
	t.Helper()
	no := false
	resp, err := s.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/runs", WorkerId: "w", Resume: &no})
	if err != nil || len(resp.GetTrials()) != 1 {
		t.Fatalf("%v, %v", resp, err)
	}
	return resp.GetTrials()[0]
}

// report adds measurements to a trial and returns the last answer.
func report(t testing.TB, s *studyService, trial *dparetov1.Trial, measurements ...*dparetov1.Measurement) (last *dparetov1.AddMeasurementResponse) {
	t.Helper()
	for _, m := range measurements {
		var err error
		last, err = s.AddMeasurement(t.Context(), &dparetov1.AddMeasurementRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: m,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return last
}

// completeRun completes a trial with a final measurement, its last one if it is nil.
func completeRun(t testing.TB, s *studyService, trial *dparetov1.Trial, final *dparetov1.Measurement) *dparetov1.Trial {
	t.Helper()
	req := &dparetov1.CompleteTrialRequest{Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken()}
	req.Outcome = &dparetov1.CompleteTrialRequest_Measurement{Measurement: final}
	if final == nil {
		req.Outcome = &dparetov1.CompleteTrialRequest_UseLastMeasurement{UseLastMeasurement: &dparetov1.UseLastMeasurement{}}
	}
	resp, err := s.CompleteTrial(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return resp.GetTrial()
}

// historyOf reads the history of studies/runs.
func historyOf(t testing.TB, s *Server, study *dparetov1.Study) *suggest.History {
	t.Helper()
	snapshot, err := s.snapshot(t.Context(), "runs", study.GetUid())
	if err != nil {
		t.Fatal(err)
	}
	return snapshot.history
}

// The history is in the order of completion. Every measurement of a run is an evaluation,
// the last at its end, for designers that learn from checkpoints, else complete runs are.
func TestHistory(t *testing.T) {
	for name, tc := range map[string]struct {
		algorithm func(*dparetov1.StudySpec)
		want      []string
	}{
		"checkpoints":   {checkpoints, []string{"3 2 0.3", "1 1 0.5", "1 8 0.4", "1 10 0.2"}},
		"complete runs": {modelBased, []string{"0 2 0.3", "0 10 0.2"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := serviceWith(t, fakeDesigner{suggest: suggest.NewRandom().Suggest})
			study := runs(t, s, func(asked *dparetov1.StudySpec) {
				tc.algorithm(asked)
				asked.Parameters[1].GetIntegerDomain().Min = 63
			})
			first, second, third := askRun(t, s), askRun(t, s), askRun(t, s)
			report(t, s, first, errorAt(1, 0.5), errorAt(8, 0.4))
			report(t, s, third, errorAt(2, 0.3))
			completeRun(t, s, third, nil)
			completeRun(t, s, first, errorAt(0, 0.2))
			h := historyOf(t, s.Server, study)
			var got []string
			for _, e := range h.Evaluations {
				got = append(got, fmt.Sprint(e.Run, min(e.Point[1], 10), e.Values[1]))
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("evaluations %q, want %q", got, tc.want)
			}
			if len(h.Pending) != 1 || h.Pending[0][0] != second.GetParameters()["x"].GetDoubleValue() {
				t.Errorf("pending %v", h.Pending)
			}
		})
	}
}

// A final measurement may be of an earlier step than the last: the evaluations of a run
// are in the order of its steps.
func TestFinalMeasurementOnTheWay(t *testing.T) {
	s := serviceWith(t, at(0.25, 64))
	study := runs(t, s, checkpoints)
	for _, step := range []int64{10, 1} {
		trial := askRun(t, s)
		report(t, s, trial, errorAt(1, 0.5), errorAt(60, 0.3))
		completeRun(t, s, trial, errorAt(step, 0.1))
	}
	var got []string
	for _, e := range historyOf(t, s.Server, study).Evaluations {
		got = append(got, fmt.Sprint(e.Run, e.Point[1], e.Values[1]))
	}
	if want := []string{"1 1 0.5", "1 10 0.1", "1 60 0.3", "2 1 0.1", "2 60 0.3"}; !slices.Equal(got, want) {
		t.Errorf("evaluations %q, want %q", got, want)
	}
	front, err := s.results(t.Context(), "runs", false)
	if err != nil {
		t.Fatal(err)
	}
	if m := front.measurements[2]; len(front.measurements) != 5 || m.measurement.GetStep() != 60 || !m.last || front.measurements[1].last {
		t.Errorf("measurements %v", front.measurements)
	}
}

// Whatever happens, the history that is kept up to date is that of the stored trials.
func TestHistoryIsThatOfTheStore(t *testing.T) {
	s := serviceWith(t, fakeDesigner{suggest: suggest.NewRandom().Suggest})
	study := runs(t, s, checkpoints)
	rng := rand.New(rand.NewPCG(1, 2))
	var held []*dparetov1.Trial
	for range 150 {
		switch op := rng.IntN(8); {
		case op < 2 || len(held) == 0:
			held = append(held, askRun(t, s))
		case op == 7: // delete any trial that nobody holds
			name := trialName("runs", 1+rng.Int64N(int64(len(held)+20)))
			_, _ = s.DeleteTrial(t.Context(), &dparetov1.DeleteTrialRequest{Name: name})
		default:
			i := rng.IntN(len(held))
			trial := held[i]
			last := trial.GetParameters()["epochs"].GetIntValue()
			if op == 2 {
				_, _ = s.AddMeasurement(t.Context(), &dparetov1.AddMeasurementRequest{
					Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: errorAt(1+rng.Int64N(last), rng.Float64()),
				})
				break
			}
			held = slices.Delete(held, i, i+1)
			req := &dparetov1.CompleteTrialRequest{Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken()}
			switch op {
			case 3:
				req.Outcome = &dparetov1.CompleteTrialRequest_Infeasible{Infeasible: &dparetov1.Infeasible{Reason: "r"}}
			case 4:
				req.Outcome = &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: "r", Retryable: rng.IntN(2) == 0}}
			default:
				req.Outcome = &dparetov1.CompleteTrialRequest_Measurement{Measurement: errorAt(0, rng.Float64())}
			}
			if _, err := s.CompleteTrial(t.Context(), req); err != nil {
				t.Fatal(err)
			}
		}
		got := historyOf(t, s.Server, study)
		fresh := New(Options{Store: s.store})
		want := historyOf(t, fresh, study)
		fresh.Close()
		if d := cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); d != "" {
			t.Fatal(d)
		}
	}
}

// BenchmarkSnapshot reads the history of 2,000 runs of 64 measurements.
func BenchmarkSnapshot(b *testing.B) {
	s := serviceWith(b, fakeDesigner{suggest: suggest.NewRandom().Suggest})
	study := runs(b, s, func(asked *dparetov1.StudySpec) {
		checkpoints(asked)
		asked.Parameters[1].GetIntegerDomain().Min = 63
	})
	const batch = 100
	for range 2000 / batch {
		err := s.changeStudy(b.Context(), "runs", new(mutation), func(c *change) error {
			for i := range batch {
				record, err := c.create([]float64{float64(i) / batch, 64}, dparetov1.TrialOrigin_TRIAL_ORIGIN_IMPORTED, nil)
				if err != nil {
					return err
				}
				for step := range int64(64) {
					m, _, err := c.compiled.Measurement("m", []float64{float64(i) / batch, 64}, errorAt(step+1, 0.5), false)
					if err != nil {
						return err
					}
					record.Trial.Measurements = append(record.Trial.Measurements, m)
				}
				before := record.GetTrial().GetState()
				c.finishWithLast(record)
				if err := c.put(record, before); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			s.studies.forget(study.GetUid())
			historyOf(b, s.Server, study)
		}
	})
	b.Run("next", func(b *testing.B) {
		for b.Loop() {
			historyOf(b, s.Server, study)
		}
	})
}
