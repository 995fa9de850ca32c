package server

import (
	"fmt"
	"math"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/privacy/privacytest"
	"github.com/dpareto/dpareto/server/spec"
)

// answers is a study with random stopping of a toy trainer, which answers whether a record
// is there by randomised response with ε = 1: the answer, 0 or 1, is the score.
func answers(stopping *dparetov1.RandomStoppingSpec) *dparetov1.StudySpec {
	epsilonReference, reference := 10.0, 1.0
	return &dparetov1.StudySpec{
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
	}
}

// published returns what a study says that it guarantees.
func published(t *testing.T, asked *dparetov1.StudySpec) *dparetov1.Publication {
	t.Helper()
	compiled, err := spec.Compile("spec", asked)
	if err != nil {
		t.Fatal(err)
	}
	bound, err := compiled.SearchBound(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, err := searchPublication(compiled, bound)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// searched is the outcome of a study of a toy: the score of its best trial and what is never
// shown of it.
type searched struct {
	score         float64
	trials, first int64 // their number; the number of the best
}

// search runs a study of a toy: as many trials as are asked for, or as are drawn if that is
// negative.
func (s *Server) search(t *testing.T, asked *dparetov1.RandomStoppingSpec, trials int64, run func() float64) searched {
	t.Helper()
	if trials < 0 {
		var err error
		if trials, err = s.drawTrials(asked); err != nil {
			t.Fatal(err)
		}
	}
	out := searched{score: math.NaN(), trials: trials}
	var best candidate
	for number := range trials {
		c := candidate{run(), fmt.Sprintf("%016x", s.entropy.Uint64())}
		if number == 0 || c.betterThan(best) {
			best = c
			out.score, out.first = c.score, number+1
		}
	}
	return out
}

// The best of a random number of answers never shows more than the study claims. What would
// show more is found out: the number of trials beside it, the number of the best among them
// (which whoever knew the seed of the configurations could tell from the configuration), or
// a number of trials that is not random.
func TestAuditOfRandomStopping(t *testing.T) {
	answer := func(s *Server, second bool) func() float64 {
		truth := 0.0
		if second {
			truth = 1
		}
		return func() float64 {
			if s.entropy.Float64() < 1/(1+math.E) {
				return 1 - truth
			}
			return truth
		}
	}
	eta := &dparetov1.RandomStoppingSpec{MeanTrials: 10, Law: &dparetov1.RandomStoppingSpec_Eta{Eta: 1}, Metric: "answer"}
	poisson := &dparetov1.RandomStoppingSpec{MeanTrials: 5, Law: &dparetov1.RandomStoppingSpec_Poisson{Poisson: new(dparetov1.PoissonStopping)}, Metric: "answer"}
	for name, a := range map[string]struct {
		asked         *dparetov1.RandomStoppingSpec
		most, power   float64 // of the claim
		event, broken func(searched) bool
		fixed         int64
	}{
		// (2 + η)ε bounds the geometric law with η = 1.
		"number of trials": {
			eta, 3, 0.5, func(o searched) bool { return o.score == 0 },
			func(o searched) bool { return o.score == 0 && o.trials >= 5 }, -1,
		},
		"number of the best": {
			eta, 3, 0.5, func(o searched) bool { return o.score == 0 },
			func(o searched) bool { return o.score == 0 && o.first >= 4 }, -1,
		},
		"fixed number": {
			eta, 3, 0.5, func(o searched) bool { return o.score == 0 },
			func(o searched) bool { return o.score == 0 }, 8,
		},
		"poisson": {
			poisson, 8, 0.4, func(o searched) bool { return o.score == 0 },
			func(o searched) bool { return o.score == 0 && o.trials >= 6 }, -1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			claim := published(t, answers(a.asked)).GetTrain()
			if !(claim.GetEpsilon() <= a.most) {
				t.Errorf("claim %g, want at most %g", claim.GetEpsilon(), a.most)
			}
			s := &Server{entropy: noise.Seeded(3)}
			privacytest.Audit{
				Epsilon: claim.GetEpsilon(), Delta: claim.GetDelta(), Runs: 60_000, Power: a.power,
				Event:  func(second bool) bool { return a.event(s.search(t, a.asked, -1, answer(s, second))) },
				Broken: func(second bool) bool { return a.broken(s.search(t, a.asked, a.fixed, answer(s, second))) },
			}.Check(t)
		})
	}
}

// The best of noisy scores shows no more of a test record than the study claims; with a
// tenth of the noise it does.
func TestAuditOfScores(t *testing.T) {
	s := &Server{entropy: noise.Seeded(4)}
	const records = 20
	asked := &dparetov1.RandomStoppingSpec{
		MeanTrials: 5, Law: &dparetov1.RandomStoppingSpec_Eta{Eta: 1}, Metric: "answer", TestSetSize: records, TestEpsilon: 2,
	}
	p := published(t, answers(asked))
	sigma := p.GetNoiseStandardDeviation()
	event := func(sigma, above float64) func(bool) bool {
		return func(second bool) bool {
			accuracy := 0.5
			if second {
				accuracy -= 1.0 / records
			}
			return s.search(t, asked, -1, func() float64 { return s.entropy.Gaussian(accuracy, sigma) }).score > above
		}
	}
	privacytest.Audit{
		Epsilon: p.GetTest().GetEpsilon(), Delta: p.GetTest().GetDelta(), Runs: 60_000, Power: 0.1, // one threshold is a weak attack
		Event:  event(sigma, 0.5+3*sigma),
		Broken: event(sigma/10, 0.5+0.3*sigma),
	}.Check(t)
}
