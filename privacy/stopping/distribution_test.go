package stopping

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/floats/scalar"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/privacy/privacytest"
)

var (
	_ Distribution = TruncatedNegativeBinomial{}
	_ Distribution = Poisson{}
)

// readTable returns the rows of a file of numbers by column, NaN for an empty cell, and as
// text.
func readTable(t *testing.T, name string) (numbers []map[string]float64, text []map[string]string) {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	r := csv.NewReader(f)
	r.Comment = '#'
	rows, err := r.ReadAll()
	require.NoError(t, err)
	for _, row := range rows[1:] {
		values, cells := make(map[string]float64), make(map[string]string)
		for i, column := range rows[0] {
			cells[column], values[column] = row[i], math.NaN()
			if row[i] == "" {
				continue
			}
			if values[column], err = strconv.ParseFloat(row[i], 64); err != nil {
				t.Fatal(err)
			}
		}
		numbers, text = append(numbers, values), append(text, cells)
	}
	return numbers, text
}

// TestProbability: a table of another implementation, to the digits given.
func TestProbability(t *testing.T) {
	numbers, text := readTable(t, "distributions.csv")
	for i, row := range numbers {
		dist := TruncatedNegativeBinomial{row["eta"], row["gamma"]}
		var sum, mean float64
		for k := int64(1); k < 5000; k++ {
			p := dist.Probability(k)
			sum += p
			mean += float64(k) * p
		}
		for column, got := range map[string]float64{
			"p1": dist.Probability(1), "p2": dist.Probability(2), "p10": dist.Probability(10), "sum": sum,
		} {
			if s := fmt.Sprintf("%.6g", got); s != text[i][column] {
				t.Errorf("%+v: %s = %s, want %s", dist, column, s, text[i][column])
			}
		}
		if s := fmt.Sprintf("%.7g", dist.MeanRuns()); s != text[i]["mean"] || !scalar.EqualWithinRel(mean, dist.MeanRuns(), 1e-10) {
			t.Errorf("%+v: mean %s, summed %g, want %s", dist, s, mean, text[i]["mean"])
		}
	}
}

// halfIntegers are the Rényi orders of the totals: 1.5, 2, ..., 500.
func halfIntegers() []float64 {
	var orders []float64
	for order := 1.5; order <= 500; order += 0.5 {
		orders = append(orders, order)
	}
	return orders
}

// delta is the δ of the totals.
const delta = 1e-6

// leastEpsilon converts Rényi divergences at these orders (Canonne, Kamath and Steinke,
// 2020, Proposition 12).
func leastEpsilon(orders []float64, rho func(order float64) float64) float64 {
	least := math.Inf(1)
	for _, a := range orders {
		least = min(least, rho(a)+math.Log1p(-1/a)-(math.Log(delta)+math.Log(a))/(a-1))
	}
	return max(0, least)
}

// gaussianDelta is δ(ε) of Gaussian DP (Balle and Wang, 2018, Theorem 8).
func gaussianDelta(mu, epsilon float64) float64 {
	phi := distuv.UnitNormal.CDF
	return phi(mu/2-epsilon/mu) - math.Exp(epsilon)*phi(-mu/2-epsilon/mu)
}

// TestTotals: totals of another implementation, to the digits given by the theorems with its
// orders, and by the accountant, which searches all orders (its own tests,
// TestRepeatedSelection and TestPoissonSelection, have more).
func TestTotals(t *testing.T) {
	orders := halfIntegers()
	numbers, text := readTable(t, "totals.csv")
	for i, row := range numbers {
		mu := row["mu"]
		rho := func(order float64) float64 { return order * mu * mu / 2 }
		check := func(column, format string, got float64) {
			t.Helper()
			if s := fmt.Sprintf(format, got); s != text[i][column] {
				t.Errorf("row %d: %s = %s, want %s", i, column, s, text[i][column])
			}
		}
		var dist Distribution
		totals := make(map[string]float64)
		if eta := row["eta"]; math.IsNaN(eta) {
			dist = Poisson{row["mean"]}
			// Theorem 6.
			poisson := func(deltaOf func(epsilon float64) float64) func(order float64) float64 {
				return func(order float64) float64 {
					return rho(order) + row["mean"]*deltaOf(math.Log1p(1/(order-1))) + math.Log(row["mean"])/(order-1)
				}
			}
			totals["total"] = leastEpsilon(orders, poisson(func(epsilon float64) float64 {
				least := 1.0 // the conversion above, solved for δ
				for _, a := range orders {
					least = min(least, math.Exp((a-1)*(rho(a)-epsilon+math.Log1p(-1/a))-math.Log(a)))
				}
				return least
			}))
			totals["exact"] = leastEpsilon(orders, poisson(func(epsilon float64) float64 { return gaussianDelta(mu, epsilon) }))
			check("exact", "%.6f", totals["exact"])
		} else {
			n, err := ByMean(eta, row["mean"])
			require.NoError(t, err)
			check("gamma", "%.6g", n.Gamma)
			dist = n
			// Theorem 2.
			penalty := math.Inf(1)
			for _, order := range orders {
				penalty = min(penalty, (1-1/order)*rho(order)+math.Log(1/n.Gamma)/order)
			}
			totals["total"] = leastEpsilon(orders, func(order float64) float64 {
				return rho(order) + (1+eta)*penalty + math.Log(n.MeanRuns())/(order-1)
			})
		}
		check("base", "%.6f", leastEpsilon(orders, rho))
		check("total", "%.6f", totals["total"])
		check("top5", "%.4f", dist.ContainsTop(0.05))
		check("top1", "%.4f", dist.ContainsTop(0.01))
		if !scalar.EqualWithinRel(dist.MeanRuns(), row["mean"], 1e-9) {
			t.Errorf("row %d: mean %g", i, dist.MeanRuns())
		}

		mechanism := dist.Mechanism(privacy.Gaussian{Sensitivity: mu, StandardDeviation: 1, Neighbours: privacy.AddRemove}, 1)
		g, err := privacy.Epsilon(privacy.RDP{}, mechanism, 1, delta)
		require.NoError(t, err)
		want := totals["total"]
		if exact, ok := totals["exact"]; ok {
			want = exact
		}
		if g.Epsilon > want*(1+1e-9) || g.Epsilon < want*(1-2e-3) {
			t.Errorf("row %d: epsilon %.8g over all orders, %.8g over some", i, g.Epsilon, want)
		}
	}
}

// distributions are those that tests go through: all samplers, and shapes around their limits.
func distributions(t testing.TB) []Distribution {
	t.Helper()
	all := []Distribution{
		Poisson{0.3}, Poisson{0.5}, Poisson{1}, Poisson{10.3},
		Binomial{1, 0.3}, Binomial{7, 0.6}, Binomial{40, 0.25}, Binomial{5, 1},
		Capped{TruncatedNegativeBinomial{1, 0.1}, 20}, Capped{TruncatedNegativeBinomial{0, 0.01}, 8}, Capped{TruncatedNegativeBinomial{-0.5, 0.05}, 6}, Capped{TruncatedNegativeBinomial{3, 0.3}, 1},
		TruncatedNegativeBinomial{-0.999, 0.5}, TruncatedNegativeBinomial{1, 0.999}, TruncatedNegativeBinomial{7.3, 1 - 1e-9},
	}
	for _, eta := range []float64{-0.9, -0.5, -0.100001, -0.1, -0.03, 0, 1e-9, 0.4, 1, 1.5, 2, 4.75} {
		for _, mean := range []float64{1.2, 3, 12} {
			if eta == -0.9 && mean > 3 {
				continue // tails too heavy for these tests
			}
			dist, err := ByMean(eta, mean)
			require.NoError(t, err)
			all = append(all, dist)
		}
	}
	return all
}

// TestDraw compares with the probabilities, and the mean of draws with the mean.
func TestDraw(t *testing.T) {
	const runs = 20_000
	src := noise.Seeded(61)
	for _, dist := range distributions(t) {
		var expected, counts []float64
		left := 1.0
		for k := int64(0); runs*left > 40 && len(expected) < 200; k++ {
			p := dist.Probability(k)
			expected = append(expected, runs*p)
			left -= p
		}
		expected = append(expected, runs*max(0, left))
		counts = make([]float64, len(expected))
		for range runs {
			k, err := dist.Draw(src)
			require.NoError(t, err)
			counts[min(k, int64(len(counts)-1))]++
		}
		// Categories expected fewer than 10 times are joined with their neighbours.
		var sum, degrees, observed, want float64
		for i, e := range expected {
			observed, want = observed+counts[i], want+e
			if want < 10 {
				continue
			}
			sum += (observed - want) * (observed - want) / want
			degrees++
			observed, want = 0, 0
		}
		if observed > 25+2*want {
			t.Errorf("%+v: %g draws beyond, expected %g", dist, observed, want)
		}
		if degrees < 2 {
			continue
		}
		if limit := (distuv.ChiSquared{K: degrees - 1}).Quantile(1 - 1e-6); sum > limit {
			t.Errorf("%+v: chi-square %g above %g:\n%.5g\n%.5g", dist, sum, limit, counts, expected)
		}
	}
}

// TestSequences: do not change these values. Simulations are repeated by their seeds.
func TestSequences(t *testing.T) {
	for _, tc := range []struct {
		dist Distribution
		want []int64
	}{
		{Poisson{10.3}, []int64{9, 12, 15, 12, 15, 8, 7, 9, 12, 11, 7, 12}},
		{TruncatedNegativeBinomial{-0.5, 0.01}, []int64{1, 7, 7, 1, 1, 2, 30, 2, 1, 2, 2, 2}},
		{TruncatedNegativeBinomial{0, 0.0269183}, []int64{3, 24, 2, 1, 2, 1, 1, 1, 1, 1, 17, 2}},
		{TruncatedNegativeBinomial{1, 0.1}, []int64{8, 10, 24, 10, 18, 8, 1, 4, 2, 1, 4, 3}},
		{TruncatedNegativeBinomial{2.5, 0.17082}, []int64{7, 7, 5, 3, 8, 8, 13, 24, 10, 26, 14, 3}},
	} {
		src := noise.Seeded(62)
		var got []int64
		for range 12 {
			k, err := tc.dist.Draw(src)
			require.NoError(t, err)
			got = append(got, k)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%+v: %s", tc.dist, diff)
		}
	}
}

// TestContainsTop compares with the sum over K, and the ends of the range.
func TestContainsTop(t *testing.T) {
	for _, dist := range distributions(t) {
		for _, q := range []float64{1e-9, 0.01, 0.3, 0.9} {
			want, left := 0.0, 1.0 // left has no contribution below 0 and above itself
			for k := int64(0); k < 20_000 && left > 1e-14; k++ {
				p := dist.Probability(k)
				want += p * -math.Expm1(float64(k)*math.Log1p(-q))
				left -= p
			}
			if got := dist.ContainsTop(q); got < want*(1-1e-9) || got > (want+max(0, left))*(1+1e-9) {
				t.Errorf("%+v, q %g: %.12g, want %.12g", dist, q, got, want)
			}
		}
		if got := dist.ContainsTop(0); got != 0 {
			t.Errorf("%+v: the best nothing with probability %g", dist, got)
		}
		if got, want := dist.ContainsTop(1), 1-dist.Probability(0); !scalar.EqualWithinRel(got, want, 1e-12) {
			t.Errorf("%+v: any candidate with probability %g, want %g", dist, got, want)
		}
	}
	for _, q := range []float64{-0.1, 1.1, math.NaN()} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("no panic for %g", q)
				}
			}()
			Poisson{1}.ContainsTop(q)
		}()
	}
}

// TestDistributionProperties: ratios of probabilities, the range of K, and simple bounds of
// ContainsTop, for random parameters.
func TestDistributionProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dist := TruncatedNegativeBinomial{
			Eta:   rapid.Float64Range(-0.999, 30).Draw(t, "eta"),
			Gamma: rapid.Float64Range(1e-6, 1-1e-6).Draw(t, "gamma"),
		}
		k := rapid.Int64Range(1, 1000).Draw(t, "k")
		got, p := dist.Probability(k+1), dist.Probability(k)
		if want := p * (1 - dist.Gamma) * (float64(k) + dist.Eta) / (float64(k) + 1); want > 1e-290 && !scalar.EqualWithinRel(got, want, 1e-10) {
			t.Fatalf("%+v: P(%d) = %g, want %g", dist, k+1, got, want)
		}
		q := math.Exp2(rapid.Float64Range(-60, 0).Draw(t, "log2 q"))
		if top := dist.ContainsTop(q); !(top >= q*(1-1e-12) && top <= min(1, q*dist.MeanRuns())*(1+1e-12)) {
			t.Fatalf("%+v: the best %g with probability %g, mean %g", dist, q, top, dist.MeanRuns())
		}
		if dist.Probability(0) != 0 || dist.Probability(-3) != 0 {
			t.Fatal("fewer than one candidate")
		}
	})
	if (Poisson{1}).Probability(-1) != 0 {
		t.Error("fewer than no candidate")
	}
}

func TestExtremeShapes(t *testing.T) {
	for _, dist := range []TruncatedNegativeBinomial{{1e-300, 0.01}, {-1e-300, 0.01}, {1e-14, 0.01}} {
		limit := TruncatedNegativeBinomial{0, 0.01}
		for k := int64(1); k < 50; k++ {
			if got, want := dist.Probability(k), limit.Probability(k); !scalar.EqualWithinRel(got, want, 1e-11) {
				t.Errorf("%+v: P(%d) = %g, in the limit %g", dist, k, got, want)
			}
		}
		if got, want := dist.ContainsTop(0.1), limit.ContainsTop(0.1); !scalar.EqualWithinRel(got, want, 1e-11) {
			t.Errorf("%+v: %g, in the limit %g", dist, got, want)
		}
	}
	steep := TruncatedNegativeBinomial{300, 1e-4} // γ^−η overflows
	if p := steep.Probability(int64(steep.MeanRuns())); !(p > 1e-7 && p < 1e-4) {
		t.Errorf("probability of the mean %g", p)
	}
	if got := steep.ContainsTop(0.01); got != 1 {
		t.Errorf("the best 1 %% with probability %g", got)
	}
}

func TestErrors(t *testing.T) {
	src := noise.Seeded(1)
	for _, tc := range []struct {
		dist   Distribution
		fields []string
	}{
		{TruncatedNegativeBinomial{-1, 0}, []string{"eta", "gamma"}},
		{TruncatedNegativeBinomial{math.NaN(), math.NaN()}, []string{"eta", "gamma"}},
		{TruncatedNegativeBinomial{math.Inf(1), 1}, []string{"eta", "gamma"}},
		{TruncatedNegativeBinomial{1, 1e-8}, []string{"gamma"}},
		{TruncatedNegativeBinomial{1e8, 0.999999999}, []string{"eta"}},
		{Poisson{0}, []string{"mean"}},
		{Poisson{math.NaN()}, []string{"mean"}},
		{Poisson{math.Inf(1)}, []string{"mean"}},
		{Poisson{1e8}, []string{"mean"}},
	} {
		_, err := tc.dist.Draw(src)
		var fields []string
		for _, e := range privacy.FieldErrors(err) {
			fields = append(fields, e.Field)
		}
		if diff := cmp.Diff(tc.fields, fields); diff != "" {
			t.Errorf("%+v: %s", tc.dist, diff)
		}
	}
	if _, err := ByMean(1, 0.5); len(privacy.FieldErrors(err)) != 1 {
		t.Errorf("a mean below 1: %v", err)
	}
}

// bestOf returns the probabilities of the best of K independent scores, given the
// probabilities p of one score in rising order; the last is for no candidate.
func bestOf(dist Distribution, p []float64) []float64 {
	var best []float64
	above, atLeast := 1.0, 1-dist.Probability(0) // P(one is higher), P(the best is as high)
	for _, pi := range p {
		above = max(0, above-pi)
		higher := dist.ContainsTop(above)
		best = append(best, atLeast-higher)
		atLeast = higher
	}
	return append(best, dist.Probability(0))
}

func renyiDivergence(order float64, p, q []float64) float64 {
	var sum float64
	for i := range p {
		if p[i] > 0 {
			sum += math.Exp(order*math.Log(p[i]) + (1-order)*math.Log(q[i]))
		}
	}
	return math.Log(sum) / (order - 1)
}

// TestAccountingHolds: the exact distribution of the best score, of a base whose scores are
// answers of randomised response, is within what package privacy states about the search. The
// scores are ordered so that the answers of the two records are the first and the last, or
// next to each other.
func TestAccountingHolds(t *testing.T) {
	var closest float64
	for _, dist := range distributions(t) {
		for _, epsilon := range []float64{0.05, 0.5, 2} {
			base := privacy.RandomizedResponse{Epsilon: epsilon, Categories: 4}
			mechanism, ok := dist.Mechanism(base, 1).(privacy.RenyiMechanism)
			if !ok {
				continue // without a Rényi divergence
			}
			curve := mechanism.RenyiCurve()
			answers := func(truth int) []float64 {
				total := math.Exp(epsilon) + 3
				p := []float64{1 / total, 1 / total, 1 / total, 1 / total}
				p[truth] = math.Exp(epsilon) / total
				return bestOf(dist, p)
			}
			for _, pair := range [][2]int{{0, 3}, {3, 0}, {1, 2}, {2, 1}, {2, 3}, {3, 2}} {
				p, q := answers(pair[0]), answers(pair[1])
				for _, order := range []float64{1.1, 2, 5, 30} {
					got, bound := renyiDivergence(order, p, q), curve.RDP(order)
					if got > bound*(1+1e-9)+1e-9 {
						t.Errorf("%+v, epsilon %g, answers %v, order %g: divergence %g above %g", dist, epsilon, pair, order, got, bound)
					}
					if dist.MeanRuns() > 2 { // not one candidate nearly always
						closest = max(closest, got/bound)
					}
				}
				n, truncated := dist.(TruncatedNegativeBinomial)
				if !truncated {
					continue
				}
				for i := range 4 {
					if loss := math.Abs(math.Log(p[i] / q[i])); p[i] > 1e-6 && loss > (2+n.Eta)*epsilon+1e-8 {
						t.Errorf("%+v, epsilon %g, answers %v: loss %g of score %d", dist, epsilon, pair, loss, i)
					}
				}
			}
		}
	}
	if closest < 0.5 {
		t.Errorf("no divergence is above %g of its bound: the test could not fail", closest)
	}
	t.Logf("closest %g", closest)
}

// TestAudit attacks the search with a base of three scores, of which the probabilities
// differ by e^±ε between the data sets. The middle one wins when it is met and the highest
// is not: if the highest is less likely and the middle one more so, both help, and the
// loss is close to 3ε for the geometric distribution (Liu and Talwar, 2019).
func TestAudit(t *testing.T) {
	const runs, epsilon = 200_000, 0.4
	for _, tc := range []struct {
		name string
		dist TruncatedNegativeBinomial
	}{
		{"geometric", TruncatedNegativeBinomial{1, 0.05}},
		{"logarithmic", TruncatedNegativeBinomial{0, 0.05}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			src := noise.Seeded(63)
			event := func(epsilon float64) func(second bool) bool {
				// On the second data set the middle score is less likely, the highest more,
				// and the lowest less, by 1.486 < e^0.4.
				const middle, highest = 0.15, 0.4
				return func(second bool) bool {
					m, h := middle, highest
					if second {
						m, h = middle*math.Exp(-epsilon), highest*math.Exp(epsilon)
					}
					k, err := tc.dist.Draw(src)
					require.NoError(t, err)
					best := 0
					for range k {
						switch u := src.Float64(); {
						case u < h:
							return false // the highest wins
						case u < h+m:
							best = 1
						}
					}
					return best == 1
				}
			}
			privacytest.Audit{
				Epsilon: (2 + tc.dist.Eta) * epsilon, Runs: runs, Power: 0.6,
				Event: event(epsilon), Broken: event(2 * epsilon),
			}.Check(t)
		})
	}
}

func FuzzDraw(f *testing.F) {
	f.Add(uint64(1), 1.0, 0.1)
	f.Add(uint64(2), -0.5, 0.3)
	f.Add(uint64(3), 0.0, 1e-3)
	f.Add(uint64(4), 7.7, 0.9)
	f.Fuzz(func(t *testing.T, seed uint64, eta, x float64) {
		src := noise.Seeded(seed)
		for _, dist := range []Distribution{TruncatedNegativeBinomial{eta, x}, Poisson{x}} {
			if err := dist.Validate(); err != nil {
				if len(privacy.FieldErrors(err)) == 0 {
					t.Fatalf("error without a field: %v", err)
				}
				continue
			}
			if top := dist.ContainsTop(0.1); !(top >= 0 && top <= 1) {
				t.Fatalf("%+v: %g", dist, top)
			}
			if p := dist.Probability(3); !(p >= 0 && p <= 1+1e-12) {
				t.Fatalf("%+v: P(3) = %g", dist, p)
			}
			if dist.MeanRuns() > 1000 || math.Abs(eta) > 1000 || eta < -0.7 {
				continue // slow
			}
			if k, err := dist.Draw(src); err != nil || dist.Probability(k) == 0 && dist.Probability(k+1) == 0 {
				t.Fatalf("%+v: drew %d, %v", dist, k, err)
			}
		}
	})
}
