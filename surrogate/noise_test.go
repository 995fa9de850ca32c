package surrogate

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats/scalar"
	"gonum.org/v1/gonum/mat"

	"github.com/dpareto/dpareto/internal/require"
)

// noiseCovariance is the noise covariance of two observations by its definition.
func noiseCovariance(h Hyperparameters, obs Observations, i, j int) float64 {
	deviation := func(i int) float64 {
		log := math.Log(h.NoiseVariance + h.RunVariance)
		for p, b := range h.NoiseSlopes {
			log += b * (obs.X[i][p] - 0.5)
		}
		if obs.Runs != nil {
			log -= math.Log(obs.Runs[i])
		}
		return math.Exp(log / 2)
	}
	switch {
	case i == j && obs.NoiseVariance != nil:
		return deviation(i)*deviation(i) + obs.NoiseVariance[i]
	case i == j:
		return deviation(i) * deviation(i)
	case obs.Groups == nil || obs.Groups[i] == 0 || obs.Groups[i] != obs.Groups[j]:
		return 0
	}
	var distance float64
	if obs.Positions != nil {
		distance = math.Abs(obs.Positions[i] - obs.Positions[j])
	}
	correlation := (h.NoiseVariance*math.Exp(-distance/h.NoiseDecay) + h.RunVariance) / (h.NoiseVariance + h.RunVariance)
	return deviation(i) * deviation(j) * correlation
}

// checkpoints returns observations of which two thirds are checkpoints, up to
// four to a run, in random order, with 1 to 3 runs each.
func checkpoints(seed uint64, n, d int) Observations {
	rng := newRand(seed)
	obs := randomObservations(rng, n, d)
	for i := range n {
		group := 0
		if i%3 > 0 {
			group = 1 + rng.IntN(max(1, n/6))
		}
		obs.Groups = append(obs.Groups, group)
		obs.Positions = append(obs.Positions, math.Log(float64(1+rng.IntN(30))))
		obs.Runs = append(obs.Runs, float64(1+rng.IntN(3)))
	}
	return obs
}

// noisyHyperparameters are hyperparameters whose noise matters.
func noisyHyperparameters(d int) Hyperparameters {
	h := someHyperparameters(d)
	h.NoiseVariance, h.NoiseDecay = 0.3, 0.8
	for j := range d {
		h.NoiseSlopes = append(h.NoiseSlopes, 2.5-2*float64(j))
	}
	return h
}

func TestNoiseMatchesNaive(t *testing.T) {
	const n, d, tol = 60, 3, 1e-9
	all := checkpoints(1, n, d)
	h := noisyHyperparameters(d)
	homoscedastic := h
	homoscedastic.NoiseSlopes = nil
	runs, onlyRuns := h, h
	runs.RunVariance = 0.2
	onlyRuns.NoiseVariance, onlyRuns.RunVariance = 0, 0.2
	for name, test := range map[string]struct {
		h   Hyperparameters
		obs Observations
	}{
		"everything":   {h, all},
		"no slopes":    {homoscedastic, all},
		"runs":         {runs, all},
		"only runs":    {onlyRuns, all},
		"no runs":      {h, Observations{X: all.X, Y: all.Y, Groups: all.Groups, Positions: all.Positions}},
		"no positions": {h, Observations{X: all.X, Y: all.Y, Groups: all.Groups, NoiseVariance: all.NoiseVariance}},
		"no groups":    {h, Observations{X: all.X, Y: all.Y, Positions: all.Positions, Runs: all.Runs}},
	} {
		t.Run(name, func(t *testing.T) {
			g, want := mustNew(t, nil, test.h, test.obs), newNaive(t, Matern52{}, test.h, test.obs)
			if got, want := g.LogMarginalLikelihood(), want.logMarginalLikelihood(); !scalar.EqualWithinAbsOrRel(got, want, tol, tol) {
				t.Errorf("log marginal likelihood %v, want %v", got, want)
			}
			x := randomPoints(newRand(2), 10, d)
			wantMean, wantCov := want.joint(x)
			for a, p := range x {
				m, v := g.Predict(p)
				if !scalar.EqualWithinAbs(m, wantMean[a], tol) || !scalar.EqualWithinAbs(v, wantCov.At(a, a), tol) {
					t.Errorf("at %v: mean %v, variance %v, want %v, %v", p, m, v, wantMean[a], wantCov.At(a, a))
				}
			}
		})
	}
}

// Observations that arrive in portions, with runs that go on from one portion
// to the next, end in the same posterior.
func TestExtendMatchesNew(t *testing.T) {
	const n, d = 90, 2
	obs, h := checkpoints(3, n, d), noisyHyperparameters(d)
	part := func(from, to int) Observations {
		return Observations{
			X: obs.X[from:to], Y: obs.Y[from:to], NoiseVariance: obs.NoiseVariance[from:to],
			Runs: obs.Runs[from:to], Groups: obs.Groups[from:to], Positions: obs.Positions[from:to],
		}
	}
	g := mustNew(t, nil, h, part(0, 5))
	for _, cut := range [][2]int{{5, 5}, {5, 6}, {6, 20}, {20, 21}, {21, n}} {
		before := snapshot(g)
		next, err := g.Extend(part(cut[0], cut[1]))
		require.NoError(t, err)
		// A second branch must not disturb the first.
		require.NoError(t, require.ErrOf(g.Extend(part(0, 3))))
		if diff := cmp.Diff(before, snapshot(g)); diff != "" {
			t.Fatalf("receiver changed: %s", diff)
		}
		g = next
		compare(t, g, mustNew(t, nil, h, part(0, cut[1])), randomPoints(newRand(4), 5, d), 1e-9)
	}
}

// Posteriors that extend the same one at the same time share its rows, and nothing else.
func TestExtendConcurrently(t *testing.T) {
	obs, h := checkpoints(5, 30, 2), noisyHyperparameters(2)
	g, err := mustNew(t, nil, h, obs).Append([]float64{0.5, 0.5}, 1, 0)
	require.NoError(t, err)
	const workers = 4
	results := make(chan *GP, workers)
	for k := range workers {
		go func() {
			next, err := g.Append([]float64{float64(k) / workers, 0.3}, 2, 0)
			if err != nil {
				t.Error(err)
			}
			results <- next
		}()
	}
	for range workers {
		got := <-results
		x := []float64{got.scaled[0][31] * h.LengthScales[0], 0.3}
		want := mustNew(t, nil, h, Observations{
			X:             append(append([][]float64{}, obs.X...), []float64{0.5, 0.5}, x),
			Y:             append(append([]float64{}, obs.Y...), 1, 2),
			NoiseVariance: append(append([]float64{}, obs.NoiseVariance...), 0, 0),
			Runs:          append(append([]float64{}, obs.Runs...), 1, 1),
			Groups:        append(append([]int{}, obs.Groups...), 0, 0),
			Positions:     append(append([]float64{}, obs.Positions...), 0, 0),
		})
		compare(t, got, want, randomPoints(newRand(6), 3, 2), 1e-9)
	}
}

func TestNoiseGradient(t *testing.T) {
	prior := LogNormalPrior{
		Signal: Normal{1, 0.5}, Length: Normal{-1, 0.3}, Noise: Normal{-3, 0.7}, Run: Normal{-2, 0.9}, Slope: Normal{0.4, 0.8},
		Decay: Normal{-0.2, 0.6},
	}
	fixed := 0.2
	for name, test := range map[string]struct {
		o      Options
		groups bool
		want   int // unknowns
	}{
		"slopes and decay": {Options{NoiseSlopes: true}, true, 1 + 3 + 1 + 3 + 1},
		"slopes":           {Options{NoiseSlopes: true}, false, 1 + 3 + 1 + 3},
		"decay":            {Options{}, true, 1 + 3 + 1 + 1},
		"fixed noise":      {Options{NoiseSlopes: true, FixedNoise: &fixed}, true, 1 + 3 + 1},
		"no noise":         {Options{FixedNoise: new(float64)}, true, 1 + 3},
		"runs":             {Options{NoiseSlopes: true, MaxRunVariance: 10}, true, 1 + 3 + 1 + 3 + 1 + 1},
		"runs alone":       {Options{FixedNoise: new(float64), MaxRunVariance: 10}, true, 1 + 3 + 1},
		"limit":            {Options{NoiseSlopes: true, MaxRunVariance: 10, MaxNoise: 0.01}, true, 1 + 3 + 1 + 3 + 1 + 1},
		"limit of runs":    {Options{FixedNoise: &fixed, MaxRunVariance: 10, MaxNoise: 0.3}, true, 1 + 3 + 1 + 1},
		"limit of slopes":  {Options{NoiseSlopes: true, MaxNoise: 0.01}, false, 1 + 3 + 1 + 3},
	} {
		t.Run(name, func(t *testing.T) {
			obs := checkpoints(7, 45, 3)
			if !test.groups {
				obs.Groups = nil
			}
			f := newLogPosterior(newTestProblem(t, Matern52{}, prior, obs, test.o))
			value := func(theta []float64) float64 {
				v, err := f.Value(theta)
				require.NoError(t, err)
				return v
			}
			rng := newRand(8)
			for range 3 {
				theta := f.random(rng)
				if len(theta) != test.want {
					t.Fatalf("%d unknowns, want %d", len(theta), test.want)
				}
				want := fd.Gradient(nil, value, theta, &fd.Settings{Formula: fd.Central, Step: 1e-5})
				value(theta)
				got := make([]float64, len(theta))
				f.Gradient(got)
				for i := range got {
					if !scalar.EqualWithinAbsOrRel(got[i], want[i], 1e-6, 1e-6) {
						t.Errorf("at θ = %v: derivative %d is %v, finite difference %v", theta, i, got[i], want[i])
					}
				}
			}
		})
	}
}

// The value that Fit maximises is New's, and the unknowns survive the way
// to Hyperparameters and back.
func TestNoisePosteriorValue(t *testing.T) {
	obs := checkpoints(9, 40, 2)
	prior := DefaultPrior(2)
	p := newTestProblem(t, Matern52{}, prior, obs, Options{NoiseSlopes: true, MaxRunVariance: 10})
	theta := []float64{0.4, -1, 0.3, -2, 1.5, -0.7, 0.2, -3}
	got, err := newLogPosterior(p).Value(theta)
	require.NoError(t, err)
	h := hyperparametersAt(t, p, theta)
	want := mustNew(t, nil, h, obs).LogMarginalLikelihood() - meanPenalty(t, p, theta) + 40*math.Log(p.units.scale)
	average := 0.0 // of what slopes make of the learned noise
	for _, x := range obs.X {
		average += math.Exp(theta[4]*(x[0]-0.5)+theta[5]*(x[1]-0.5)) / 40
	}
	for _, term := range []struct {
		density func(float64) (float64, float64)
		at      float64
	}{
		{prior.Signal.LogDensity, theta[0]},
		{prior.Length.LogDensity, theta[1]},
		{prior.Length.LogDensity, theta[2]},
		{prior.Noise.LogDensity, theta[3] + math.Log(average)},
		{prior.Run.LogDensity, theta[7] + math.Log(average)},
		{prior.Slope.LogDensity, theta[4]},
		{prior.Slope.LogDensity, theta[5]},
		{prior.Decay.LogDensity, theta[6]},
	} {
		v, _ := term.density(term.at)
		want += v
	}
	if !scalar.EqualWithinAbs(-got, want, 1e-10) {
		t.Errorf("log posterior %v, want %v", -got, want)
	}
	if back := p.logs(h); maxDifference(back, theta) > 1e-14 {
		t.Errorf("θ = %v comes back as %v", theta, back)
	}
}

// sampleRuns draws a function and runs of it with five checkpoints each: the
// last input is the position of the checkpoint.
func sampleRuns(seed uint64, h Hyperparameters, runs int) Observations {
	const count = 5
	rng := newRand(seed)
	var obs Observations
	for run, x := range randomPoints(rng, runs, 1) {
		for k := range count {
			u := float64(k) / (count - 1)
			obs.X = append(obs.X, []float64{x[0], u})
			obs.Groups = append(obs.Groups, run+1)
			obs.Positions = append(obs.Positions, 4*u) // log epoch from 0 to 4
		}
	}
	quiet := h
	quiet.NoiseVariance, quiet.RunVariance = 0, 0
	f, _ := sample(seed, Matern52{}, quiet, obs.X)
	obs.Y = f
	n := len(f)
	covariance := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			covariance.SetSym(i, j, noiseCovariance(h, obs, i, j))
		}
	}
	var chol mat.Cholesky
	if !chol.Factorize(covariance) {
		panic("sampleRuns: covariance is singular")
	}
	var l mat.TriDense
	chol.LTo(&l)
	for i := range n {
		z := rng.NormFloat64()
		for k := i; k < n; k++ {
			obs.Y[k] += l.At(k, i) * z
		}
	}
	return obs
}

func TestFitRecoversNoise(t *testing.T) {
	truth := Hyperparameters{
		Mean: 3, SignalVariance: 2, LengthScales: []float64{0.3, 0.7},
		NoiseVariance: 0.05, NoiseSlopes: []float64{3, -1}, NoiseDecay: 1.5,
	}
	const samples = 6
	var slopes [2]float64
	var decay float64
	for s := range uint64(samples) {
		obs := sampleRuns(s, truth, 40)
		o := Options{Prior: &LogNormalPrior{}, NoiseSlopes: true, Restarts: 1, Seed: s}
		g := mustFit(t, obs, o)
		h := g.Hyperparameters()
		atMean := truth
		atMean.Mean = h.Mean
		if reference := mustNew(t, nil, atMean, obs).LogMarginalLikelihood(); g.LogMarginalLikelihood() < reference {
			t.Errorf("sample %d: the truth is more likely than the estimate %+v", s, h)
		}
		for j, b := range h.NoiseSlopes {
			slopes[j] += b / samples
			if math.Abs(b-truth.NoiseSlopes[j]) > 2 {
				t.Errorf("sample %d: noise slope %d is %v, want about %v", s, j, b, truth.NoiseSlopes[j])
			}
		}
		decay += math.Log(h.NoiseDecay/truth.NoiseDecay) / samples

		// Without the slopes the likelihood is much lower.
		o.NoiseSlopes = false
		flat := mustFit(t, obs, o)
		if flat.Hyperparameters().NoiseSlopes != nil {
			t.Error("slopes without Options.NoiseSlopes")
		}
		if gain := g.LogMarginalLikelihood() - flat.LogMarginalLikelihood(); gain < 5 {
			t.Errorf("sample %d: slopes gain %v", s, gain)
		}
	}
	// With about 150 degrees of freedom of the noise, the standard error of a
	// slope of one sample is √(2·12/150) = 0.4.
	for j, b := range slopes {
		if math.Abs(b-truth.NoiseSlopes[j]) > 0.6 {
			t.Errorf("mean noise slope %d is %v, want about %v", j, b, truth.NoiseSlopes[j])
		}
	}
	if math.Abs(decay) > 0.5 {
		t.Errorf("mean log(λ/truth) is %v, want about 0", decay)
	}
}

func TestNoise(t *testing.T) {
	g := mustNew(t, nil, Hyperparameters{
		SignalVariance: 1, LengthScales: []float64{1, 1}, NoiseVariance: 0.2, NoiseSlopes: []float64{2, -1},
	}, Observations{X: [][]float64{{0.2, 0.2}}, Y: []float64{0}, NoiseVariance: []float64{7}})
	for _, test := range []struct {
		x    []float64
		want float64
	}{
		{[]float64{0.5, 0.5}, 0.2},
		{[]float64{1, 0.5}, 0.2 * math.E},
		{[]float64{0, 1}, 0.2 * math.Exp(-1.5)},
		{[]float64{-3, 9}, 0.2 * math.Exp(-1.5)}, // as on the face
	} {
		if got := g.Noise(test.x); !scalar.EqualWithinRel(got, test.want, 1e-14) {
			t.Errorf("noise at %v is %v, want %v", test.x, got, test.want)
		}
	}
}

// A function without noise is interpolated, whether noise is expected or not.
func TestFitNoiseFree(t *testing.T) {
	obs := Observations{X: randomPoints(newRand(20), 50, 2)}
	for _, x := range obs.X {
		obs.Y = append(obs.Y, math.Sin(3*x[0])+x[1]*x[1])
	}
	units, err := standardise(obs.Y, 1)
	require.NoError(t, err)
	for _, o := range []Options{{}, {NoiseSlopes: true}} {
		g := mustFit(t, obs, o)
		for i, x := range obs.X {
			if noise := g.Noise(x) / (units.scale * units.scale); noise > 2e-5 {
				t.Errorf("noise at %v is %v of the variance", x, noise)
			}
			if mean, _ := g.Predict(x); math.Abs(mean-obs.Y[i]) > 1e-3*units.scale {
				t.Errorf("mean at %v is %v, want %v", x, mean, obs.Y[i])
			}
		}
	}
}

// What whole runs share is learned from how much they differ from each other, also where every curve is smooth, and
// the limit holds at every observation.
func TestFitRecoversRunNoise(t *testing.T) {
	truth := Hyperparameters{
		SignalVariance: 2, LengthScales: []float64{0.5, 0.7}, NoiseVariance: 1e-5, RunVariance: 0.05, NoiseDecay: 1,
	}
	const samples = 3
	var mean float64
	for s := range uint64(samples) {
		obs := sampleRuns(s, truth, 30)
		o := Options{Prior: &LogNormalPrior{}, MaxRunVariance: 10, Restarts: 1, Seed: s}
		mean += math.Log(mustFit(t, obs, o).Hyperparameters().RunVariance/truth.RunVariance) / samples
		o.NoiseSlopes, o.MaxNoise = true, 0.02
		g := mustFit(t, obs, o)
		for _, x := range obs.X {
			if noise := g.Noise(x); noise > 1.3*o.MaxNoise {
				t.Errorf("sample %d: noise %v at %v", s, noise, x)
			}
		}
		o.MaxRunVariance = 0
		if v := mustFit(t, obs, o).Hyperparameters().RunVariance; v != 0 {
			t.Errorf("sample %d: run variance %v without a bound", s, v)
		}
	}
	// The standard error of one sample is √(2/30) = 0.26 at least.
	if math.Abs(mean) > 0.5 {
		t.Errorf("mean log(σ_r²/truth) is %v, want about 0", mean)
	}
}

// Without two observations of one run there is nothing to learn the decay from.
func TestFitDecayWithoutPairs(t *testing.T) {
	obs := randomObservations(newRand(21), 10, 2)
	obs.Groups = []int{1, 2, 3, 0, 0, 4, 5, 6, 0, 0}
	start := someHyperparameters(2)
	for _, want := range []float64{1, 2.5} {
		if got := mustFit(t, obs, Options{Start: &start}).Hyperparameters().NoiseDecay; got != want {
			t.Errorf("decay %v, want %v", got, want)
		}
		start.NoiseDecay = 2.5
	}
}
