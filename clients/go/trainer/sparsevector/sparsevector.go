package sparsevector

import (
	"context"
	"math"
	"time"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/random"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/noise"
)

// Name under which the trainer is registered.
const Name = "sparse-vector"

// Names of the parameters and of the metric.
const (
	ParameterCutoff     = "cutoff"      // C, int64, at least 1
	ParameterNoiseScale = "noise_scale" // b, between 1e-100 and 1e100
	MetricError         = "error"       // 1 − F₁, to be minimised
)

// The task of the paper.
const (
	queries   = 100
	positives = 10
)

// streamSparseVector separates the random streams of this trainer from others derived
// from the same seed.
const streamSparseVector = 0x5e1ec7

// Trainer implements trainer.PrivateTrainer.
type Trainer struct{}

var _ trainer.PrivateTrainer = Trainer{}

// Definition describes the trainer to a registry. It has no settings.
func Definition() trainer.Definition {
	return trainer.Definition{
		Name:    Name,
		Summary: "sparse vector technique on 100 queries, 10 of them above the threshold; no data needed",
		New: func(context.Context, trainer.Options) (trainer.Trainer, error) {
			return Trainer{}, nil
		},
		Declare: func(context.Context, trainer.Options) (trainer.Declaration, error) {
			return declaration(), nil
		},
	}
}

// declaration declares the example of the paper (§3.3).
func declaration() trainer.Declaration {
	return trainer.Declaration{
		Parameters: []trainer.ParameterDeclaration{
			{
				Name: ParameterCutoff, Usage: "positive answers after which the mechanism stops",
				Integer: true, Min: 1, Max: 30, Logarithmic: true,
			},
			{
				Name: ParameterNoiseScale, Usage: "noise, shared by the threshold and the queries",
				Min: 1e-2, Max: 1e2, Logarithmic: true,
			},
		},
		Metrics: []trainer.MetricDeclaration{{
			Name: MetricError, Usage: "1 − F₁ of the answers", Unit: "ratio",
			Objective: true, Transform: trainer.TransformLogit, SampleSize: positives,
		}},
		Privacy: &trainer.PrivacyDeclaration{
			Mechanism: "sparse_vector",
			Fields:    map[string]string{"cutoff": ParameterCutoff, "noise_scale": ParameterNoiseScale},
			Adjacency: "REPLACE_ONE",
		},
	}
}

// Name implements trainer.Trainer.
func (Trainer) Name() string { return Name }

// Mechanism implements trainer.PrivateTrainer: a privacy.SparseVector under replace-one
// adjacency.
func (Trainer) Mechanism(p trainer.Parameters) (privacy.Mechanism, error) {
	cutoff, noiseScale, err := parse(p)
	if err != nil {
		return nil, err
	}
	return privacy.SparseVector{Cutoff: cutoff, NoiseScale: noiseScale, Neighbours: privacy.ReplaceOne}, nil
}

// Train implements trainer.Trainer. There are no checkpoints.
func (Trainer) Train(ctx context.Context, run trainer.Run, _ trainer.Report) (trainer.Measurement, error) {
	start := time.Now()
	if err := run.Validate(); err != nil {
		return trainer.Measurement{}, err
	}
	cutoff, noiseScale, err := parse(run.Parameters)
	if err != nil {
		return trainer.Measurement{}, err
	}
	errs := make([]float64, run.Replicates)
	for r := range errs {
		if err := ctx.Err(); err != nil {
			return trainer.Measurement{}, err
		}
		s, source := random.Open(run.Seed, r, streamSparseVector, 0), noise.System()
		if run.Seed != nil {
			source = noise.Seeded(s.Uint64())
		}
		errs[r] = simulate(cutoff, noiseScale, s, source)
	}
	return trainer.Measurement{
		Step:    1,
		Metrics: map[string][]float64{MetricError: errs},
		Elapsed: time.Since(start),
	}, nil
}

func parse(p trainer.Parameters) (cutoff int64, noiseScale float64, err error) {
	if err = p.Only(ParameterCutoff, ParameterNoiseScale); err != nil {
		return 0, 0, err
	}
	if cutoff, err = p.IntIn(ParameterCutoff, 1, math.MaxInt64); err != nil {
		return 0, 0, err
	}
	noiseScale, err = p.FloatWhere(ParameterNoiseScale, "a number between 1e-100 and 1e100", func(v float64) bool { return v >= 1e-100 && v <= 1e100 })
	return cutoff, noiseScale, err
}

// simulate runs the mechanism once and returns 1 − F₁. The answers come from s, the noise from
// the source.
func simulate(cutoff int64, noiseScale float64, s *random.Stream, source *noise.Source) float64 {
	b1, b2 := split(cutoff, noiseScale)
	threshold := source.Laplace(0.5, b1)
	var selected int64
	truePositives, left := 0, positives
	for i := 0; i < queries && selected < cutoff; i++ {
		// The positives left are spread evenly over the queries left.
		answer := 0.0
		if int(s.Uint32N(uint32(queries-i))) < left {
			answer = 1
			left--
		}
		if source.Laplace(answer, b2) >= threshold {
			selected++
			truePositives += int(answer)
		}
	}
	// F₁ = 2TP / (2TP + FP + FN), where TP + FP = selected and TP + FN = positives.
	// It is 0 when nothing is selected, since there always are positives.
	return 1 - 2*float64(truePositives)/float64(selected+positives)
}

// split divides the noise scale b into b₁ of the threshold and b₂ of the queries.
func split(cutoff int64, noiseScale float64) (b1, b2 float64) {
	return privacy.SparseVector{Cutoff: cutoff, NoiseScale: noiseScale}.Split()
}
