package private

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/privacy/privacytest"
	trialcount "github.com/dpareto/dpareto/privacy/stopping"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/suggest/space"
)

// answers is a study with random stopping of a toy trainer, which answers whether a record
// is there by randomised response with ε = 1: the answer, 0 or 1, is the score.
func answers(stopping *dparetov1.RandomStoppingSpec) *dparetov1.StudySpec {
	epsilonReference, reference := 10.0, 1.0
	asked := &dparetov1.StudySpec{
		Parameters: []*dparetov1.ParameterSpec{{
			Id: "x", Scale: dparetov1.Scale_SCALE_LINEAR,
			Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Min: 0, Max: 1}},
		}},
		Metrics: []*dparetov1.MetricSpec{
			{
				Id: "epsilon", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE,
				Transform: dparetov1.Transform_TRANSFORM_LOG, ReferenceValue: &epsilonReference,
				Source: &dparetov1.MetricSpec_Computed{Computed: &dparetov1.ComputedSource{Function: &dparetov1.ComputedSource_Privacy{
					Privacy: &dparetov1.PrivacySpec{
						Mechanism: &dparetov1.PrivacySpec_RandomizedResponse{RandomizedResponse: &dparetov1.RandomizedResponseMechanism{Epsilon: "1.0", Categories: "2"}},
						Delta:     1e-6, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
					},
				}}},
			},
			{
				Id: "answer", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MAXIMIZE,
				Transform: dparetov1.Transform_TRANSFORM_IDENTITY, ReferenceValue: &reference,
				Source: &dparetov1.MetricSpec_Reported{Reported: new(dparetov1.ReportedSource)},
			},
		},
		Algorithm:      &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_RANDOM},
		RandomStopping: stopping,
		TrainLedger:    "ledgers/train",
	}
	if stopping.GetTestSetSize() > 0 {
		asked.TestLedger = "ledgers/test"
	}
	return asked
}

// compile compiles a spec as the server does.
func compile(t *testing.T, asked *dparetov1.StudySpec) *spec.Study {
	t.Helper()
	var fields invalid.Fields
	compiled := spec.CompileInto(&fields, specPath, asked, false)
	Policies(nil, nil)(nil, asked).Compile(&fields, spec.WithDefaults(asked), compiled, nil)
	require.NoError(t, fields.Err())
	return compiled
}

// published returns what a study says that it guarantees.
func published(t *testing.T, asked *dparetov1.StudySpec) *dparetov1.Publication {
	t.Helper()
	compiled := compile(t, asked)
	list, err := searchList(t.Context(), compiled, rand.New(rand.NewPCG(1, 2)))
	require.NoError(t, err)
	return priced(t, compiled, list)
}

// priced returns what a study with a list says that it guarantees.
func priced(t *testing.T, compiled *spec.Study, list []space.Point) *dparetov1.Publication {
	t.Helper()
	p, err := SearchPublication(t.Context(), compiled, list, func(int, int) {})
	require.NoError(t, err)
	return p
}

// searched is the outcome of a study of a toy: the score of its best trial and what is never
// shown of it.
type searched struct {
	score         float64
	trials, first int64 // their number; the number of the best
}

// fixedTrials is a distribution under which the number of trials is not random.
type fixedTrials struct {
	trialcount.Distribution

	trials int64
}

func (f fixedTrials) Draw(*noise.Source) (int64, error) { return f.trials, nil }

// search runs a study of a toy with a number of trials that is drawn from a distribution.
func search(t *testing.T, entropy *noise.Source, dist trialcount.Distribution, run func() float64) searched {
	t.Helper()
	trials, err := dist.Draw(entropy)
	require.NoError(t, err)
	out := searched{score: math.NaN(), trials: trials}
	var best candidate
	var token [8]byte // of any length, as long as it is uniform
	for number := range trials {
		binary.BigEndian.PutUint64(token[:], entropy.Uint64())
		c := candidate{run(), string(token[:])}
		if number == 0 || c.betterThan(best) {
			best = c
			out.score, out.first = c.score, number+1
		}
	}
	return out
}

// distributionAskedFor returns the distribution of the number of trials that a study asks for.
func distributionAskedFor(t *testing.T, asked *dparetov1.RandomStoppingSpec) trialcount.Distribution {
	t.Helper()
	dist, err := trialsDistribution(asked)
	require.NoError(t, err)
	return dist
}

// The best of a random number of answers never shows more than the study claims. What would
// show more is found out: the number of trials beside it, the number of the best among them
// (which whoever knew the seed of the configurations could tell from the configuration), or
// a number of trials that is not random.
func TestAuditOfRandomStopping(t *testing.T) {
	const runs = 60_000
	entropy := noise.Seeded(3)
	answer := func(second bool) func() float64 {
		truth := 0.0
		if second {
			truth = 1
		}
		return func() float64 {
			if entropy.Float64() < 1/(1+math.E) {
				return 1 - truth
			}
			return truth
		}
	}
	type breach struct {
		dist  trialcount.Distribution
		event func(searched) bool
	}
	eta := &dparetov1.RandomStoppingSpec{MeanTrials: 10, Distribution: &dparetov1.RandomStoppingSpec_Eta{Eta: 1}, Metric: "answer"}
	geometric := distributionAskedFor(t, eta)
	poisson := &dparetov1.RandomStoppingSpec{MeanTrials: 5, Distribution: &dparetov1.RandomStoppingSpec_Poisson{Poisson: new(dparetov1.PoissonDistribution)}, Metric: "answer"}
	for name, a := range map[string]struct {
		asked       *dparetov1.RandomStoppingSpec
		most, power float64 // of the claim
		broken      map[string]breach
	}{
		"eta": {
			eta, 3, 0.5, // (2 + η)ε bounds the geometric distribution with η = 1
			map[string]breach{
				"number of trials":   {geometric, func(o searched) bool { return o.score == 0 && o.trials >= 5 }},
				"number of the best": {geometric, func(o searched) bool { return o.score == 0 && o.first >= 4 }},
				"fixed number":       {fixedTrials{trials: 8}, func(o searched) bool { return o.score == 0 }},
			},
		},
		"poisson": {
			poisson, 8, 0.4,
			map[string]breach{
				"number of trials": {distributionAskedFor(t, poisson), func(o searched) bool { return o.score == 0 && o.trials >= 6 }},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			claim := published(t, answers(a.asked)).GetTrain()
			if !(claim.GetEpsilon() <= a.most) {
				t.Errorf("claim %g, want at most %g", claim.GetEpsilon(), a.most)
			}
			dist := distributionAskedFor(t, a.asked)
			entropy = noise.Seeded(3)
			privacytest.Audit{
				Epsilon: claim.GetEpsilon(), Delta: claim.GetDelta(), Runs: runs, Power: a.power,
				Event: func(second bool) bool { return search(t, entropy, dist, answer(second)).score == 0 },
			}.Check(t)
			for name, b := range a.broken {
				entropy = noise.Seeded(4)
				lower := privacytest.EpsilonLower(runs, claim.GetDelta(), func(second bool) bool {
					return b.event(search(t, entropy, b.dist, answer(second)))
				})
				t.Logf("%s: audited %g", name, lower)
				if lower <= claim.GetEpsilon() {
					t.Errorf("%s passes: epsilon is at least %g, the claim is %g", name, lower, claim.GetEpsilon())
				}
			}
		})
	}
}

// Candidates that are chosen from earlier scores are found out: each new one beats the others if all earlier
// answers were 0, so that the best score counts them.
func TestAuditOfAdaptiveCandidates(t *testing.T) {
	const runs = 60_000
	asked := &dparetov1.RandomStoppingSpec{MeanTrials: 10, Metric: "answer"} // the default is geometric
	claim, dist := published(t, answers(asked)).GetTrain(), distributionAskedFor(t, asked)
	entropy := noise.Seeded(5)
	lower := privacytest.EpsilonLower(runs, claim.GetDelta(), func(second bool) bool {
		zeros, all := 0.0, true
		return search(t, entropy, dist, func() float64 {
			wrong := entropy.Float64() < 1/(1+math.E)
			if all = all && wrong == second; all {
				zeros++
				return zeros
			}
			return 0
		}).score >= 5
	})
	if lower <= claim.GetEpsilon() {
		t.Errorf("candidates from earlier scores pass: epsilon is at least %g, the claim is %g", lower, claim.GetEpsilon())
	}
}

// A single candidate from a list of two configurations, ε = 1 and ε = 4, costs what their mean says. What the
// better one alone would cost is found out.
func TestAuditOfTheList(t *testing.T) {
	const runs = 60_000
	asked := answers(&dparetov1.RandomStoppingSpec{MeanTrials: 1, Distribution: &dparetov1.RandomStoppingSpec_Fixed{Fixed: new(dparetov1.FixedNumber)}, Metric: "answer"})
	asked.GetMetrics()[0].GetComputed().GetPrivacy().GetRandomizedResponse().Epsilon = "1.0 + 3.0*x"
	compiled := compile(t, asked)
	claim, best := priced(t, compiled, []space.Point{{0}, {1}}).GetTrain(), priced(t, compiled, []space.Point{{0}, {0}}).GetTrain()
	if math.Abs(claim.GetEpsilon()-4) > 0.01 || math.Abs(best.GetEpsilon()-1) > 0.01 {
		t.Fatalf("claims %g and %g, want 4 and 1", claim.GetEpsilon(), best.GetEpsilon())
	}
	entropy := noise.Seeded(6)
	event := func(second bool) bool { // the second configuration with the answer 0
		epsilon := 1.0
		chosen := entropy.Uint64N(2) == 1
		if chosen {
			epsilon = 4
		}
		wrong := entropy.Float64() < 1/(1+math.Exp(epsilon))
		return chosen && wrong == second
	}
	lower := privacytest.EpsilonLower(runs, claim.GetDelta(), event)
	if lower > claim.GetEpsilon() || lower <= best.GetEpsilon() {
		t.Errorf("epsilon is at least %g, the claim is %g, and %g for the better configuration alone", lower, claim.GetEpsilon(), best.GetEpsilon())
	}
}

// The best of noisy scores shows no more of a test record than the study claims; with a
// tenth of the noise it does.
func TestAuditOfScores(t *testing.T) {
	entropy := noise.Seeded(4)
	const records = 20
	asked := &dparetov1.RandomStoppingSpec{
		MeanTrials: 5, Distribution: &dparetov1.RandomStoppingSpec_Eta{Eta: 1}, Metric: "answer", TestSetSize: records, TestEpsilon: 2,
	}
	p := published(t, answers(asked))
	sigma := p.GetNoiseStandardDeviation()
	dist := distributionAskedFor(t, asked)
	event := func(sigma, above float64) func(bool) bool {
		return func(second bool) bool {
			accuracy := 0.5
			if second {
				accuracy -= 1.0 / records
			}
			return search(t, entropy, dist, func() float64 { return entropy.Gaussian(accuracy, sigma) }).score > above
		}
	}
	privacytest.Audit{
		Epsilon: p.GetTest().GetEpsilon(), Delta: p.GetTest().GetDelta(), Runs: 60_000, Power: 0.1, // one threshold is a weak attack
		Event:  event(sigma, 0.5+3*sigma),
		Broken: event(sigma/10, 0.5+0.3*sigma),
	}.Check(t)
}
