package accounting

import (
	"math"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

const tradeoffDPSGD = `{"dpSgd":{"sampling":"SAMPLING_POISSON","convention":"CONVENTION_ROUNDED","datasetSize":"60000","batchSize":"600","noiseMultiplier":"noise","steps":"1000"},"delta":1e-5` + addRemove + `}`

// A request without rates gets a curve for a picture, with the guarantee of ComputeEpsilon. The two
// values are those of package privacy's test, from dp_accounting 0.6.0.
func TestComputeTradeoff(t *testing.T) {
	parameters := map[string]*dparetov1.Value{"noise": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: 1}}}
	got, err := Service{MaxWork: MaxWork}.ComputeTradeoff(t.Context(), &dparetov1.ComputeTradeoffRequest{Privacy: spec(t, tradeoffDPSGD), Parameters: parameters})
	require.NoError(t, err)
	want := compute(t, &dparetov1.ComputeEpsilonRequest{Privacy: spec(t, tradeoffDPSGD), Parameters: parameters}).GetGuarantees()[0]
	if !proto.Equal(got.GetGuarantee(), want) || !got.GetExactProfile() {
		t.Errorf("guarantee %v, exact %t, want %v", got.GetGuarantee(), got.GetExactProfile(), want)
	}
	found := make(map[float64]float64)
	last := -1.0
	for _, p := range got.GetPoints() {
		if p.GetFalsePositiveRate() <= last {
			t.Errorf("%g after %g", p.GetFalsePositiveRate(), last)
		}
		last = p.GetFalsePositiveRate()
		found[last] = p.GetTruePositiveRate()
	}
	for rate, power := range map[float64]float64{0.01: 0.02913910, 0.1: 0.19420115, 1: 1} {
		if math.Abs(found[rate]/power-1) > 2e-4 {
			t.Errorf("at %g %.8f, want %.8f", rate, found[rate], power)
		}
	}
}

// What is known by Rényi divergences alone, or by a pure ε, is said to be no whole profile; and a
// costly curve ends with the work of a call, and is still a bound.
func TestComputeTradeoffOfPartsOfAProfile(t *testing.T) {
	const gaussian = `{"gaussian":{"sensitivity":"1","standardDeviation":"2"},"delta":1e-5,`
	rates := []float64{0.5, 0.01}
	for name, tc := range map[string]struct {
		spec  string
		exact bool
		most  float64 // at 0.01
	}{
		"GDP":           {gaussian + `"accountant":"ACCOUNTANT_GDP"` + addRemove + `}`, true, 0.03390}, // Φ(Φ⁻¹(0.01) + 0.5) = 0.033888
		"RDP":           {gaussian + `"accountant":"ACCOUNTANT_RDP","conversion":"CONVERSION_IMPROVED"` + addRemove + `}`, false, 0.06},
		"sparse vector": {`{"sparseVector":{"cutoff":"1","noiseScale":"10"}` + addRemove + `}`, false, 0.02},
		"selection": {`{"repeatedSelection":{"base":{"gaussian":{"sensitivity":"1","standardDeviation":"20"}},"meanRuns":"10","poisson":{}},
			"delta":1e-6` + addRemove + `}`, false, 0.03},
		"costly": {`{"composition":{"parts":[{"mechanism":{"laplace":{"sensitivity":"1","scale":"31.7"}},"count":"300"}]},"delta":1e-9,"accountant":"ACCOUNTANT_PLD"` + addRemove + `}`, false, 0.06},
	} {
		got, err := Service{MaxWork: MaxWork}.ComputeTradeoff(t.Context(), &dparetov1.ComputeTradeoffRequest{Privacy: spec(t, tc.spec), FalsePositiveRates: rates})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if x := got.GetPoints()[1].GetTruePositiveRate(); x < 0.01 || x > tc.most || got.GetExactProfile() != tc.exact || got.GetPoints()[0].GetFalsePositiveRate() != 0.5 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestComputeTradeoffNamesWrongFields(t *testing.T) {
	good := spec(t, `{"gaussian":{"sensitivity":"1","standardDeviation":"2"},"delta":1e-5`+addRemove+`}`)
	for name, tc := range map[string]struct {
		request *dparetov1.ComputeTradeoffRequest
		fields  []string
	}{
		"no spec":    {&dparetov1.ComputeTradeoffRequest{}, []string{"privacy"}},
		"rates":      {&dparetov1.ComputeTradeoffRequest{Privacy: good, FalsePositiveRates: []float64{-0.1, 0.5, math.NaN(), 1.5}}, []string{"false_positive_rates[0]", "false_positive_rates[2]", "false_positive_rates[3]"}},
		"many rates": {&dparetov1.ComputeTradeoffRequest{Privacy: good, FalsePositiveRates: make([]float64, maxRates+1)}, []string{"false_positive_rates"}},
		"no noise":   {&dparetov1.ComputeTradeoffRequest{Privacy: spec(t, tradeoffDPSGD)}, []string{"privacy.dp_sgd.noise_multiplier"}},
		"too costly": {&dparetov1.ComputeTradeoffRequest{Privacy: spec(t, tradeoffDPSGD), Parameters: map[string]*dparetov1.Value{"noise": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: 1}}}}, []string{"privacy"}},
	} {
		s := Service{}
		if name == "too costly" {
			s.MaxWork = 1000
		}
		_, err := s.ComputeTradeoff(t.Context(), tc.request)
		if err == nil {
			t.Errorf("%s: computed", name)
		} else if got := violated(t, err); !slices.Equal(got, tc.fields) {
			t.Errorf("%s: %v, want %v", name, err, tc.fields)
		}
	}
}
