package server_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/spec"
)

// searchSpec is a study with random stopping, of Gaussian mechanisms.
func searchSpec(mean, eta float64) *dparetov1.StudySpec {
	s := gaussianSpec()
	s.Seed = nil
	s.RandomStopping = &dparetov1.RandomStoppingSpec{
		MeanTrials: mean, Law: &dparetov1.RandomStoppingSpec_Eta{Eta: eta}, Metric: "error",
	}
	return s
}

// poisson gives a spec the Poisson law.
func poisson(s *dparetov1.StudySpec) *dparetov1.StudySpec {
	s.RandomStopping.Law = &dparetov1.RandomStoppingSpec_Poisson{Poisson: new(dparetov1.PoissonStopping)}
	return s
}

// single gives a spec a single cost, that of a μ-GDP mechanism, at δ = 1e-6.
func single(s *dparetov1.StudySpec, mu string) *dparetov1.StudySpec {
	p := s.GetMetrics()[0].GetComputed().GetPrivacy()
	p.GetGaussian().Sensitivity, p.GetGaussian().StandardDeviation = mu, "sigma/sigma"
	p.Delta = 1e-6
	return s
}

// startSeeded starts a server whose entropy repeats itself.
func startSeeded(t testing.TB, seed uint64) *fixture {
	t.Helper()
	return startWith(t, func(o *server.Options) { o.Entropy = noise.Seeded(seed) })
}

// runAll runs a study to its end, with scores by the number of the trial, NaN for
// infeasible ones, and returns the number of trials.
func (f *fixture) runAll(study string, score func(trial *dparetov1.Trial) float64) int64 {
	f.t.Helper()
	for n := int64(0); ; n++ {
		resp := f.ask(study, "worker", 1)
		if len(resp.GetTrials()) == 0 {
			if resp.GetEndReason() != dparetov1.EndReason_END_REASON_BUDGET_SPENT {
				f.t.Fatalf("end reason %v", resp.GetEndReason())
			}
			return n
		}
		trial := resp.GetTrials()[0]
		if x := score(trial); !math.IsNaN(x) {
			f.tell(trial, x)
			continue
		}
		if _, err := f.studies.CompleteTrial(f.t.Context(), &dparetov1.CompleteTrialRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(),
			Outcome: &dparetov1.CompleteTrialRequest_Infeasible{Infeasible: &dparetov1.Infeasible{Reason: "diverged"}},
		}); err != nil {
			f.t.Fatal(err)
		}
	}
}

// secretTrials returns the number of trials that was drawn for a study.
func (f *fixture) secretTrials(study string) int64 {
	f.t.Helper()
	return f.export(study)[0].GetStudy().GetRandomStopping().GetTrials()
}

// Totals for a Gaussian base, δ = 1e-6, as an independent implementation computes them; those
// of the Poisson law with δ̂ from the exact profile.
func TestRandomStoppingGuarantee(t *testing.T) {
	f := start(t)
	for i, tc := range []struct {
		mu   string
		spec *dparetov1.StudySpec
		eps  float64
	}{
		{"0.1", searchSpec(10, 1), 0.898080}, {"0.1", searchSpec(100, 0), 0.878410},
		{"0.25", searchSpec(10, 1), 2.271369}, {"0.25", searchSpec(10, 0), 1.901966},
		{"0.25", searchSpec(10, 0.5), 2.097049}, {"0.25", searchSpec(10, 2), 2.577066},
		{"0.25", searchSpec(100, 1), 2.824108}, {"0.25", poisson(searchSpec(10, 0)), 2.039366},
		{"0.5", searchSpec(100, 1), 5.646345}, {"1.0", searchSpec(10, 0), 7.869161},
	} {
		study := f.study(f.create("s"+string(rune('a'+i)), single(tc.spec, tc.mu)))
		g := study.GetPublication().GetTrain()
		precision := 2e-3
		if tc.spec.GetRandomStopping().GetPoisson() != nil {
			precision = 1e-2
		}
		if e := g.GetEpsilon(); e > tc.eps*(1+1e-3) || e < tc.eps*(1-precision) {
			t.Errorf("%v: epsilon %g, want %g", tc.spec.GetRandomStopping(), e, tc.eps)
		}
		if g.GetDelta() != 1e-6 || g.GetAdjacency() != dparetov1.Adjacency_ADJACENCY_REPLACE_ONE || !(g.GetOrder() > 1) ||
			study.GetPublication().GetTest() != nil || len(study.GetPublication().GetNotCovered()) == 0 {
			t.Errorf("publication %v", study.GetPublication())
		}
	}
}

// The noise in scores is such that the best of them costs what was asked for, by the same
// independent totals: μ = 0.25 per score gives 2.271369.
func TestRandomStoppingNoise(t *testing.T) {
	f := start(t)
	for id, tc := range map[string]struct {
		spec    *dparetov1.StudySpec
		epsilon float64
	}{
		"geometric": {searchSpec(10, 1), 2.271369}, "logarithmic": {searchSpec(10, 0), 1.901966}, "poisson": {poisson(searchSpec(10, 0)), 2.039366},
	} {
		tc.spec.RandomStopping.TestSetSize, tc.spec.RandomStopping.TestEpsilon, tc.spec.RandomStopping.Delta = 500, tc.epsilon, 1e-6
		p := f.study(f.create(id, tc.spec)).GetPublication()
		if sigma := p.GetNoiseStandardDeviation(); math.Abs(sigma*500*0.25-1) > 5e-3 {
			t.Errorf("%s: standard deviation %g, want %g", id, sigma, 1/(0.25*500))
		}
		if g := p.GetTest(); !(g.GetEpsilon() <= tc.epsilon) || g.GetEpsilon() < 0.999*tc.epsilon || g.GetAdjacency() != dparetov1.Adjacency_ADJACENCY_REPLACE_ONE {
			t.Errorf("%s: %v", id, g)
		}
	}
}

// Exactly so many trials are handed out as were drawn, however workers ask and fail; then
// the study is completed and the best is known.
func TestRandomStoppingRuns(t *testing.T) {
	f := startSeeded(t, 9)
	study := f.create("search", searchSpec(20, 0))
	drawn := f.secretTrials(study)
	if drawn < 3 {
		t.Fatalf("%d trials are too few for this test; take another seed", drawn)
	}
	first := f.one(study, "a")
	if _, err := f.studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
		Name: first.GetName(), LeaseToken: first.GetLease().GetToken(),
		Outcome: &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: "the machine broke", Retryable: true}},
	}); err != nil {
		t.Fatal(err)
	}
	if again := f.one(study, "b"); again.GetNumber() != first.GetNumber() || !proto.Equal(again.GetParameters()["sigma"], first.GetParameters()["sigma"]) {
		t.Errorf("after a failure trial %d is handed out, want %d again", again.GetNumber(), first.GetNumber())
	}
	f.clock.Advance(2 * time.Minute) // the lease of b runs out
	f.restart()
	seen := make(map[int64]bool)
	n := f.runAll(study, func(trial *dparetov1.Trial) float64 {
		seen[trial.GetNumber()] = true
		if len(trial.GetComputedMetrics()) != 1 || trial.GetProvenance().GetSeed() != 0 {
			t.Errorf("trial %v", trial)
		}
		return 0.5
	})
	if n != drawn || int64(len(seen)) != drawn {
		t.Errorf("%d trials, %d different ones, want %d", n, len(seen), drawn)
	}
	if s := f.study(study); s.GetState() != dparetov1.StudyState_STUDY_STATE_COMPLETED {
		t.Errorf("state %v", s.GetState())
	}
	if resp := f.ask(study, "c", 1000); len(resp.GetTrials()) != 0 || resp.GetStudyState() != dparetov1.StudyState_STUDY_STATE_COMPLETED {
		t.Errorf("after the end: %v", resp)
	}
}

// One greedy call gets all trials, and not one more.
func TestRandomStoppingBatch(t *testing.T) {
	f := startSeeded(t, 6)
	for range 5 {
		study := f.create("search", searchSpec(20, 1))
		resp := f.ask(study, "worker", 1000)
		if drawn := f.secretTrials(study); int64(len(resp.GetTrials())) != drawn {
			t.Errorf("%d trials, want %d", len(resp.GetTrials()), drawn)
		}
		if _, err := f.studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: study}); err != nil {
			t.Fatal(err)
		}
	}
}

// The Poisson law can give no trial; then there is nothing to wait for.
func TestRandomStoppingWithoutTrials(t *testing.T) {
	f := startSeeded(t, 1)
	study := f.create("search", poisson(searchSpec(1e-9, 0)))
	if s := f.study(study); s.GetState() != dparetov1.StudyState_STUDY_STATE_COMPLETED {
		t.Errorf("state %v", s.GetState())
	}
	if n := f.runAll(study, nil); n != 0 {
		t.Errorf("%d trials", n)
	}
}

// Configurations come from entropy, not from the number of the trial or the seed of the
// study: two equal studies have different ones.
func TestRandomStoppingConfigurations(t *testing.T) {
	f := start(t)
	var drawn [2][]float64
	for i := range drawn {
		study := f.create("search", poisson(searchSpec(20, 0)))
		if s := f.study(study); s.GetSeed() != 0 {
			t.Errorf("the study shows a seed")
		}
		f.runAll(study, func(trial *dparetov1.Trial) float64 {
			drawn[i] = append(drawn[i], trial.GetParameters()["sigma"].GetDoubleValue())
			return 0.5
		})
		if _, err := f.studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: study}); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range drawn[0] {
		if slices.Contains(drawn[1], x) {
			t.Errorf("%g is a configuration of both", x)
		}
	}
}

// Configurations that cost more than the bound are drawn again: with a heavy tail that the
// 10,000 draws of the bound cannot reach to its end, none that is handed out exceeds it.
func TestSearchAdmits(t *testing.T) {
	for name, s := range map[string]*dparetov1.StudySpec{"geometric": searchSpec(10, 1), "poisson": poisson(searchSpec(10, 0))} {
		compiled, err := spec.Compile("", s)
		if err != nil {
			t.Fatal(err)
		}
		bound, err := compiled.SearchBound(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if again, err := compiled.SearchBound(t.Context()); err != nil || again != bound {
			t.Errorf("%s: another bound the second time: %v, %v", name, again, err)
		}
		// σ is log-uniform over [0.5, 100]: the least of 10,000 draws is within 0.5·(1+1e-2).
		admitted := func(x float64) bool { return compiled.SearchAdmits(bound, []float64{x}) }
		if admitted(0.5) || !admitted(0.51) || !admitted(100) {
			t.Errorf("%s: admits 0.5: %t, 0.51: %t, 100: %t", name, admitted(0.5), admitted(0.51), admitted(100))
		}
		// The divergence of order λ is λ/(2σ²).
		if least := math.Sqrt(bound.Order / (2 * bound.Divergence)); !(least > 0.5) || least > 0.505 {
			t.Errorf("%s: the bound is that of σ = %g", name, least)
		}
		g, err := compiled.SearchLaw().Guarantee(bound, 1e-5)
		if err != nil {
			t.Fatal(err)
		}
		if base, err := privacy.Epsilon(privacy.RDP{}, privacy.Gaussian{Sensitivity: 1, Sigma: 0.51, Neighbours: privacy.ReplaceOne}, 1, 1e-5); err != nil || g.Epsilon < base.Epsilon {
			t.Errorf("%s: %g in all, %g for one: %v", name, g.Epsilon, base.Epsilon, err)
		}
	}
}

// What would make trials depend on each other, or on anything but the draws, is refused.
func TestRandomStoppingIsValidated(t *testing.T) {
	f := start(t)
	for field, change := range map[string]func(*dparetov1.StudySpec){
		"algorithm.name":             func(s *dparetov1.StudySpec) { s.Algorithm.Name = dparetov1.Algorithm_ALGORITHM_QUASI_RANDOM },
		"budget.max_trials":          func(s *dparetov1.StudySpec) { s.Budget = &dparetov1.Budget{MaxTrials: 3} },
		"budget.max_stagnant_trials": func(s *dparetov1.StudySpec) { s.Budget = &dparetov1.Budget{MaxStagnantTrials: 3} },
		"seed":                       func(s *dparetov1.StudySpec) { s.Seed = proto.Uint64(7) },
		"prior_studies":              func(s *dparetov1.StudySpec) { s.PriorStudies = []string{"studies/other"} },
		"cost": func(s *dparetov1.StudySpec) {
			s.Cost = &dparetov1.CostSpec{Measure: &dparetov1.CostSpec_Runs{Runs: new(dparetov1.RunsCost)}}
		},
		"random_stopping.mean_trials": func(s *dparetov1.StudySpec) { s.RandomStopping.MeanTrials = 1 },
		"random_stopping.eta": func(s *dparetov1.StudySpec) {
			s.RandomStopping.Law = &dparetov1.RandomStoppingSpec_Eta{Eta: -1}
		},
		"random_stopping.law":           func(s *dparetov1.StudySpec) { s.RandomStopping.Law = nil },
		"random_stopping.metric":        func(s *dparetov1.StudySpec) { s.RandomStopping.Metric = "epsilon" },
		"random_stopping.delta":         func(s *dparetov1.StudySpec) { s.RandomStopping.Delta = 1 },
		"random_stopping.test_set_size": func(s *dparetov1.StudySpec) { s.RandomStopping.TestSetSize = -1 },
		"random_stopping.test_epsilon":  func(s *dparetov1.StudySpec) { s.RandomStopping.TestSetSize = 5 },
		"test_ledger":                   func(s *dparetov1.StudySpec) { s.TestLedger = "ledgers/test" },
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
		s := searchSpec(10, 1)
		change(s)
		_, err := f.studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "bad", Study: &dparetov1.Study{Spec: s}})
		if got := violated(err); !slices.Equal(got, []string{"study.spec." + field}) {
			t.Errorf("%s: %v, %v", field, got, err)
		}
	}
	checkpoints := sgdSpec()
	checkpoints.Seed, checkpoints.RandomStopping = nil, searchSpec(10, 1).GetRandomStopping()
	_, err := f.studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "bad", Study: &dparetov1.Study{Spec: checkpoints}})
	if got := violated(err); !slices.Equal(got, []string{"study.spec.checkpoint_parameter"}) {
		t.Errorf("checkpoints: %v", err)
	}
	study := f.create("search", searchSpec(10, 1))
	_, err = f.studies.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{
		Parent: study, WorkerId: "w", Conditions: []*dparetov1.SuggestionCondition{{FixedParameters: sigma(3)}},
	})
	if got := violated(err); !slices.Equal(got, []string{"conditions"}) {
		t.Errorf("conditions: %v", err)
	}
	wider := proto.CloneOf(f.study(study))
	wider.Spec.Parameters[0].GetDoubleDomain().Max = 1000
	if _, err := f.update(wider, "spec"); len(violated(err)) == 0 {
		t.Errorf("a wider domain: %v", err)
	}
	other := proto.CloneOf(f.study(study))
	other.Spec.RandomStopping.MeanTrials = 20
	if _, err := f.update(other, "spec"); len(violated(err)) == 0 {
		t.Errorf("another mean: %v", err)
	}
	named := proto.CloneOf(f.study(study))
	named.DisplayName, named.Spec.Budget = "Search", &dparetov1.Budget{MaxParallelTrials: 3}
	if _, err := f.update(named, "display_name", "spec"); err != nil {
		t.Errorf("another name, and fewer trials at a time: %v", err)
	}
	asPrior := gaussianSpec()
	asPrior.PriorStudies = []string{study}
	_, err = f.studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "later", Study: &dparetov1.Study{Spec: asPrior}})
	wantCode(t, err, codes.InvalidArgument, "shows nothing but its best trial")
}
