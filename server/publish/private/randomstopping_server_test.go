package private_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/metrics"
	"github.com/dpareto/dpareto/server/servertest"
)

// poisson gives a spec the Poisson distribution.
func poisson(s *dparetov1.StudySpec) *dparetov1.StudySpec {
	s.RandomStopping.Distribution = &dparetov1.RandomStoppingSpec_Poisson{Poisson: new(dparetov1.PoissonDistribution)}
	return s
}

// Totals for a Gaussian base, δ = 1e-6, as an independent implementation of the location bound computes them. All
// configurations of the list cost the same.
func TestRandomStoppingGuarantee(t *testing.T) {
	f := servertest.Start(t)
	capped := servertest.SearchSpec(10, 1)
	capped.RandomStopping.MaxTrials = 20
	fixed := servertest.SearchSpec(1, 0)
	fixed.RandomStopping.Distribution = &dparetov1.RandomStoppingSpec_Fixed{Fixed: new(dparetov1.FixedNumber)}
	unset := servertest.SearchSpec(10, 0)
	unset.RandomStopping.Distribution = nil // geometric
	for i, tc := range []struct {
		mu   string
		spec *dparetov1.StudySpec
		eps  float64
	}{
		{"0.1", servertest.SearchSpec(10, 1), 0.5939}, {"0.1", servertest.SearchSpec(100, 0), 0.6918}, {"0.1", unset, 0.5939},
		{"0.25", servertest.SearchSpec(10, 1), 1.5567}, {"0.25", servertest.SearchSpec(10, 0), 1.4742}, {"0.25", servertest.SearchSpec(100, 1), 2.0339},
		{"0.25", poisson(servertest.SearchSpec(10, 0)), 1.9702}, {"0.5", servertest.SearchSpec(100, 1), 4.2157}, {"0.5", capped, 3.208},
		{"0.25", fixed, 1.060702}, // the base
	} {
		study := f.Study(f.Create("s"+string(rune('a'+i)), servertest.Single(tc.spec, tc.mu)))
		g := study.GetPublication().GetTrain()
		if e := g.GetEpsilon(); math.Abs(e-tc.eps) > 1e-3*tc.eps {
			t.Errorf("%v: epsilon %g, want %g", tc.spec.GetRandomStopping(), e, tc.eps)
		}
		if g.GetDelta() != 1e-6 || g.GetAdjacency() != dparetov1.Adjacency_ADJACENCY_REPLACE_ONE ||
			g.GetAccountant() == dparetov1.Accountant_ACCOUNTANT_UNSPECIFIED || g.GetAccountant() == dparetov1.Accountant_ACCOUNTANT_TIGHTEST ||
			study.GetPublication().GetTest() != nil || len(study.GetPublication().GetNotCovered()) == 0 {
			t.Errorf("publication %v", study.GetPublication())
		}
	}
}

// The noise in scores is such that the best of them costs what was asked for, by the same
// independent totals: μ = 0.25 per score gives 1.5567.
func TestRandomStoppingNoise(t *testing.T) {
	f := servertest.Start(t)
	for id, tc := range map[string]struct {
		spec    *dparetov1.StudySpec
		epsilon float64
	}{
		"geometric": {servertest.SearchSpec(10, 1), 1.5567}, "logarithmic": {servertest.SearchSpec(10, 0), 1.4742}, "poisson": {poisson(servertest.SearchSpec(10, 0)), 1.9702},
	} {
		tc.spec.RandomStopping.TestSetSize, tc.spec.RandomStopping.TestEpsilon, tc.spec.RandomStopping.Delta = 500, tc.epsilon, 1e-6
		tc.spec.Metrics[1].GetReported().SampleSize = 500
		servertest.WithLedgers(tc.spec)
		p := f.Study(f.Create(id, tc.spec)).GetPublication()
		if sigma := p.GetNoiseStandardDeviation(); math.Abs(sigma*500*0.25-1) > 5e-3 {
			t.Errorf("%s: standard deviation %g, want %g", id, sigma, 1/(0.25*500))
		}
		if g := p.GetTest(); !(g.GetEpsilon() <= tc.epsilon) || g.GetEpsilon() < 0.999*tc.epsilon || g.GetAdjacency() != dparetov1.Adjacency_ADJACENCY_REPLACE_ONE {
			t.Errorf("%s: %v", id, g)
		}
	}
}

// Exactly so many trials are handed out as were drawn, each once: one that fails, is released or is lost
// is not run again. Then the study is completed.
func TestRandomStoppingRuns(t *testing.T) {
	f := servertest.Start(t)
	const drawn = 8
	study := f.WithTrials("search", servertest.SearchSpec(20, 0), drawn)
	failed, released, late := f.One(study, "a"), f.One(study, "b"), f.One(study, "c")
	require.NoError(t, require.ErrOf(f.Studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
		Name: failed.GetName(), LeaseToken: failed.GetLease().GetToken(),
		Outcome: &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: "the machine broke", Retryable: true}},
	})))
	for range 2 { // the second call repeats the first
		resp, err := f.Studies.ReleaseTrial(t.Context(), &dparetov1.ReleaseTrialRequest{Name: released.GetName(), LeaseToken: released.GetLease().GetToken(), Reason: "off"})
		if err != nil || resp.GetTrial().GetState() != dparetov1.TrialState_TRIAL_STATE_FAILED {
			t.Fatalf("%v, %v", resp, err)
		}
	}
	seen := map[int64]bool{failed.GetNumber(): true, released.GetNumber(): true, late.GetNumber(): true}
	lost := f.One(study, "b")
	seen[lost.GetNumber()] = true
	f.Restart()
	f.Clock.Advance(2 * time.Minute) // the leases run out
	f.Tell(late, 0.5)                // which counts, since nobody else has asked
	n := f.RunAll(study, func(trial *dparetov1.Trial) float64 {
		if seen[trial.GetNumber()] {
			t.Errorf("trial %d is handed out again", trial.GetNumber())
		}
		seen[trial.GetNumber()] = true
		if len(trial.GetComputedMetrics()) != 1 || trial.GetProvenance().GetSeed() != 0 {
			t.Errorf("trial %v", trial)
		}
		return 0.5
	})
	if n != drawn-4 || int64(len(seen)) != drawn {
		t.Errorf("%d trials, %d different ones in all, want %d", n, len(seen), drawn)
	}
	if _, err := f.Studies.CompleteTrial(t.Context(), servertest.Completion(lost, 0.1)); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("the result of a lost run: %v", err)
	}
	if s := f.Study(study); s.GetState() != dparetov1.StudyState_STUDY_STATE_COMPLETED {
		t.Errorf("state %v", s.GetState())
	}
	if resp := f.Ask(study, "c", 1000); len(resp.GetTrials()) != 0 || resp.GetStudyState() != dparetov1.StudyState_STUDY_STATE_COMPLETED {
		t.Errorf("after the end: %v", resp)
	}
}

// A call gets one trial, however many it asks for, and the answer is the same whether more follow or not.
func TestRandomStoppingBatch(t *testing.T) {
	f := servertest.Start(t)
	var answers []*dparetov1.SuggestTrialsResponse
	for _, drawn := range []int64{1, 2, 9} {
		study := f.WithTrials("search", servertest.SearchSpec(20, 1), drawn)
		resp := f.Ask(study, "worker", 1000)
		if len(resp.GetTrials()) != 1 {
			t.Fatalf("%d trials, want 1", len(resp.GetTrials()))
		}
		resp.Trials = nil
		answers = append(answers, resp)
		if !proto.Equal(resp, answers[0]) {
			t.Errorf("the answer tells the number of trials: %v, %v", resp, answers[0])
		}
		require.NoError(t, require.ErrOf(f.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: study})))
	}
}

// While trials run, a worker that gets none hears the same as one whose study has a limit on parallel trials.
func TestRandomStoppingHidesTheEnd(t *testing.T) {
	f := servertest.Start(t)
	limited := servertest.SearchSpec(20, 1)
	limited.Budget = &dparetov1.Budget{MaxParallelTrials: 1}
	var answers []*dparetov1.SuggestTrialsResponse
	for i, drawn := range []int64{1, 9} {
		study := f.WithTrials(fmt.Sprint("search", i), limited, drawn)
		f.One(study, "a")
		answers = append(answers, f.Ask(study, "b", 1))
	}
	if len(answers[0].GetTrials()) != 0 || !proto.Equal(answers[0], answers[1]) {
		t.Errorf("the answers tell the number of trials: %v, %v", answers[0], answers[1])
	}
}

// The Poisson distribution can give no trial; then there is nothing to wait for.
func TestRandomStoppingWithoutTrials(t *testing.T) {
	f := servertest.StartSeeded(t, 1)
	study := f.Create("search", poisson(servertest.SearchSpec(1e-9, 0)))
	if s := f.Study(study); s.GetState() != dparetov1.StudyState_STUDY_STATE_COMPLETED {
		t.Errorf("state %v", s.GetState())
	}
	if n := f.RunAll(study, nil); n != 0 {
		t.Errorf("%d trials", n)
	}
}

// Configurations come from entropy, not from the number of the trial or the seed of the
// study: two equal studies have different ones.
func TestRandomStoppingConfigurations(t *testing.T) {
	t.Parallel()
	f := servertest.Start(t)
	var drawn [2][]float64
	for i := range drawn {
		study := f.Create("search", poisson(servertest.SearchSpec(20, 0)))
		if s := f.Study(study); s.GetSeed() != 0 {
			t.Errorf("the study shows a seed")
		}
		f.RunAll(study, func(trial *dparetov1.Trial) float64 {
			drawn[i] = append(drawn[i], trial.GetParameters()["sigma"].GetDoubleValue())
			return 0.5
		})
		require.NoError(t, require.ErrOf(f.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: study})))
	}
	for _, x := range drawn[0] {
		if slices.Contains(drawn[1], x) {
			t.Errorf("%g is a configuration of both", x)
		}
	}
}

// The list holds allowed configurations in the asked number, drawn afresh for each study, and trials come
// from it alone.
func TestRandomStoppingList(t *testing.T) {
	t.Parallel()
	f := servertest.Start(t)
	s := servertest.SearchSpec(50, 1)
	s.ParameterConstraints = []string{"sigma < 10.0"}
	var lists [2][]float64
	for i := range lists {
		study := f.WithTrials(fmt.Sprint("search", i), s, 60)
		lists[i] = f.Export(study)[0].GetStudy().GetRandomStopping().GetListed()
		if len(lists[i]) != 20 || slices.Max(lists[i]) >= 10 || slices.Min(lists[i]) < 0.5 {
			t.Errorf("list %v", lists[i])
		}
		drawn := make(map[float64]bool)
		f.RunAll(study, func(trial *dparetov1.Trial) float64 {
			sigma := trial.GetParameters()["sigma"].GetDoubleValue()
			if drawn[sigma] = true; !slices.Contains(lists[i], sigma) {
				t.Errorf("%g is not on the list", sigma)
			}
			return 0.5
		})
		if n := len(drawn); n < 12 || n > 20 { // 19 of 20 are expected
			t.Errorf("%d different configurations", n)
		}
	}
	if slices.Equal(lists[0], lists[1]) {
		t.Error("two studies have the same list")
	}
}

// What would make trials depend on each other, or on anything but the draws, is refused.
func TestRandomStoppingIsValidated(t *testing.T) {
	f := servertest.Start(t)
	for field, change := range map[string]func(*dparetov1.StudySpec){
		"algorithm.name":             func(s *dparetov1.StudySpec) { s.Algorithm.Name = dparetov1.Algorithm_ALGORITHM_QUASI_RANDOM },
		"budget.max_trials":          func(s *dparetov1.StudySpec) { s.Budget = &dparetov1.Budget{MaxTrials: 3} },
		"budget.max_stagnant_trials": func(s *dparetov1.StudySpec) { s.Budget = &dparetov1.Budget{MaxStagnantTrials: 3} },
		"seed":                       func(s *dparetov1.StudySpec) { s.Seed = proto.Uint64(7) },
		"constant_points":            func(s *dparetov1.StudySpec) { servertest.WithConstant(s, 0, 0.5) },
		"prior_studies":              func(s *dparetov1.StudySpec) { s.PriorStudies = []string{"studies/other"} },
		"cost": func(s *dparetov1.StudySpec) {
			s.Cost = &dparetov1.CostSpec{Measure: &dparetov1.CostSpec_Runs{Runs: new(dparetov1.RunsCost)}}
		},
		"random_stopping.mean_trials": func(s *dparetov1.StudySpec) { s.RandomStopping.MeanTrials = 1 },
		"random_stopping.eta": func(s *dparetov1.StudySpec) {
			s.RandomStopping.Distribution = &dparetov1.RandomStoppingSpec_Eta{Eta: -1}
		},
		"random_stopping.binomial": func(s *dparetov1.StudySpec) {
			s.RandomStopping.Distribution = &dparetov1.RandomStoppingSpec_Binomial{Binomial: 9}
		},
		"random_stopping.max_trials":    func(s *dparetov1.StudySpec) { poisson(s).RandomStopping.MaxTrials = 9 },
		"random_stopping.listed":        func(s *dparetov1.StudySpec) { s.RandomStopping.Listed = 10_001 },
		"random_stopping.portfolio":     func(s *dparetov1.StudySpec) { s.RandomStopping.Portfolio = 2 },
		"random_stopping.final_run":     func(s *dparetov1.StudySpec) { s.RandomStopping.SubsetShare = 0.1 },
		"random_stopping.subset_share":  func(s *dparetov1.StudySpec) { s.RandomStopping.FinalRun = new(dparetov1.FinalRunSpec) },
		"random_stopping.curve_points":  func(s *dparetov1.StudySpec) { s.RandomStopping.CurvePoints = 10 },
		"random_stopping.metric":        func(s *dparetov1.StudySpec) { s.RandomStopping.Metric = "epsilon" },
		"random_stopping.delta":         func(s *dparetov1.StudySpec) { s.RandomStopping.Delta = 1 },
		"random_stopping.test_set_size": func(s *dparetov1.StudySpec) { s.RandomStopping.TestSetSize = -1 },
		"random_stopping.test_epsilon":  func(s *dparetov1.StudySpec) { s.RandomStopping.TestSetSize = 10 },
		"metrics[1].reference_value":    func(s *dparetov1.StudySpec) { s.Metrics[1].ReferenceValue = nil },
		"metrics[1].reported.noise": func(s *dparetov1.StudySpec) {
			s.Metrics[1].GetReported().Noise = dparetov1.Noise_NOISE_KNOWN
		},
		"metrics[1].reported.sample_size": func(s *dparetov1.StudySpec) {
			s.RandomStopping.TestSetSize, s.RandomStopping.TestEpsilon = 11, 1
		},
		"test_ledger": func(s *dparetov1.StudySpec) { s.TestLedger = "ledgers/test" },
		"metrics[2].reported": func(s *dparetov1.StudySpec) {
			s.Metrics = append(s.Metrics, &dparetov1.MetricSpec{
				Id: "seconds", Role: dparetov1.MetricRole_METRIC_ROLE_TRACKED,
				Source: &dparetov1.MetricSpec_Reported{Reported: new(dparetov1.ReportedSource)},
			})
		},
		"random_stopping": func(s *dparetov1.StudySpec) {
			s.Metrics[0].GetComputed().Function = &dparetov1.ComputedSource_Expression{Expression: "sigma"}
		},
	} {
		s := servertest.SearchSpec(10, 1)
		change(s)
		if s.GetTestLedger() == "" {
			servertest.WithLedgers(s)
		}
		_, err := f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "bad", Study: &dparetov1.Study{Spec: s}})
		if got := servertest.Violated(err); !slices.Equal(got, []string{"study.spec." + field}) {
			t.Errorf("%s: %v, %v", field, got, err)
		}
	}
	large := servertest.SearchSpec(10, 1)
	large.RandomStopping.TestSetSize, large.RandomStopping.TestEpsilon = 1<<40+1, 1
	large.Metrics[1].GetReported().SampleSize = 0
	servertest.WithLedgers(large)
	_, tooLarge := f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "bad", Study: &dparetov1.Study{Spec: large}})
	if got := servertest.Violated(tooLarge); !slices.Equal(got, []string{"study.spec.random_stopping.test_set_size"}) {
		t.Errorf("more records than an average in float64 tells apart: %v", tooLarge)
	}
	checkpoints := servertest.SGDSpec()
	checkpoints.Seed, checkpoints.RandomStopping = nil, servertest.SearchSpec(10, 1).GetRandomStopping()
	servertest.WithLedgers(checkpoints)
	_, err := f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "bad", Study: &dparetov1.Study{Spec: checkpoints}})
	if got := servertest.Violated(err); !slices.Equal(got, []string{"study.spec.checkpoint_parameter"}) {
		t.Errorf("checkpoints: %v", err)
	}
	study := f.Create("search", servertest.SearchSpec(10, 1))
	_, err = f.Studies.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{
		Parent: study, WorkerId: "w", Conditions: []*dparetov1.SuggestionCondition{{FixedParameters: servertest.Sigma(3)}},
	})
	if got := servertest.Violated(err); !slices.Equal(got, []string{"conditions"}) {
		t.Errorf("conditions: %v", err)
	}
	wider := proto.CloneOf(f.Study(study))
	wider.Spec.Parameters[0].GetDoubleDomain().Max = 1000
	if _, err := f.Update(wider, "spec"); len(servertest.Violated(err)) == 0 {
		t.Errorf("a wider domain: %v", err)
	}
	other := proto.CloneOf(f.Study(study))
	other.Spec.RandomStopping.MeanTrials = 20
	if _, err := f.Update(other, "spec"); len(servertest.Violated(err)) == 0 {
		t.Errorf("another mean: %v", err)
	}
	named := proto.CloneOf(f.Study(study))
	named.DisplayName, named.Spec.Budget = "Search", &dparetov1.Budget{MaxParallelTrials: 3}
	if _, err := f.Update(named, "display_name", "spec"); err != nil {
		t.Errorf("another name, and fewer trials at a time: %v", err)
	}
	asPrior := servertest.GaussianSpec()
	asPrior.PriorStudies = []string{study}
	_, err = f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "later", Study: &dparetov1.Study{Spec: asPrior}})
	servertest.WantCode(t, err, codes.InvalidArgument, "shows only its best trial")
}

// The best trial is released when all are complete, and at every call the same: its
// configuration and score, and nothing that tells which of them it was.
func TestReleaseOfRandomStopping(t *testing.T) {
	f := servertest.Start(t)
	study := f.WithTrials("search", servertest.SearchSpec(10, 1), 5)
	var wanted *dparetov1.Trial
	n := 0
	f.RunAll(study, func(trial *dparetov1.Trial) float64 {
		if _, err := f.ReleaseBest(study); status.Code(err) != codes.FailedPrecondition {
			t.Errorf("before the end: %v", err)
		}
		n++
		if n == 3 {
			wanted = trial
		}
		return []float64{0.5, math.NaN(), 0.1, 0.2, 0.3}[n-1]
	})
	release, err := f.ReleaseBest(study)
	require.NoError(t, err)
	if len(release.GetPoints()) != 1 {
		t.Fatalf("%d points", len(release.GetPoints()))
	}
	point := release.GetPoints()[0]
	if !proto.Equal(point.GetParameters()["sigma"], wanted.GetParameters()["sigma"]) || point.GetValues()["error"] != 0.1 ||
		point.GetValues()["epsilon"] != wanted.GetComputedMetrics()["epsilon"].GetValue() || len(point.GetStandardDeviations()) != 0 {
		t.Errorf("released %v, want %v", point, wanted.GetParameters())
	}
	if release.GetStudyRevision() != 0 || release.GetGuarantee() != nil || release.GetLedger() != "" ||
		!proto.Equal(release.GetTrainingGuarantee(), f.Study(study).GetPublication().GetTrain()) {
		t.Errorf("release %v", release)
	}
	again, err := f.ReleaseBest(study)
	if err != nil || !proto.Equal(again.GetPoints()[0], point) {
		t.Errorf("the second time: %v, %v", again, err)
	}
	if _, err := dparetov1.NewReleaseServiceClient(f.Conn).ReleaseFront(t.Context(), &dparetov1.ReleaseFrontRequest{Name: study}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a front: %v", err)
	}
	// A paused study that has run all of its trials shows the best as well.
	require.NoError(t, require.ErrOf(f.Studies.PauseStudy(t.Context(), &dparetov1.PauseStudyRequest{Name: study})))
	if _, err := f.ReleaseBest(study); err != nil {
		t.Error(err)
	}
}

// The least of many noisy errors is below 0, and published as 0.
func TestReleaseOfNoisyScoresIsClipped(t *testing.T) {
	f := servertest.Start(t)
	study := f.WithTrials("search", servertest.NoisySpec(), 10)
	f.RunAll(study, func(*dparetov1.Trial) float64 { return 0 })
	release, err := f.ReleaseBest(study)
	require.NoError(t, err)
	if v := release.GetPoints()[0].GetValues()["error"]; v != 0 || !(release.GetPoints()[0].GetStandardDeviations()["error"] > 0) {
		t.Errorf("an error of %g is published", v)
	}
}

// Nothing is released where no trial succeeded, and that is an answer.
func TestReleaseOfNothing(t *testing.T) {
	f := servertest.Start(t)
	for id, trials := range map[string]int64{"none": 0, "failed": 3} {
		study := f.WithTrials(id, poisson(servertest.SearchSpec(10, 0)), trials)
		f.RunAll(study, func(*dparetov1.Trial) float64 { return math.NaN() })
		if release, err := f.ReleaseBest(study); err != nil || len(release.GetPoints()) != 0 {
			t.Errorf("%s: %v, %v", id, release, err)
		}
	}
}

// Of equal scores that of the largest token is the best, which says nothing of the order:
// tokens are random.
func TestTiesOfRandomStopping(t *testing.T) {
	t.Parallel()
	f := servertest.Start(t)
	for _, trials := range []int64{2, 5, 9} {
		study := f.WithTrials("search", servertest.SearchSpec(10, 1), trials)
		f.RunAll(study, func(*dparetov1.Trial) float64 { return 0.5 })
		largest := slices.MaxFunc(f.Export(study)[1:], func(a, b *dparetov1.ExportedRecord) int {
			return strings.Compare(a.GetTrial().GetCompletionToken(), b.GetTrial().GetCompletionToken())
		})
		release, err := f.ReleaseBest(study)
		if err != nil || !proto.Equal(release.GetPoints()[0].GetParameters()["sigma"], largest.GetTrial().GetTrial().GetParameters()["sigma"]) {
			t.Errorf("%d trials: released %v, %v", trials, release, err)
		}
		require.NoError(t, require.ErrOf(f.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: study})))
	}
}

// Where test records are protected no measured score is kept anywhere: not in the store,
// not in an answer, the log or an error; what is kept is off by the noise that is declared.
func TestScoresOfRandomStopping(t *testing.T) {
	t.Parallel()
	var log servertest.LockedBuffer
	f := servertest.StartWith(t, func(o *server.Options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	const trials, score = 60, 0.4321987654321
	study := f.WithTrials("search", servertest.NoisySpec(), trials)
	sigma := f.Study(study).GetPublication().GetNoiseStandardDeviation()
	if !(sigma > 0.05) {
		t.Fatalf("standard deviation %g", sigma)
	}
	sum, squares := 0.0, 0.0
	for n := range trials {
		trial := f.One(study, "w")
		require.NoError(t, require.ErrOf(f.Studies.AddMeasurement(t.Context(), &dparetov1.AddMeasurementRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: servertest.Measurement(1, score), RequestId: fmt.Sprint("on the way ", n),
		})))
		bad := servertest.Completion(trial, score, math.NaN())
		if _, err := f.Studies.CompleteTrial(t.Context(), bad); status.Code(err) != codes.InvalidArgument {
			t.Errorf("two runs, one of them NaN: %v", err)
		}
		done := servertest.Completion(trial, score)
		done.RequestId = fmt.Sprint("end ", n)
		resp, err := f.Studies.CompleteTrial(t.Context(), done)
		require.NoError(t, err)
		if again, err := f.Studies.CompleteTrial(t.Context(), servertest.Completion(trial, score)); err != nil || !proto.Equal(again.GetTrial(), resp.GetTrial()) {
			t.Errorf("repeated: %v, %v", again, err) // and no other noise is drawn
		}
		value := resp.GetTrial().GetFinalMeasurement().GetMetrics()["error"]
		if len(value.GetRuns()) != 0 || value.GetStandardError() != sigma || len(resp.GetTrial().GetMeasurements()) != 0 {
			t.Errorf("kept %v", resp.GetTrial())
		}
		noise := value.GetValue() - score
		sum += noise
		squares += noise * noise
	}
	if mean := sum / trials; math.Abs(mean) > 5*sigma/math.Sqrt(trials) {
		t.Errorf("mean of the noise %g", mean)
	}
	if sd := math.Sqrt(squares / trials); math.Abs(sd/sigma-1) > 5/math.Sqrt(2*trials) {
		t.Errorf("standard deviation of the noise %g, want %g", sd, sigma)
	}
	release, err := f.ReleaseBest(study)
	if err != nil || release.GetNoiseStandardDeviation() != sigma || release.GetPoints()[0].GetStandardDeviations()["error"] != sigma ||
		release.GetGuarantee().GetEpsilon() > 1 {
		t.Errorf("released %v, %v", release, err)
	}
	exported := servertest.Lines(t, f.Export(study))
	f.Stop()
	content, err := os.ReadFile(f.Path)
	require.NoError(t, err)
	raw := binary.LittleEndian.AppendUint64(nil, math.Float64bits(score)) // as a message has it
	if bytes.Contains(content, raw) || bytes.Contains(content, []byte("0.43219876")) {
		t.Error("the store holds the score")
	}
	for what, text := range map[string]string{"log": log.String(), "export": exported} {
		if strings.Contains(text, "0.43219876") {
			t.Errorf("the %s holds the score", what)
		}
	}
	// The store keeps digests of requests; none is of one that holds the score.
	for _, digest := range scoreDigests(t, study, score, trials, exported) {
		if bytes.Contains(content, digest) {
			t.Error("the store holds a digest of the score")
		}
	}
}

// scoreDigests returns the digests of the completions with a score.
func scoreDigests(t *testing.T, study string, score float64, trials int, exported string) [][]byte {
	t.Helper()
	var all [][]byte
	for _, record := range servertest.Parse(t, exported)[1:] {
		trial := record.GetTrial()
		if trial == nil {
			continue // the release
		}
		done := servertest.Completion(trial.GetTrial(), score)
		done.LeaseToken = trial.GetCompletionToken()
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(done)
		require.NoError(t, err)
		sum := sha256.Sum256(b)
		all = append(all, sum[:])
	}
	if len(all) != trials {
		t.Fatalf("%d completions of %s, want %d", len(all), study, trials)
	}
	return all
}

// What the study will publish is charged to both ledgers when it is created, once, and a
// study that does not fit is not created.
func TestLedgersOfRandomStopping(t *testing.T) {
	t.Parallel()
	f := servertest.Start(t)
	releases := dparetov1.NewReleaseServiceClient(f.Conn)
	for id, records := range map[string]int64{"test": 50, "train": 1000} {
		require.NoError(t, require.ErrOf(releases.CreateLedger(t.Context(), &dparetov1.CreateLedgerRequest{LedgerId: id, Ledger: &dparetov1.Ledger{
			Records: records, Epsilon: 50, Delta: 1e-3, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
		}})))
	}
	s := servertest.Single(servertest.NoisySpec(), "0.25")
	s.TestLedger, s.TrainLedger = "ledgers/test", "ledgers/train"
	study := f.Create("search", s)
	f.Create("search", s)
	p := f.Study(study).GetPublication()
	for ledger, want := range map[string]*dparetov1.PrivacyGuarantee{"ledgers/test": p.GetTest(), "ledgers/train": p.GetTrain()} {
		resp, err := releases.ListCharges(t.Context(), &dparetov1.ListChargesRequest{Parent: ledger})
		if err != nil || len(resp.GetCharges()) != 1 || !proto.Equal(resp.GetCharges()[0].GetGuarantee(), want) || resp.GetCharges()[0].GetResource() != study {
			t.Errorf("%s: %v, %v", ledger, resp, err)
		}
	}
	f.RunAll(study, func(*dparetov1.Trial) float64 { return 0.5 })
	require.NoError(t, require.ErrOf(f.ReleaseBest(study)))
	resp, err := releases.GetLedger(t.Context(), &dparetov1.GetLedgerRequest{Name: "ledgers/test"})
	if err != nil || resp.GetLedger().GetCharges() != 1 {
		t.Errorf("after the release: %v, %v", resp, err)
	}
	dear := proto.CloneOf(s)
	dear.RandomStopping.TestEpsilon = 60
	unpaid := f.Prepared("dear", dear)
	if unpaid.GetState() != dparetov1.StudyState_STUDY_STATE_COMPLETED || unpaid.GetStateReason() != "no trial was handed out: the budget of ledgers/test does not pay for the study" {
		t.Errorf("a study that the ledger cannot pay: %v", unpaid)
	}
	if resp := f.Ask("studies/dear", "w", 1); len(resp.GetTrials()) != 0 || resp.GetEndReason() != dparetov1.EndReason_END_REASON_PRIVACY_BUDGET_SPENT || resp.GetRetryAfter() != nil {
		t.Errorf("asked for a trial of it: %v", resp)
	}
	for ledger, want := range map[string]int64{"ledgers/test": 1, "ledgers/train": 1} {
		if resp, err := releases.GetLedger(t.Context(), &dparetov1.GetLedgerRequest{Name: ledger}); err != nil || resp.GetLedger().GetCharges() != want {
			t.Errorf("%s: %v, %v", ledger, resp, err)
		}
	}
	_, err = f.ReleaseBest("studies/dear")
	servertest.WantCode(t, err, codes.FailedPrecondition, "no trials")
	if _, err := f.Studies.ResumeStudy(t.Context(), &dparetov1.ResumeStudyRequest{Name: "studies/dear"}); err != nil {
		t.Error(err)
	}
	if resumed := f.Settled("studies/dear"); resumed.GetState() != dparetov1.StudyState_STUDY_STATE_COMPLETED {
		t.Errorf("resumed: %v", resumed)
	}
	other := proto.CloneOf(s)
	other.RandomStopping.TestSetSize, other.Metrics[1].GetReported().SampleSize = 51, 51
	_, err = f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "other", Study: &dparetov1.Study{Spec: other}})
	servertest.WantCode(t, err, codes.FailedPrecondition, "test_ledger")
}

// Operators' metrics do not count trials of studies with random stopping: dashboards are
// shown to many.
func TestMetricsOfRandomStopping(t *testing.T) {
	m := metrics.New("test")
	f := servertest.StartWith(t, func(o *server.Options) { o.Metrics = m })
	count := func() string {
		response := httptest.NewRecorder()
		m.Handler().ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
		var kept []string
		for line := range strings.Lines(response.Body.String()) {
			if strings.HasPrefix(line, "dpareto_trial") || strings.HasPrefix(line, "dpareto_suggestions") || strings.HasPrefix(line, "dpareto_study_") {
				kept = append(kept, line)
			}
		}
		return strings.Join(kept, "")
	}
	study := f.WithTrials("search", servertest.SearchSpec(10, 1), 4)
	before := count()
	f.RunAll(study, func(*dparetov1.Trial) float64 { return 0.5 })
	if diff := cmp.Diff(before, count()); diff != "" {
		t.Errorf("the metrics have changed: %s", diff)
	}
	f.Tell(f.One(f.Create("open", servertest.GaussianSpec()), "w"), 0.5)
	if before == count() {
		t.Error("the metrics count no trials at all")
	}
}

// Creation answers at once, and the study hands out nothing until its list is priced, also after a restart
// in between. The ledger is charged once, before the first trial.
func TestPreparationOfRandomStopping(t *testing.T) {
	t.Parallel()
	f := servertest.Start(t)
	f.Hold("search")
	releases := dparetov1.NewReleaseServiceClient(f.Conn)
	s := servertest.SearchSpec(4, 1)
	f.OpenLedgers(t.Context(), s)
	created, err := f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "search", Study: &dparetov1.Study{Spec: s}})
	require.NoError(t, err)
	study := created.GetStudy().GetName()
	charges := func() int64 {
		resp, err := releases.GetLedger(t.Context(), &dparetov1.GetLedgerRequest{Name: s.GetTrainLedger()})
		require.NoError(t, err)
		return resp.GetLedger().GetCharges()
	}
	<-f.Gate.Reached
	shown := f.Study(study)
	if shown.GetState() != dparetov1.StudyState_STUDY_STATE_PREPARING || shown.GetPreparation().GetTotal() == 0 || shown.GetPublication() != nil || charges() != 0 {
		t.Fatalf("after the creation: %v, %d charges", shown, charges())
	}
	if resp := f.Ask(study, "w", 1); len(resp.GetTrials()) != 0 || resp.GetEndReason() != dparetov1.EndReason_END_REASON_PREPARING || resp.GetRetryAfter() == nil {
		t.Errorf("asked for a trial: %v", resp)
	}
	if _, err := f.Studies.PauseStudy(t.Context(), &dparetov1.PauseStudyRequest{Name: study}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("paused: %v", err)
	}
	if _, err := f.ReleaseBest(study); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("released: %v", err)
	}
	f.Gate = nil
	f.Restart()
	releases = dparetov1.NewReleaseServiceClient(f.Conn)
	shown = f.Settled(study)
	if shown.GetState() != dparetov1.StudyState_STUDY_STATE_ACTIVE || shown.GetPreparation() != nil || !(shown.GetPublication().GetTrain().GetEpsilon() > 0) || charges() != 1 {
		t.Errorf("prepared: %v, %d charges", shown, charges())
	}
	f.One(study, "w")
}
