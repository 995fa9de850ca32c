package proposetest

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/privacy/selection"
)

// ordinary is fast noise for simulations.
type ordinary struct{ *rand.Rand }

func (n ordinary) Laplace(value, scale float64) float64 {
	noise := scale * n.ExpFloat64()
	if n.Uint64()>>63 == 1 {
		noise = -noise
	}
	return value + noise
}

// noNoise makes a search deterministic.
type noNoise struct{}

func (noNoise) Laplace(value, _ float64) float64 { return value }

// script passes and fails as its test says, for one candidate: it draws in pairs, for the
// threshold and for the candidate.
type script struct {
	passes    []bool
	threshold bool
}

func (s *script) Laplace(float64, float64) float64 {
	if s.threshold = !s.threshold; s.threshold {
		return 0
	}
	pass := s.passes[0]
	s.passes = s.passes[1:]
	if pass {
		return 1
	}
	return -1
}

func tuning(levels int64) Tuning {
	return Tuning{
		Parts: 10, Epsilon: 0.1, Delta: 1e-6, Lower: 0.9, Granularity: 0.1 / (float64(levels) - 0.5), Neighbours: privacy.ReplaceOne,
	}
}

// The longest search over all outcomes of rounds, by exhausting the states, has 2M − 1
// rounds, and Run takes that path.
func TestMostRounds(t *testing.T) {
	for levels, want := range map[int64]int64{1: 1, 2: 3, 3: 5, 5: 9, 10: 19, 50: 99, 100: 199, 400: 799} {
		type state struct{ level, step int64 }
		known := make(map[state]int64)
		var longest func(s state) int64
		longest = func(s state) int64 {
			if s.step == 0 || s.level >= levels {
				return 0
			}
			if n, ok := known[s]; ok {
				return n
			}
			n := 1 + max(longest(state{s.level + s.step, 2 * s.step}), longest(state{s.level, s.step / 2}))
			known[s] = n
			return n
		}
		tune := tuning(levels)
		if got := longest(state{0, 1}); got != want {
			t.Errorf("M = %d: longest search of %d rounds, want %d", levels, got, want)
		}
		if got := tune.MostRounds(); tune.Levels() != levels || got != want {
			t.Errorf("M = %d: MostRounds = %d for %d levels, want %d", levels, got, tune.Levels(), want)
		}
		zigzag := &script{}
		for i := range want {
			zigzag.passes = append(zigzag.passes, i%2 == 0)
		}
		result, err := tune.Run(zigzag, []float64{0})
		if err != nil || int64(len(result.Rounds)) != want || result.Capped {
			t.Errorf("M = %d: the zig-zag has %d rounds, want %d, %v", levels, len(result.Rounds), want, err)
		}
	}
}

func TestLevels(t *testing.T) {
	for _, test := range []struct {
		lower, granularity float64
		want               int64
	}{
		{0, 0.01, 100}, {0.7, 0.1, 3}, {0, 0.3, 4}, {0.5, 0.9, 1}, {0, 1e-3, 1000}, {0.9, 0.01, 10}, {0, 0.99, 2},
	} {
		tune := Tuning{Lower: test.lower, Granularity: test.granularity}
		if got := tune.Levels(); got != test.want {
			t.Errorf("(1 − %g)/%g: %d levels, want %d", test.lower, test.granularity, got, test.want)
		}
	}
}

// A deterministic search, followed by hand: proposals 1, 3, 7 of 10 against 0.55, then
// smaller steps.
func TestRunByHand(t *testing.T) {
	tune := Tuning{Parts: 4, Epsilon: 1, Granularity: 0.1, Default: 2, Neighbours: privacy.AddRemove}
	result, err := tune.Run(noNoise{}, []float64{0.35, 0.55, 0.2})
	require.NoError(t, err)
	want := []Round{{0, 1, 0}, {1, 2, 0}, {3, 4, -1}, {3, 2, 1}, {5, 4, -1}, {5, 2, -1}, {5, 1, -1}}
	if !reflect.DeepEqual(result.Rounds, want) || result.Selected != 1 || result.Capped {
		t.Errorf("%+v", result)
	}
	if g := result.Guarantee; g.Epsilon != 19 || g.Delta != 0 || g.Steps != 19 || g.Adjacency != privacy.AddRemove {
		t.Errorf("guarantee %v: want the one of all 19 possible rounds", g)
	}

	tune.Cap = 3
	result, err = tune.Run(noNoise{}, []float64{0.35, 0.55, 0.2})
	if err != nil || !result.Capped || len(result.Rounds) != 3 || result.Selected != 0 || result.Guarantee.Epsilon != 3 {
		t.Errorf("with a cap: %+v, %v", result, err)
	}

	// Nothing reaches the first proposal: the default, after one round.
	result, err = tune.Run(noNoise{}, []float64{0, 0.05, 0})
	if err != nil || result.Selected != 2 || len(result.Rounds) != 1 || result.Rounds[0].Passed != -1 {
		t.Errorf("when the first round fails: %+v, %v", result, err)
	}
}

// Every search ends within its bound, adds up the steps of its successes, and selects the
// last candidate that passed.
func TestRunProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		tune := Tuning{
			Parts: 2 + rng.IntN(2000), Epsilon: math.Exp(-5 * rng.Float64()), Delta: 1e-6,
			Lower: 0.9 * rng.Float64(), Granularity: math.Exp(-7*rng.Float64() - 0.01), Neighbours: privacy.ReplaceOne,
		}
		if rng.IntN(2) == 0 {
			tune.Cap = 1 + rng.Int64N(20)
		}
		utilities := make([]float64, 1+rng.IntN(30))
		for i := range utilities {
			utilities[i] = rng.Float64()
		}
		tune.Default = rng.IntN(len(utilities))
		result, err := tune.Run(ordinary{rng}, utilities)
		require.NoError(t, err)
		level, step, selected := int64(0), int64(1), tune.Default
		for _, r := range result.Rounds {
			if r.Level != level || r.Step != step || step == 0 || level >= tune.Levels() {
				t.Fatalf("round %+v at level %d, step %d", r, level, step)
			}
			if r.Passed < 0 {
				step /= 2
			} else {
				level, step, selected = level+step, 2*step, r.Passed
			}
		}
		ended := step == 0 || level >= tune.Levels()
		if n := int64(len(result.Rounds)); n > tune.MostRounds() || result.Capped == ended || result.Selected != selected {
			t.Errorf("%d of %d rounds, capped %t, ended %t, selected %d, want %d", n, tune.MostRounds(), result.Capped, ended, result.Selected, selected)
		}
	}
}

// Independent computation (1000 runs each) of the simulation of Ding and Wu (2022),
// Figure 2: 100 utilities uniform over (0, 1), u_0 = 0 and ε_0 = 0.1, g a given fraction of
// the best utility. What comes out at their k = 10 is a random candidate. Searches whose
// first round fails select nothing in the paper, and do not count in the mean utility of
// what is selected; with much less noise than theirs that happens for the ratio 1.
func TestSimulation(t *testing.T) {
	const runs = 1000
	for _, test := range []struct {
		ratio, rounds, most, noiseFree float64
		selected                       [4]float64 // mean utility for k·ε_0 = 1, 10, 100, 1000
	}{
		{1, 2.00, 3, 3.0, [4]float64{0.525, 0.676, 0.956, 0.989}},
		{10, 4.00, 6, 10.8, [4]float64{0.522, 0.688, 0.956, 0.971}},
		{100, 7.01, 9, 18.7, [4]float64{0.525, 0.688, 0.958, 0.988}},
		{200, 8.00, 10, 20.6, [4]float64{0.500, 0.675, 0.960, 0.989}},
		{500, 9.12, 12, 28.5, [4]float64{0.526, 0.680, 0.955, 0.990}},
		{1000, 10.13, 13, 30.6, [4]float64{0.513, 0.686, 0.956, 0.989}},
	} {
		simulate := func(noise Noise, rng *rand.Rand, parts int) (rounds, selected, best []float64) {
			utilities := make([]float64, 100)
			for range runs {
				u := 0.0
				for i := range utilities {
					utilities[i] = rng.Float64()
					u = max(u, utilities[i])
				}
				tune := Tuning{Parts: parts, Epsilon: 0.1, Granularity: min(u/test.ratio, 1-1e-9), Neighbours: privacy.ReplaceOne}
				result := tune.search(noise, utilities)
				rounds = append(rounds, float64(len(result.Rounds)))
				best = append(best, u)
				if slices.ContainsFunc(result.Rounds, func(r Round) bool { return r.Passed >= 0 }) {
					selected = append(selected, utilities[result.Selected])
				}
			}
			return rounds, selected, best
		}
		// within compares two means of runs samples each, one of which is rounded.
		within := func(name string, samples []float64, want, rounding float64) {
			t.Helper()
			mean, deviation := stat.MeanStdDev(samples, nil)
			if tolerance := rounding + 4.5*deviation*math.Sqrt(2/float64(len(samples))); !(math.Abs(mean-want) <= tolerance) {
				t.Errorf("ratio %g, %s: %.4f, want %.4f ± %.4f", test.ratio, name, mean, want, tolerance)
			}
		}
		rng := rand.New(rand.NewPCG(5, uint64(test.ratio)))
		for i, parts := range []int{10, 100, 1000, 10000} {
			rounds, selected, best := simulate(ordinary{rng}, rng, parts)
			within("selected", selected, test.selected[i], 5e-4)
			within("best", best, 0.990, 5e-4)
			if parts != 10 {
				continue
			}
			// Rounds hardly vary, so that the rare ones decide the error.
			if mean := stat.Mean(rounds, nil); math.Abs(mean-test.rounds) > 0.05 {
				t.Errorf("ratio %g: %.3f rounds, want %.2f", test.ratio, mean, test.rounds)
			}
			most := 0.0
			for _, n := range rounds {
				most = max(most, n)
			}
			if math.Abs(most-test.most) > 2 {
				t.Errorf("ratio %g: at most %g rounds, want %g", test.ratio, most, test.most)
			}
		}
		rounds, _, _ := simulate(noNoise{}, rng, 10)
		within("rounds without noise", rounds, test.noiseFree, 0.05)
	}
}

// Independent computation (1000 runs each): the search, and one call of report-noisy-max with
// the same total ε by basic composition.
func TestOneMaximum(t *testing.T) {
	const runs = 1000
	for _, test := range []struct {
		parts, rounds     int64
		total             float64 // k·ε
		maximum, searched float64
	}{{10, 7, 7, 0.746, 0.52}, {100, 7, 70, 0.969, 0.689}, {1000, 0, 1290, 0.990, 0.958}} {
		rng, source := rand.New(rand.NewPCG(6, uint64(test.parts))), noise.Seeded(uint64(test.parts))
		tune := Tuning{Parts: int(test.parts), Epsilon: 0.1, Granularity: 0.01, Cap: test.rounds, Neighbours: privacy.ReplaceOne}
		utilities := make([]float64, 100)
		var maximum, searched []float64
		for range runs {
			for i := range utilities {
				utilities[i] = rng.Float64()
			}
			searched = append(searched, utilities[tune.search(ordinary{rng}, utilities).Selected])
			best, err := selection.NoisyMax(source, utilities, tune.Sensitivity(), test.total/float64(test.parts))
			require.NoError(t, err)
			maximum = append(maximum, utilities[best])
		}
		for name, v := range map[string]struct {
			samples        []float64
			want, rounding float64
		}{"report-noisy-max": {maximum, test.maximum, 5e-4}, "propose-test": {searched, test.searched, 5e-3}} {
			mean, deviation := stat.MeanStdDev(v.samples, nil)
			if tolerance := v.rounding + 4.5*deviation*math.Sqrt(2.0/runs); !(math.Abs(mean-v.want) <= tolerance) {
				t.Errorf("kε = %g, %s: %.4f, want %.4f ± %.4f", test.total, name, mean, v.want, tolerance)
			}
		}
		if !(stat.Mean(maximum, nil) > stat.Mean(searched, nil)) {
			t.Errorf("kε = %g: propose-test is better", test.total)
		}
	}
}

// Without noise the number of rounds grows with the logarithm of M only: independent
// computation of the worst case over all utilities, and of the mean.
func TestRoundsWithoutNoise(t *testing.T) {
	for _, test := range []struct {
		levels     int64
		most, mean float64
	}{{10, 9, 6.5}, {100, 23, 15.0}, {1000, 35, 24.9}, {10_000, 49, 0}, {100_000, 63, 0}} {
		tune := Tuning{Parts: 2, Epsilon: 1, Granularity: 1 / float64(test.levels), Neighbours: privacy.ReplaceOne}
		most, sum := 0.0, 0.0
		for i := range test.levels + 1 { // utilities that reach i steps
			u := min(1, (float64(i)+0.5)/float64(test.levels))
			n := float64(len(tune.search(noNoise{}, []float64{u}).Rounds))
			most, sum = max(most, n), sum+n
		}
		mean := sum / float64(test.levels+1)
		if most != test.most || test.mean > 0 && math.Abs(mean-test.mean) > 0.1 {
			t.Errorf("M = %d: at most %g, on average %.2f rounds, want %g and %.1f", test.levels, most, mean, test.most, test.mean)
		}
	}
}

func TestPlan(t *testing.T) {
	tune := Tuning{Parts: 100, Epsilon: 0.1, Delta: 1e-6, Granularity: 0.01, Neighbours: privacy.ReplaceOne}
	planned, err := tune.Plan(3)
	if err != nil || planned.Cap != 46 {
		t.Fatalf("cap %d, want 46, %v", planned.Cap, err)
	}
	g, err := planned.Guarantee()
	if err != nil || !(g.Epsilon <= 3) || g.Steps != 46 || g.Delta != 1e-6 || g.Accountant != "optimal_composition" {
		t.Errorf("%v, %v", g, err)
	}
	// 19 rounds are all that a coarse search can run.
	tune.Granularity = 0.1
	if planned, err = tune.Plan(3); err != nil || planned.Cap != 19 {
		t.Errorf("cap %d, want 19, %v", planned.Cap, err)
	}
	if _, err = tune.Plan(0.01); err == nil || !strings.Contains(err.Error(), "budget") {
		t.Errorf("a budget for less than a round: %v", err)
	}
}

// One record of n moves utilities by 1/n, and the noise is for 1/k.
func TestValidationGuarantee(t *testing.T) {
	tune := Tuning{Parts: 10, Epsilon: 0.1, Granularity: 0.01, Cap: 7, Neighbours: privacy.AddRemove}
	g, err := tune.ValidationGuarantee(1000)
	if err != nil || math.Abs(g.Epsilon-7*0.1*10/1000) > 1e-9 || g.Adjacency != privacy.ReplaceOne || g.Steps != 7 {
		t.Errorf("%v, %v", g, err)
	}
	if _, err := tune.ValidationGuarantee(0); err == nil {
		t.Error("no records")
	}
}

// What the noise is scaled for exceeds 1/k by next to nothing, and pays for the rounding of
// both means and of two values to the grid of the noise.
func TestWidth(t *testing.T) {
	for _, parts := range []int{2, 10, 1000, 1 << 20} {
		for _, epsilon := range []float64{0x1p-20, 1e-3, 1, 100} {
			tune := Tuning{Parts: parts, Epsilon: epsilon}
			grid := 0x1p-40 * 4 * tune.width() / epsilon
			if excess := tune.width() - tune.Sensitivity(); !(excess >= grid+float64(parts)*0x1p-53) {
				t.Errorf("k = %d, ε_0 = %g: width exceeds 1/k by %g, a grid is %g", parts, epsilon, excess, grid)
			}
			if parts <= 1000 && epsilon >= 1e-3 && tune.width() > tune.Sensitivity()*(1+1e-7) {
				t.Errorf("k = %d, ε_0 = %g: width %g", parts, epsilon, tune.width())
			}
		}
	}
}

// The claim of the paper's simulation for its 7 rounds, and for u* = 1 (the closed form of
// advanced composition, 199 rounds).
func TestPaperClaim(t *testing.T) {
	tune := Tuning{Parts: 10, Epsilon: 0.1, Delta: 1e-6, Granularity: 0.01, Neighbours: privacy.ReplaceOne}
	claim, err := tune.PaperClaim([]float64{0.2, 1}, &Result{Rounds: make([]Round, 7)})
	require.NoError(t, err)
	near(t, "empirical", claim.Empirical, 1.46436, 5)
	near(t, "worst case", claim.WorstCase, 9.50814, 5)
	if len(claim.Reasons) == 0 {
		t.Error("no reasons why it is no guarantee")
	}
}

func TestUtilities(t *testing.T) {
	got, err := Utilities(t.Context(), 2, 4, func(_ context.Context, candidate, part int) (float64, error) {
		return float64(candidate*4+part) / 8, nil
	})
	if err != nil || got[0] != 1.5/8 || got[1] != 5.5/8 {
		t.Errorf("%v, %v", got, err)
	}
	failed := errors.New("no data")
	if _, err := Utilities(t.Context(), 1, 2, func(context.Context, int, int) (float64, error) { return 0, failed }); !errors.Is(err, failed) {
		t.Errorf("%v, want the error of the evaluation", err)
	}
	for _, wrong := range []float64{-0.1, 1.1, math.NaN()} {
		if _, err := Utilities(t.Context(), 1, 2, func(context.Context, int, int) (float64, error) { return wrong, nil }); err == nil {
			t.Errorf("utility %g is accepted", wrong)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Utilities(ctx, 1, 2, func(context.Context, int, int) (float64, error) { return 0, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want cancelled", err)
	}
}

func TestValidate(t *testing.T) {
	valid := Tuning{Parts: 10, Epsilon: 0.1, Delta: 1e-6, Granularity: 0.01, Neighbours: privacy.ReplaceOne}
	require.NoError(t, valid.Validate())
	for field, change := range map[string]func(*Tuning){
		"parts":       func(t *Tuning) { t.Parts = 1 },
		"epsilon":     func(t *Tuning) { t.Epsilon = 0x1p-21 },
		"delta":       func(t *Tuning) { t.Delta = 1 },
		"lower":       func(t *Tuning) { t.Lower = 1 },
		"granularity": func(t *Tuning) { t.Granularity = 1e-10 },
		"cap":         func(t *Tuning) { t.Cap = -1 },
		"default":     func(t *Tuning) { t.Default = -1 },
		"adjacency":   func(t *Tuning) { t.Neighbours = 0 },
	} {
		wrong := valid
		change(&wrong)
		_, err := wrong.Run(noNoise{}, []float64{0})
		if fields := privacy.FieldErrors(err); len(fields) != 1 || fields[0].Field != field {
			t.Errorf("want an error for %s, got %v", field, err)
		}
	}
	for _, granularity := range []float64{0, 1, 1.5, math.NaN()} {
		wrong := valid
		wrong.Granularity = granularity
		if fields := privacy.FieldErrors(wrong.Validate()); len(fields) != 1 || fields[0].Field != "granularity" {
			t.Errorf("granularity %g: %v", granularity, fields)
		}
	}
	valid.Default = 1
	if _, err := valid.Run(noNoise{}, []float64{0}); err == nil || !strings.Contains(err.Error(), "default") {
		t.Errorf("a default that is no candidate: %v", err)
	}
	if _, err := valid.Run(noNoise{}, []float64{0, math.NaN()}); err == nil || !strings.Contains(err.Error(), "utilities") {
		t.Errorf("a utility that is no number: %v", err)
	}
}

// Without δ the paper adds up the rounds, 2·⌈(u* − lower)/granularity⌉ − 1 of them, and at least one.
func TestPaperClaimOfFewRounds(t *testing.T) {
	tune := Tuning{Parts: 10, Epsilon: 0.1, Granularity: 0.01, Neighbours: privacy.ReplaceOne}
	for best, rounds := range map[float64]float64{0: 1, 0.005: 1, 0.015: 3, 0.025: 5} {
		claim, err := tune.PaperClaim([]float64{best, 0}, &Result{Rounds: make([]Round, 2)})
		require.NoError(t, err)
		near(t, "worst case", claim.WorstCase, rounds*claim.Empirical/2, 12)
	}
}
