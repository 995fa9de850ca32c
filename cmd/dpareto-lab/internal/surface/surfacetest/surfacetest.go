// Package surfacetest writes made-up tables for tests, whose surface is known in closed form.
package surfacetest

import (
	"encoding/csv"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
)

// Name is the surface whose domain and numbers of records the made-up tables have.
const Name = "breast-cancer-logistic-sgd"

// rows is the number of training records of the surface.
const rows = 455

// Noise is the standard deviation of the logit of the error of one run.
const Noise = 0.05

// Logit returns the logit of the error after some epochs: a bowl in the logarithm of the path length
// R = ηCT, and a rise with the noise-to-path ratio ν = 2σ/(m√T).
func Logit(epochs, lotSize, learningRate, clippingNorm, noiseMultiplier float64) float64 {
	steps := epochs * math.RoundToEven(rows/lotSize)
	path := math.Log(learningRate * clippingNorm * steps)
	ratio := math.Log(2 * noiseMultiplier / (lotSize * math.Sqrt(steps)))
	return -1.5 + 0.02*(path-1)*(path-1) + 0.2*math.Log1p(math.Exp(ratio+3))
}

// Error returns the error of a logit.
func Error(logit float64) float64 { return 1 / (1 + math.Exp(-logit)) }

// Write writes a table of random configurations with one run each to a new folder and returns the
// folder. Errors are not rounded to a number of records.
func Write(t testing.TB, configurations int) string {
	t.Helper()
	folder := t.TempDir()
	out, err := os.Create(filepath.Join(folder, Name+".csv"))
	require.NoError(t, err)
	defer out.Close() //nolint:errcheck // writing is checked
	w := csv.NewWriter(out)
	write := func(row ...string) {
		require.NoError(t, w.Write(row))
	}
	write("run", "epochs", "lot_size", "learning_rate", "clipping_norm", "noise_multiplier", "epoch", "error", "epsilon")
	rng := rand.New(rand.NewPCG(5, 5))
	draw := func(least, most float64) float64 { return least * math.Pow(most/least, rng.Float64()) }
	text := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	for run := range configurations {
		epochs, lot := math.Round(draw(1, 64)), math.Round(draw(8, 128))
		rate, clip, sigma := draw(5e-4, 0.5), draw(0.1, 4), draw(0.1, 16)
		noise := Noise * rng.NormFloat64()
		for epoch := 1.0; epoch <= epochs; epoch++ {
			failed := Error(Logit(epoch, lot, rate, clip, sigma) + noise)
			write(strconv.Itoa(run), text(epochs), text(lot), text(rate), text(clip), text(sigma), text(epoch), text(failed), "ignored")
		}
	}
	w.Flush()
	require.NoError(t, w.Error())
	return folder
}
