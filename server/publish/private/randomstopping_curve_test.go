package private

import (
	"fmt"
	"math"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/privacy/privacytest"
	"github.com/dpareto/dpareto/privacy/tuning"
	"github.com/dpareto/dpareto/suggest/space"
)

// curves is a study with random stopping of DP-SGD, in runs of up to so many epochs, that releases curves.
func curves(longest int64, stopping *dparetov1.RandomStoppingSpec) *dparetov1.StudySpec {
	asked := answers(stopping)
	asked.Parameters = []*dparetov1.ParameterSpec{{
		Id: "epochs", Scale: dparetov1.Scale_SCALE_LINEAR,
		Domain: &dparetov1.ParameterSpec_IntegerDomain{IntegerDomain: &dparetov1.IntegerDomain{Min: longest - 1, Max: longest}},
	}}
	asked.CheckpointParameter = "epochs"
	asked.Metrics[0].GetComputed().GetPrivacy().Mechanism = &dparetov1.PrivacySpec_DpSgd{DpSgd: &dparetov1.DpSgdMechanism{
		Sampling: dparetov1.Sampling_SAMPLING_FIXED_SIZE, DatasetSize: "1000", BatchSize: "100", NoiseMultiplier: "8.0",
		Length: &dparetov1.DpSgdMechanism_Epochs{Epochs: "epochs"},
	}}
	stopping.Metric, stopping.Release = "answer", dparetov1.RandomStoppingRelease_RANDOM_STOPPING_RELEASE_CURVE
	return asked
}

// The noise is that of all values of a candidate: as many as are scored of the longest run, for each run of a
// portfolio. For ten values of 16,281 records the numbers come from another program.
func TestNoiseOfCurves(t *testing.T) {
	for _, tc := range []struct {
		longest           int64
		points, portfolio int32
		eta, epsilon      float64
		want              float64
	}{
		{20, 0, 0, 1, 0.2588, 0.005},
		{20, 10, 1, 0, 0.2361, 0.005},
		{200, 10, 1, 1, 0.6709, 0.002},
		{10, 50, 0, 1, 0.2588, 0.005},     // no run has more than ten
		{20, 10, 4, 1, 0.2588, 2 * 0.005}, // √4 times as much
	} {
		t.Run(fmt.Sprint(tc), func(t *testing.T) {
			p := published(t, curves(tc.longest, &dparetov1.RandomStoppingSpec{
				MeanTrials: 32, Distribution: &dparetov1.RandomStoppingSpec_Eta{Eta: tc.eta}, TestSetSize: 16281, TestEpsilon: tc.epsilon,
				CurvePoints: tc.points, Portfolio: tc.portfolio, Listed: 10,
			}))
			if sigma := p.GetNoiseStandardDeviation(); math.Abs(sigma/tc.want-1) > 5e-3 {
				t.Errorf("noise %g, want %g", sigma, tc.want)
			}
		})
	}
}

// The training records pay for the k-fold composition of a draw from the list, and for no state but the last.
func TestTrainingCostOfCurves(t *testing.T) {
	epsilon := func(asked *dparetov1.StudySpec) float64 {
		return priced(t, compile(t, asked), []space.Point{{20}}).GetTrain().GetEpsilon()
	}
	stopping := func(portfolio int32) *dparetov1.RandomStoppingSpec {
		return &dparetov1.RandomStoppingSpec{MeanTrials: 8, Portfolio: portfolio, Listed: 1}
	}
	gamma, err := tuning.SelectionGamma(1, 8)
	require.NoError(t, err)
	run := privacy.FixedSizeGaussian{DatasetSize: 1000, BatchSize: 100, NoiseMultiplier: 8}
	for _, k := range []int32{1, 3} {
		want, err := privacy.Epsilon(tuning.Location{}, tuning.RepeatedSelection{Base: run, Steps: 200 * int64(k), Eta: 1, Gamma: gamma}, 1, 1e-6)
		require.NoError(t, err)
		if got := epsilon(curves(20, stopping(k))); !(got >= want.Epsilon) || got > 1.01*want.Epsilon {
			t.Errorf("portfolio of %d: ε = %g, want %g", k, got, want.Epsilon)
		}
	}
}

// The best of noisy curves shows no more of a test record than the study claims. With the noise of a single
// value, for 64 of them, it does.
func TestAuditOfCurves(t *testing.T) {
	entropy := noise.Seeded(5)
	const records, values = 20, 64
	asked := &dparetov1.RandomStoppingSpec{
		MeanTrials: 5, Distribution: &dparetov1.RandomStoppingSpec_Eta{Eta: 1}, TestSetSize: records, TestEpsilon: 2, CurvePoints: values, Listed: 2,
	}
	p := published(t, curves(values, asked))
	sigma := p.GetNoiseStandardDeviation()
	dist := distributionAskedFor(t, asked)
	// A record moves all values of a curve alike, so that their mean tells most of it. It is the score, too.
	event := func(sigma float64) func(bool) bool {
		ofMean := sigma / math.Sqrt(values)
		return func(second bool) bool {
			accuracy := 0.5
			if second {
				accuracy -= 1.0 / records
			}
			return search(t, entropy, dist, func() float64 { return entropy.Gaussian(accuracy, ofMean) }).score > 0.5+3*ofMean
		}
	}
	privacytest.Audit{
		Epsilon: p.GetTest().GetEpsilon(), Delta: p.GetTest().GetDelta(), Runs: 60_000, Power: 0.1, // one threshold is a weak attack
		Event:  event(sigma),
		Broken: event(sigma / math.Sqrt(values)),
	}.Check(t)
}
