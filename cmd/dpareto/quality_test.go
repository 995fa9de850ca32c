//go:build long

package main

import (
	"strconv"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset/datasettest"
)

// seeds is the number of demos whose mean counts.
const seeds = 5

// TestFrontQuality measures how good the fronts of the demos are, over several seeds.
func TestFrontQuality(t *testing.T) {
	t.Run("svt", func(t *testing.T) {
		// Random search reaches about 1.43, the paper's method 1.512, the exact front 1.541.
		measure(t, 1.50, func(o demoOutput) float64 { return o.Hypervolume }, "--study", "svt", "--trials", "64")
	})
	t.Run("adult-variance", func(t *testing.T) {
		folder := datasettest.Folder(t, "adult")
		// The 3⁵ grid of the paper has 8.365 after 243 runs on the same division.
		measure(t, 8.365, func(o demoOutput) float64 { return o.ObservedHypervolume },
			"--study", "adult-variance", "--trials", "80", "--data-dir", folder)
	})
}

// measure runs a demo with all seeds and compares the mean of a value with what it must
// be at least.
func measure(t *testing.T, atLeast float64, value func(demoOutput) float64, args ...string) {
	t.Helper()
	var values []float64
	for seed := 1; seed <= seeds; seed++ {
		out, _ := demo(t, append(args, "--seed", strconv.Itoa(seed))...)
		t.Logf("seed %d: %d trials, %d points on the front, hypervolume of the reported front %.4f, of the observed one %.4f",
			seed, out.Trials, len(out.Front), out.Hypervolume, out.ObservedHypervolume)
		if out.Generated {
			t.Fatal("generated data")
		}
		values = append(values, value(out))
	}
	mean, deviation := stat.MeanStdDev(values, nil)
	t.Logf("mean %.4f ± %.4f, want at least %g", mean, deviation, atLeast)
	if mean < atLeast {
		t.Errorf("mean %.4f, want at least %g", mean, atLeast)
	}
}
