// Package accountants measures what one ε of each sampler costs, at random settings that other libraries also account.
package accountants

import (
	"math"
	"math/rand/v2"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/bench"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/privacy"
)

// setting is a mechanism, how often it runs, and the parameters that other libraries need. What a mechanism does not
// have is 0.
type setting struct {
	mechanism                   privacy.Mechanism
	runs                        int64
	sigma, q                    float64
	steps, epochs               int64 // of random allocation
	records, batch, users, ints int64 // numbers of records, in a physical batch and of a user, and the sensitivity
	delta                       float64
}

// Measure takes ε of settings of each sampler and returns a row for each: ε with its lower bound, and the processor
// milliseconds of a first call, with the construction of the pairs.
func Measure(settings int, seed uint64) (*output.Table, error) {
	table := &output.Table{Columns: []string{
		"mechanism", "sigma", "q", "runs", "steps", "epochs", "records", "batch", "users", "sensitivity", "delta", "epsilon_lower", "epsilon", "milliseconds",
	}}
	for i, draw := range []func(rng *rand.Rand, s *setting){allocation, poisson, truncated, bandMF, fixedSize, user, discreteGaussian, discreteLaplace} {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		for n := -1; n < settings; n++ { // the first warms caches up
			s := setting{sigma: 0.6 * math.Pow(8, rng.Float64()), delta: math.Pow(10, -4-5*rng.Float64()), runs: whole(rng, 100, 5000)}
			draw(rng, &s)
			before := bench.ProcessorTime()
			g, err := privacy.Epsilon(privacy.Exact{}, s.mechanism, s.runs, s.delta)
			after := bench.ProcessorTime()
			if err != nil {
				return nil, err
			}
			if n >= 0 {
				table.Rows = append(table.Rows, []any{
					s.mechanism.Name(), s.sigma, s.q, s.runs, s.steps, s.epochs, s.records, s.batch, s.users, s.ints, s.delta,
					g.EpsilonLower, g.Epsilon, 1e3 * (after - before).Seconds(),
				})
			}
		}
	}
	return table, nil
}

// whole returns a number of [least, most], by its logarithm.
func whole(rng *rand.Rand, least, most float64) int64 {
	return int64(least * math.Pow(most/least, rng.Float64()))
}

func allocation(rng *rand.Rand, s *setting) {
	s.runs, s.steps, s.epochs = 1, whole(rng, 20, 500), whole(rng, 1, 10)
	s.mechanism = privacy.RandomAllocation{Steps: s.steps, Picks: 1, NoiseMultiplier: s.sigma, Epochs: s.epochs, Neighbours: privacy.AddRemove}
}

func poisson(rng *rand.Rand, s *setting) {
	s.q = 0.001 * math.Pow(50, rng.Float64())
	s.mechanism = privacy.PoissonGaussian{SamplingProbability: s.q, NoiseMultiplier: s.sigma, Neighbours: privacy.AddRemove}
}

func truncated(rng *rand.Rand, s *setting) {
	s.records, s.q = 50_000, 0.002*math.Pow(10, rng.Float64())
	mean := s.q * float64(s.records)
	s.batch = int64(mean + (1+5*rng.Float64())*math.Sqrt(mean))
	s.mechanism = privacy.TruncatedPoissonGaussian{
		DatasetSize: s.records, PhysicalBatch: s.batch, SamplingProbability: s.q, NoiseMultiplier: s.sigma, Neighbours: privacy.AddRemove,
	}
}

func bandMF(rng *rand.Rand, s *setting) {
	poisson(rng, s)
	s.mechanism = privacy.BandMF{Bands: 8, SamplingProbability: s.q, NoiseMultiplier: s.sigma, Neighbours: privacy.AddRemove}
}

func fixedSize(rng *rand.Rand, s *setting) {
	s.records, s.batch = 50_000, whole(rng, 50, 1000)
	s.sigma *= 2 // relative to the clipping norm
	s.mechanism = privacy.FixedSizeAddRemoveGaussian{DatasetSize: s.records, BatchSize: s.batch, NoiseMultiplier: s.sigma}
}

func user(rng *rand.Rand, s *setting) {
	s.q, s.users = 0.001*math.Pow(10, rng.Float64()), whole(rng, 2, 16)
	s.runs = whole(rng, 50, 500)
	s.mechanism = privacy.UserPoissonGaussian{RecordsPerUser: s.users, SamplingProbability: s.q, NoiseMultiplier: s.sigma}
}

func discreteGaussian(rng *rand.Rand, s *setting) {
	s.runs, s.ints, s.sigma = whole(rng, 1, 30), whole(rng, 1, 5), s.sigma*10
	s.mechanism = privacy.DiscreteGaussian{Sensitivity: s.ints, Sigma: s.sigma, Neighbours: privacy.AddRemove}
}

func discreteLaplace(rng *rand.Rand, s *setting) {
	s.runs, s.ints, s.sigma = whole(rng, 1, 30), whole(rng, 1, 5), s.sigma*10
	s.mechanism = privacy.DiscreteLaplace{Sensitivity: s.ints, Scale: s.sigma, Neighbours: privacy.AddRemove}
}
