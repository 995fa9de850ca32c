package outputperturbation

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset/datasettest"
	"github.com/dpareto/dpareto/internal/require"
)

// published are mean errors over 50 runs of the code published with Avent et al.
// (PoPETs 2020), run without its early stopping: T = 10 epochs on their split of
// Adult, for the standard deviations of publishedDeviations.
var published = []struct {
	gamma  float64
	errors [8]float64
}{
	{0.0001, [8]float64{0.1617, 0.1621, 0.1628, 0.1656, 0.1847, 0.2452, 0.3356, 0.3832}},
	{0.001, [8]float64{0.1697, 0.1705, 0.1711, 0.1773, 0.2085, 0.2920, 0.3634, 0.4815}},
	{0.01, [8]float64{0.2081, 0.2107, 0.2075, 0.2179, 0.2750, 0.3700, 0.4213, 0.4757}},
	{0.031623, [8]float64{0.2461, 0.2432, 0.2373, 0.2375, 0.2900, 0.4139, 0.4489, 0.4656}},
	{0.1, [8]float64{0.2461, 0.2457, 0.2431, 0.2794, 0.3619, 0.4501, 0.4715, 0.4604}},
	{0.3162, [8]float64{0.2461, 0.2459, 0.2837, 0.3802, 0.4477, 0.5138, 0.4887, 0.4664}},
	{1, [8]float64{0.2461, 0.3073, 0.3791, 0.4529, 0.4643, 0.5161, 0.4917, 0.5400}},
}

var publishedDeviations = [8]float64{0, 0.1, 0.2154, 0.4642, 1, 2.154, 4.642, 10}

const publishedRuns = 50

// comparePublished trains the rows of the table and compares means within three
// standard errors of their difference. The table has four digits.
func comparePublished(t *testing.T, rows []int, runs int) {
	t.Helper()
	adult, err := dataset.Load(t.Context(), dataset.NameAdult, dataset.Division{Split: dataset.SplitPublished},
		dataset.Source{DataDir: datasettest.Folder(t, "adult")})
	require.NoError(t, err)
	made := newTrainer(t, func(p *dataset.Parts, o *Options) {
		p.Train, p.Test, o.Projection = adult.Train, adult.Test, PublishedProjection
	})
	for _, row := range rows {
		reference := published[row]
		errs, err := made.Sweep(t.Context(), 10, reference.gamma, publishedDeviations[:], runs, 1)
		require.NoError(t, err)
		for i, sigma := range publishedDeviations {
			mean, deviation := stat.MeanStdDev(errs[i], nil)
			standard := deviation * math.Sqrt(1/float64(runs)+1.0/publishedRuns)
			t.Logf("γ = %-8v σ = %-6v error %.4f ± %.4f, published %.4f, %+.1f standard errors apart", reference.gamma, sigma,
				mean, deviation/math.Sqrt(float64(runs)), reference.errors[i], (mean-reference.errors[i])/(standard+0.00005/3))
			if math.Abs(mean-reference.errors[i]) > 3*standard+0.00005 {
				t.Errorf("γ = %v, σ = %v: error %.4f, want %.4f ± %.4f", reference.gamma, sigma, mean, reference.errors[i], standard)
			}
		}
	}
}

// TestPublishedErrors compares one row; the others take the long test.
func TestPublishedErrors(t *testing.T) {
	comparePublished(t, []int{1}, 30)
}
