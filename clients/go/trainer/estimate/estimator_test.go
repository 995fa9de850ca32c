package estimate

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/clients/go/trainer/linear"
	"github.com/dpareto/dpareto/internal/require"
)

// The quadratic model of one draw is the loss at one Newton step from the model that it
// expands around, to second order; and exact in the limit of little noise.
func TestQuadratic(t *testing.T) {
	p := smallProblem(t)
	for _, epsilon := range []float64{100, 1000} {
		still, err := p.Solve(t.Context(), nil, epsilon, nil)
		require.NoError(t, err)
		q, err := p.Quadratic(still.Theta)
		require.NoError(t, err)
		at := p.Evaluate(still.Theta)
		if none := q.Mean(epsilon, 0); math.Abs(none.Train-at.Train.Loss) > 1e-8 || math.Abs(none.HeldOut-at.HeldOut.Loss) > 1e-8 {
			t.Errorf("ε = %v: %+v without noise, want %+v", epsilon, none, at)
		}
		u := unitNoise(5, 3, 0)
		s, err := p.Solve(t.Context(), u, epsilon, still.Theta)
		require.NoError(t, err)
		exact, got := p.Evaluate(s.Theta), q.Draw(u)(epsilon)
		size := floats.Distance(s.Theta, still.Theta, 2)
		if size > 0.3 || math.Abs(got.Train-exact.Train.Loss) > size*size*size || math.Abs(got.HeldOut-exact.HeldOut.Loss) > size*size ||
			math.Abs(got.Train-exact.Train.Loss) > 0.05*math.Abs(exact.Train.Loss-at.Train.Loss) {
			t.Errorf("ε = %v: %+v, want %+v from %+v, %v away", epsilon, got, exact, at, size)
		}
	}
}

// The trace formula is the mean over draws, for both kinds of noise, and around any
// model.
func TestQuadraticMean(t *testing.T) {
	p := smallProblem(t)
	for name, c := range map[string]struct {
		noise  func(dim int, seed uint64, r int) []float64
		moment float64
	}{"gamma": {unitNoise, 6}, "paper": {paperNoise, 2}} {
		for _, around := range []float64{0.2, 5} {
			still, err := p.Solve(t.Context(), nil, around, nil)
			require.NoError(t, err)
			q, err := p.Quadratic(still.Theta)
			require.NoError(t, err)
			const draws, epsilon = 20000, 0.5
			train, heldOut := make([]float64, draws), make([]float64, draws)
			for r := range draws {
				losses := q.Draw(c.noise(5, 5, r))(epsilon)
				train[r], heldOut[r] = losses.Train, losses.HeldOut
			}
			want := q.Mean(epsilon, c.moment)
			for _, v := range []struct {
				name  string
				draws []float64
				mean  float64
			}{{"train", train, want.Train}, {"held-out", heldOut, want.HeldOut}} {
				mean, deviation := stat.MeanStdDev(v.draws, nil)
				if math.Abs(mean-v.mean) > 4*deviation/math.Sqrt(draws) {
					t.Errorf("%s noise around ε = %v: %s mean %v, formula %v, standard error %v", name, around, v.name, mean, v.mean, deviation/math.Sqrt(draws))
				}
			}
		}
	}
}

// The control variate removes most of the variance of the mean and adds no bias: averages
// of few draws scatter around the average of many by their standard errors. On synthetic
// data of 10,000 records the variance is divided by more than 100 from ε = 0.1 on.
func TestControlVariate(t *testing.T) {
	p := Problem{Risk: linear.Risk{Examples: normal(t, 10000, 20, 1, 1), Loss: linear.Logistic{}}, Regularization: 1e-6}
	epsilons := []float64{0.1, 0.25, 1}
	const draws = 36
	o := Options{Method: MethodNewton, Lower: 0.1, Upper: 1, Draws: draws, Seed: 1}
	e, err := New(t.Context(), p, o)
	require.NoError(t, err)
	curve, err := e.Curve(t.Context(), epsilons)
	require.NoError(t, err)
	for _, at := range curve {
		loss := at.Train.Loss
		plain := loss.Deviation / math.Sqrt(draws)
		ratio := plain / loss.StandardError
		reduction := ratio * ratio
		t.Logf("ε = %v: loss %.5f ± %.1e, without control ± %.1e: variance divided by %.0f", at.Epsilon, loss.Value, loss.StandardError, plain, reduction)
		if reduction < 100 {
			t.Errorf("ε = %v: the variance is divided by %v", at.Epsilon, reduction)
		}
		var values []float64
		for _, u := range at.Draws {
			values = append(values, u.Train.Loss)
		}
		if z := (stat.Mean(values, nil) - loss.Value) / plain; math.Abs(z) > 4 {
			t.Errorf("ε = %v: %v with control, %v ± %v without", at.Epsilon, loss.Value, stat.Mean(values, nil), plain)
		}
	}

	// Averages of 2 draws (the ratio) and of 6 (the regression), of the same models.
	for _, few := range []int{2, 6} {
		for i, epsilon := range epsilons {
			still, err := p.Solve(t.Context(), nil, epsilon, nil)
			require.NoError(t, err)
			q, err := p.Quadratic(still.Theta)
			require.NoError(t, err)
			var means []float64
			for first := 0; first < draws; first += few {
				c := control{mean: q.Mean(epsilon, 21).Train, still: q.Mean(epsilon, 0).Train}
				var values []float64
				for r := first; r < first+few; r++ {
					c.draws = append(c.draws, q.Draw(e.draws[r])(epsilon).Train)
					values = append(values, curve[i].Draws[r].Train.Loss)
				}
				means = append(means, c.average(values).Value)
			}
			mean, deviation := stat.MeanStdDev(means, nil)
			plain := curve[i].Train.Loss.Deviation / math.Sqrt(float64(few))
			t.Logf("ε = %v, %d draws: deviation of means %.1e, without control %.1e", epsilon, few, deviation, plain)
			if deviation > plain/5 {
				t.Errorf("ε = %v, %d draws: deviation of means %v, without control %v", epsilon, few, deviation, plain)
			}
			if want := curve[i].Train.Loss; math.Abs(mean-want.Value) > 5*(deviation/math.Sqrt(float64(len(means)))+want.StandardError) {
				t.Errorf("ε = %v, %d draws: mean of means %v, want %v", epsilon, few, mean, want)
			}
		}
	}
}

// Where the quadratic model says nothing, the control variate does little harm.
func TestUselessControl(t *testing.T) {
	values := []float64{3, 1, 4, 1, 5, 9, 2, 6}
	same := control{draws: []float64{1, 1, 1, 1, 1, 1, 1, 1}, mean: 1, still: 1}
	if got, want := same.average(values), plainMean(values); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	opposite := control{draws: []float64{-3, -1, -4, -1, -5, -9, -2, -6}, mean: -4, still: 0}
	if got, want := opposite.average(values), plainMean(values); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	// A copy takes away everything but its known mean.
	if got := (control{draws: values, mean: 7}).average(values); math.Abs(got.Value-7) > 1e-12 || got.StandardError > 1e-12 {
		t.Errorf("%+v", got)
	}
	if one := plainMean([]float64{2}); one.Value != 2 || !math.IsNaN(one.StandardError) || !math.IsNaN(one.Deviation) {
		t.Errorf("one draw: %+v", one)
	}
}

// All methods agree on what they can, order does not matter, and no number depends on
// the number of processors.
func TestCurve(t *testing.T) {
	p := smallProblem(t)
	epsilons := []float64{1, 0.3, 0.7, 2}
	var done atomic.Int64
	curves := make(map[Method][]Estimate)
	for _, method := range []Method{MethodNewton, MethodHermite, MethodLine} {
		o := Options{Method: method, Lower: 0.3, Upper: 2, Draws: 4, Seed: 5, Anchors: 5, Progress: func(n, total int) {
			done.Add(1)
			if n > total {
				t.Errorf("%d of %d models", n, total)
			}
		}}
		e, err := New(t.Context(), p, o)
		require.NoError(t, err)
		if curves[method], err = e.Curve(t.Context(), epsilons); err != nil {
			t.Fatal(err)
		}
		again, err := New(t.Context(), p, o)
		require.NoError(t, err)
		for i, epsilon := range epsilons {
			one, err := again.Curve(t.Context(), []float64{epsilon})
			require.NoError(t, err)
			got, want := one[0].Train.Loss, curves[method][i].Train.Loss
			if math.Abs(got.Value-want.Value) > 1e-8 || math.Abs(got.StandardError-want.StandardError) > 1e-8 || curves[method][i].Epsilon != epsilon {
				t.Errorf("method %v, ε = %v: alone %+v, in a curve %+v", method, epsilon, got, want)
			}
		}
	}
	if done.Load() == 0 {
		t.Error("no progress")
	}
	for i, want := range curves[MethodNewton] {
		got := curves[MethodHermite][i]
		for _, m := range []Metric{TrainLoss, HeldOutLoss} {
			if math.Abs(m.Of(got).Value-m.Of(want).Value) > 2e-3 {
				t.Errorf("ε = %v: %v is %+v, exactly %+v", want.Epsilon, m, m.Of(got), m.Of(want))
			}
		}
		for _, m := range []Metric{TrainError, HeldOutError} {
			var singles []float64
			for _, u := range want.Draws {
				singles = append(singles, m.Single(u))
			}
			if got := m.Of(want).Value; math.Abs(got-stat.Mean(singles, nil)) > 1e-12 || got <= 0 || got >= 0.6 {
				t.Errorf("ε = %v: %v is %v, of models %v", want.Epsilon, m, got, singles)
			}
		}
		// Draws differ, and are the same under the same seed.
		if slices.Equal(want.Draws[:1], want.Draws[1:2]) {
			t.Errorf("ε = %v: draws %+v", want.Epsilon, want.Draws)
		}
	}
}

// No estimate is a loss that no model has, however far a tangent is followed.
func TestEstimatesArePossible(t *testing.T) {
	p := smallProblem(t)
	for _, method := range []Method{MethodHermite, MethodLine} {
		e, err := New(t.Context(), p, Options{Method: method, Lower: 0.05, Upper: 50, At: 0.1, Draws: 4, Seed: 5, Anchors: 2})
		require.NoError(t, err)
		curve, err := e.Curve(t.Context(), Anchors(0.05, 50, 30))
		require.NoError(t, err)
		clamped := false
		for _, estimate := range curve {
			for _, m := range []Metric{TrainLoss, TrainError, HeldOutLoss, HeldOutError} {
				values := []float64{m.Of(estimate).Value}
				for _, u := range estimate.Draws {
					values = append(values, m.Single(u))
				}
				for _, v := range values {
					if !(v >= 0) || (m == TrainError || m == HeldOutError) && v > 1 {
						t.Errorf("method %v, ε = %v: %v is %v", method, estimate.Epsilon, m, v)
					}
					clamped = clamped || v == 0 && m == TrainLoss
				}
			}
		}
		if method == MethodLine && !clamped {
			t.Error("no line falls to 0: the test shows nothing")
		}
	}
}

func TestEstimatorErrors(t *testing.T) {
	p := smallProblem(t)
	for name, o := range map[string]Options{
		"range":    {Lower: 1, Upper: 1},
		"zero":     {Lower: 0, Upper: 1},
		"infinite": {Lower: 1, Upper: math.Inf(1)},
		"method":   {Lower: 0.1, Upper: 1, Method: 3},
		"anchors":  {Lower: 0.1, Upper: 1, Anchors: 1},
		"draws":    {Lower: 0.1, Upper: 1, Draws: -1},
		"line":     {Lower: 0.1, Upper: 1, Method: MethodLine, At: 2},
	} {
		if _, err := New(t.Context(), p, o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	bad := p
	bad.Regularization = -1
	if _, err := New(t.Context(), bad, Options{Lower: 0.1, Upper: 1}); err == nil {
		t.Error("λ = −1: no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	e, err := New(ctx, p, Options{Lower: 0.1, Upper: 1, Draws: 2})
	require.NoError(t, err)
	if _, err := e.Curve(ctx, []float64{0.05}); !isRangeError(err) {
		t.Errorf("below the anchors: %v", err)
	}
	cancel()
	if _, err := e.Curve(ctx, []float64{0.5}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := New(ctx, p, Options{Lower: 0.1, Upper: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// The ε of a target is where the curve has it, whatever the method and the metric.
func TestEpsilonFor(t *testing.T) {
	p := smallProblem(t)
	for _, method := range []Method{MethodHermite, MethodNewton} {
		e, err := New(t.Context(), p, Options{Method: method, Lower: 0.2, Upper: 5, Draws: 8, Seed: 2})
		require.NoError(t, err)
		for _, metric := range []Metric{TrainLoss, HeldOutLoss} {
			for _, epsilon := range []float64{0.31, 0.9, 4.2} {
				at, err := e.Curve(t.Context(), []float64{epsilon})
				require.NoError(t, err)
				answer, err := e.EpsilonFor(t.Context(), metric, metric.Of(at[0]).Value)
				require.NoError(t, err)
				if math.Abs(answer.Epsilon/epsilon-1) > 1e-4 || answer.Met {
					t.Errorf("method %v, %v: ε = %+v, want %v", method, metric, answer, epsilon)
				}
				if !(answer.Lower <= answer.Epsilon && answer.Epsilon <= answer.Upper) || !(answer.StandardError > 0 && answer.StandardError < epsilon) {
					t.Errorf("method %v, %v: interval of %+v", method, metric, answer)
				}
				if math.IsInf(answer.Upper, 1) != (answer.Missed > 0) {
					t.Errorf("method %v, %v: %+v", method, metric, answer)
				}
			}
		}
		ends, err := e.Curve(t.Context(), []float64{0.2, 5})
		require.NoError(t, err)
		best, worst := ends[1].Train.Loss.Value, ends[0].Train.Loss.Value
		_, err = e.EpsilonFor(t.Context(), TrainLoss, best-1e-6)
		if u, ok := errors.AsType[*UnreachableError](err); !ok || u.Epsilon != 5 || u.Value != best {
			t.Errorf("below the curve: %v", err)
		}
		answer, err := e.EpsilonFor(t.Context(), TrainLoss, worst+1e-6)
		if err != nil || !answer.Met || answer.Epsilon != 0.2 {
			t.Errorf("above the curve: %+v, %v", answer, err)
		}
		// Error rates have steps; the answer is at most the target, and just below it is
		// not.
		target := (HeldOutError.Of(ends[0]).Value + HeldOutError.Of(ends[1]).Value) / 2
		if answer, err = e.EpsilonFor(t.Context(), HeldOutError, target); err != nil {
			t.Fatal(err)
		}
		around, err := e.Curve(t.Context(), []float64{answer.Epsilon, answer.Epsilon * (1 - 2e-5)})
		require.NoError(t, err)
		if HeldOutError.Of(around[0]).Value > target || HeldOutError.Of(around[1]).Value < target {
			t.Errorf("method %v: error rates %v and %v on either side of ε = %v, target %v", method,
				HeldOutError.Of(around[0]).Value, HeldOutError.Of(around[1]).Value, answer.Epsilon, target)
		}
	}
	e, err := New(t.Context(), p, Options{Lower: 0.2, Upper: 5, Draws: 1})
	require.NoError(t, err)
	// The path of a draw belongs to its noise.
	s, err := p.Solve(t.Context(), e.Noise(0), 5, nil)
	require.NoError(t, err)
	if theta, err := e.Path(0).Model(t.Context(), 5); err != nil || floats.Distance(theta, s.Theta, 2) > 1e-6 {
		t.Errorf("path %v away, %v", floats.Distance(theta, s.Theta, 2), err)
	}
	if _, err := e.EpsilonFor(t.Context(), TrainLoss, math.NaN()); err == nil {
		t.Error("no error for a target that is not a number")
	}
	if _, err := e.EpsilonFor(t.Context(), 7, 0.5); err == nil {
		t.Error("no error for an unknown metric")
	}
	p.HeldOut = nil
	if e, err = New(t.Context(), p, Options{Lower: 0.2, Upper: 5, Draws: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.EpsilonFor(t.Context(), HeldOutError, 0.5); err == nil {
		t.Error("no error without held-out examples")
	}
}
