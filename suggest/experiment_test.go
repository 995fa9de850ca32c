//go:build experiment

// The experiments take minutes and are run by hand:
//
//	go test -tags experiment -run Experiment -v ./suggest
//
// DPARETO_SEEDS and DPARETO_EVALUATIONS change the number of seeds and of
// evaluations per study.

package suggest_test

import (
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
)

func setting(t *testing.T, name string, value int) int {
	t.Helper()
	if s := os.Getenv(name); s != "" {
		v, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	return value
}

// sparseVector runs the sparse vector technique (Algorithm 1 of Avent et al.,
// PoPETs 2020) once, on 100 queries of which 10 are 1 and the others 0, in
// random order, and returns 1 - F1 of its answers.
func sparseVector(rng *rand.Rand, c int, b float64) float64 {
	laplace := func(scale float64) float64 {
		return scale * (rng.ExpFloat64() - rng.ExpFloat64())
	}
	b1 := b / (1 + math.Cbrt(2*float64(c)))
	threshold := 0.5 + laplace(b1)
	hits, answers := 0, 0
	for _, i := range rng.Perm(100) {
		query := 0.0
		if i < 10 {
			query = 1
		}
		if query+laplace(b-b1) >= threshold {
			answers++
			hits += int(query)
			if answers == c {
				break
			}
		}
	}
	// F1 = 2 precision recall / (precision + recall) = 2 hits / (answers + 10)
	return 1 - 2*float64(hits)/float64(answers+10)
}

func sparseVectorEpsilon(q space.Point) float64 {
	root := math.Cbrt(2 * q[0])
	return (1 + root) * (1 + root*root) / q[1]
}

func sparseVectorProblem() *suggest.Problem {
	return &suggest.Problem{
		Space: &space.Space{Parameters: []space.Parameter{
			{Name: "c", Kind: space.Integer, Min: 1, Max: 30},
			{Name: "b", Kind: space.Double, Min: 1e-2, Max: 1e2, Scale: space.Log},
		}},
		Objectives: []suggest.Objective{
			{Name: "epsilon", Goal: suggest.Minimize, Transform: suggest.Log, Reference: 10, Known: sparseVectorEpsilon},
			// F1 is made of 10 positives per run.
			{Name: "error", Goal: suggest.Minimize, Transform: suggest.Logit, Reference: 1, SampleSize: 10},
		},
	}
}

// TestExperimentSparseVector measures the true hypervolume of the reported
// fronts. The exact front has 1.546; a prototype of the method reached 1.507.
func TestExperimentSparseVector(t *testing.T) {
	const runs, trueRuns = 50, 20_000
	evaluations := setting(t, "DPARETO_EVALUATIONS", 64)
	reference := []float64{10, 1}
	for _, tc := range []struct {
		name     string
		designer suggest.Designer
	}{
		{"random", suggest.NewRandom()},
		{"quasi_random", suggest.NewQuasiRandom()},
		{"dpareto", suggest.NewDPareto(suggest.DParetoOptions{})},
		{"dpareto_exact_epsilon", suggest.NewDPareto(suggest.DParetoOptions{ExactKnown: true})},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var observed, raw, posterior []float64
			start := time.Now()
			for seed := range uint64(setting(t, "DPARETO_SEEDS", 5)) {
				rng := rand.New(rand.NewPCG(seed, 99))
				p := sparseVectorProblem()
				h := study(t, tc.designer, p, evaluations, seed, func(q space.Point) suggest.Evaluation {
					sample := make([]float64, runs)
					for i := range sample {
						sample[i] = sparseVector(rng, int(q[0]), q[1])
					}
					mean, sd := stat.MeanStdDev(sample, nil)
					return suggest.Evaluation{
						Point:     q,
						Values:    []float64{sparseVectorEpsilon(q), mean},
						StdErrors: []float64{0, sd / math.Sqrt(runs)},
						Runs:      runs,
					}
				})
				truth := func(q space.Point) []float64 {
					sum := 0.0
					for range trueRuns {
						sum += sparseVector(rng, int(q[0]), q[1])
					}
					return []float64{sparseVectorEpsilon(q), sum / trueRuns}
				}
				measured := make([][]float64, len(h.Evaluations))
				for i := range measured {
					measured[i] = h.Evaluations[i].Values
				}
				observed = append(observed, pareto.Hypervolume(measured, reference))
				var front [][]float64
				for _, i := range pareto.NonDominated(measured) {
					if measured[i][0] < 10 {
						front = append(front, truth(h.Evaluations[i].Point))
					}
				}
				raw = append(raw, pareto.Hypervolume(front, reference))
				model, err := suggest.FitModel(t.Context(), p, h, suggest.ModelOptions{Seed: seed})
				if err != nil {
					t.Fatal(err)
				}
				front = nil
				for _, e := range model.Estimates() {
					if e.OnFront && e.Values[0] < 10 {
						front = append(front, truth(e.Point))
					}
				}
				posterior = append(posterior, pareto.Hypervolume(front, reference))
			}
			t.Logf("true hypervolume of the posterior front %.4f ± %.4f %.3f, of the raw front %.4f, claimed by the raw front %.4f (%.1fs)",
				stat.Mean(posterior, nil), stat.StdDev(posterior, nil), posterior, stat.Mean(raw, nil), stat.Mean(observed, nil), time.Since(start).Seconds())
		})
	}
}
