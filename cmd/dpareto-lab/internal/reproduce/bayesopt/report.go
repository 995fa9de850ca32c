package bayesopt

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce/machine"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/cmd/internal/plot"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/bayesopt"
	"github.com/dpareto/dpareto/privacy/selection"
)

// Of the comparison.
const (
	evaluations = 50   // T of Algorithm 1
	delta       = 1e-6 // of Algorithm 1
	lipschitz   = 0.25 // of the validation score in Algorithm 3, as of a sigmoid

	noiseOfChoice = 0.1 // σ of Algorithm 1
)

// Cells of tables: a method, and what some methods release.
const (
	algorithm1  = "Algorithm 1"
	bestUtility = "best utility"
)

// epsilons are the values of ε of the comparison.
var epsilons = []float64{0.1, 1}

// results are all numbers of the experiment.
type results struct {
	experiment *Experiment
	places     [][2]float64 // of the candidates, in the unit square
	kernel     *mat.SymDense
	gain       float64   // an upper bound of the information gain of Algorithm 1
	machines   *machines // and what follows needs data
	estimates  []estimate
	utilities  []float64 // on the validation set of the comparison
}

// estimate is one estimate of k_1.
type estimate struct {
	size             int
	noise, deviation float64
	paper, fine      bayesopt.CorrelationEstimate
}

func (r *results) report(ctx context.Context) (*reproduce.Result, error) {
	noises, err := r.noises()
	if err != nil {
		return nil, err
	}
	comparison, err := r.comparison()
	if err != nil {
		return nil, err
	}
	loop, err := r.loop(ctx)
	if err != nil {
		return nil, err
	}
	return &reproduce.Result{
		Report: output.Report{
			Title: r.title(),
			Notes: []string{
				fmt.Sprintf("%s, trained on %d records. Their accuracies on validation sets that are drawn from the other records are functions of the raw data.",
					r.machines.description, r.experiment.TrainRows),
				"Figure 1 of the paper is of Forest: 100 machines trained on 36,603 records. What differs here is the dataset, the number of records of a training, and the ranges of the hyperparameters.",
			},
			Sections: []output.Section{r.correlations(), comparison, loop, noises},
		},
	}, nil
}

// title names the subject of the experiment.
func (r *results) title() string {
	title := "Differentially private Bayesian optimisation (Kusner et al. 2015) on " + r.experiment.Dataset
	if r.experiment.Generated {
		title += ", " + output.GeneratedLabel
	}
	return title
}

// reportWithoutData has what depends on no record. The line says what is missing.
func (r *results) reportWithoutData(missing string) (*reproduce.Result, error) {
	noises, err := r.noises()
	if err != nil {
		return nil, err
	}
	return &reproduce.Result{
		Report:  output.Report{Title: r.title(), Sections: []output.Section{r.correlations(), noises}},
		Missing: []string{missing},
	}, nil
}

// The paper's Figure 1: the most likely k₁ of every size of its validation sets from Forest.
var (
	paperSizes       = []int64{1000, 2000, 3000, 5000, 15000}
	paperCorrelation = 0.95
)

func (r *results) correlations() output.Section {
	t := &output.Table{Columns: []string{"dataset", "records", "noise", "prior_deviation", "k1_on_the_papers_grid", "k1", "1-k1", "at_edge"}}
	for _, e := range r.estimates {
		t.Rows = append(t.Rows, []any{
			r.experiment.Dataset, int64(e.size), e.noise, e.deviation, e.paper.Correlation, e.fine.Correlation, 1 - e.fine.Correlation, strconv.FormatBool(e.fine.AtEdge),
		})
	}
	for _, size := range paperSizes {
		t.Rows = append(t.Rows, []any{dataset.NameCovertype + ", published", size, nil, nil, paperCorrelation, nil, nil, nil})
	}
	notes := ""
	if r.experiment.Dataset != dataset.NameCovertype {
		t.Rows = append(t.Rows, []any{dataset.NameCovertype + ", not run", nil, nil, nil, nil, nil, nil, nil})
		notes = fmt.Sprintf(" The paper's dataset is Forest, %s here: --dataset %s --train-rows 36603 runs its experiment, with the files from --data-dir.", dataset.NameCovertype, dataset.NameCovertype)
	}
	return output.Section{
		Name: "k1", Title: fmt.Sprintf("k₁ of two validation sets that differ in one record, from %d pairs", r.experiment.Pairs), Table: t,
		Notes: []string{
			r.neighbours(),
			"The most likely value on the paper's grid 0.05, 0.10, …, 0.95, where it ends, and on the grid 1 − 10^(−j/4). noise is the assumed standard deviation of the observation noise over the standard deviation of the prior; the estimate depends on it.",
			"A diagnostic: it depends on the private records, and it is an average over random neighbours where the theorems need the least value over all." + notes,
		},
	}
}

// comparison shows the results of the algorithms on one validation set.
func (r *results) comparison() (output.Section, error) {
	t := &output.Table{Columns: []string{"method", "epsilon", "delta", "releases", "noise_scale", "expected_loss", "loss_of_a_random_choice", "vacuous"}}
	m := int64(r.experiment.Records)
	mean, deviation := stat.MeanStdDev(r.utilities, nil)
	best := slices.Max(r.utilities)
	standard := make([]float64, len(r.places))
	for i, u := range r.utilities {
		standard[i] = (u - mean) / deviation
	}
	for _, epsilon := range epsilons {
		scales, err := r.algorithm1(epsilon, deviation).Scales()
		if err != nil {
			return output.Section{}, err
		}
		flipped, err := r.loss(privacy.PermuteAndFlip, r.utilities, 1/float64(m), epsilon)
		if err != nil {
			return output.Section{}, err
		}
		chosen, err := r.loss(privacy.Exponential, standard, scales.ChoiceSensitivity, epsilon)
		if err != nil {
			return output.Section{}, err
		}
		random := best - mean
		t.Rows = append(t.Rows,
			[]any{"permute-and-flip", epsilon, 0.0, "candidate", nil, flipped, random, "false"},
			[]any{algorithm1, epsilon, delta, "candidate", nil, chosen, random, strconv.FormatBool(chosen > 0.5*random)},
			[]any{algorithm1, epsilon, delta, bestUtility, scales.LaplaceScale * deviation, nil, nil, strconv.FormatBool(scales.LaplaceScale > 1)},
			[]any{"Laplace on the best of fixed candidates", epsilon, 0.0, bestUtility, 1 / (float64(m) * epsilon), nil, nil, "false"})
		if r.experiment.Linear {
			ridge := r.algorithm3(epsilon)
			t.Rows = append(t.Rows, []any{"Algorithm 3", epsilon, 0.0, bestUtility, ridge.LaplaceScale(), nil, nil, strconv.FormatBool(ridge.Vacuous())})
		}
	}
	notes := r.comparisonNotes(deviation, r.gain)
	return output.Section{
		Name: "comparison", Title: fmt.Sprintf("On one validation set of %d records, in units of the accuracy", m), Table: t,
		Notes: notes,
	}, nil
}

// comparisonNotes explains the rows of the comparison.
func (r *results) comparisonNotes(deviation, gain float64) []string {
	notes := []string{
		"The rows of Algorithm 1 are " + bayesopt.Conditional + ". The others hold in the worst case. All protect one record of the validation set, replaced, and take the training set for public.",
		fmt.Sprintf("Algorithm 1 with the errors of the paper corrected, T = %d, observation noise of %g and a prior of deviation %s in units of the accuracy; c is bounded by 1/m, not by k₁, and γ_T by %s. The losses are exact expectations over the choice, for Algorithm 1 as if the posterior means were the utilities. The prior has the mean and the deviation of the utilities, which a real user would have to know without them.",
			evaluations, noiseOfChoice, show.Number(deviation), show.Number(gain)),
	}
	if r.experiment.Linear {
		notes = append(notes, fmt.Sprintf("Algorithm 3 for a score in [0, 1] with Lipschitz constant %g, penalties from %g to %g: its noise is that for the whole range.", lipschitz, machine.LeastPenalty, machine.MostPenalty))
	}
	return notes
}

// neighbours says how the sets of a pair differ.
func (r *results) neighbours() string {
	if r.experiment.Linear {
		return "One record of a set is replaced, as in the theorems."
	}
	return "One record is added or removed, as in the paper's experiment; its theorems replace one."
}

// loss returns the expected accuracy that a private choice by scores loses.
func (r *results) loss(method privacy.SelectionMethod, scores []float64, sensitivity, epsilon float64) (float64, error) {
	probabilities, err := selection.Probabilities(method, scores, sensitivity, epsilon)
	if err != nil {
		return 0, err
	}
	best, loss := slices.Max(r.utilities), 0.0
	for i, p := range probabilities {
		loss += p * (best - r.utilities[i])
	}
	return loss, nil
}

// draw draws the likelihoods, relative to the largest of each size.
func (r *results) draw() reproduce.Picture {
	p := &plot.Curves{
		Title: "Figure 1: log likelihood of k1, relative to its maximum",
		Subtitle: []string{
			fmt.Sprintf("observation noise %g of the prior's deviation; the paper's grid ends at k1 = 0.95, which is 1.3", noises[0]),
		},
		X: "−log10(1 − k1)", Y: "log likelihood per pair and configuration",
	}
	const lowest = 6 // what is shown
	grid := bayesopt.CorrelationGrid(fineGrid)
	scale := float64(r.experiment.Pairs * len(r.places))
	for _, e := range r.estimates {
		if e.noise != noises[0] {
			continue
		}
		most := slices.Max(e.fine.LogLikelihoods)
		series := plot.Series{Name: fmt.Sprintf("%d records", e.size)}
		for i, k := range grid {
			y := (e.fine.LogLikelihoods[i] - most) / scale
			if y < -lowest {
				y = math.NaN() // a gap
			}
			series.X = append(series.X, -math.Log10(1-k))
			series.Y = append(series.Y, y)
		}
		p.Curves = append(p.Curves, series)
	}
	return p
}
