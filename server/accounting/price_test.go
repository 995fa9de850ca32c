package accounting

import (
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/meter"
	"github.com/dpareto/dpareto/privacy/price"
)

// priceRequest is a valid request, about runs of DP-SGD.
func priceRequest(t *testing.T) *dparetov1.PriceSearchRequest {
	t.Helper()
	req := new(dparetov1.PriceSearchRequest)
	require.NoError(t, protojson.Unmarshal([]byte(`{
		"privacy": {"dpSgd": {"sampling": "SAMPLING_FIXED_SIZE", "datasetSize": "1000", "batchSize": "100", "noiseMultiplier": "noise", "epochs": "epochs"},
			"delta": 1e-5, "adjacency": "ADJACENCY_REPLACE_ONE"},
		"parameters": {"noise": {"doubleValue": 4}, "epochs": {"intValue": 3}}, "runs": 5,
		"testRecords": 500, "testNoise": 0.01, "checkpoints": 3}`), req))
	return req
}

// PriceSearch answers what package price says, with the defaults of the contract.
func TestPriceSearch(t *testing.T) {
	response, err := Service{MaxWork: MaxWork}.PriceSearch(t.Context(), priceRequest(t))
	require.NoError(t, err)
	run := privacy.Part{Mechanism: privacy.FixedSizeGaussian{DatasetSize: 1000, BatchSize: 100, NoiseMultiplier: 4}, Count: 30}
	search := price.Search{
		Run: run, Delta: 1e-5, Runs: 5, Eta: 1, Portfolios: []int64{2, 4, 8}, CoversStates: true,
		Subset: &price.Subset{Share: 0.1, Epochs: 3, Final: run},
		Test:   &price.Test{Records: 500, Noise: 0.01, Checkpoints: 3},
	}
	ways, err := search.Prices(new(meter.Work))
	require.NoError(t, err)
	if len(ways) != len(response.GetWays()) {
		t.Fatalf("%d ways, want %d", len(response.GetWays()), len(ways))
	}
	for i, got := range response.GetWays() {
		want := ways[i]
		if got.GetWay() != want.Name || got.GetReleased() != want.Released || got.GetAdaptive() != want.Adaptive ||
			got.GetTraining().GetEpsilon() != want.Training.Epsilon || got.GetTest().GetEpsilon() != want.Test.Epsilon ||
			got.GetTestNoise() != want.TestNoise || got.GetMeanRuns() != want.MeanRuns || got.GetMaxRuns() != want.MaxRuns {
			t.Errorf("%v, want %+v", got, want)
		}
		for _, g := range []*dparetov1.PrivacyGuarantee{got.GetTraining(), got.GetTest()} {
			if g.GetAdjacency() != dparetov1.Adjacency_ADJACENCY_REPLACE_ONE || g.GetDelta() != 1e-5 ||
				g.GetAccountant() == dparetov1.Accountant_ACCOUNTANT_UNSPECIFIED || len(g.GetAssumptions()) == 0 {
				t.Errorf("%s: %v", got.GetWay(), g)
			}
		}
		if got.RunsForBudget != nil {
			t.Errorf("%s: %d runs without a budget", got.GetWay(), got.GetRunsForBudget())
		}
	}
	last := response.GetWays()[len(ways)-1]
	if !strings.Contains(last.GetWay(), "10 %") {
		t.Errorf("the last way is %s", last.GetWay())
	}
}

// The run on all records after a search on a subset has variables, too.
func TestPriceSearchWithFinalRun(t *testing.T) {
	req := priceRequest(t)
	before, err := Service{}.PriceSearch(t.Context(), req)
	require.NoError(t, err)
	req.FinalRun = &dparetov1.PrivacySpec{Mechanism: &dparetov1.PrivacySpec_Gaussian{Gaussian: &dparetov1.GaussianMechanism{Sensitivity: "1.0", StandardDeviation: "1e6*noise"}}}
	after, err := Service{}.PriceSearch(t.Context(), req)
	require.NoError(t, err)
	for i, was := range before.GetWays() {
		now := after.GetWays()[i]
		if i == len(before.GetWays())-1 {
			if !(now.GetTraining().GetEpsilon() < 0.5*was.GetTraining().GetEpsilon()) {
				t.Errorf("%s: ε = %g, and %g with a final run that costs nothing", was.GetWay(), was.GetTraining().GetEpsilon(), now.GetTraining().GetEpsilon())
			}
		} else if !proto.Equal(was, now) {
			t.Errorf("%s: %v, with another final run %v", was.GetWay(), was, now)
		}
	}
}

func TestPriceSearchErrors(t *testing.T) {
	gaussian := &dparetov1.PrivacySpec_Gaussian{Gaussian: &dparetov1.GaussianMechanism{Sensitivity: "1.0", StandardDeviation: "1.0"}}
	for field, change := range map[string]func(r *dparetov1.PriceSearchRequest){
		"privacy":                         func(r *dparetov1.PriceSearchRequest) { r.Privacy = nil },
		"privacy.delta":                   func(r *dparetov1.PriceSearchRequest) { r.Privacy.Delta = 1 },
		"privacy.accountant":              func(r *dparetov1.PriceSearchRequest) { r.Privacy.Accountant = dparetov1.Accountant_ACCOUNTANT_PLD },
		"privacy.dp_sgd.noise_multiplier": func(r *dparetov1.PriceSearchRequest) { r.Privacy.GetDpSgd().NoiseMultiplier = "-noise" },
		"privacy.repeated_selection": func(r *dparetov1.PriceSearchRequest) {
			r.Privacy.Mechanism = new(dparetov1.PrivacySpec_RepeatedSelection)
		},
		"runs": func(r *dparetov1.PriceSearchRequest) { r.Runs = 0 },
		"eta": func(r *dparetov1.PriceSearchRequest) {
			r.Distribution = &dparetov1.PriceSearchRequest_Eta{Eta: math.NaN()}
		},
		"max_runs":   func(r *dparetov1.PriceSearchRequest) { r.MaxRuns = 1 },
		"portfolios": func(r *dparetov1.PriceSearchRequest) { r.Portfolios = make([]int64, price.MaxPortfolios+1) },
		"subset_share": func(r *dparetov1.PriceSearchRequest) {
			r.Privacy.Mechanism, r.SubsetBatchSize, r.Checkpoints = gaussian, 5, 1
		},
		"final_run": func(r *dparetov1.PriceSearchRequest) {
			r.FinalRun = &dparetov1.PrivacySpec{Mechanism: gaussian, Delta: 0.1}
		},
		"final_run.gaussian.standard_deviation": func(r *dparetov1.PriceSearchRequest) {
			r.FinalRun = &dparetov1.PrivacySpec{Mechanism: &dparetov1.PrivacySpec_Gaussian{Gaussian: &dparetov1.GaussianMechanism{Sensitivity: "1.0", StandardDeviation: "-1.0"}}}
		},
		"test_records": func(r *dparetov1.PriceSearchRequest) { r.TestRecords = 0 },
		"test_noise":   func(r *dparetov1.PriceSearchRequest) { r.Test = nil },
		"test_epsilon": func(r *dparetov1.PriceSearchRequest) { r.Test = new(dparetov1.PriceSearchRequest_TestEpsilon) },
		"checkpoints":  func(r *dparetov1.PriceSearchRequest) { r.Privacy.Mechanism = gaussian }, // three, of a result alone
	} {
		req := priceRequest(t)
		change(req)
		_, err := Service{}.PriceSearch(t.Context(), req)
		if code := status.Code(err); code != codes.InvalidArgument || !slices.Equal(violated(t, err), []string{field}) {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := (Service{MaxWork: 1000}).PriceSearch(t.Context(), priceRequest(t)); status.Code(err) != codes.InvalidArgument {
		t.Errorf("with little work: %v", err)
	}
}
