package examples

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/sparsevector"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/internal/require"
)

func run(t *testing.T, e *Experiment) (figures []reproduce.Figure, text string) {
	t.Helper()
	require.NoError(t, e.Validate())
	last, all := 0, -1
	watch := reproduce.Watch{
		Progress: func(done, total int) {
			if done != last+1 || done > total {
				t.Errorf("progress %d of %d after %d", done, total, last)
			}
			last, all = done, total
		},
		Draw: func(f reproduce.Figure) error {
			figures = append(figures, f)
			return nil
		},
	}
	result, err := e.Run(t.Context(), watch)
	require.NoError(t, err)
	if last != all {
		t.Errorf("ended at %d of %d", last, all)
	}
	var out bytes.Buffer
	require.NoError(t, result.Report.Write(&out, output.CSV))
	return figures, out.String()
}

// Figures 2 and 4 need no data. Their errors agree with the published mechanism's, and the
// same seed gives the same report.
func TestSparseVector(t *testing.T) {
	figures, text := run(t, &Experiment{Figures: []int{4, 2}, Quick: true, Seed: 1})
	if len(figures) != 2 || figures[0].Name != "figure2" || figures[1].Name != "figure4" {
		t.Errorf("figures %+v", figures)
	}
	for _, f := range figures {
		if err := f.Picture.Save(t.TempDir() + "/" + f.Name + ".svg"); err != nil {
			t.Error(err)
		}
	}
	for _, want := range []string{"figure2_oracles", "figure2_configurations", "figure4_next", "figure4_fronts"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if _, again := run(t, &Experiment{Figures: []int{4, 2}, Quick: true, Seed: 1}); again != text {
		t.Errorf("the same seed gives\n%s\nand\n%s", text, again)
	}
	for _, c := range publishedSparse {
		if got := sparsevector.Epsilon(c.cutoff, c.scale); math.Abs(got/c.epsilon-1) > 1e-8 {
			t.Errorf("ε(%d, %g) = %.10g, published %.10g", c.cutoff, c.scale, got, c.epsilon)
		}
		if got := sparsevector.ExpectedError(c.cutoff, c.scale); math.Abs(got-c.error) > 3*0.13/math.Sqrt(20_000)+5e-5 {
			t.Errorf("error(%d, %g) = %.4f, published %.4f", c.cutoff, c.scale, got, c.error)
		}
	}
}

// ε of the logistic regression is what the published code computes, to the digits that are known.
func TestPublishedEpsilon(t *testing.T) {
	parts := &dataset.Parts{Train: dataset.Generated(30956, 1), Test: dataset.Generated(10, 2)}
	r, err := newRegression(parts, 2, 1)
	require.NoError(t, err)
	for _, c := range publishedEpsilons {
		if got, err := epsilon(r.published, c.gamma, c.sigma); err != nil || math.Abs(got/c.epsilon-1) > 1e-7 {
			t.Errorf("ε(%g, %g) = %.12g, published %.12g (%v)", c.gamma, c.sigma, got, c.epsilon, err)
		}
		// The sensitivity is half of the published one: with half the noise ε is the published one.
		if got, err := epsilon(r.trainer, c.gamma, c.sigma/2); err != nil || math.Abs(got/c.epsilon-1) > 1e-7 {
			t.Errorf("ε(%g, %g) = %.12g by 2/(γn), want %.12g (%v)", c.gamma, c.sigma/2, got, c.epsilon, err)
		}
	}
}

// The maps keep values where they belong, and differences are root mean squares.
func TestMaps(t *testing.T) {
	l := &landscape{ys: []float64{1, 2}, grid: [][]observation{{{epsilon: 1, error: 3}}, {{epsilon: 10, error: 4}}}}
	if diff := cmp.Diff([][]float64{{0}, {1}}, log10(l.values(epsilonOf))); diff != "" {
		t.Errorf("log10 ε (-want +got):\n%s", diff)
	}
	if got, want := difference(l.values(errorOf), [][]float64{{0}, {0}}, false), math.Sqrt(12.5); math.Abs(got-want) > 1e-12 {
		t.Errorf("difference %g, want %g", got, want)
	}
	if got := difference(l.values(epsilonOf), [][]float64{{math.E}, {10 * math.E}}, true); math.Abs(got-1) > 1e-12 {
		t.Errorf("difference of logarithms %g, want 1", got)
	}
	front := nonDominated([]observation{{epsilon: 3, error: 1}, {epsilon: 1, error: 2}, {epsilon: 3, error: 2}})
	if len(front) != 2 || front[0].epsilon != 1 || front[1].error != 1 {
		t.Errorf("front %+v", front)
	}
	values := geometric(1e-4, 1, 5)
	for i, want := range []float64{1e-4, 1e-3, 1e-2, 1e-1, 1} {
		if math.Abs(values[i]/want-1) > 1e-12 {
			t.Errorf("value %d is %g, want %g", i, values[i], want)
		}
	}
}

func TestValidate(t *testing.T) {
	for name, e := range map[string]Experiment{
		"figures": {Runs: 2, Side: 2},
		"figure":  {Figures: []int{5}, Quick: true},
		"runs":    {Figures: []int{2}, Runs: 1, Side: 2},
		"side":    {Figures: []int{2}, Runs: 2, Side: 1},
	} {
		if e.Validate() == nil {
			t.Errorf("wrong %s: accepted", name)
		}
	}
}

// The next configuration is where the surface is highest, up to the grid, and its outcome is
// on the report's front unless it is dominated.
func TestSearch(t *testing.T) {
	e := &Experiment{Figures: []int{2}, Runs: 5, Side: 13, Seed: 2}
	l, err := e.sparseVector(t.Context(), new(progress))
	require.NoError(t, err)
	s, err := l.search(t.Context(), 2)
	require.NoError(t, err)
	highest := 0.0
	for _, row := range s.surface {
		for _, v := range row {
			highest = max(highest, v.HVPoI)
		}
	}
	if !(s.suggestion.Acquisition >= 0.99*highest) || s.suggestion.Designer != "dpareto" {
		t.Errorf("suggestion %+v, on the grid HVPoI reaches %g", s.suggestion, highest)
	}
	if d := difference(s.predicted(0), l.values(epsilonOf), true); d > 0.1 {
		t.Errorf("posterior medians of ε differ from it by a factor of %g", math.Exp(d))
	}
}
