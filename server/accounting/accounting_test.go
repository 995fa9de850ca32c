package accounting

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/tuning"
	"github.com/dpareto/dpareto/server/invalid"
)

// spec reads a PrivacySpec.
func spec(t testing.TB, text string) *dparetov1.PrivacySpec {
	t.Helper()
	s := new(dparetov1.PrivacySpec)
	require.NoError(t, protojson.Unmarshal([]byte(text), s))
	return s
}

const (
	replaceOne = `,"adjacency":"ADJACENCY_REPLACE_ONE"`
	addRemove  = `,"adjacency":"ADJACENCY_ADD_REMOVE"`
)

func compute(t *testing.T, req *dparetov1.ComputeEpsilonRequest) *dparetov1.ComputeEpsilonResponse {
	t.Helper()
	response, err := Service{}.ComputeEpsilon(t.Context(), req)
	require.NoError(t, err)
	return response
}

// violated returns the fields that an INVALID_ARGUMENT error names.
func violated(t *testing.T, err error) []string {
	t.Helper()
	s := status.Convert(err)
	if s.Code() != codes.InvalidArgument {
		t.Fatalf("error %v, want code InvalidArgument", err)
	}
	var fields []string
	for _, detail := range s.Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok {
			for _, v := range bad.GetFieldViolations() {
				fields = append(fields, v.GetField())
			}
		}
	}
	return fields
}

// Every mechanism of the contract is the one of package privacy that it names.
func TestMechanisms(t *testing.T) {
	svt := privacy.SparseVector{Cutoff: 5, NoiseScale: 10, Neighbours: privacy.AddRemove}
	fixed := privacy.FixedSizeGaussian{DatasetSize: 30956, BatchSize: 128, NoiseMultiplier: 1}
	gamma, err := tuning.SelectionGamma(0.5, 20)
	require.NoError(t, err)
	geometric, err := tuning.SelectionGamma(1, 20)
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		spec       string
		accountant privacy.Accountant
		mechanism  privacy.Mechanism
		runs       int64
		steps      int64
	}{
		"fixed size": {
			`{"dp_sgd":{"sampling":"SAMPLING_FIXED_SIZE","dataset_size":"30956","batch_size":"128","noise_multiplier":"1.0","epochs":"10"},"delta":1e-5` + replaceOne + `}`,
			privacy.Exact{}, fixed, 2420, 2420,
		},
		"fixed size, add/remove": {
			`{"dp_sgd":{"sampling":"SAMPLING_FIXED_SIZE","dataset_size":"30956","batch_size":"128","noise_multiplier":"2.0","epochs":"10"},"delta":1e-5` + addRemove + `}`,
			privacy.Exact{}, privacy.FixedSizeAddRemoveGaussian{DatasetSize: 30956, BatchSize: 128, NoiseMultiplier: 2}, 2420, 2420,
		},
		"paper": {
			`{"dp_sgd":{"sampling":"SAMPLING_FIXED_SIZE","dataset_size":"30956","batch_size":"128","noise_multiplier":"1","steps":"2420"},"delta":1e-5,"accountant":"ACCOUNTANT_RDP","conversion":"CONVERSION_CLASSIC"` + replaceOne + `}`,
			privacy.RDP{Conversion: privacy.Classic}, fixed, 2420, 2420,
		},
		"Poisson, add/remove": {
			`{"dp_sgd":{"sampling":"SAMPLING_POISSON","convention":"CONVENTION_ROUNDED","dataset_size":"1000","batch_size":"10","noise_multiplier":"1","steps":"500"},"delta":1e-5,"accountant":"ACCOUNTANT_PLD"` + addRemove + `}`,
			privacy.PLD{}, privacy.PoissonGaussian{SamplingProbability: 0.01, NoiseMultiplier: 1, Neighbours: privacy.AddRemove}, 500, 500,
		},
		"Poisson, replace-one": { // the same noise has half the multiplier
			`{"dp_sgd":{"sampling":"SAMPLING_POISSON","convention":"CONVENTION_ROUNDED","dataset_size":"1000","batch_size":"10","noise_multiplier":"0.5","epochs":"5"},"delta":1e-5` + replaceOne + `}`,
			privacy.Exact{}, privacy.PoissonGaussian{SamplingProbability: 0.01, NoiseMultiplier: 1, Neighbours: privacy.ReplaceOne}, 500, 500,
		},
		"bands": { // 500 steps of 8 make 63 rounds
			`{"dp_sgd":{"sampling":"SAMPLING_POISSON","convention":"CONVENTION_ROUNDED","dataset_size":"1000","batch_size":"10","noise_multiplier":"2","epochs":"5","bands":"8"},"delta":1e-5` + addRemove + `}`,
			privacy.Exact{}, privacy.PoissonGaussian{SamplingProbability: 0.08, NoiseMultiplier: 2, Neighbours: privacy.AddRemove}, 63, 63,
		},
		"bands, replace-one": { // the probability is that in the group
			`{"dp_sgd":{"sampling":"SAMPLING_POISSON","sampling_probability":"0.08","noise_multiplier":"1","steps":"500","bands":"8"},"delta":1e-5` + replaceOne + `}`,
			privacy.Exact{}, privacy.PoissonGaussian{SamplingProbability: 0.08, NoiseMultiplier: 2, Neighbours: privacy.ReplaceOne}, 63, 63,
		},
		"one band": {
			`{"dp_sgd":{"sampling":"SAMPLING_POISSON","convention":"CONVENTION_ROUNDED","dataset_size":"1000","batch_size":"10","noise_multiplier":"1","epochs":"5","bands":"1"},"delta":1e-5` + addRemove + `}`,
			privacy.Exact{}, privacy.PoissonGaussian{SamplingProbability: 0.01, NoiseMultiplier: 1, Neighbours: privacy.AddRemove}, 500, 500,
		},
		"shuffled": { // 61 lots are 7 passes of 10
			`{"dp_sgd":{"sampling":"SAMPLING_SHUFFLED","dataset_size":"1000","batch_size":"100","noise_multiplier":"4","steps":"61"},"delta":1e-5,"accountant":"ACCOUNTANT_GDP"` + replaceOne + `}`,
			privacy.GDP{}, privacy.Gaussian{Sensitivity: 1, StandardDeviation: 4, Neighbours: privacy.ReplaceOne}, 7, 7,
		},
		"shuffled, uneven lots": { // 12 lots are 6 passes of ⌊1000/400⌋
			`{"dp_sgd":{"sampling":"SAMPLING_SHUFFLED","dataset_size":"1000","batch_size":"400","noise_multiplier":"4","steps":"12"},"delta":1e-5` + replaceOne + `}`,
			privacy.GDP{}, privacy.Gaussian{Sensitivity: 1, StandardDeviation: 4, Neighbours: privacy.ReplaceOne}, 6, 6,
		},
		"shuffled, epochs": { // a pass each, whatever the lots
			`{"dp_sgd":{"sampling":"SAMPLING_SHUFFLED","dataset_size":"1000","batch_size":"400","noise_multiplier":"4","epochs":"7"},"delta":1e-5` + replaceOne + `}`,
			privacy.GDP{}, privacy.Gaussian{Sensitivity: 1, StandardDeviation: 4, Neighbours: privacy.ReplaceOne}, 7, 7,
		},
		"shuffled, zeroed out": {
			`{"dp_sgd":{"sampling":"SAMPLING_SHUFFLED","dataset_size":"1000","batch_size":"400","noise_multiplier":"4","epochs":"7"},"delta":1e-5` + addRemove + `}`,
			privacy.GDP{}, privacy.Gaussian{Sensitivity: 1, StandardDeviation: 4, Neighbours: privacy.AddRemove}, 7, 7,
		},
		"shuffled, amplified": {
			`{"dp_sgd":{"sampling":"SAMPLING_SHUFFLED","dataset_size":"200000","batch_size":"20","noise_multiplier":"4","epochs":"1"},"delta":1e-5` + replaceOne + `}`,
			privacy.Exact{}, privacy.ShuffledGaussian{NoiseMultiplier: 4, Steps: 10_000, EvenSteps: true, Neighbours: privacy.ReplaceOne}, 1, 1,
		},
		"truncated": {
			`{"dp_sgd":{"sampling":"SAMPLING_POISSON","convention":"CONVENTION_ROUNDED","dataset_size":"1000","batch_size":"50","physical_batch_size":"65","noise_multiplier":"1.2","steps":"500"},"delta":1e-5` + addRemove + `}`,
			privacy.Exact{}, privacy.TruncatedPoissonGaussian{DatasetSize: 1000, PhysicalBatch: 65, SamplingProbability: 0.05, NoiseMultiplier: 1.2, Neighbours: privacy.AddRemove}, 500, 500,
		},
		"truncated, replace-one": { // the same noise has half the multiplier
			`{"dp_sgd":{"sampling":"SAMPLING_POISSON","sampling_probability":"0.05","dataset_size":"1000","physical_batch_size":"60+5","noise_multiplier":"0.6","steps":"500"},"delta":1e-5` + replaceOne + `}`,
			privacy.Exact{}, privacy.TruncatedPoissonGaussian{DatasetSize: 1000, PhysicalBatch: 65, SamplingProbability: 0.05, NoiseMultiplier: 1.2, Neighbours: privacy.ReplaceOne}, 500, 500,
		},
		"users": {
			`{"dp_sgd":{"sampling":"SAMPLING_POISSON","sampling_probability":"0.01","dataset_size":"5000","records_per_user":"8","noise_multiplier":"2","steps":"1000"},"delta":1e-6` + addRemove + `}`,
			privacy.Exact{}, privacy.UserPoissonGaussian{RecordsPerUser: 8, SamplingProbability: 0.01, NoiseMultiplier: 2, PublicSize: true}, 1000, 1000,
		},
		"sparse vector": {`{"sparse_vector":{"cutoff":"5","noise_scale":"10"},"accountant":"ACCOUNTANT_PURE"` + addRemove + `}`, privacy.Pure{}, svt, 1, 1},
		"Gaussian": {
			`{"gaussian":{"sensitivity":"2","standard_deviation":"3"},"delta":1e-6` + addRemove + `}`,
			privacy.GDP{}, privacy.Gaussian{Sensitivity: 2, StandardDeviation: 3, Neighbours: privacy.AddRemove}, 1, 1,
		},
		"Laplace": {
			`{"laplace":{"sensitivity":"2","scale":"3"}` + addRemove + `}`,
			privacy.Pure{}, privacy.Laplace{Sensitivity: 2, Scale: 3, Neighbours: privacy.AddRemove}, 1, 1,
		},
		"output perturbation": {
			`{"output_perturbation":{"dataset_size":"30956","regularization":"0.001","feature_norm":"1","standard_deviation":"0.1"},"delta":1e-6` + replaceOne + `}`,
			privacy.GDP{}, privacy.Gaussian{Sensitivity: 2 / (0.001 * 30956), StandardDeviation: 0.1, Neighbours: privacy.ReplaceOne}, 1, 1,
		},
		"output perturbation, projected": { // Wu et al. with R = 1/γ: 4/(γn)
			`{"output_perturbation":{"dataset_size":"30956","regularization":"0.001","feature_norm":"1","standard_deviation":"0.1","radius":"1000"},"delta":1e-6` + replaceOne + `}`,
			privacy.GDP{}, privacy.Gaussian{Sensitivity: 4 / (0.001 * 30956), StandardDeviation: 0.1, Neighbours: privacy.ReplaceOne}, 1, 1,
		},
		"objective perturbation": {
			`{"objective_perturbation":{"epsilon":"0.7"}` + replaceOne + `}`,
			privacy.Pure{}, privacy.RandomizedResponse{Epsilon: 0.7, Categories: 2}, 1, 1,
		},
		"randomised response": {
			`{"randomized_response":{"epsilon":"0.7","categories":"4"},"delta":1e-3` + replaceOne + `}`,
			privacy.Exact{}, privacy.RandomizedResponse{Epsilon: 0.7, Categories: 4}, 1, 1,
		},
		"selection": {
			`{"selection":{"method":"SELECTION_METHOD_EXPONENTIAL","epsilon":"0.7"},"delta":1e-3` + addRemove + `}`,
			privacy.Pure{Rule: privacy.Optimal}, privacy.Selection{Method: privacy.Exponential, Epsilon: 0.7, Neighbours: privacy.AddRemove}, 1, 1,
		},
		"selection, advanced": {
			`{"selection":{"method":"SELECTION_METHOD_EXPONENTIAL","epsilon":"0.7"},"delta":1e-3,"accountant":"ACCOUNTANT_PURE_ADVANCED"` + addRemove + `}`,
			privacy.Pure{Rule: privacy.Advanced}, privacy.Selection{Method: privacy.Exponential, Epsilon: 0.7, Neighbours: privacy.AddRemove}, 1, 1,
		},
		"zero-concentrated": {
			`{"zero_concentrated":{"rho":"0.1"},"delta":1e-3` + addRemove + `}`,
			privacy.RDP{}, privacy.ZeroConcentrated{Rho: 0.1, Neighbours: privacy.AddRemove}, 1, 1,
		},
		"adaptive clipping": { // 1/σ² = 1/1² + 1/(2·4)²
			`{"dp_sgd":{"sampling":"SAMPLING_POISSON","sampling_probability":"0.01","steps":"100","noise_multiplier":"1","clipping_count_deviation":"4"},"delta":1e-5` + addRemove + `}`,
			privacy.Exact{}, privacy.PoissonGaussian{SamplingProbability: 0.01, NoiseMultiplier: 8 / math.Sqrt(65), Neighbours: privacy.AddRemove}, 100, 100,
		},
		"discrete gaussian": {
			`{"discrete_gaussian":{"sensitivity":"2","sigma":"5"},"delta":1e-3` + addRemove + `}`,
			privacy.Exact{}, privacy.DiscreteGaussian{Sensitivity: 2, Sigma: 5, Neighbours: privacy.AddRemove}, 1, 1,
		},
		"DP-FTRL with a tree": { // one record in 3 trees of 100 steps, of 7 levels each
			`{"dp_ftrl":{"steps":"300","separation":"100","noise_multiplier":"5","matrix":"NOISE_MATRIX_TREE"},"delta":1e-6` + replaceOne + `}`,
			privacy.GDP{}, privacy.Gaussian{Sensitivity: 2 * math.Sqrt(21), StandardDeviation: 5, Neighbours: privacy.ReplaceOne}, 1, 1,
		},
		"DP-FTRL with a column": { // rows 1, 1/2, and 1 + 0, 1/2 for two participations that are apart
			`{"dp_ftrl":{"steps":"300","separation":"100","participations":"2","noise_multiplier":"5","matrix":"NOISE_MATRIX_TOEPLITZ","column":[1,0.5]},"delta":1e-6` + addRemove + `}`,
			privacy.GDP{}, privacy.Gaussian{Sensitivity: math.Sqrt(2.5), StandardDeviation: 5, Neighbours: privacy.AddRemove}, 1, 1,
		},
		"DP-FTRL with a BLT": { // column 1, 1/4, 1/8, once
			`{"dp_ftrl":{"steps":"3","noise_multiplier":"5","matrix":"NOISE_MATRIX_BLT","buffer_scale":[0.25],"buffer_decay":[0.5]},"delta":1e-6` + addRemove + `}`,
			privacy.GDP{}, privacy.Gaussian{Sensitivity: math.Sqrt(1 + 1./16 + 1./64), StandardDeviation: 5, Neighbours: privacy.AddRemove}, 1, 1,
		},
		"discrete laplace": {
			`{"discrete_laplace":{"sensitivity":"2","scale":"5"},"delta":1e-3` + replaceOne + `}`,
			privacy.Exact{}, privacy.DiscreteLaplace{Sensitivity: 2, Scale: 5, Neighbours: privacy.ReplaceOne}, 1, 1,
		},
		"random allocation": {
			`{"random_allocation":{"steps_per_epoch":"100","noise_multiplier":"1","epochs":"4"},"delta":1e-6` + addRemove + `}`,
			privacy.Exact{}, privacy.RandomAllocation{Steps: 100, Picks: 1, NoiseMultiplier: 1, Epochs: 4, Neighbours: privacy.AddRemove}, 1, 1,
		},
		"random allocation, replace-one": { // the same noise has half the multiplier
			`{"random_allocation":{"steps_per_epoch":"100","picks":"2","noise_multiplier":"0.5","epochs":"4","allocation":"ALLOCATION_SAME"},"delta":1e-6` + replaceOne + `}`,
			privacy.Exact{}, privacy.RandomAllocation{Steps: 100, Picks: 2, NoiseMultiplier: 1, Epochs: 4, SameSteps: true, Neighbours: privacy.ReplaceOne}, 1, 1,
		},
		"randomly allocated lots": { // 1000/300 is 3 lots, and 4 steps are 2 epochs
			`{"dp_sgd":{"sampling":"SAMPLING_RANDOM_ALLOCATION","dataset_size":"1000","batch_size":"300","noise_multiplier":"2","steps":"4"},"delta":1e-6` + addRemove + `}`,
			privacy.Exact{}, privacy.RandomAllocation{Steps: 3, Picks: 1, NoiseMultiplier: 2, Epochs: 2, Neighbours: privacy.AddRemove}, 1, 1,
		},
		"randomly allocated lots, replace-one": {
			`{"dp_sgd":{"sampling":"SAMPLING_RANDOM_ALLOCATION","dataset_size":"1000","batch_size":"10","noise_multiplier":"0.5","epochs":"4"},"delta":1e-6` + replaceOne + `}`,
			privacy.Exact{}, privacy.RandomAllocation{Steps: 100, Picks: 1, NoiseMultiplier: 1, Epochs: 4, Neighbours: privacy.ReplaceOne}, 1, 1,
		},
		"repeated selection": {
			`{"repeated_selection":{"base":{"gaussian":{"sensitivity":"1","standard_deviation":"10"}},"mean_runs":"20","eta":"0.5"},"delta":1e-6` + addRemove + `}`,
			tuning.Location{}, tuning.RepeatedSelection{Base: privacy.Gaussian{Sensitivity: 1, StandardDeviation: 10, Neighbours: privacy.AddRemove}, Steps: 1, Eta: 0.5, Gamma: gamma}, 1, 1,
		},
		"repeated selection, RDP": {
			`{"repeated_selection":{"base":{"gaussian":{"sensitivity":"1","standard_deviation":"10"}},"mean_runs":"20","eta":"0.5"},"delta":1e-6,"accountant":"ACCOUNTANT_RDP","conversion":"CONVERSION_IMPROVED"` + addRemove + `}`,
			privacy.RDP{}, tuning.RepeatedSelection{Base: privacy.Gaussian{Sensitivity: 1, StandardDeviation: 10, Neighbours: privacy.AddRemove}, Steps: 1, Eta: 0.5, Gamma: gamma}, 1, 1,
		},
		"repeated selection, Poisson": {
			`{"repeated_selection":{"base":{"gaussian":{"sensitivity":"1","standard_deviation":"10"}},"mean_runs":"20","poisson":{}},"delta":1e-6` + addRemove + `}`,
			tuning.Location{}, tuning.PoissonSelection{Base: privacy.Gaussian{Sensitivity: 1, StandardDeviation: 10, Neighbours: privacy.AddRemove}, Steps: 1, Mean: 20}, 1, 1,
		},
		"repeated selection, default": {
			`{"repeated_selection":{"base":{"gaussian":{"sensitivity":"1","standard_deviation":"10"}},"mean_runs":"20"},"delta":1e-6` + addRemove + `}`,
			tuning.Location{}, tuning.RepeatedSelection{Base: privacy.Gaussian{Sensitivity: 1, StandardDeviation: 10, Neighbours: privacy.AddRemove}, Steps: 1, Eta: 1, Gamma: geometric}, 1, 1,
		},
		"repeated selection, capped": {
			`{"repeated_selection":{"base":{"gaussian":{"sensitivity":"1","standard_deviation":"10"}},"mean_runs":"20","max_runs":"60"},"delta":1e-6` + addRemove + `}`,
			tuning.Location{}, tuning.CappedSelection{Base: privacy.Gaussian{Sensitivity: 1, StandardDeviation: 10, Neighbours: privacy.AddRemove}, Steps: 1, Eta: 1, Gamma: geometric, MostRuns: 60}, 1, 1,
		},
		"repeated selection, binomial": {
			`{"repeated_selection":{"base":{"gaussian":{"sensitivity":"1","standard_deviation":"10"}},"mean_runs":"20","binomial":"80"},"delta":1e-6` + addRemove + `}`,
			tuning.Location{}, tuning.BinomialSelection{Base: privacy.Gaussian{Sensitivity: 1, StandardDeviation: 10, Neighbours: privacy.AddRemove}, Steps: 1, Tries: 80, Probability: 0.25}, 1, 1,
		},
		"repeated selection, fixed": {
			`{"repeated_selection":{"base":{"gaussian":{"sensitivity":"1","standard_deviation":"10"}},"mean_runs":"20","fixed":{}},"delta":1e-6` + addRemove + `}`,
			tuning.Location{}, tuning.BinomialSelection{Base: privacy.Gaussian{Sensitivity: 1, StandardDeviation: 10, Neighbours: privacy.AddRemove}, Steps: 1, Tries: 20, Probability: 1}, 1, 1,
		},
		"composition": {
			`{"composition":{"parts":[{"mechanism":{"sparse_vector":{"cutoff":"5","noise_scale":"10"}}},{"mechanism":{"gaussian":{"sensitivity":"2","standard_deviation":"30"}},"count":"7"}]},"delta":1e-6` + addRemove + `}`,
			privacy.Exact{}, privacy.Composition{{Mechanism: svt, Count: 1}, {Mechanism: privacy.Gaussian{Sensitivity: 2, StandardDeviation: 30, Neighbours: privacy.AddRemove}, Count: 7}}, 1, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := spec(t, tc.spec)
			want, err := privacy.Epsilon(tc.accountant, tc.mechanism, tc.runs, s.GetDelta())
			require.NoError(t, err)
			got := compute(t, &dparetov1.ComputeEpsilonRequest{Privacy: s}).GetGuarantees()
			if len(got) != 1 {
				t.Fatalf("%d guarantees", len(got))
			}
			g := got[0]
			if math.Abs(g.GetEpsilon()-want.Epsilon) > 1e-9*want.Epsilon || g.GetDelta() != s.GetDelta() || g.GetAdjacency() != s.GetAdjacency() || g.GetSteps() != tc.steps {
				t.Errorf("guarantee %v, want epsilon %v", g, want.Epsilon)
			}
			if asked := s.GetAccountant(); asked != 0 && g.GetAccountant() != asked || g.GetAccountant() == 0 || g.GetConversion() != s.GetConversion() && asked != 0 {
				t.Errorf("accountant %v, %v, asked for %v, %v", g.GetAccountant(), g.GetConversion(), asked, s.GetConversion())
			}
			if g.GetEpsilonLower() > g.GetEpsilon() {
				t.Errorf("lower bound %v above %v", g.GetEpsilonLower(), g.GetEpsilon())
			}
		})
	}
}

// The numbers of the run that the documents show, from an independent evaluation: the
// dominating pair's curve, and the published accountant's.
func TestTightestIsTheDefault(t *testing.T) {
	tight := spec(t, `{"dp_sgd":{"sampling":"SAMPLING_FIXED_SIZE","dataset_size":"40000","batch_size":"128","noise_multiplier":"1","steps":"3120"},"delta":1e-6`+replaceOne+`}`)
	g := compute(t, &dparetov1.ComputeEpsilonRequest{Privacy: tight}).GetGuarantees()[0]
	if math.Abs(g.GetEpsilon()-1.330865304864) > 1e-8 || g.GetAccountant() != dparetov1.Accountant_ACCOUNTANT_EXACT || !(g.GetEpsilonLower() > 0.9) {
		t.Errorf("guarantee %v, want epsilon 1.330865304864", g)
	}
	paper := proto.CloneOf(tight)
	paper.Accountant, paper.Conversion = dparetov1.Accountant_ACCOUNTANT_RDP, dparetov1.Conversion_CONVERSION_CLASSIC
	if g := compute(t, &dparetov1.ComputeEpsilonRequest{Privacy: paper}).GetGuarantees()[0]; math.Abs(g.GetEpsilon()-2.4696) > 1e-4 {
		t.Errorf("guarantee %v, want epsilon 2.4696", g)
	}
}

// A trajectory is the single values, with the parameters in their place.
func TestLengths(t *testing.T) {
	s := spec(t, `{"dp_sgd":{"sampling":"SAMPLING_FIXED_SIZE","dataset_size":"n","batch_size":"n / 100","noise_multiplier":"math.sqrt(variance)","epochs":"64"},"delta":1e-6`+replaceOne+`}`)
	parameters := map[string]*dparetov1.Value{
		"n":        {Kind: &dparetov1.Value_IntValue{IntValue: 20000}},
		"variance": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: 4}},
	}
	lengths := []int64{1, 3, 64}
	response := compute(t, &dparetov1.ComputeEpsilonRequest{Privacy: s, Parameters: parameters, Lengths: lengths})
	for i, length := range lengths {
		want, err := privacy.Epsilon(privacy.Exact{}, privacy.FixedSizeGaussian{DatasetSize: 20000, BatchSize: 200, NoiseMultiplier: 2}, 100*length, 1e-6)
		require.NoError(t, err)
		if g := response.GetGuarantees()[i]; math.Abs(g.GetEpsilon()-want.Epsilon) > 1e-9*want.Epsilon || g.GetSteps() != 100*length {
			t.Errorf("%d epochs: %v, want epsilon %v", length, g, want.Epsilon)
		}
	}
	if got := response.GetDerived()["steps_per_epoch"]; got != 100 {
		t.Errorf("%g steps per epoch", got)
	}
}

// δ of a Gaussian mechanism by its closed form (Balle and Wang, 2018).
func TestDeltas(t *testing.T) {
	s := spec(t, `{"gaussian":{"sensitivity":"1","standard_deviation":"2"}`+addRemove+`}`)
	epsilons := []float64{0, 0.5, 2}
	for i, g := range compute(t, &dparetov1.ComputeEpsilonRequest{Privacy: s, Epsilons: epsilons}).GetGuarantees() {
		normal := func(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) }
		want := normal(0.25-2*epsilons[i]) - math.Exp(epsilons[i])*normal(-0.25-2*epsilons[i])
		if math.Abs(g.GetDelta()-want) > 1e-7*want || g.GetDelta() < want*(1-1e-12) || g.GetEpsilon() > epsilons[i] {
			t.Errorf("epsilon %g: %v, want delta %v", epsilons[i], g, want)
		}
	}
}

func TestDerived(t *testing.T) {
	for text, want := range map[string]map[string]float64{
		// 1/b₁ + 2C/b₂ = ε with C = 5 and b = 10.
		`{"sparse_vector":{"cutoff":"5","noise_scale":"10"}` + addRemove + `}`: {"threshold_scale": 3.1701401, "query_scale": 6.8298599},
		// β and τ of n = 10,000, λ = 1e-6, ε = 0.1 by a split of 0.1.
		`{"objective_perturbation":{"epsilon":"0.1","dataset_size":"10000","regularization":"1e-6","split":"0.1"}` + replaceOne + `}`:                             {"beta": 0.045, "tau": 0.0024875208},
		`{"output_perturbation":{"dataset_size":"1000","regularization":"0.01","feature_norm":"1","standard_deviation":"2"},"delta":1e-6` + replaceOne + `}`:      {"sensitivity": 0.2, "mu": 0.1},
		`{"dp_sgd":{"sampling":"SAMPLING_SHUFFLED","dataset_size":"1000","batch_size":"400","noise_multiplier":"4","steps":"12"},"delta":1e-5` + replaceOne + `}`: {"passes": 6, "noise_multiplier": 4},
		`{"dp_sgd":{"sampling":"SAMPLING_POISSON","sampling_probability":"1.0/8.0","noise_multiplier":"4.0/2.0","steps":"12"},"delta":1e-5` + addRemove + `}`:     {"sampling_probability": 0.125, "noise_multiplier": 2},
		`{"dp_sgd":{"sampling":"SAMPLING_POISSON","convention":"CONVENTION_OPACUS","dataset_size":"1000","batch_size":"400","noise_multiplier":"2","epochs":"12"},"delta":1e-5` + addRemove + `}`: {
			"sampling_probability": 1. / 3, "steps_per_epoch": 3, "noise_multiplier": 2},
		`{"dp_sgd":{"sampling":"SAMPLING_POISSON","sampling_probability":"0.02","dataset_size":"5000","physical_batch_size":"200","noise_multiplier":"1.2","steps":"2000"},"delta":1e-5` + addRemove + `}`: {
			"sampling_probability": 0.02, "noise_multiplier": 1.2, "smallest_physical_batch": 145},
		`{"repeated_selection":{"base":{"laplace":{"sensitivity":"1","scale":"9"}},"mean_runs":"10","eta":"1"},"delta":1e-6` + addRemove + `}`: {"gamma": 0.1},
	} {
		got := compute(t, &dparetov1.ComputeEpsilonRequest{Privacy: spec(t, text)}).GetDerived()
		if len(got) != len(want) {
			t.Errorf("%s: derived %v, want %v", text, got, want)
		}
		for name, value := range want {
			if math.Abs(got[name]-value) > 1e-7*value {
				t.Errorf("%s: %s is %.9g, want %.9g", text, name, got[name], value)
			}
		}
	}
}

// Where nothing but Chernoff's bound resolves δ, the guarantee says so.
func TestBoundIsNamed(t *testing.T) {
	const mechanism = `{"dp_sgd":{"sampling":"SAMPLING_POISSON","sampling_probability":"0.00033","noise_multiplier":"4","steps":"10000"}` + addRemove
	for delta, want := range map[string]dparetov1.Accountant{
		"1e-18": dparetov1.Accountant_ACCOUNTANT_EXACT, "1e-300": dparetov1.Accountant_ACCOUNTANT_CHERNOFF,
	} {
		g := compute(t, &dparetov1.ComputeEpsilonRequest{Privacy: spec(t, mechanism+`,"delta":`+delta+`}`)}).GetGuarantees()[0]
		if g.GetAccountant() != want {
			t.Errorf("delta %s: %v, want %v", delta, g, want)
		}
	}
}

func TestWarnings(t *testing.T) {
	poisson := `{"dp_sgd":{"sampling":"SAMPLING_POISSON","convention":"CONVENTION_OPACUS","dataset_size":"1000","batch_size":"10","noise_multiplier":"1","epochs":"1"}`
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"none": {poisson + `,"delta":1e-5` + addRemove + `}`, nil},
		"large delta": {`{"output_perturbation":{"dataset_size":"1000","regularization":"0.01","feature_norm":"1","standard_deviation":"2"},"delta":1e-3` + replaceOne + `}`,
			[]string{warnLargeDelta}},
		"shuffled": {`{"dp_sgd":{"sampling":"SAMPLING_SHUFFLED","dataset_size":"60000","batch_size":"256","noise_multiplier":"1","epochs":"10"},"delta":1e-5` + replaceOne + `}`,
			[]string{warnShuffled}},
		"shuffled, zeroed out": {`{"dp_sgd":{"sampling":"SAMPLING_SHUFFLED","dataset_size":"60000","batch_size":"256","noise_multiplier":"2","epochs":"10"},"delta":1e-5` + addRemove + `}`,
			[]string{warnShuffled}},
		"shuffled full batches": {`{"dp_sgd":{"sampling":"SAMPLING_SHUFFLED","dataset_size":"600","batch_size":"600","noise_multiplier":"1","epochs":"10"},"delta":1e-5` + replaceOne + `}`, nil},
		"truncated": {`{"dp_sgd":{"sampling":"SAMPLING_POISSON","sampling_probability":"0.02","dataset_size":"5000","physical_batch_size":"110","noise_multiplier":"1.2","steps":"2000"},"delta":1e-5` + addRemove + `}`,
			[]string{warnTruncated}},
		"truncated rarely": {`{"dp_sgd":{"sampling":"SAMPLING_POISSON","sampling_probability":"0.02","dataset_size":"5000","physical_batch_size":"200","noise_multiplier":"1.2","steps":"2000"},"delta":1e-5` + addRemove + `}`, nil},
		"loose": {`{"dp_sgd":{"sampling":"SAMPLING_FIXED_SIZE","dataset_size":"1000","batch_size":"10","noise_multiplier":"0.3","epochs":"1"},"delta":1e-5,"accountant":"ACCOUNTANT_RDP","conversion":"CONVERSION_CLASSIC"` + replaceOne + `}`,
			[]string{"LOOSE_BOUND", "ORDER_AT_EDGE"}},
	} {
		var got []string
		for _, w := range compute(t, &dparetov1.ComputeEpsilonRequest{Privacy: spec(t, tc.text)}).GetGuarantees()[0].GetWarnings() {
			if want := "delta 0.001 is not below 1/n = 0.001 (n = 1000 records)"; w.GetCode() == warnLargeDelta && !strings.HasPrefix(w.GetMessage(), want) {
				t.Errorf("%s: %q, want %q", name, w.GetMessage(), want)
			}
			if got = append(got, w.GetCode()); w.GetMessage() == "" {
				t.Errorf("%s: warning %v without a message", name, w)
			}
		}
		if slices.Sort(got); !slices.Equal(got, tc.want) {
			t.Errorf("%s: warnings %q, want %q", name, got, tc.want)
		}
	}
}

// Whatever is wrong is named by its path in the request.
func TestBadRequests(t *testing.T) {
	dpsgd := func(changes ...string) string {
		text := `{"dp_sgd":{"sampling":"SAMPLING_FIXED_SIZE","dataset_size":"1000","batch_size":"10","noise_multiplier":"1","epochs":"2"},"delta":1e-5` + replaceOne + `}`
		return strings.NewReplacer(changes...).Replace(text)
	}
	for name, tc := range map[string]struct {
		text   string
		fields []string
	}{
		"nothing":            {`{}`, []string{"privacy.adjacency", "privacy.mechanism"}},
		"no adjacency":       {dpsgd(replaceOne, ""), []string{"privacy.adjacency"}},
		"wrong adjacency":    {`{"randomized_response":{"epsilon":"1","categories":"2"},"delta":1e-5` + addRemove + `}`, []string{"privacy.adjacency"}},
		"no delta":           {dpsgd(`,"delta":1e-5`, ``), []string{"privacy.delta"}},
		"delta of 1":         {dpsgd(`1e-5`, `1`), []string{"privacy.delta"}},
		"NaN delta":          {dpsgd(`1e-5`, `"NaN"`), []string{"privacy.delta"}},
		"pure with a delta":  {`{"laplace":{"sensitivity":"1","scale":"1"},"delta":1e-5,"accountant":"ACCOUNTANT_PURE"` + addRemove + `}`, []string{"privacy.delta"}},
		"pure DP-SGD":        {dpsgd(`"delta":1e-5`, `"accountant":"ACCOUNTANT_PURE"`), []string{"privacy.accountant"}},
		"GDP of a sample":    {dpsgd(`"delta"`, `"accountant":"ACCOUNTANT_GDP","delta"`), []string{"privacy.accountant"}},
		"exact zCDP":         {`{"zero_concentrated":{"rho":"1"},"delta":1e-5,"accountant":"ACCOUNTANT_EXACT"` + addRemove + `}`, []string{"privacy.accountant"}},
		"unknown accountant": {dpsgd(`"delta"`, `"accountant":99,"delta"`), []string{"privacy.accountant"}},
		"fixed convention":   {dpsgd(`"batch_size"`, `"convention":"CONVENTION_OPACUS","batch_size"`), []string{"privacy.dp_sgd.convention"}},
		"fixed probability":  {dpsgd(`"dataset_size":"1000","batch_size":"10"`, `"sampling_probability":"0.01"`), []string{"privacy.dp_sgd.sampling_probability"}},
		"no convention":      {dpsgd("FIXED_SIZE", "POISSON"), []string{"privacy.dp_sgd.convention"}},
		"unknown convention": {dpsgd("FIXED_SIZE", "POISSON", `"batch_size"`, `"convention":9,"batch_size"`), []string{"privacy.dp_sgd.convention"}},
		"two probabilities": {dpsgd("FIXED_SIZE", "POISSON", `"batch_size"`, `"convention":"CONVENTION_OPACUS","sampling_probability":"0.01","batch_size"`),
			[]string{"privacy.dp_sgd.epochs", "privacy.dp_sgd.batch_size", "privacy.dp_sgd.convention"}},
		"bands of lots of a fixed size": {dpsgd(`"batch_size"`, `"bands":"2","batch_size"`), []string{"privacy.dp_sgd.bands"}},
		"bands and a learning rate":     {dpsgd("FIXED_SIZE", "POISSON", `"batch_size"`, `"convention":"CONVENTION_ROUNDED","bands":"2","learning_rate":"0.1","clipping_norm":"1.0","batch_size"`), []string{"privacy.dp_sgd.learning_rate"}},
		"no bands":                      {dpsgd("FIXED_SIZE", "POISSON", `"batch_size"`, `"convention":"CONVENTION_ROUNDED","bands":"0","batch_size"`), []string{"privacy.dp_sgd.bands"}},
		"more bands than lots":          {dpsgd("FIXED_SIZE", "POISSON", `"batch_size"`, `"convention":"CONVENTION_ROUNDED","bands":"101","batch_size"`), []string{"privacy.dp_sgd.bands"}},
		"improbable": {dpsgd("FIXED_SIZE", "POISSON", `"dataset_size":"1000","batch_size":"10"`, `"sampling_probability":"1.01"`, "epochs", "steps"),
			[]string{"privacy.dp_sgd.sampling_probability"}},
		"physical batch of fixed lots": {dpsgd(`"batch_size"`, `"physical_batch_size":"20","batch_size"`), []string{"privacy.dp_sgd.physical_batch_size"}},
		"physical batch of settings": {dpsgd("FIXED_SIZE", "POISSON", `"dataset_size":"1000","batch_size":"10"`, `"sampling_probability":"0.01","physical_batch_size":"20"`, "epochs", "steps"),
			[]string{"privacy.dp_sgd.physical_batch_size"}},
		"no physical batch":   {dpsgd("FIXED_SIZE", "POISSON", `"batch_size"`, `"convention":"CONVENTION_ROUNDED","physical_batch_size":"0","batch_size"`), []string{"privacy.dp_sgd.physical_batch_size"}},
		"replaced users":      {dpsgd("FIXED_SIZE", "POISSON", `"batch_size"`, `"convention":"CONVENTION_ROUNDED","records_per_user":"2","batch_size"`), []string{"privacy.dp_sgd.records_per_user"}},
		"no records of users": {dpsgd("FIXED_SIZE", "POISSON", `"batch_size"`, `"convention":"CONVENTION_ROUNDED","records_per_user":"0","batch_size"`, replaceOne, addRemove), []string{"privacy.dp_sgd.records_per_user"}},
		"no conversion":       {dpsgd(`"delta"`, `"accountant":"ACCOUNTANT_RDP","delta"`), []string{"privacy.conversion"}},
		"useless conversion":  {dpsgd(`"delta"`, `"conversion":"CONVERSION_CLASSIC","delta"`), []string{"privacy.conversion"}},
		"no sampling":         {dpsgd(`"sampling":"SAMPLING_FIXED_SIZE",`, ``), []string{"privacy.dp_sgd.sampling"}},
		"no length":           {dpsgd(`,"epochs":"2"`, ``), []string{"privacy.dp_sgd.length"}},
		"syntax":              {dpsgd(`"1000"`, `"1000 +"`), []string{"privacy.dp_sgd.dataset_size"}},
		"unknown variable":    {dpsgd(`"noise_multiplier":"1"`, `"noise_multiplier":"sigma"`), []string{"privacy.dp_sgd.noise_multiplier"}},
		"no noise":            {dpsgd(`"noise_multiplier":"1"`, `"noise_multiplier":"0"`), []string{"privacy.dp_sgd.noise_multiplier"}},
		"large batch":         {dpsgd(`"10"`, `"1001"`), []string{"privacy.dp_sgd.batch_size"}},
		"no epochs":           {dpsgd(`"2"`, `"0"`), []string{"privacy.dp_sgd.epochs"}},
		"too many steps":      {dpsgd(`"2"`, `"9000000000000000000"`), []string{"privacy.dp_sgd.epochs"}},
		"infinite noise":      {dpsgd(`"noise_multiplier":"1"`, `"noise_multiplier":"math.exp(1e6)"`), []string{"privacy.dp_sgd.noise_multiplier"}},
		"negative deviation":  {`{"gaussian":{"sensitivity":"1","standard_deviation":"-1"},"delta":1e-5` + addRemove + `}`, []string{"privacy.gaussian.standard_deviation"}},
		"no scale":            {`{"laplace":{"sensitivity":"1"}` + addRemove + `}`, []string{"privacy.laplace.scale"}},
		"steps of an epoch":   {`{"random_allocation":{"steps_per_epoch":"0","noise_multiplier":"1","epochs":"0"},"delta":1e-5` + addRemove + `}`, []string{"privacy.random_allocation.steps_per_epoch", "privacy.random_allocation.picks", "privacy.random_allocation.epochs"}},
		"no matrix":           {`{"dp_ftrl":{"steps":"10","noise_multiplier":"1"},"delta":1e-5` + addRemove + `}`, []string{"privacy.dp_ftrl.matrix"}},
		"matrix of another":   {`{"dp_ftrl":{"steps":"10","noise_multiplier":"1","matrix":"NOISE_MATRIX_TREE","column":[1],"buffer_decay":[0.5]},"delta":1e-5` + addRemove + `}`, []string{"privacy.dp_ftrl.column", "privacy.dp_ftrl.buffer_scale"}},
		"no column":           {`{"dp_ftrl":{"steps":"10","noise_multiplier":"1","matrix":"NOISE_MATRIX_TOEPLITZ"},"delta":1e-5` + addRemove + `}`, []string{"privacy.dp_ftrl.column"}},
		"buffers":             {`{"dp_ftrl":{"steps":"10","noise_multiplier":"1","matrix":"NOISE_MATRIX_BLT","buffer_scale":[0.5],"buffer_decay":[0.5]},"delta":1e-5` + addRemove + `}`, []string{"privacy.dp_ftrl.buffer_scale"}},
		"separation":          {`{"dp_ftrl":{"steps":"10","separation":"11","noise_multiplier":"1","matrix":"NOISE_MATRIX_TREE"},"delta":1e-5` + addRemove + `}`, []string{"privacy.dp_ftrl.separation"}},
		"no participation":    {`{"dp_ftrl":{"steps":"10","participations":"0","noise_multiplier":"1","matrix":"NOISE_MATRIX_TREE"},"delta":1e-5` + addRemove + `}`, []string{"privacy.dp_ftrl.participations"}},
		"no separation":       {`{"dp_ftrl":{"steps":"1000","participations":"5","noise_multiplier":"10","matrix":"NOISE_MATRIX_TREE"},"delta":1e-6` + addRemove + `}`, []string{"privacy.dp_ftrl.separation"}},
		"many participations": {`{"dp_ftrl":{"steps":"10000","separation":"1","noise_multiplier":"1","matrix":"NOISE_MATRIX_TREE"},"delta":1e-5` + addRemove + `}`, []string{"privacy.dp_ftrl.participations"}},
		"endless":             {`{"dp_ftrl":{"steps":"9000000000000000000","noise_multiplier":"1","matrix":"NOISE_MATRIX_TREE"},"delta":1e-5` + addRemove + `}`, []string{"privacy.dp_ftrl.steps"}},
		"cutoff":              {`{"sparse_vector":{"cutoff":"0","noise_scale":"0"}` + addRemove + `}`, []string{"privacy.sparse_vector.cutoff", "privacy.sparse_vector.noise_scale"}},
		"feature norm":        {`{"output_perturbation":{"dataset_size":"10","regularization":"1","feature_norm":"-1","standard_deviation":"1"},"delta":1e-5` + replaceOne + `}`, []string{"privacy.output_perturbation.feature_norm"}},
		"radius":              {`{"output_perturbation":{"dataset_size":"10","regularization":"1","feature_norm":"1","standard_deviation":"1","radius":"0"},"delta":1e-5` + replaceOne + `}`, []string{"privacy.output_perturbation.radius"}},
		"half a calibration":  {`{"objective_perturbation":{"epsilon":"1","dataset_size":"10"}` + replaceOne + `}`, []string{"privacy.objective_perturbation.dataset_size"}},
		"split":               {`{"objective_perturbation":{"epsilon":"1","dataset_size":"10","regularization":"1","split":"0"}` + replaceOne + `}`, []string{"privacy.objective_perturbation.split"}},
		"method":              {`{"selection":{"epsilon":"1"}` + addRemove + `}`, []string{"privacy.selection.method"}},
		"cap of Poisson":      {`{"repeated_selection":{"base":{"laplace":{"sensitivity":"1","scale":"1"}},"mean_runs":"2","poisson":{},"max_runs":"9"},"delta":1e-5` + addRemove + `}`, []string{"privacy.repeated_selection.max_runs"}},
		"small cap":           {`{"repeated_selection":{"base":{"laplace":{"sensitivity":"1","scale":"1"}},"mean_runs":"2000","max_runs":"1"},"delta":1e-5` + addRemove + `}`, []string{"privacy.repeated_selection.max_runs"}},
		"tries":               {`{"repeated_selection":{"base":{"laplace":{"sensitivity":"1","scale":"1"}},"mean_runs":"20","binomial":"10"},"delta":1e-5` + addRemove + `}`, []string{"privacy.repeated_selection.mean_runs"}},
		"fixed part":          {`{"repeated_selection":{"base":{"laplace":{"sensitivity":"1","scale":"1"}},"mean_runs":"2.5","fixed":{}},"delta":1e-5` + addRemove + `}`, []string{"privacy.repeated_selection.mean_runs"}},
		"mean":                {`{"repeated_selection":{"base":{"laplace":{"sensitivity":"1","scale":"1"}},"mean_runs":"1","eta":"1"},"delta":1e-5` + addRemove + `}`, []string{"privacy.repeated_selection.mean_runs"}},
		"Poisson mean":        {`{"repeated_selection":{"base":{"laplace":{"sensitivity":"1","scale":"1"}},"mean_runs":"0","poisson":{}},"delta":1e-5` + addRemove + `}`, []string{"privacy.repeated_selection.mean_runs"}},
		"base":                {`{"repeated_selection":{"base":{"laplace":{"sensitivity":"1","scale":"0"}},"mean_runs":"2","eta":"1"},"delta":1e-5` + addRemove + `}`, []string{"privacy.repeated_selection.base.laplace.scale"}},
		"location":            {`{"laplace":{"sensitivity":"1","scale":"1"},"delta":1e-5,"accountant":"ACCOUNTANT_LOCATION"` + addRemove + `}`, []string{"privacy.accountant"}},
		"no parts":            {`{"composition":{},"delta":1e-5` + addRemove + `}`, []string{"privacy.composition.parts"}},
		"part's delta":        {`{"composition":{"parts":[{"mechanism":{"laplace":{"sensitivity":"1","scale":"1"},"delta":0.1}}]},"delta":1e-5` + addRemove + `}`, []string{"privacy.composition.parts[0].mechanism.delta"}},
		"part":                {`{"composition":{"parts":[{"mechanism":{"laplace":{"sensitivity":"1","scale":"-1"}}}]},"delta":1e-5` + addRemove + `}`, []string{"privacy.composition.parts[0].mechanism.laplace.scale"}},
		"count":               {`{"composition":{"parts":[{"mechanism":{"laplace":{"sensitivity":"1","scale":"1"}},"count":"0"}]},"delta":1e-5` + addRemove + `}`, []string{"privacy.composition.parts[0].count"}},
		"replace-one part":    {`{"composition":{"parts":[{"mechanism":{"randomized_response":{"epsilon":"1","categories":"2"}}}]},"delta":1e-5` + addRemove + `}`, []string{"privacy.adjacency"}},
		"allocated steps":     {`{"dp_sgd":{"sampling":"SAMPLING_RANDOM_ALLOCATION","dataset_size":"10000000","batch_size":"1","noise_multiplier":"1","epochs":"1000001"},"delta":1e-5` + addRemove + `}`, []string{"privacy.dp_sgd.batch_size", "privacy.dp_sgd.epochs"}},
		"allocated by rule":   {`{"dp_sgd":{"sampling":"SAMPLING_RANDOM_ALLOCATION","convention":"CONVENTION_OPACUS","dataset_size":"1000","batch_size":"10","noise_multiplier":"1","epochs":"1"},"delta":1e-5` + addRemove + `}`, []string{"privacy.dp_sgd.convention"}},
	} {
		_, err := Service{}.ComputeEpsilon(t.Context(), &dparetov1.ComputeEpsilonRequest{Privacy: spec(t, tc.text)})
		if got := violated(t, err); !slices.Equal(got, tc.fields) {
			t.Errorf("%s: violated %q, want %q (%v)", name, got, tc.fields, err)
		}
	}
	good := spec(t, dpsgd())
	laplace := spec(t, `{"laplace":{"sensitivity":"1","scale":"1"}`+addRemove+`}`)
	value := func(x float64) *dparetov1.Value {
		return &dparetov1.Value{Kind: &dparetov1.Value_DoubleValue{DoubleValue: x}}
	}
	for name, tc := range map[string]struct {
		request *dparetov1.ComputeEpsilonRequest
		fields  []string
	}{
		"no spec":             {&dparetov1.ComputeEpsilonRequest{}, []string{"privacy"}},
		"no length 0":         {&dparetov1.ComputeEpsilonRequest{Privacy: good, Lengths: []int64{1, 0}}, []string{"lengths[1]"}},
		"length of a number":  {&dparetov1.ComputeEpsilonRequest{Privacy: laplace, Lengths: []int64{1}}, []string{"lengths"}},
		"delta and epsilons":  {&dparetov1.ComputeEpsilonRequest{Privacy: good, Epsilons: []float64{1}, Lengths: []int64{1}}, []string{"privacy.delta", "lengths"}},
		"negative epsilon":    {&dparetov1.ComputeEpsilonRequest{Privacy: laplace, Epsilons: []float64{-1}}, []string{"epsilons[0]"}},
		"reserved name":       {&dparetov1.ComputeEpsilonRequest{Privacy: good, Parameters: map[string]*dparetov1.Value{"in": value(1)}}, []string{`parameters["in"]`}},
		"parameter NaN":       {&dparetov1.ComputeEpsilonRequest{Privacy: good, Parameters: map[string]*dparetov1.Value{"x": value(math.NaN())}}, []string{`parameters["x"].double_value`}},
		"parameter not there": {&dparetov1.ComputeEpsilonRequest{Privacy: good, Parameters: map[string]*dparetov1.Value{"x": {}}}, []string{`parameters["x"].kind`}},
	} {
		_, err := Service{}.ComputeEpsilon(t.Context(), tc.request)
		if got := violated(t, err); !slices.Equal(got, tc.fields) {
			t.Errorf("%s: violated %q, want %q (%v)", name, got, tc.fields, err)
		}
	}
}

// A nested spec cannot hold up the server by its depth.
func TestDepth(t *testing.T) {
	text := `{"laplace":{"sensitivity":"1","scale":"1"}`
	for range 30 {
		text = `{"composition":{"parts":[{"mechanism":` + text + `}}]}`
	}
	_, err := Service{}.ComputeEpsilon(t.Context(), &dparetov1.ComputeEpsilonRequest{Privacy: spec(t, text+`,"delta":1e-5`+addRemove+`}`)})
	if got := violated(t, err); len(got) != 1 || !strings.HasPrefix(got[0], "privacy.composition.parts[0].mechanism.composition") {
		t.Errorf("violated %q", got)
	}
}

// Nor by its width, at whatever level.
func TestWidth(t *testing.T) {
	laplace := `{"laplace":{"sensitivity":"1","scale":"1"}}`
	composed := func(n int, part string) string {
		parts := strings.TrimSuffix(strings.Repeat(`{"mechanism":`+part+`},`, n), ",")
		return `{"composition":{"parts":[` + parts + `]}}`
	}
	compile := func(text string) error {
		text = strings.TrimSuffix(text, "}") + addRemove + `}`
		_, err := Service{}.ComputeEpsilon(t.Context(), &dparetov1.ComputeEpsilonRequest{Privacy: spec(t, text)})
		return err
	}
	if err := compile(composed(20, composed(49, laplace))); err != nil {
		t.Errorf("1000 mechanisms: %v", err)
	}
	for text, want := range map[string]string{
		composed(1001, laplace):              "privacy.composition.parts",
		composed(20, composed(50, laplace)):  "privacy.composition.parts[19].mechanism.composition.parts",
		composed(1000, composed(1, laplace)): "privacy.composition.parts[0].mechanism.composition.parts",
	} {
		if got := violated(t, compile(text)); !slices.Equal(got, []string{want}) {
			t.Errorf("violated %q, want %q", got, want)
		}
	}
}

// Calibration undoes ComputeEpsilon, from the private side, in every kind of variable.
func TestCalibrate(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const text = `{"dp_sgd":{"sampling":"SAMPLING_FIXED_SIZE","dataset_size":"20000","batch_size":"batch","noise_multiplier":"sigma","epochs":"epochs"},"delta":1e-6` + replaceOne + `}`
	for _, solve := range []struct {
		name   string
		lo, hi float64
	}{{"sigma", 0.1, 100}, {"epochs", 1, 1000}, {"batch", 1, 20000}} {
		for range 3 {
			values := map[string]*dparetov1.Value{
				"sigma":  {Kind: &dparetov1.Value_DoubleValue{DoubleValue: 0.6 + 5*rng.Float64()}},
				"epochs": {Kind: &dparetov1.Value_IntValue{IntValue: 1 + rng.Int64N(60)}},
				"batch":  {Kind: &dparetov1.Value_IntValue{IntValue: 10 + rng.Int64N(500)}},
			}
			at := compute(t, &dparetov1.ComputeEpsilonRequest{Privacy: spec(t, text), Parameters: values}).GetGuarantees()[0]
			want := values[solve.name]
			delete(values, solve.name)
			response, err := Service{}.CalibrateMechanism(t.Context(), &dparetov1.CalibrateMechanismRequest{
				Privacy: spec(t, text), Parameters: values, SolveFor: solve.name, Min: solve.lo, Max: solve.hi,
				TargetEpsilon: at.GetEpsilon() * (1 + 1e-10),
			})
			require.NoError(t, err)
			got := response.GetValue()
			// The guarantee is the one that the value has, lower bound included.
			values[solve.name] = got
			whole := compute(t, &dparetov1.ComputeEpsilonRequest{Privacy: spec(t, text), Parameters: values}).GetGuarantees()[0]
			if guarantee := response.GetGuarantee(); !proto.Equal(guarantee, whole) || whole.GetEpsilonLower() == 0 {
				t.Errorf("%s: guarantee %v, want %v", solve.name, guarantee, whole)
			}
			if !response.GetReachable() || response.GetGuarantee().GetEpsilon() > at.GetEpsilon()*(1+1e-10) {
				t.Errorf("%s: %v, want epsilon %v", solve.name, response, at.GetEpsilon())
			}
			switch want.GetKind().(type) {
			case *dparetov1.Value_IntValue:
				// The number of steps per epoch is rounded: other batches can have the same ε.
				if solve.name == "epochs" && got.GetIntValue() != want.GetIntValue() || got.GetIntValue() == 0 {
					t.Errorf("%s is %v, want %v", solve.name, got, want)
				}
			default:
				if math.Abs(got.GetDoubleValue()-want.GetDoubleValue()) > 1e-7*want.GetDoubleValue() {
					t.Errorf("%s is %v, want %v", solve.name, got, want)
				}
			}
		}
	}
}

func TestCalibrateOutOfReach(t *testing.T) {
	request := &dparetov1.CalibrateMechanismRequest{
		Privacy:  spec(t, `{"laplace":{"sensitivity":"1","scale":"b"}`+addRemove+`}`),
		SolveFor: "b", Min: 1, Max: 10, TargetEpsilon: 0.01,
	}
	response, err := Service{}.CalibrateMechanism(t.Context(), request)
	if err != nil || response.GetReachable() || response.GetValue().GetDoubleValue() != 10 || response.GetGuarantee().GetEpsilon() != 0.1 {
		t.Errorf("target 0.01: %v, %v", response, err)
	}
	// Where even the worst end suffices, it is the answer.
	request.TargetEpsilon = 5
	response, err = Service{}.CalibrateMechanism(t.Context(), request)
	if err != nil || !response.GetReachable() || response.GetValue().GetDoubleValue() != 1 || response.GetGuarantee().GetEpsilon() != 1 {
		t.Errorf("target 5: %v, %v", response, err)
	}
	if w := response.GetGuarantee().GetWarnings(); len(w) != 1 || w[0].GetCode() != warnAtRangeEnd || !strings.Contains(w[0].GetMessage(), "target 5") {
		t.Errorf("warnings %v", w)
	}
	// An end at which ε is the target is an answer like any other, and so is a value inside.
	for _, target := range []float64{1, 0.5} {
		request.TargetEpsilon = target
		response, err = Service{}.CalibrateMechanism(t.Context(), request)
		if err != nil || !response.GetReachable() || len(response.GetGuarantee().GetWarnings()) != 0 {
			t.Errorf("target %g: %v, %v", target, response, err)
		}
	}
	for name, tc := range map[string]struct {
		change func(*dparetov1.CalibrateMechanismRequest)
		fields []string
	}{
		"target":   {func(r *dparetov1.CalibrateMechanismRequest) { r.TargetEpsilon = 0 }, []string{"target_epsilon"}},
		"range":    {func(r *dparetov1.CalibrateMechanismRequest) { r.Max = 1 }, []string{"max"}},
		"name":     {func(r *dparetov1.CalibrateMechanismRequest) { r.SolveFor = "" }, []string{"solve_for"}},
		"variable": {func(r *dparetov1.CalibrateMechanismRequest) { r.SolveFor = "c" }, []string{"privacy.laplace.scale"}},
		"given": {func(r *dparetov1.CalibrateMechanismRequest) {
			r.Parameters = map[string]*dparetov1.Value{"b": {Kind: &dparetov1.Value_IntValue{IntValue: 1}}}
		}, []string{"solve_for"}},
		"invalid end":  {func(r *dparetov1.CalibrateMechanismRequest) { r.Min = -1 }, []string{"min"}},
		"invalid ends": {func(r *dparetov1.CalibrateMechanismRequest) { r.Min, r.Max = -2, -1 }, []string{"min", "max"}},
		"invalid elsewhere": {func(r *dparetov1.CalibrateMechanismRequest) {
			r.Min, r.Privacy.GetLaplace().Sensitivity = -1, "-1.0"
		}, []string{"privacy.laplace.sensitivity", "min"}},
		"no influence": {func(r *dparetov1.CalibrateMechanismRequest) { r.Privacy.GetLaplace().Scale = "2" }, []string{"solve_for"}},
	} {
		bad := proto.CloneOf(request)
		tc.change(bad)
		_, err := Service{}.CalibrateMechanism(t.Context(), bad)
		if got := violated(t, err); !slices.Equal(got, tc.fields) {
			t.Errorf("%s: violated %q, want %q (%v)", name, got, tc.fields, err)
		}
	}
}

// A guarantee loses nothing on its way into a message, and the curves that are kept
// change no result.
func TestKeptCurves(t *testing.T) {
	s := spec(t, `{"dp_sgd":{"sampling":"SAMPLING_FIXED_SIZE","dataset_size":"1000","batch_size":"batch","noise_multiplier":"1","epochs":"3"},"delta":1e-5`+replaceOne+`}`)
	request := func(batch int64) *dparetov1.ComputeEpsilonRequest {
		return &dparetov1.ComputeEpsilonRequest{Privacy: s, Parameters: map[string]*dparetov1.Value{"batch": {Kind: &dparetov1.Value_IntValue{IntValue: batch}}}}
	}
	_, environment := bind(new(invalid.Fields), request(1).GetParameters(), nil)
	function := Compile("privacy", new(invalid.Fields), environment, s)
	for round := range 2 {
		for batch := int64(1); batch <= 2*keptCurves; batch++ {
			got, err := function.Guarantee(map[string]any{"batch": batch})
			require.NoError(t, err)
			want := compute(t, request(batch)).GetGuarantees()[0]
			if !proto.Equal(got, want) {
				t.Errorf("round %d, batch %d: %v, want %v", round, batch, got, want)
			}
		}
	}
	if n := function.curves.Len(); n != keptCurves {
		t.Errorf("%d curves are kept", n)
	}
}
