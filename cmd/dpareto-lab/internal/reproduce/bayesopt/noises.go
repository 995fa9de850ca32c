package bayesopt

import (
	"fmt"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce/machine"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/privacy/bayesopt"
)

// priorDeviations are standard deviations of the prior, in units of the accuracy, for which
// the noise is shown.
var priorDeviations = []float64{0.01, 0.03, 0.1}

// noises shows the noise of the releases. It depends on no record: in the other sections the
// prior's deviation is the accuracies' own, here it is assumed.
func (r *results) noises() (output.Section, error) {
	t := &output.Table{Columns: []string{
		"epsilon_claimed", "method", "prior_deviation", "sensitivity_of_choice", "epsilon_of_choice_in_the_worst_case",
		"laplace_scale", "epsilon_of_value_in_the_worst_case", "theorem_2", "theorem_4",
	}}
	records := int64(r.experiment.Records)
	for _, epsilon := range epsilons {
		t.Rows = append(t.Rows, []any{epsilon, "Laplace on the best of fixed candidates", nil, nil, nil, 1 / (float64(records) * epsilon), output.Bound(epsilon), nil, nil})
		for _, deviation := range priorDeviations {
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
			t.Rows = append(t.Rows, []any{
				epsilon, algorithm1, deviation, scales.ChoiceSensitivity * deviation, output.Bound(bayesopt.WorstCase(epsilon, scales.ChoiceSensitivity*deviation, 1)),
				scales.LaplaceScale * deviation, output.Bound(1 / (scales.LaplaceScale * deviation)), candidate.Bound * deviation, value.Bound * deviation,
			})
		}
		if r.experiment.Linear {
			ridge := r.algorithm3(epsilon)
			t.Rows = append(t.Rows, []any{epsilon, "Algorithm 3", nil, nil, nil, ridge.LaplaceScale(), output.Bound(epsilon), nil, nil})
		}
	}
	return output.Section{
		Name: "noise", Title: fmt.Sprintf("What is released with which noise, without any data: %d candidates, %d records", len(r.places), records), Table: t,
		Notes: []string{
			fmt.Sprintf("In units of the accuracy. prior_deviation is assumed. sensitivity_of_choice is how far Algorithm 1 takes the posterior means to move, laplace_scale the noise on the best value; T = %d, observation noise of %g of the prior's deviation, γ_T bounded by %s.",
				evaluations, noiseOfChoice, show.Number(r.gain)),
			"epsilon_claimed is " + bayesopt.Conditional + " for Algorithm 1, with δ = " + fmt.Sprint(delta) + ". The worst case is pure, and holds for accuracies, observations and means clipped to [0, 1], whatever the data.",
			fmt.Sprintf("Theorems 2 and 4 bound how far the mean of the released candidate and the released value are from the best accuracy, with a = %d and the errors of the paper corrected.", tail),
		},
	}, nil
}

// algorithm1 returns Algorithm 1 of the experiment, for a deviation of the prior in units of the accuracy.
func (r *results) algorithm1(epsilon, deviation float64) bayesopt.Noisy {
	return bayesopt.Noisy{
		Candidates: int64(len(r.places)), Evaluations: evaluations, Epsilon: epsilon, Delta: delta, Noise: noiseOfChoice,
		Difference: 1 / (float64(r.experiment.Records) * deviation), InformationGain: r.gain,
	}
}

// algorithm3 returns Algorithm 3 for the linear machines.
func (r *results) algorithm3(epsilon float64) bayesopt.Ridge {
	return bayesopt.Ridge{
		Records: int64(r.experiment.Records), Epsilon: epsilon, Range: 1, Lipschitz: lipschitz, Least: machine.LeastPenalty, Most: machine.MostPenalty,
	}
}
