//go:build long

package dpsgd

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/model"
	"github.com/dpareto/dpareto/internal/require"
)

// adamReference holds the 64 configurations of DP-Adam on Adult whose accuracies are
// stored with the code published by Avent et al. (2020), and mean and standard
// deviation of the accuracy over 40 runs of an independent implementation of that
// code in Python, from its initial weights and from 0.
var adamReference = []struct {
	epochs, lotSize                     int64
	rate, clippingNorm, noiseMultiplier float64
	stored                              float64 // accuracy of one run of the authors
	published, zero                     [2]float64
}{
	{2, 32, 0.001, 0.1, 1, 0.7539, [2]float64{0.7541, 0.0011}, [2]float64{0.7539, 0.0000}},
	{2, 128, 0.001, 0.1, 1, 0.7539, [2]float64{0.7539, 0.0006}, [2]float64{0.7539, 0.0000}},
	{4, 32, 0.001, 0.1, 1, 0.7726, [2]float64{0.7611, 0.0055}, [2]float64{0.7575, 0.0009}},
	{4, 128, 0.001, 0.1, 1, 0.7539, [2]float64{0.7539, 0.0001}, [2]float64{0.7539, 0.0000}},
	{2, 32, 0.01, 0.1, 1, 0.8274, [2]float64{0.8279, 0.0033}, [2]float64{0.8278, 0.0038}},
	{2, 128, 0.01, 0.1, 1, 0.8262, [2]float64{0.8261, 0.0033}, [2]float64{0.8271, 0.0021}},
	{4, 32, 0.01, 0.1, 1, 0.8318, [2]float64{0.8298, 0.0034}, [2]float64{0.8304, 0.0032}},
	{4, 128, 0.01, 0.1, 1, 0.8336, [2]float64{0.8326, 0.0023}, [2]float64{0.8326, 0.0018}},
	{2, 32, 0.001, 2, 1, 0.8031, [2]float64{0.8019, 0.0090}, [2]float64{0.8134, 0.0045}},
	{2, 128, 0.001, 2, 1, 0.7813, [2]float64{0.7821, 0.0119}, [2]float64{0.7934, 0.0020}},
	{4, 32, 0.001, 2, 1, 0.8218, [2]float64{0.8202, 0.0046}, [2]float64{0.8249, 0.0024}},
	{4, 128, 0.001, 2, 1, 0.8206, [2]float64{0.8119, 0.0082}, [2]float64{0.8226, 0.0015}},
	{2, 32, 0.01, 2, 1, 0.8305, [2]float64{0.8293, 0.0048}, [2]float64{0.8297, 0.0044}},
	{2, 128, 0.01, 2, 1, 0.8299, [2]float64{0.8316, 0.0034}, [2]float64{0.8323, 0.0021}},
	{4, 32, 0.01, 2, 1, 0.8330, [2]float64{0.8319, 0.0047}, [2]float64{0.8313, 0.0045}},
	{4, 128, 0.01, 2, 1, 0.8399, [2]float64{0.8357, 0.0028}, [2]float64{0.8352, 0.0040}},
	{2, 32, 0.001, 0.1, 8, 0.7539, [2]float64{0.7489, 0.0234}, [2]float64{0.7539, 0.0000}},
	{2, 128, 0.001, 0.1, 8, 0.7620, [2]float64{0.7408, 0.0490}, [2]float64{0.7539, 0.0000}},
	{4, 32, 0.001, 0.1, 8, 0.7539, [2]float64{0.7539, 0.0001}, [2]float64{0.7539, 0.0000}},
	{4, 128, 0.001, 0.1, 8, 0.7539, [2]float64{0.7539, 0.0005}, [2]float64{0.7539, 0.0000}},
	{2, 32, 0.01, 0.1, 8, 0.7539, [2]float64{0.7617, 0.0081}, [2]float64{0.7592, 0.0055}},
	{2, 128, 0.01, 0.1, 8, 0.7620, [2]float64{0.7568, 0.0041}, [2]float64{0.7546, 0.0011}},
	{4, 32, 0.01, 0.1, 8, 0.7788, [2]float64{0.7857, 0.0120}, [2]float64{0.7845, 0.0140}},
	{4, 128, 0.01, 0.1, 8, 0.7875, [2]float64{0.7787, 0.0088}, [2]float64{0.7765, 0.0086}},
	{2, 32, 0.001, 2, 8, 0.7539, [2]float64{0.7390, 0.0608}, [2]float64{0.7539, 0.0000}},
	{2, 128, 0.001, 2, 8, 0.7539, [2]float64{0.7486, 0.0162}, [2]float64{0.7539, 0.0000}},
	{4, 32, 0.001, 2, 8, 0.7495, [2]float64{0.7584, 0.0067}, [2]float64{0.7549, 0.0014}},
	{4, 128, 0.001, 2, 8, 0.7533, [2]float64{0.7572, 0.0086}, [2]float64{0.7539, 0.0001}},
	{2, 32, 0.01, 2, 8, 0.7688, [2]float64{0.7863, 0.0151}, [2]float64{0.7890, 0.0123}},
	{2, 128, 0.01, 2, 8, 0.7956, [2]float64{0.8024, 0.0082}, [2]float64{0.8120, 0.0062}},
	{4, 32, 0.01, 2, 8, 0.7919, [2]float64{0.7950, 0.0096}, [2]float64{0.7985, 0.0112}},
	{4, 128, 0.01, 2, 8, 0.8012, [2]float64{0.8141, 0.0068}, [2]float64{0.8164, 0.0071}},
	{3, 78, 0.00151514, 1.73548, 2.65594, 0.7738, [2]float64{0.7933, 0.0084}, [2]float64{0.7988, 0.0033}},
	{3, 67, 0.0093675, 0.341204, 7.65471, 0.7788, [2]float64{0.7861, 0.0124}, [2]float64{0.7849, 0.0110}},
	{3, 66, 0.00604588, 1.60675, 3.98848, 0.8174, [2]float64{0.8166, 0.0058}, [2]float64{0.8203, 0.0053}},
	{3, 63, 0.00971818, 0.870782, 4.6966, 0.8249, [2]float64{0.8163, 0.0068}, [2]float64{0.8177, 0.0054}},
	{3, 45, 0.00161611, 1.39887, 2.76069, 0.7975, [2]float64{0.7901, 0.0090}, [2]float64{0.7908, 0.0048}},
	{3, 55, 0.0033403, 0.676931, 4.15092, 0.7645, [2]float64{0.7798, 0.0104}, [2]float64{0.7807, 0.0071}},
	{2, 80, 0.00235154, 1.57194, 7.86894, 0.7551, [2]float64{0.7596, 0.0067}, [2]float64{0.7541, 0.0007}},
	{3, 93, 0.00608304, 1.59208, 1.03918, 0.8336, [2]float64{0.8311, 0.0028}, [2]float64{0.8313, 0.0029}},
	{3, 51, 0.00193345, 0.118138, 3.6637, 0.7539, [2]float64{0.7540, 0.0002}, [2]float64{0.7539, 0.0000}},
	{3, 54, 0.0037251, 1.29403, 3.93968, 0.8044, [2]float64{0.8079, 0.0079}, [2]float64{0.8116, 0.0052}},
	{3, 58, 0.00154642, 1.96206, 1.20199, 0.8243, [2]float64{0.8190, 0.0052}, [2]float64{0.8249, 0.0024}},
	{3, 52, 0.00809657, 0.920971, 4.81274, 0.8143, [2]float64{0.8138, 0.0057}, [2]float64{0.8165, 0.0059}},
	{2, 60, 0.00132854, 1.60901, 5.08066, 0.7583, [2]float64{0.7570, 0.0072}, [2]float64{0.7539, 0.0000}},
	{3, 44, 0.00361718, 0.866181, 1.01759, 0.8262, [2]float64{0.8271, 0.0026}, [2]float64{0.8280, 0.0024}},
	{3, 73, 0.00554048, 0.869532, 2.52114, 0.8193, [2]float64{0.8229, 0.0039}, [2]float64{0.8256, 0.0033}},
	{4, 40, 0.00261168, 0.938534, 1.47726, 0.8255, [2]float64{0.8262, 0.0034}, [2]float64{0.8261, 0.0032}},
	{2, 69, 0.0080633, 1.46104, 3.12454, 0.8162, [2]float64{0.8195, 0.0052}, [2]float64{0.8228, 0.0038}},
	{3, 96, 0.00215408, 0.687633, 6.81855, 0.7583, [2]float64{0.7563, 0.0040}, [2]float64{0.7539, 0.0000}},
	{2, 45, 0.00819899, 0.810957, 3.18124, 0.8187, [2]float64{0.8124, 0.0070}, [2]float64{0.8164, 0.0054}},
	{4, 46, 0.00908943, 1.83838, 3.02334, 0.8187, [2]float64{0.8221, 0.0075}, [2]float64{0.8233, 0.0062}},
	{3, 76, 0.00558727, 0.144121, 2.75943, 0.7981, [2]float64{0.7910, 0.0064}, [2]float64{0.7897, 0.0057}},
	{3, 85, 0.00234387, 1.04887, 2.90189, 0.7925, [2]float64{0.7932, 0.0063}, [2]float64{0.7935, 0.0047}},
	{2, 44, 0.0029064, 0.452141, 6.79716, 0.7545, [2]float64{0.7543, 0.0013}, [2]float64{0.7539, 0.0000}},
	{3, 79, 0.00458331, 1.29846, 2.88316, 0.8193, [2]float64{0.8204, 0.0048}, [2]float64{0.8226, 0.0036}},
	{2, 66, 0.00471477, 0.124445, 2.24778, 0.7670, [2]float64{0.7682, 0.0077}, [2]float64{0.7645, 0.0051}},
	{4, 39, 0.00233333, 0.409947, 5.06368, 0.7651, [2]float64{0.7601, 0.0057}, [2]float64{0.7567, 0.0026}},
	{3, 86, 0.00732819, 1.1958, 6.92249, 0.8031, [2]float64{0.8092, 0.0082}, [2]float64{0.8096, 0.0087}},
	{3, 63, 0.00369689, 1.59849, 4.4788, 0.8100, [2]float64{0.8042, 0.0073}, [2]float64{0.8120, 0.0068}},
	{3, 85, 0.00303593, 1.74035, 6.47447, 0.7882, [2]float64{0.7847, 0.0099}, [2]float64{0.7902, 0.0089}},
	{3, 69, 0.00564895, 1.14163, 1.83747, 0.8243, [2]float64{0.8268, 0.0038}, [2]float64{0.8279, 0.0034}},
	{2, 93, 0.00536498, 0.115174, 1.11626, 0.7988, [2]float64{0.8002, 0.0055}, [2]float64{0.7990, 0.0031}},
	{3, 73, 0.00553975, 0.160067, 3.91749, 0.7688, [2]float64{0.7773, 0.0067}, [2]float64{0.7732, 0.0069}},
}

// TestAdultAdam compares the mean accuracy over 40 runs with the reference, within three
// standard errors of the difference of two means and the rounding of the table.
func TestAdultAdam(t *testing.T) {
	const runs = 40
	train, test := adult(t, dataset.Division{Split: dataset.SplitPublished})
	outside := 0
	for _, initialization := range []model.Initialization{model.InitializePublished, model.InitializeZero} {
		made, err := New(&dataset.Parts{Train: train, Test: test}, Options{Optimizer: Adam, Initialization: initialization})
		require.NoError(t, err)
		var squared, count float64
		for i, tt := range adamReference {
			m, err := made.Train(t.Context(), trainer.Run{
				Parameters: trainer.Parameters{
					ParameterEpochs: tt.epochs, ParameterLotSize: tt.lotSize, ParameterLearningRate: tt.rate,
					ParameterClippingNorm: tt.clippingNorm, ParameterNoiseMultiplier: tt.noiseMultiplier,
				},
				Replicates: runs,
				Seed:       new(uint64(1)),
			}, nil)
			require.NoError(t, err)
			want := tt.zero
			if initialization == model.InitializePublished {
				want = tt.published
			}
			errorRate, deviation := stat.MeanStdDev(m.Metrics[MetricError], nil)
			accuracy := 1 - errorRate
			standardError := math.Sqrt((deviation*deviation + want[1]*want[1]) / runs)
			if math.Abs(accuracy-want[0]) > 3*standardError+1e-4 {
				t.Errorf("%s, configuration %d: accuracy %.4f (deviation %.4f), want %.4f (%.4f)",
					initialization, i, accuracy, deviation, want[0], want[1])
			}
			if standardError > 1e-4 {
				z := (accuracy - want[0]) / standardError
				squared += z * z
				count++
			}
			if initialization == model.InitializePublished {
				low, high := extremes(m.Metrics[MetricError])
				if tt.stored < 1-high-1e-4 || tt.stored > 1-low+1e-4 {
					outside++
				}
			}
		}
		// Together the differences are no larger than chance makes them: their squares
		// are χ² with as many degrees of freedom as there are differences.
		t.Logf("%s: mean square of %v differences in standard errors: %.2f", initialization, count, squared/count)
		if squared > count+4*math.Sqrt(2*count) {
			t.Errorf("%s: the mean square of %v differences is %v standard errors, want about 1", initialization, count, squared/count)
		}
	}
	// One more run falls outside of 40 with probability 2/41.
	t.Logf("%d of %d stored accuracies lie outside of the range of 40 runs", outside, len(adamReference))
	if outside > 9 {
		t.Errorf("%d of %d stored accuracies lie outside of the range of 40 runs, want about 3", outside, len(adamReference))
	}
}

func extremes(values []float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	return low, high
}
