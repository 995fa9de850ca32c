package papers

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/mat"

	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/privacy/bayesopt"
)

// bayesianOptimizationFlags are the flags of dpareto privacy bayesian-optimization.
type bayesianOptimizationFlags struct {
	algorithm int

	noisy     bayesopt.Noisy
	deviation float64
	points    string
	kernel    string
	length    float64

	noiseFree bayesopt.NoiseFree
	ridge     bayesopt.Ridge
}

// The kernels of k2.
const (
	kernelSquaredExponential = "squared-exponential"
	kernelMatern             = "matern"
)

// BayesianOptimizationCommand returns the command privacy bayesian-optimization.
func BayesianOptimizationCommand(env *command.Env) *cobra.Command {
	out := command.NewPrinter(env)
	var f bayesianOptimizationFlags
	cmd := &cobra.Command{
		Use:   "bayesian-optimization --algorithm N",
		Short: "Compute the noise of private Bayesian optimisation",
		Long: `Computes how much noise the algorithms of "Differentially Private Bayesian Optimization"
(Kusner, Gardner, Garnett and Weinberger 2015) add, as published and with the errors of the
paper corrected. They protect one record of the validation set.

  1  releases a candidate and the best utility after optimisation by upper confidence
     bounds; conditional on a Gaussian process prior, which is no differential privacy in
     the worst case
  2  releases the best utility without observation noise; conditional as well, and on the
     unknown constants --regret-constant and --regret-rate
  3  releases the best score over the ridge penalty of a convex model; pure differential
     privacy in the worst case, and vacuous unless the penalty hardly varies

Utilities in 1 and 2 are in standard deviations of the prior. --information-gain gives the
information gain of 1. With --points instead, a CSV file with a header and a row of coordinates
for every candidate, it is bounded for the kernel on them. Without either the bound for any
kernel is used, ½·|Λ|·log(1 + T/(|Λ|σ²)).`,
		Example: `  dpareto privacy bayesian-optimization --algorithm 1 --candidates 64 --evaluations 50 \
      --epsilon 1 --delta 1e-6 --observation-noise 0.1 --correlation 0.999 --records 16281
  dpareto privacy bayesian-optimization --algorithm 3 --epsilon 1 --records 16281 --lipschitz 0.25 \
      --penalty-min 1e-4 --penalty-max 1`,
		Args: command.Args(command.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, err := f.report(cmd.Context(), cmd.Flags().Changed)
			if err != nil {
				return fieldsAsFlags(err, bayesianOptimizationNames)
			}
			return report.Write(out, out.Format)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&f.algorithm, "algorithm", 0, "algorithm of the paper: 1, 2 or 3")
	flags.Float64Var(&f.noisy.Epsilon, "epsilon", 1, "ε of one release")
	flags.Float64Var(&f.noisy.Delta, "delta", 1e-6, "δ of one release, of 1 and 2")
	flags.Int64Var(&f.ridge.Records, "records", 0, "number of validation records: bounds c of 1 with --prior-deviation; needed for 3")
	flags.Int64Var(&f.noisy.Candidates, "candidates", 0, "number of candidates, of 1 and 2")
	flags.Float64Var(&f.noisy.Correlation, "correlation", 0, "least k1 of two data sets that differ in one record, of 1 and 2")
	flags.Int64Var(&f.noisy.Evaluations, "evaluations", 0, "number of evaluations T, of 1")
	flags.Float64Var(&f.noisy.Noise, "observation-noise", 0, "standard deviation of the observation noise over the standard deviation of the prior, of 1")
	flags.Float64Var(&f.deviation, "prior-deviation", 0, "standard deviation of the prior in units of the utility, of 1; with --records the utility is taken for an accuracy")
	flags.Float64Var(&f.noisy.InformationGain, "information-gain", 0, "bound on the information gain, of 1")
	flags.StringVar(&f.points, "points", "", "file of candidates, for which the information gain of 1 is bounded")
	flags.StringVar(&f.kernel, "kernel", kernelMatern, "k2 on the candidates: "+kernelMatern+" (5/2) or "+kernelSquaredExponential)
	flags.Float64Var(&f.length, "length-scale", 0.2, "length scale of the kernel")
	flags.IntVar(&f.noiseFree.Dimension, "dimension", 0, "number of hyperparameters, of 2")
	flags.Float64Var(&f.noiseFree.A, "regret-constant", 0, "A of the regret bound, of 2")
	flags.Float64Var(&f.noiseFree.Tau, "regret-rate", 0, "τ of the regret bound, of 2")
	flags.Float64Var(&f.ridge.Range, "range", 1, "length of the range of the score, of 3")
	flags.Float64Var(&f.ridge.Lipschitz, "lipschitz", 0, "Lipschitz constant of the score in the weights, of 3")
	flags.Float64Var(&f.ridge.Least, "penalty-min", 0, "least ridge penalty, of 3")
	flags.Float64Var(&f.ridge.Most, "penalty-max", 0, "largest ridge penalty, of 3")
	out.AddFlag(cmd)
	return cmd
}

// bayesianOptimizationNames are the flags of fields that have another name.
var bayesianOptimizationNames = map[string]string{
	"noise": "observation-noise", "difference": "prior-deviation", "a": "regret-constant", "tau": "regret-rate",
	"least": "penalty-min", "most": "penalty-max",
}

// report computes the report that the flags ask for.
func (f *bayesianOptimizationFlags) report(ctx context.Context, changed func(string) bool) (*output.Report, error) {
	switch f.algorithm {
	case 1:
		return f.noisyReport(ctx, changed)
	case 2:
		a := f.noiseFree
		a.Candidates, a.Epsilon, a.Delta, a.Correlation = f.noisy.Candidates, f.noisy.Epsilon, f.noisy.Delta, f.noisy.Correlation
		return noiseFreeReport(a)
	case 3:
		f.ridge.Epsilon = f.noisy.Epsilon
		return ridgeReport(f.ridge)
	default:
		return nil, command.Usage(errors.New("--algorithm is required: 1, 2 or 3"))
	}
}

func (f *bayesianOptimizationFlags) noisyReport(ctx context.Context, changed func(string) bool) (*output.Report, error) {
	o := noisyOptimisation{Noisy: f.noisy, Deviation: f.deviation, Records: f.ridge.Records}
	if !(f.deviation >= 0) || math.IsInf(f.deviation, 1) {
		return nil, command.Usagef("--prior-deviation must be positive and finite, is %g", f.deviation)
	}
	if f.deviation > 0 && o.Records > 0 {
		o.Difference = 1 / (float64(o.Records) * f.deviation)
	}
	switch {
	case changed("information-gain") && f.points != "":
		return nil, command.Usage(errors.New("--information-gain and --points cannot be used together"))
	case changed("information-gain"):
		o.GainSource = "gamma_T as stated by --information-gain"
	case f.points != "":
		kernel, err := f.covariance()
		if err != nil {
			return nil, err
		}
		if changed("candidates") && int64(kernel.SymmetricDim()) != o.Candidates {
			return nil, command.Usagef("--candidates is %d, and %s has %d points", o.Candidates, f.points, kernel.SymmetricDim())
		}
		o.Candidates = int64(kernel.SymmetricDim())
		gain, err := bayesopt.BoundInformationGain(ctx, kernel, o.Noise, o.Evaluations, 0.01)
		if err != nil {
			return nil, err
		}
		o.InformationGain = gain.Upper
		o.GainSource = fmt.Sprintf("gamma_T is at most this for the %s kernel with length scale %g on the candidates (duality gap below 1%%)", f.kernel, f.length)
	default:
		if err := o.Validate(); err != nil {
			return nil, err
		}
		o.InformationGain = 0.5 * float64(o.Candidates) * math.Log1p(float64(o.Evaluations)/(float64(o.Candidates)*o.Noise*o.Noise))
		o.GainSource = "gamma_T is at most this for any kernel"
	}
	return o.Report()
}

// covariance returns the kernel matrix of the candidates in the file of points.
func (f *bayesianOptimizationFlags) covariance() (*mat.SymDense, error) {
	if !(f.length > 0) {
		return nil, command.Usagef("--length-scale must be positive, is %g", f.length)
	}
	var kernel func(square float64) float64
	switch f.kernel {
	case kernelSquaredExponential:
		kernel = func(square float64) float64 { return math.Exp(-0.5 * square) }
	case kernelMatern:
		kernel = func(square float64) float64 {
			r := math.Sqrt(5 * square)
			return (1 + r + r*r/3) * math.Exp(-r)
		}
	default:
		return nil, command.Usagef("--kernel must be %s or %s, is %q", kernelMatern, kernelSquaredExponential, f.kernel)
	}
	points, err := readPoints(f.points)
	if err != nil {
		return nil, err
	}
	k := mat.NewSymDense(len(points), nil)
	for i := range points {
		for j := i; j < len(points); j++ {
			square := 0.0
			for d, x := range points[i] {
				square += (x - points[j][d]) * (x - points[j][d])
			}
			k.SetSym(i, j, kernel(square/(f.length*f.length)))
		}
	}
	return k, nil
}

// readPoints reads a CSV file of coordinates with a header.
func readPoints(path string) ([][]float64, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // read only
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(rows) < 2 {
		return nil, fmt.Errorf("%s: has no candidates", path)
	}
	points := make([][]float64, len(rows)-1)
	for i, row := range rows[1:] {
		points[i] = make([]float64, len(row))
		for d, text := range row {
			x, err := strconv.ParseFloat(text, 64)
			if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
				return nil, fmt.Errorf("%s: row %d: column %s: must be a finite number, is %q", path, i+1, rows[0][d], text)
			}
			points[i][d] = x
		}
	}
	return points, nil
}
