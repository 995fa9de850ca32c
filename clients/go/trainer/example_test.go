package trainer_test

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/builtin"
	"github.com/dpareto/dpareto/clients/go/trainer/random"
	"github.com/dpareto/dpareto/privacy"
)

// noisyMean "trains" the mean of people's numbers between 0 and 1, with Laplace noise.
type noisyMean struct{ people int }

// streamNoise sets the noise of noisyMean apart from other streams of the same seed.
const streamNoise = 0x3ea1_0001

func (noisyMean) Name() string { return "noisy-mean" }

func (noisyMean) parse(p trainer.Parameters) (scale float64, err error) {
	if err := p.Only("noise_scale"); err != nil {
		return 0, err
	}
	return p.Positive("noise_scale")
}

// Mechanism implements trainer.PrivateTrainer: another number moves the mean by 1/n.
func (t noisyMean) Mechanism(p trainer.Parameters) (privacy.Mechanism, error) {
	scale, err := t.parse(p)
	if err != nil {
		return nil, err
	}
	return privacy.Laplace{Sensitivity: 1 / float64(t.people), Scale: scale, Neighbours: privacy.ReplaceOne}, nil
}

// Train implements trainer.Trainer. The error of a mean is the size of its noise.
func (t noisyMean) Train(ctx context.Context, run trainer.Run, _ trainer.Report) (trainer.Measurement, error) {
	start := time.Now()
	if err := run.Validate(); err != nil {
		return trainer.Measurement{}, err
	}
	scale, err := t.parse(run.Parameters)
	if err != nil {
		return trainer.Measurement{}, err
	}
	errs := make([]float64, run.Replicates)
	for r := range errs {
		if err := ctx.Err(); err != nil {
			return trainer.Measurement{}, err
		}
		s := random.Open(run.Seed, r, streamNoise, 0)
		errs[r] = math.Abs(scale * (s.Exponential() - s.Exponential()))
	}
	return trainer.Measurement{Step: 1, Metrics: map[string][]float64{"error": errs}, Elapsed: time.Since(start)}, nil
}

func (t noisyMean) declaration() trainer.Declaration {
	return trainer.Declaration{
		Parameters: []trainer.ParameterDeclaration{{
			Name: "noise_scale", Usage: "scale of the noise on the mean", Min: 1e-4, Max: 1, Logarithmic: true,
		}},
		Metrics: []trainer.MetricDeclaration{{
			Name: "error", Usage: "distance of the noisy mean from the mean",
			Objective: true, Transform: trainer.TransformLog, Reference: 1,
		}},
		Privacy: &trainer.PrivacyDeclaration{
			Mechanism: "laplace",
			Fields:    map[string]string{"sensitivity": "1.0 / " + strconv.Itoa(t.people) + ".0", "scale": "noise_scale"},
			Adjacency: "REPLACE_ONE",
		},
	}
}

// newNoisyMean makes the trainer from its settings.
func newNoisyMean(options trainer.Options) (noisyMean, error) {
	people, err := options.Settings.Int("people", 1, 1000)
	return noisyMean{people}, err
}

func noisyMeanDefinition() trainer.Definition {
	return trainer.Definition{
		Name:     noisyMean{}.Name(),
		Summary:  "the mean of numbers between 0 and 1 with Laplace noise",
		Settings: []trainer.Setting{{Name: "people", Default: "1000", Usage: "how many numbers there are, at least 1"}},
		New: func(_ context.Context, options trainer.Options) (trainer.Trainer, error) {
			return newNoisyMean(options)
		},
		Declare: func(_ context.Context, options trainer.Options) (trainer.Declaration, error) {
			t, err := newNoisyMean(options)
			return t.declaration(), err
		},
	}
}

// A trainer of one's own beside the built-in ones.
func Example() {
	registry := builtin.Registry()
	registry.Register(noisyMeanDefinition())

	ctx := context.Background()
	t, err := registry.New(ctx, "noisy-mean", trainer.Options{Settings: trainer.Settings{"people": "500"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, scale := range []float64{0.002, 0.02} {
		parameters := trainer.Parameters{"noise_scale": scale}
		mechanism, err := t.(trainer.PrivateTrainer).Mechanism(parameters)
		if err != nil {
			fmt.Println(err)
			return
		}
		guarantee, err := privacy.Epsilon(privacy.Pure{}, mechanism, 1, 0)
		if err != nil {
			fmt.Println(err)
			return
		}
		m, err := t.Train(ctx, trainer.Run{Parameters: parameters, Replicates: 1000, Seed: new(uint64(1))}, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		var sum float64
		for _, e := range m.Metrics["error"] {
			sum += e
		}
		fmt.Printf("ε = %.1f: error %.4f\n", guarantee.Epsilon, sum/1000)
	}
	_, err = t.Train(ctx, trainer.Run{Parameters: trainer.Parameters{"noise": 1.0}, Replicates: 1, Seed: new(uint64(0))}, nil)
	fmt.Println(err)
	// Output:
	// ε = 1.0: error 0.0020
	// ε = 0.1: error 0.0204
	// parameter "noise" is unknown, want one of noise_scale
}
