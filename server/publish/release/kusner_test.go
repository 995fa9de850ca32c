package release_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/servertest"
)

// looked creates a study that chooses by results, with some errors, and a ledger of that budget.
func looked(f *servertest.Fixture, id string, budget float64, errors ...float64) (study, ledger string) {
	f.T.Helper()
	ledger = f.NewLedger("of-"+id, budget)
	spec := servertest.FixedSpec(0, ledger)
	spec.Algorithm = &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_NSGA2}
	study = f.Create(id, spec)
	for _, e := range errors {
		f.Tell(f.One(study, "w"), e)
	}
	return study, ledger
}

func byKusner(f *servertest.Fixture, study string, epsilon float64, k *dparetov1.KusnerMethod) (*dparetov1.Release, error) {
	resp, err := f.Releases().ReleaseBest(f.T.Context(), &dparetov1.ReleaseBestRequest{Name: study, Metric: "error", Epsilon: epsilon, Kusner: k})
	return resp.GetRelease(), err
}

func kusner1() *dparetov1.KusnerMethod {
	return &dparetov1.KusnerMethod{Algorithm: 1, Candidates: 50, PriorMean: 0.5, PriorStandardDeviation: 0.05, NoiseStandardDeviation: 0.005, LengthScale: 0.3}
}

// A release by Algorithm 1 is charged what holds in the worst case, and states the paper's claim as
// one under a model. Nothing else about the study goes with it.
func TestKusnerConfiguration(t *testing.T) {
	f := servertest.Start(t)
	study, ledger := looked(f, "s", 2, 0.3, 0.6, 0.4)
	_, err := f.Releases().ReleaseBest(t.Context(), &dparetov1.ReleaseBestRequest{Name: study, Metric: "error", Epsilon: 1})
	servertest.WantCode(t, err, codes.FailedPrecondition, "chooses configurations by earlier results")

	r, err := byKusner(f, study, 0.5, kusner1())
	require.NoError(t, err)
	g := r.GetGuarantee()
	if g.GetEpsilon() != 0.5 || g.GetDelta() != 0 || g.GetAdjacency() != dparetov1.Adjacency_ADJACENCY_REPLACE_ONE {
		t.Errorf("guarantee %v", g)
	}
	if charges := f.Charges(ledger); len(charges) != 1 || charges[0].GetGuarantee().GetEpsilon() != 0.5 || charges[0].GetGuarantee().GetDelta() != 0 {
		t.Errorf("charges %v", charges)
	}
	if r.GetTrainingGuarantee() != nil || r.GetStudyRevision() != 0 {
		t.Errorf("says more of the study than the mechanism does: %v", r)
	}
	// The claim, computed independently: the means differ by 2√(2·log(3·50/δ)) and 1/m.
	claimed := 0.5 * (2*math.Sqrt(2*math.Log(150/1e-6))*0.05 + 1./servertest.TestRecords)
	for _, want := range []string{"not differential privacy", fmt.Sprintf("(%.4g, 1e-06)", claimed), "Assumption 1", "No score between 0 and 1 fits"} {
		if !strings.Contains(r.GetModelClaim(), want) {
			t.Errorf("%q is missing in %q", want, r.GetModelClaim())
		}
	}
	if len(r.GetPoints()) != 1 || len(r.GetPoints()[0].GetParameters()) == 0 || len(r.GetWarnings()) != 1 || r.GetWarnings()[0].GetCode() != "LARGE_NOISE" {
		t.Errorf("release %v", r)
	}

	// What the paper's bound does not improve on is not claimed.
	wide := kusner1()
	wide.PriorStandardDeviation = 0.2
	if r, err = byKusner(f, study, 0.5, wide); err != nil || r.GetModelClaim() != "" {
		t.Errorf("claim %q, %v", r.GetModelClaim(), err)
	}
	_, err = byKusner(f, study, 5, kusner1())
	servertest.WantCode(t, err, codes.ResourceExhausted, "remaining budget of ledgers/of-s")
}

// With a very large ε the choice follows the means: it is the candidate nearest to a very good trial.
func TestKusnerFollowsMeans(t *testing.T) {
	f := servertest.Start(t)
	study, _ := looked(f, "s", 1e9, 0.1)
	trial := f.Trial(study + "/trials/1").GetParameters()
	at := func(values map[string]*dparetov1.Value) (cutoff, scale float64) {
		return (float64(values["cutoff"].GetIntValue()) - 1) / 29, math.Log(values["noise_scale"].GetDoubleValue()/0.01) / math.Log(1e4)
	}
	x, y := at(trial)
	distance := func(values map[string]*dparetov1.Value) float64 {
		cutoff, scale := at(values)
		return math.Hypot(cutoff-x, scale-y)
	}
	k := kusner1()
	k.Candidates, k.LengthScale = 300, 0.1
	r, err := byKusner(f, study, 1e6, k)
	require.NoError(t, err)
	if d := distance(r.GetPoints()[0].GetParameters()); d > 0.1 {
		t.Errorf("the candidate lies %g away from the only good trial", d)
	}
	at1, err := f.Releases().ReleaseBest(t.Context(), &dparetov1.ReleaseBestRequest{
		Name: study, Metric: "error", Epsilon: 1, Kusner: k, AtMost: map[string]float64{"epsilon": 1e-9},
	})
	if err != nil || len(at1.GetRelease().GetPoints()) != 0 || at1.GetRelease().GetLedger() != "" {
		t.Errorf("no candidate is within the bound: %v, %v", at1, err)
	}
}

// Algorithm 3 has noise for the range of the metric, or for what the ridge penalty and the Lipschitz
// constant leave of it.
func TestKusnerValue(t *testing.T) {
	f := servertest.Start(t)
	study, _ := looked(f, "s", 1e9, 0.3, 0.2, 0.4)
	r, err := byKusner(f, study, 1e8, &dparetov1.KusnerMethod{Algorithm: 3})
	require.NoError(t, err)
	p := r.GetPoints()[0]
	if got := p.GetValues()["error"]; math.Abs(got-0.2) > 1e-5 || len(p.GetParameters()) != 0 || r.GetModelClaim() != "" {
		t.Errorf("release %v", r)
	}
	if want := math.Sqrt2 * 1e-8; math.Abs(r.GetNoiseStandardDeviation()/want-1) > 1e-9 {
		t.Errorf("noise %g, want %g", r.GetNoiseStandardDeviation(), want)
	}
	empty, _ := looked(f, "empty", 1)
	_, err = byKusner(f, empty, 1, &dparetov1.KusnerMethod{Algorithm: 3})
	servertest.WantCode(t, err, codes.FailedPrecondition, "no measured value")

	ledger := f.NewLedger("ridge", 10)
	spec := servertest.FixedSpec(0, ledger)
	spec.Algorithm = &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_NSGA2}
	spec.Parameters = []*dparetov1.ParameterSpec{{
		Id: "penalty", Scale: dparetov1.Scale_SCALE_LOG, Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Min: 0.5, Max: 1}},
	}}
	spec.Metrics = spec.GetMetrics()[1:]
	ridge := f.Create("r", spec)
	f.Tell(f.One(ridge, "w"), 0.25)
	r, err = byKusner(f, ridge, 2, &dparetov1.KusnerMethod{Algorithm: 3, Lipschitz: 0.25})
	require.NoError(t, err)
	// min(1, 2·0.25/0.5)/m + 0.25·(2 − 1)
	if want := math.Sqrt2 * (1./servertest.TestRecords + 0.25) / 2; math.Abs(r.GetNoiseStandardDeviation()/want-1) > 1e-9 {
		t.Errorf("noise %g, want %g", r.GetNoiseStandardDeviation(), want)
	}
	if all := fmt.Sprint(r.GetAssumptions()); !strings.Contains(all, "exact minimisers") || !strings.Contains(all, "its constant is 0.25") || !strings.Contains(all, "in [0.5, 1]") {
		t.Errorf("assumptions\n%s", all)
	}
}

// However large the noise is, a value that is published is one that the metric can have.
func TestKusnerValueIsClipped(t *testing.T) {
	f := servertest.Start(t)
	study, _ := looked(f, "s", 1e9, 0.3)
	ends := make(map[float64]bool)
	for range 60 {
		r, err := byKusner(f, study, 0.25, &dparetov1.KusnerMethod{Algorithm: 3})
		require.NoError(t, err)
		v := r.GetPoints()[0].GetValues()["error"]
		if !(v >= 0 && v <= 1) {
			t.Errorf("an error of %g is published", v)
		}
		ends[v] = true
	}
	if !ends[0] || !ends[1] {
		t.Error("no value was clipped")
	}
}

func TestKusnerErrors(t *testing.T) {
	f := servertest.Start(t)
	study, ledger := looked(f, "s", 10, 0.3)
	for field, k := range map[string]*dparetov1.KusnerMethod{
		"kusner.algorithm":                {Algorithm: 2},
		"kusner.candidates":               {Algorithm: 1, Candidates: 1001},
		"kusner.prior_mean":               {Algorithm: 1, PriorMean: 2},
		"kusner.prior_standard_deviation": {Algorithm: 1},
		"kusner.noise_standard_deviation": {Algorithm: 1, NoiseStandardDeviation: math.Inf(1)},
		"kusner.length_scale":             {Algorithm: 1, LengthScale: -1},
		"kusner.delta":                    {Algorithm: 1, Delta: 1},
		"kusner.lipschitz":                {Algorithm: 3, Lipschitz: math.NaN()},
	} {
		_, err := byKusner(f, study, 1, k)
		servertest.WantCode(t, err, codes.InvalidArgument, field)
	}
	_, err := byKusner(f, study, 1, &dparetov1.KusnerMethod{Algorithm: 3, Lipschitz: 1})
	servertest.WantCode(t, err, codes.InvalidArgument, "only parameter is the ridge penalty")
	_, err = f.Releases().ReleaseBest(t.Context(), &dparetov1.ReleaseBestRequest{
		Name: study, Metric: "error", Epsilon: 1, Kusner: &dparetov1.KusnerMethod{Algorithm: 3}, AtMost: map[string]float64{"epsilon": 1},
	})
	if diff := cmp.Diff([]string{"at_most"}, servertest.Violated(err)); diff != "" {
		t.Errorf("violated (-want +got):\n%s", diff)
	}
	// The domains decide the candidates.
	require.NoError(t, f.Respec(study, func(s *dparetov1.StudySpec) { s.Parameters[0].GetIntegerDomain().Max = 40 }))
	_, err = byKusner(f, study, 1, kusner1())
	servertest.WantCode(t, err, codes.FailedPrecondition, "changed after the first trial")
	if n := len(f.Charges(ledger)); n != 0 {
		t.Errorf("%d charges for what was refused", n)
	}
}
