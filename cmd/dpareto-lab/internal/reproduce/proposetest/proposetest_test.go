package proposetest

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy/proposetest"
)

// column returns the numbers of a column of a section, empty cells as -1.
func column(t *testing.T, sections []output.Section, section, name string) []float64 {
	t.Helper()
	for _, s := range sections {
		if s.Name != section {
			continue
		}
		i := slices.Index(s.Table.Columns, name)
		if i < 0 {
			t.Fatalf("section %s has no column %s", section, name)
		}
		var numbers []float64
		for _, row := range s.Table.Rows {
			switch v := row[i].(type) {
			case float64:
				numbers = append(numbers, v)
			case output.Bound:
				numbers = append(numbers, float64(v))
			case nil:
				numbers = append(numbers, -1)
			default:
				t.Fatalf("%s of %s is a %T", name, section, v)
			}
		}
		return numbers
	}
	t.Fatalf("no section %s", section)
	return nil
}

// What the simulation says with few runs already: the paper's search selects a random
// candidate within few rounds, reaches a utility above all, and one private maximum with
// the same ε is better.
func TestExperiment(t *testing.T) {
	e := &Experiment{Runs: 60, Seed: 2}
	last := 0
	var figures []reproduce.Figure
	watch := reproduce.Watch{
		Progress: func(done, total int) {
			if done != last+1 || done > total {
				t.Errorf("progress %d of %d after %d", done, total, last)
			}
			last = done
		},
		Draw: func(f reproduce.Figure) error {
			figures = append(figures, f)
			return nil
		},
	}
	result, err := e.Run(t.Context(), watch)
	require.NoError(t, err)
	sections := result.Report.Sections
	rounds, selected := column(t, sections, "figure2", "mean_rounds"), column(t, sections, "figure2", "mean_selected_utility")
	if len(rounds) != len(ratios)*len(noises) {
		t.Fatalf("%d rows", len(rounds))
	}
	for i, want := range []float64{2.00, 4.00, 7.01, 8.00, 9.12, 10.13} { // independent computation, 1000 runs
		if got := rounds[i*len(noises)]; got < want-0.2 || got > want+0.3 {
			t.Errorf("ratio %g: %g rounds, want %g", ratios[i], got, want)
		}
		if got := selected[i*len(noises)]; got < 0.3 || got > 0.75 {
			t.Errorf("ratio %g: the selected utility is %g, want the utility of a random candidate", ratios[i], got)
		}
		if got := selected[i*len(noises)+3]; got < 0.95 {
			t.Errorf("ratio %g: with little noise the selected utility is %g", ratios[i], got)
		}
	}
	if above := column(t, sections, "figure1", "share_above_best"); above[0] < 0.95 || above[len(above)-1] > 0 {
		t.Errorf("shares above the best utility: %v", above)
	}
	searched, maximum := column(t, sections, "comparison", "propose_test"), column(t, sections, "comparison", "report_noisy_max")
	for i := range 4 {
		if !(maximum[i] > searched[i]) {
			t.Errorf("comparison %d: propose-test selects %g, one maximum %g", i, searched[i], maximum[i])
		}
	}
	if claimed, least := column(t, sections, "accounting", "paper"), column(t, sections, "accounting", "optimal"); !(claimed[0] > 1.464 && least[0] < 0.7) {
		t.Errorf("7 rounds cost %g, as a guarantee %g", claimed[0], least[0])
	}

	drawer := reproduce.NewDrawer(filepath.Join(t.TempDir(), "figures"), nil)
	for _, f := range figures {
		require.NoError(t, drawer.Draw(f))
	}
	if len(figures) != 3 {
		t.Errorf("%d figures, want 3", len(figures))
	}
	for _, file := range drawer.Files() {
		if svg, err := os.ReadFile(file); err != nil || !strings.Contains(string(svg), "kε0 = 1000") {
			t.Errorf("%s is no picture of the searches, %v", file, err)
		}
	}

	again, err := (&Experiment{Runs: 60, Seed: 2}).Run(t.Context(), reproduce.Watch{})
	if err != nil || !reflect.DeepEqual(again.Report, result.Report) {
		t.Errorf("the same seed gives another result, %v", err)
	}
}

// The ways of Figure 1 are made of legal moves, and the worst case is as long as a search can
// be: it reaches u = 1 in 2M − 1 rounds, and no search is below it.
func TestWays(t *testing.T) {
	most := proposetest.Tuning{Parts: 2, Epsilon: 1, Granularity: granularity}.MostRounds()
	steps, levels := worstCase(int(most))
	if last := levels[len(levels)-1]; math.Abs(last-1) > 1e-12 || levels[len(levels)-2] > 1-granularity/2 {
		t.Errorf("the worst case ends at %g after %d rounds", last, most)
	}
	ways := &searches{levels: [][]float64{levels}, steps: [][]float64{steps}}
	for kind := range noises {
		s, err := (&Experiment{Runs: 200, Seed: 3}).searches(uint64(kind), kind, func(float64) float64 { return granularity })
		require.NoError(t, err)
		ways.levels, ways.steps = append(ways.levels, s.levels...), append(ways.steps, s.steps...)
	}
	for k, way := range ways.levels {
		for i := 1; i < len(way); i++ {
			before, after, gained := ways.steps[k][i-1], ways.steps[k][i], way[i]-way[i-1]
			success := after == 2*before && math.Abs(gained-before*granularity) < 1e-12
			failure := after == math.Floor(before/2) && gained == 0
			if !success && !failure {
				t.Fatalf("way %d, round %d: from step %g to %g, and up by %g", k, i, before, after, gained)
			}
			if after > 0 && way[i] < levels[i]-1e-12 {
				t.Fatalf("way %d, round %d: at %g, below the worst case, %g", k, i, way[i], levels[i])
			}
		}
	}
}

// worstCase returns steps and utilities of the slowest search: successes and failures by turns.
func worstCase(rounds int) (steps, levels []float64) {
	for round := range rounds + 1 {
		steps, levels = append(steps, float64(1+round%2)), append(levels, float64((round+1)/2)*granularity)
	}
	return steps, levels
}

func TestExperimentStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := (&Experiment{Runs: 2, Seed: 1}).Run(ctx, reproduce.Watch{Progress: func(int, int) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want cancelled", err)
	}
	if err := (&Experiment{Runs: 1}).Validate(); err == nil {
		t.Error("a single run has no spread")
	}
}

// On generated data of the shape of Adult, small: the maximum is better than the search,
// which is no better than chance with so much noise.
func TestExperimentAdult(t *testing.T) {
	e := &Experiment{Runs: 100, Seed: 1, Adult: true, Generated: true, Parts: 20, Side: 2}
	steps, last := 0, 0
	result, err := e.Run(t.Context(), reproduce.Watch{Progress: func(_, total int) { steps++; last = total }})
	if err != nil || steps != last {
		t.Fatal(steps, last, err)
	}
	sections := result.Report.Sections
	if title := sections[len(sections)-1].Title; !strings.Contains(title, "generated data") {
		t.Errorf("%q does not say that the data are made up", title)
	}
	best, random := column(t, sections, "adult", "best"), column(t, sections, "adult", "random")
	before, after := column(t, sections, "adult", "epsilon"), column(t, sections, "adult", "epsilon_with_training")
	trained, most := column(t, sections, "adult", "trained_propose_test"), column(t, sections, "adult", "trained_best")
	for i := range before {
		if math.Abs(after[i]-before[i]-finalEpsilon) > 1e-9 || !(trained[i] > 0.4 && trained[i] <= most[i]) {
			t.Errorf("budget %d: trained for ε = %g after %g, with accuracy %g of at most %g", i, after[i], before[i], trained[i], most[i])
		}
	}
	searched, maximum := column(t, sections, "adult", "propose_test"), column(t, sections, "adult", "report_noisy_max")
	validation, epsilon := column(t, sections, "adult", "validation_epsilon"), column(t, sections, "adult", "epsilon")
	for i, b := range adultBudgets {
		if !(searched[i] <= best[i] && maximum[i] <= best[i] && random[i] < best[i]) {
			t.Errorf("%+v: propose-test %g, maximum %g, best %g", b, searched[i], maximum[i], best[i])
		}
		if !(validation[i] < epsilon[i] && epsilon[i] <= b.budget) {
			t.Errorf("%+v: ε = %g, of a validation record %g", b, epsilon[i], validation[i])
		}
	}
	if i := len(maximum) - 1; !(maximum[i] > random[i]) {
		t.Errorf("a maximum with ε = 10 selects %g, chance %g", maximum[i], random[i])
	}
	e.Side = 1
	if e.Validate() == nil {
		t.Error("a grid of one point")
	}
}
