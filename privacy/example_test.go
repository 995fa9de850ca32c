package privacy_test

import (
	"fmt"
	"log"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/adaptive"
)

// The same training run by the tightest accountant and by the one of Avent et al.
func ExampleEpsilon() {
	m := privacy.FixedSizeGaussian{DatasetSize: 30956, BatchSize: 128, NoiseMultiplier: 1}
	steps, err := privacy.Steps(m.DatasetSize, m.BatchSize, 10)
	if err != nil {
		log.Fatal(err)
	}
	for _, a := range []privacy.Accountant{privacy.Exact{}, privacy.RDP{Conversion: privacy.Classic}} {
		g, err := privacy.Epsilon(a, m, steps, 1e-5)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(g)
	}
	// Output:
	// (1.34018, 1e-05)-DP, replace_one, 2420 steps, exact
	// (2.53557, 1e-05)-DP, replace_one, 2420 steps, rdp_classic
}

// The noise for a target.
func ExampleCalibrateNoise() {
	sigma, g, err := privacy.CalibrateNoise(privacy.Exact{}, func(noise float64) privacy.Mechanism {
		return privacy.FixedSizeGaussian{DatasetSize: 30956, BatchSize: 128, NoiseMultiplier: noise}
	}, 2420, 1, 1e-5)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.4f %s\n", sigma, g)
	// Output:
	// 1.1724 (1, 1e-05)-DP, replace_one, 2420 steps, exact
}

// ε after every second epoch of a run.
func ExampleTrajectory() {
	m := privacy.FixedSizeGaussian{DatasetSize: 30956, BatchSize: 128, NoiseMultiplier: 1}
	gs, err := privacy.Trajectory(privacy.Exact{}, m, []int64{2 * 242, 4 * 242, 6 * 242}, 1e-5)
	if err != nil {
		log.Fatal(err)
	}
	for _, g := range gs {
		fmt.Printf("%d steps: %.3f\n", g.Steps, g.Epsilon)
	}
	// Output:
	// 484 steps: 0.587
	// 968 steps: 0.828
	// 1452 steps: 1.022
}

// What runs have cost that are chosen one after another, without a budget.
func ExampleOdometer() {
	odometer, err := adaptive.NewOdometer(1e-5, privacy.ReplaceOne)
	if err != nil {
		log.Fatal(err)
	}
	for _, noise := range []float64{8, 4, 2} {
		m := privacy.Gaussian{Sensitivity: 1, StandardDeviation: noise, Neighbours: privacy.ReplaceOne}
		if _, err := odometer.Spend(m, 1); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(odometer.Guarantee())
	// Output:
	// (3.27536, 1e-05)-DP, replace_one, 3 steps, rdp_odometer
}

// A smooth ε for a search, here over the batch size at ten epochs, and the exact value
// of what it finds.
func ExampleInterpolant() {
	const records = 30956
	smooth, err := privacy.InterpolateFixedSize(privacy.Exact{}, 1e-5, 10)
	if err != nil {
		log.Fatal(err)
	}
	for _, batch := range []float64{100, 200, 400} {
		fmt.Printf("%.0f: %.2f\n", batch, smooth.Epsilon(batch/records, 1, 10*records/batch))
	}
	// Output:
	// 100: 1.17
	// 200: 1.72
	// 400: 2.54
}
