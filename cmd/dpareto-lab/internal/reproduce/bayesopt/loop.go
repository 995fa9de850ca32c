package bayesopt

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/bayesopt"
	"github.com/dpareto/dpareto/privacy/noise"
)

// tail is a of the bounds on the utility, which fail with a probability of e⁻³ and what the prior's δ adds.
const tail = 3

// loop runs Algorithm 1 on the validation set of the comparison: the search by upper confidence
// bounds, and both releases. The utilities are in standard deviations of the prior, with the noise of
// Assumption 1 added to what is observed.
func (r *results) loop(ctx context.Context) (output.Section, error) {
	t := &output.Table{Columns: []string{
		"epsilon_claimed", "epsilon_of_choice_in_the_worst_case", "epsilon_of_value_in_the_worst_case",
		"loss_of_the_search", "loss", "loss_of_a_random_choice", "error_of_the_value", "theorem_2", "theorem_4",
	}}
	mean, deviation := stat.MeanStdDev(r.utilities, nil)
	best := slices.Max(r.utilities)
	for _, epsilon := range epsilons {
		a := r.algorithm1(epsilon, deviation)
		scales, err := a.Scales()
		if err != nil {
			return output.Section{}, err
		}
		candidate, err := a.CandidateUtility(tail)
		if err != nil {
			return output.Section{}, err
		}
		value, err := a.MaximumUtility(tail)
		if err != nil {
			return output.Section{}, err
		}
		var searched, lost, wrong float64
		for run := range r.experiment.Runs {
			means, published, err := r.once(ctx, a, mean, deviation, uint64(run))
			if err != nil {
				return output.Section{}, err
			}
			loss, err := r.loss(privacy.Exponential, means, scales.ChoiceSensitivity, epsilon)
			if err != nil {
				return output.Section{}, err
			}
			searched += best - r.utilities[floats.MaxIdx(means)]
			lost += loss
			wrong += math.Abs(published - best)
		}
		runs := float64(r.experiment.Runs)
		t.Rows = append(t.Rows, []any{
			epsilon, output.Bound(bayesopt.WorstCase(epsilon, scales.ChoiceSensitivity*deviation, 1)), output.Bound(1 / (scales.LaplaceScale * deviation)),
			searched / runs, lost / runs, best - mean, wrong / runs, candidate.Bound * deviation, value.Bound * deviation,
		})
	}
	return output.Section{
		Name: "loop", Title: fmt.Sprintf("Algorithm 1 run %d times on this validation set, in units of the accuracy", r.experiment.Runs), Table: t,
		Notes: []string{
			"epsilon_claimed is " + bayesopt.Conditional + ", with δ = " + fmt.Sprint(delta) + " for each of the two releases. The worst case is pure, and holds for accuracies, observations and means clipped to [0, 1], whatever the data: it is what has to be charged.",
			fmt.Sprintf("loss_of_the_search is the loss of the candidate with the largest posterior mean, before any noise of the release; loss is the exact expectation over the choice, given the means. Theorems 2 and 4 bound how far the mean of the released candidate and the released value are from the best accuracy, with a = %d and the errors of the paper corrected: they fail with probabilities of at most %.3g.", tail, math.Exp(-tail)+delta/2),
			"Algorithm 2 is not run: its noise needs constants A and τ, and only their existence is proved. It chooses as Algorithm 1 does.",
		},
	}, nil
}

// once runs the search, and returns the posterior means, in standard deviations of the prior, and the
// released value, in units of the accuracy. Both are clipped to accuracies in [0, 1] before the noise.
func (r *results) once(ctx context.Context, a bayesopt.Noisy, mean, deviation float64, run uint64) (means []float64, value float64, err error) {
	rng := rand.New(rand.NewPCG(r.experiment.Seed, 2000+run))
	clip := func(standard float64) float64 {
		return (min(max(mean+deviation*standard, 0), 1) - mean) / deviation
	}
	posterior, most, err := a.Search(ctx, r.kernel, func(_ context.Context, candidate int) (float64, error) {
		return (r.utilities[candidate]-mean)/deviation + a.Noise*rng.NormFloat64(), nil
	})
	if err != nil {
		return nil, 0, err
	}
	for _, m := range posterior.Mean() {
		means = append(means, clip(m))
	}
	value, _, err = a.ReleaseMaximum(noise.Seeded(r.experiment.Seed<<32+run), clip(most))
	return means, mean + deviation*value, err
}
