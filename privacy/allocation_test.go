package privacy

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy/internal/logexp"
	"github.com/dpareto/dpareto/privacy/internal/pld"
	"github.com/dpareto/dpareto/privacy/privacytest"
)

// TestSharedRandomAllocation compares each direction with inversions of the characteristic function of one epoch,
// and otherwise with an extrapolation of certified bounds.
func TestSharedRandomAllocation(t *testing.T) {
	tb := privacytest.SharedVectors(t, "random_allocation_public.csv")
	for _, row := range tb.Rows {
		m := RandomAllocation{
			Steps: tb.Int(row, "t"), Picks: tb.Int(row, "k"), NoiseMultiplier: tb.Float(row, "sigma"),
			Epochs: tb.Int(row, "epochs"), Neighbours: AddRemove,
		}
		losses, err := Losses(m)
		require.NoError(t, err)
		direction := 0
		if tb.Text(row, "direction") == "add" {
			direction = 1
		}
		logDelta := math.Log(tb.Float(row, "delta"))
		want, slack := tb.Float(row, "eps_exact"), 1e-6*tb.Float(row, "eps_exact")
		if math.IsNaN(want) {
			want, slack = tb.Float(row, "eps_richardson"), 3e-4*tb.Float(row, "eps_richardson")
		}
		got, ok := losses.UpperDirections()[direction].Epsilon(1, logDelta, 1)
		tb.Compare("eps_exact, else eps_richardson", got, want)
		if !ok || got < want-slack || got > want*(1+4e-3)+1e-4 {
			t.Errorf("%v: epsilon %.9g, want %.9g", row[:6], got, want)
		}
		if m.Picks > 1 {
			continue
		}
		got, ok = losses.LowerDirections()[direction].Epsilon(1, logDelta, -1)
		tb.Compare("the same, bound from below", got, want)
		if !ok || got > want+slack || got < want*(1-4e-3)-1e-4 {
			t.Errorf("%v: lower bound %.9g, want %.9g", row[:6], got, want)
		}
	}
}

func TestSharedRandomAllocationReplace(t *testing.T) {
	tb := privacytest.SharedVectors(t, "random_allocation_replace_public.csv")
	for _, row := range tb.Rows {
		m := RandomAllocation{Steps: tb.Int(row, "t"), Picks: 1, NoiseMultiplier: tb.Float(row, "sigma"), Epochs: 1, Neighbours: ReplaceOne}
		g := epsilonOf(t, Exact{}, m, 1, tb.Float(row, "delta"))
		want := math.Min(tb.Float(row, "eps_upper_triangle"), tb.Float(row, "eps_upper_gaussian"))
		attained := math.Max(tb.Float(row, "eps_remove"), tb.Float(row, "eps_add"))
		tb.Compare("the less of eps_upper_triangle, eps_upper_gaussian", g.Epsilon, want)
		// The reference is an upper bound, on a coarser grid.
		if g.Epsilon < want*(1-5e-3) || g.Epsilon > want*(1+5e-3)+1e-4 {
			t.Errorf("%v: epsilon %.9g, want %.9g", row[:3], g.Epsilon, want)
		}
		if g.EpsilonLower > attained || g.EpsilonLower < 0.98*attained {
			t.Errorf("%v: lower bound %.9g, attained %.9g", row[:3], g.EpsilonLower, attained)
		}
	}
}

// TestSharedTradeoffAllocation compares the power of the best test, and the advantage, with brackets of both directions.
// A trade-off is of the symmetric curve, whose power is that of the better direction or of a mean of tests of both.
func TestSharedTradeoffAllocation(t *testing.T) {
	tb := privacytest.SharedVectors(t, "tradeoff_allocation_public.csv")
	for _, row := range tb.Rows {
		m := RandomAllocation{Steps: tb.Int(row, "t"), Picks: 1, NoiseMultiplier: tb.Float(row, "sigma"), Epochs: 1, Neighbours: AddRemove}
		got := tradeoff(t, Tightest{}, m, 1, 1e-5, tb.Float(row, "fpr")).TruePositiveRates[0]
		least := math.Max(tb.Float(row, "tpr_remove_lower"), tb.Float(row, "tpr_add_lower"))
		most := math.Max(tb.Float(row, "tpr_remove_upper"), tb.Float(row, "tpr_add_upper"))
		if !(got >= least*(1-1e-9) && got <= most*1.03) {
			t.Errorf("%v: true positive rate %.8g, want %.8g to %.8g", row[:3], got, least, most)
		}
		tb.Compare("tpr_upper of the better direction", got, most)
		curve, err := Exact{}.Curve(m)
		require.NoError(t, err)
		atZero, err := Delta(curve, 1, 0)
		require.NoError(t, err)
		tb.Compare("advantage_upper", atZero.Delta, tb.Float(row, "advantage_upper"))
		if delta := atZero.Delta; delta < tb.Float(row, "advantage_lower") || delta > tb.Float(row, "advantage_upper")*(1+1e-3) {
			t.Errorf("%v: advantage %.8g, want %s to %s", row[:3], delta, tb.Text(row, "advantage_lower"), tb.Text(row, "advantage_upper"))
		}
	}
}

// divergences are those for adding a record by (σ, t, order) whose rows in the shared file are wrong: the integrand of
// [pld.NewAllocationRenyi] is largest at w = 12 to 54, where the reference has ended. The values here are from mpmath 1.3
// with 30 digits, by the trapezoidal rule with steps of 0.1 in w and 1/16 standard deviations within φ.
// TestRandomAllocationDirect has those of t = 2 without that integral.
var divergences = map[[3]float64]float64{
	{0.5, 2, 16}: 16.8865706717301, {0.5, 10, 64}: 14.3685900345128, {0.8, 2, 16}: 6.55679227129062,
	{0.8, 2, 64}: 25.3596030288659, {2, 2, 64}: 4.04522219812369,
}

// TestRandomAllocationDirect compares the divergence for adding a record with an integral over both steps, by the
// trapezoidal rule.
func TestRandomAllocationDirect(t *testing.T) {
	for _, tc := range []struct{ sigma, order float64 }{{0.5, 16}, {0.8, 16}, {0.8, 64}, {2, 64}, {1, 1.25}, {1, 2.5}} {
		const h, n = 0.1, 130
		s := tc.order - 1
		var values []float64
		for i := -n; i <= n; i++ {
			for j := -n; j <= n; j++ {
				a, b := -s/(2*tc.sigma)+h*float64(i), -s/(2*tc.sigma)+h*float64(j)
				mean := logexp.LogAddExp(a/tc.sigma, b/tc.sigma) - 0.5/(tc.sigma*tc.sigma) - math.Ln2
				values = append(values, -s*mean-0.5*(a*a+b*b))
			}
		}
		want := (logexp.LogSumExp(values) - math.Log(2*math.Pi) + 2*math.Log(h)) / s
		if got := pld.NewAllocationRenyi(2, tc.sigma).Adding(tc.order); !(got >= want*(1-1e-11) && got <= want*(1+1e-9)) {
			t.Errorf("sigma %g, order %g: divergence %.13g, want %.13g", tc.sigma, tc.order, got, want)
		}
	}
}

// TestRandomAllocationAccountants: the Rényi bound is above ε, and the sum of both blocks of uneven picks.
func TestRandomAllocationAccountants(t *testing.T) {
	for _, m := range []RandomAllocation{
		{Steps: 100, Picks: 1, NoiseMultiplier: 1, Epochs: 1, Neighbours: AddRemove},
		{Steps: 7, Picks: 3, NoiseMultiplier: 2, Epochs: 5, Neighbours: AddRemove},
		{Steps: 7, Picks: 5, NoiseMultiplier: 3, Epochs: 5, SameSteps: true, Neighbours: ReplaceOne},
		{Steps: 3, Picks: 3, NoiseMultiplier: 3, Epochs: 2, Neighbours: ReplaceOne},
	} {
		exact := epsilonOf(t, Exact{}, m, 1, 1e-5)
		rdp := epsilonOf(t, RDP{}, m, 1, 1e-5)
		if !(rdp.Epsilon >= exact.Epsilon*(1-1e-3) && rdp.Epsilon < 4*exact.Epsilon) {
			t.Errorf("%+v: epsilon %g, Rényi %g", m, exact.Epsilon, rdp.Epsilon)
		}
	}
}

// TestSharedRandomAllocationRDP compares each direction with sums in high precision.
func TestSharedRandomAllocationRDP(t *testing.T) {
	tb := privacytest.SharedVectors(t, "random_allocation_rdp_public.csv")
	for _, row := range tb.Rows {
		curve := pld.NewAllocationRenyi(tb.Int(row, "t"), tb.Float(row, "sigma"))
		order, want := tb.Float(row, "order"), tb.Float(row, "rdp")
		got := curve.Removing(order)
		if tb.Text(row, "direction") == "add" {
			got = curve.Adding(order)
			// The reference leaves the integral below w = −60 out (with steps of 0.03), which matters at order 1.25.
			s := order - 1
			want += math.Log1p(math.Exp(-60*s-s*want)/math.Gamma(s+1)*(1-0.015*s)) / s
		}
		if right, ok := divergences[[3]float64{tb.Float(row, "sigma"), tb.Float(row, "t"), order}]; ok && tb.Text(row, "direction") == "add" {
			if privacytest.RelErr(want, right) < 1e-6 {
				t.Errorf("%v: the reference is right by now", row[:4])
			}
			want = right
		}
		tb.Compare("rdp", got, want)
		if !(got >= want*(1-1e-10) && got <= want*(1+1e-9)+2e-11) {
			t.Errorf("%v: divergence %.15g, want %.15g", row[:4], got, want)
		}
	}
}

// TestRandomAllocationEdges: at random parameters and δ from 1e-300 to ½ bounds are finite, in order, at most those of
// the Gaussian without amplification, and monotone in δ. They are monotone in the noise and the number of epochs but for
// the excess of their grids, which other numbers of products change.
//
// With -tags long there are 20 parts of 500 points each, which can be run one by one.
func TestRandomAllocationEdges(t *testing.T) {
	for part := range privacytest.Few(1, 20) {
		t.Run(strconv.Itoa(part), func(t *testing.T) {
			checkAllocations(t, rand.New(rand.NewPCG(42, uint64(part+1))), privacytest.Few(200, 500))
		})
	}
}

func checkAllocations(t *testing.T, rng *rand.Rand, points int) {
	logSteps, logEpochs := float64(privacytest.Few(5, 9)), float64(privacytest.Few(2, 3))
	for point := range points {
		m := RandomAllocation{
			Steps: 1 + int64(math.Exp(rng.Float64()*logSteps)), Picks: 1, NoiseMultiplier: 0.2 * math.Exp(rng.Float64()*4),
			Epochs: 1 + int64(math.Exp(rng.Float64()*logEpochs)), SameSteps: rng.IntN(4) == 0, Neighbours: AddRemove,
		}
		if rng.IntN(3) == 0 {
			m.Picks = 1 + rng.Int64N(m.Steps)
		}
		if rng.IntN(3) == 0 {
			m.Neighbours = ReplaceOne
		}
		delta := 0.5 * math.Exp(-rng.Float64()*30)
		if rng.IntN(8) == 0 {
			delta = math.Exp(-1 - rng.Float64()*689)
		}
		curve, err := Exact{}.Curve(m)
		require.NoError(t, err)
		at := func(delta float64) Guarantee {
			g, err := curve.Epsilon(1, delta)
			if err != nil {
				t.Fatalf("%+v, delta %g: %v", m, delta, err)
			}
			return g
		}
		g, more := at(delta), at(math.Min(0.75, 1.5*delta))
		sensitivity := float64(m.Neighbours) * math.Sqrt(float64(m.Picks*m.Epochs))
		whole := epsilonOf(t, Exact{}, Gaussian{sensitivity, m.NoiseMultiplier, m.Neighbours}, 1, delta)
		if !(g.EpsilonLower >= 0 && g.EpsilonLower <= g.Epsilon && g.Epsilon <= whole.Epsilon*(1+1e-9)) || math.IsInf(g.Epsilon, 1) {
			t.Errorf("%+v, delta %g: epsilon %g to %g, Gaussian %g", m, delta, g.EpsilonLower, g.Epsilon, whole.Epsilon)
		}
		if m.Picks > 1 && m.Picks < m.Steps && g.EpsilonLower != 0 {
			t.Errorf("%+v, delta %g: lower bound %g, which is not proven", m, delta, g.EpsilonLower)
		}
		orders := map[string][2]float64{"delta": {more.Epsilon, g.Epsilon}, "delta (from below)": {more.EpsilonLower, g.EpsilonLower}}
		other := m
		if point%2 == 0 {
			other.NoiseMultiplier *= 1 + 0.5*rng.Float64()
			orders["noise"] = [2]float64{epsilonOf(t, Exact{UpperOnly: true}, other, 1, delta).Epsilon, g.Epsilon}
		} else {
			other.Epochs += 1 + rng.Int64N(m.Epochs)
			orders["epochs"] = [2]float64{g.Epsilon, epsilonOf(t, Exact{UpperOnly: true}, other, 1, delta).Epsilon}
		}
		for what, less := range orders {
			slack := 1e-9
			switch {
			case strings.HasPrefix(what, "delta"):
			case delta < 1e-13:
				slack = 0.02
			default:
				slack = 4e-3
			}
			if less[0] > less[1]*(1+slack) {
				t.Errorf("%+v, delta %g: epsilon %g exceeds %g for less %s", m, delta, less[0], less[1], what)
			}
		}
	}
}

// TestRandomAllocationRuns: one run of several epochs is as private as several runs of one. On the grid of sums the
// bound from below is coarser.
func TestRandomAllocationRuns(t *testing.T) {
	one := RandomAllocation{Steps: 100, Picks: 1, NoiseMultiplier: 1.2, Epochs: 1, Neighbours: AddRemove}
	all := one
	all.Epochs = 8
	for _, delta := range []float64{1e-3, 1e-6, 1e-12} {
		sum, whole := epsilonOf(t, Exact{}, one, 8, delta), epsilonOf(t, Exact{}, all, 1, delta)
		if privacytest.RelErr(sum.Epsilon, whole.Epsilon) > 5e-3 || sum.EpsilonLower > whole.Epsilon || whole.EpsilonLower > sum.Epsilon ||
			whole.EpsilonLower < 0.98*whole.Epsilon || sum.EpsilonLower < 0.95*sum.Epsilon {
			t.Errorf("delta %g: epsilon %g to %g by runs, %g to %g of all epochs", delta, sum.EpsilonLower, sum.Epsilon, whole.EpsilonLower, whole.Epsilon)
		}
	}
}

// TestRandomAllocationSameSteps: with the steps of the first epoch, epochs are one with less noise.
func TestRandomAllocationSameSteps(t *testing.T) {
	m := RandomAllocation{Steps: 50, Picks: 2, NoiseMultiplier: 2, Epochs: 4, SameSteps: true, Neighbours: AddRemove}
	one := RandomAllocation{Steps: 50, Picks: 2, NoiseMultiplier: 1, Epochs: 1, Neighbours: AddRemove}
	if got, want := epsilonOf(t, Exact{}, m, 1, 1e-6).Epsilon, epsilonOf(t, Exact{}, one, 1, 1e-6).Epsilon; got != want {
		t.Errorf("epsilon %g, want %g", got, want)
	}
}

func TestRandomAllocationValidate(t *testing.T) {
	fields := FieldErrors(RandomAllocation{Steps: 0, Picks: 1, NoiseMultiplier: -1, Epochs: 2_000_000}.Validate())
	if len(fields) != 5 {
		t.Errorf("errors %v, want 5", fields)
	}
}

// BenchmarkRandomAllocation takes 200 random settings of 1,000 steps an epoch once, and reports the mean and the 99th
// percentile of the time of a first ε, and of another one of the same curve:
// go test -run '^$' -bench RandomAllocation -benchtime 1x -cpu 1 ./privacy.
func BenchmarkRandomAllocation(b *testing.B) {
	for _, tc := range []struct {
		name       string
		accountant Exact
		neighbours Adjacency
	}{{"both", Exact{}, AddRemove}, {"upper", Exact{UpperOnly: true}, AddRemove}, {"replace-one", Exact{}, ReplaceOne}} {
		b.Run(tc.name, func(b *testing.B) {
			for b.Loop() {
				rng := rand.New(rand.NewPCG(7, 42))
				var first, next []float64 // milliseconds
				for range 200 {
					m := RandomAllocation{
						Steps: 1000, Picks: 1, NoiseMultiplier: 0.5 * math.Pow(16, rng.Float64()),
						Epochs: int64(math.Pow(30, rng.Float64())), Neighbours: tc.neighbours,
					}
					start := time.Now()
					c, err := tc.accountant.Curve(m)
					for _, to := range []*[]float64{&first, &next} {
						if err == nil {
							_, err = c.Epsilon(1, math.Pow(10, -3-9*rng.Float64()))
						}
						require.NoError(b, err)
						*to = append(*to, 1e3*time.Since(start).Seconds())
						start = time.Now()
					}
				}
				for name, milliseconds := range map[string][]float64{"first": first, "next": next} {
					slices.Sort(milliseconds)
					mean := 0.0
					for _, x := range milliseconds {
						mean += x / float64(len(milliseconds))
					}
					b.ReportMetric(mean, name+"-ms-mean")
					b.ReportMetric(milliseconds[len(milliseconds)*99/100], name+"-ms-p99")
				}
			}
		})
	}
}
