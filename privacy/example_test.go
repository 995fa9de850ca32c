package privacy_test

import (
	"fmt"
	"log"

	"github.com/dpareto/dpareto/privacy"
)

// The same training run by the tightest accountant and by that of Avent et al.
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
