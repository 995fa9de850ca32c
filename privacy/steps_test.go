package privacy

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

func TestStepsPerEpoch(t *testing.T) {
	// Halves follow Avent et al.'s code, which rounds half to even.
	for _, tc := range []struct{ n, m, want int64 }{
		{30956, 8, 3870}, {30956, 128, 242}, {60000, 64, 938}, {60000, 192, 312}, {60000, 320, 188},
		{60000, 960, 62}, {60000, 1600, 38}, {10, 10, 1}, {10, 9, 1}, {1, 1, 1}, {1000000000, 1, 1000000000},
	} {
		if got, err := StepsPerEpoch(tc.n, tc.m); err != nil || got != tc.want {
			t.Errorf("StepsPerEpoch(%d, %d) = %d, %v, want %d", tc.n, tc.m, got, err, tc.want)
		}
	}
	if got, err := Steps(30956, 128, 10); err != nil || got != 2420 {
		t.Errorf("Steps = %d, %v", got, err)
	}
	for _, tc := range []struct {
		n, m, epochs int64
		field        string
	}{
		{0, 1, 1, "dataset_size"}, {5, 0, 1, "batch_size"}, {5, 6, 1, "batch_size"},
		{5, 1, -1, "epochs"}, {5, 1, math.MaxInt64, "epochs"},
	} {
		_, err := Steps(tc.n, tc.m, tc.epochs)
		if fe := FieldErrors(err); len(fe) != 1 || fe[0].Field != tc.field {
			t.Errorf("Steps(%d, %d, %d): %v", tc.n, tc.m, tc.epochs, err)
		}
	}
}

// Each convention is the one of its tool's source: Opacus takes 1/len(loader) and len(loader)
// steps an epoch for loaders of PyTorch, whose length is ⌈n/m⌉; TensorFlow Privacy takes
// batch_size/n and ceil(epochs·n/batch_size).
func TestConventions(t *testing.T) {
	for _, tc := range []struct {
		c            Convention
		n, m, epochs int64
		q            float64
		steps        int64
	}{
		{RoundedEpochs, 1000, 700, 10, 0.7, 10}, {OpacusEpochs, 1000, 700, 10, 0.5, 20}, {TensorFlowEpochs, 1000, 700, 10, 0.7, 15},
		{RoundedEpochs, 60000, 256, 10, 256.0 / 60000, 2340}, {OpacusEpochs, 60000, 256, 10, 1.0 / 235, 2350}, {TensorFlowEpochs, 60000, 256, 10, 256.0 / 60000, 2344},
		{RoundedEpochs, 10, 10, 3, 1, 3}, {OpacusEpochs, 10, 10, 3, 1, 3}, {TensorFlowEpochs, 10, 10, 3, 1, 3},
		{TensorFlowEpochs, math.MaxInt64, 2, 2, 2 / float64(math.MaxInt64), math.MaxInt64},
	} {
		q, err := tc.c.SamplingProbability(tc.n, tc.m)
		if err != nil || q != tc.q {
			t.Errorf("%+v: probability %g, %v", tc, q, err)
		}
		if steps, err := tc.c.Steps(tc.n, tc.m, tc.epochs); err != nil || steps != tc.steps {
			t.Errorf("%+v: %d steps, %v", tc, steps, err)
		}
	}
	rng := rand.New(rand.NewPCG(19, 4))
	for range 2000 {
		n := 1 + rng.Int64N(1<<rng.IntN(40))
		m, epochs := 1+rng.Int64N(n), 1+rng.Int64N(1<<rng.IntN(20))
		fraction := big.NewRat(n, m) // lots in the data
		total := new(big.Rat).Mul(fraction, big.NewRat(epochs, 1))
		opacus, err1 := OpacusEpochs.Steps(n, m, epochs)
		q, err2 := OpacusEpochs.SamplingProbability(n, m)
		google, err3 := TensorFlowEpochs.Steps(n, m, epochs)
		if err1 != nil || err2 != nil || err3 != nil {
			t.Fatal(err1, err2, err3)
		}
		// The least whole numbers that are not below n/m and epochs·n/m.
		loader := opacus / epochs
		least := func(k int64, x *big.Rat) bool {
			return big.NewRat(k, 1).Cmp(x) >= 0 && big.NewRat(k-1, 1).Cmp(x) < 0
		}
		if opacus%epochs != 0 || !least(loader, fraction) || q != 1/float64(loader) || !least(google, total) {
			t.Errorf("%d epochs of %d records in lots of %d: %d steps with probability %g, %d steps", epochs, n, m, opacus, q, google)
		}
	}
	for _, c := range []Convention{RoundedEpochs, OpacusEpochs, TensorFlowEpochs} {
		for _, tc := range []struct {
			n, m, epochs int64
			field        string
		}{{0, 1, 1, "dataset_size"}, {5, 6, 1, "batch_size"}, {5, 1, -1, "epochs"}, {5, 1, math.MaxInt64, "epochs"}} {
			if _, err := c.Steps(tc.n, tc.m, tc.epochs); len(FieldErrors(err)) != 1 || FieldErrors(err)[0].Field != tc.field {
				t.Errorf("%d: %+v: %v", c, tc, err)
			}
		}
		if _, err := c.SamplingProbability(5, 6); len(FieldErrors(err)) != 1 {
			t.Errorf("%d: lots of more than the data: %v", c, err)
		}
	}
}
