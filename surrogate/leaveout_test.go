package surrogate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"
	"gonum.org/v1/gonum/mat"

	"github.com/dpareto/dpareto/internal/require"
)

// some returns the observations with the given indices.
func (o Observations) some(indices []int) Observations {
	var out Observations
	for _, i := range indices {
		out.X, out.Y = append(out.X, o.X[i]), append(out.Y, o.Y[i])
		out.NoiseVariance = append(out.NoiseVariance, o.NoiseVariance[i])
		out.Groups, out.Positions = append(out.Groups, o.Groups[i]), append(out.Positions, o.Positions[i])
		out.Runs = append(out.Runs, o.Runs[i])
	}
	return out
}

// What the inverse of one matrix says of a left-out block is what a posterior says that
// never saw the block.
func TestLeaveOutMatchesPosteriorWithoutBlock(t *testing.T) {
	const d, tol = 3, 1e-8
	for seed := range uint64(12) {
		rng := newRand(100 + seed)
		n := 2 + rng.IntN(50)
		obs, h := checkpoints(seed, n, d), noisyHyperparameters(d)
		base := mustNew(t, nil, someHyperparameters(d), randomObservations(rng, 10, d))
		h.BaseWeight = 0.5
		newGP := func(o Observations) *GP {
			g, err := NewWithBase(nil, h, o, base)
			require.NoError(t, err)
			return g
		}
		// Blocks are whole runs, shuffled; the first also takes some other observations, and one
		// of the seeds leaves everything out.
		blocks := make([][]int, n+1)
		for i := range n {
			b := i + 1
			switch {
			case seed == 3:
				b = 0
			case obs.Groups[i] > 0:
				b = obs.Groups[i]
			case rng.IntN(4) == 0:
				b = 0
			}
			blocks[b] = append(blocks[b], i)
		}
		for _, b := range blocks {
			rng.Shuffle(len(b), func(i, j int) { b[i], b[j] = b[j], b[i] })
		}
		out, err := LeaveOut(t.Context(), newGP(obs), blocks)
		require.NoError(t, err)
		for k, block := range blocks {
			if len(block) == 0 {
				if out[k].Residuals != nil || out[k].Covariance != nil {
					t.Errorf("an empty block has %v", out[k])
				}
				continue
			}
			var others []int
			for i := range n {
				if !slices.Contains(block, i) {
					others = append(others, i)
				}
			}
			rest := newGP(obs.some(others))
			wanted := wantedJoint(t, rest, obs.some(block), h)
			for a, i := range block {
				mean, _ := rest.Predict(obs.X[i])
				if got := out[k].Residuals[a]; !scalar.EqualWithinAbsOrRel(got, obs.Y[i]-mean, tol, tol) {
					t.Errorf("seed %d, block %v: residual %d is %v, want %v", seed, block, a, got, obs.Y[i]-mean)
				}
				for b := range block {
					if got := out[k].Covariance.At(a, b); !scalar.EqualWithinAbsOrRel(got, wanted.At(a, b), tol, tol) {
						t.Errorf("seed %d, block %v: covariance (%d, %d) is %v, want %v", seed, block, a, b, got, wanted.At(a, b))
					}
				}
			}
		}
	}
}

// wantedJoint is the covariance of new observations given a posterior. An observation at y that
// is 1 above the mean moves the mean at x by cov(x, y) / (v(y) + noise).
func wantedJoint(t *testing.T, g *GP, obs Observations, h Hyperparameters) *mat.Dense {
	t.Helper()
	n := len(obs.X)
	out := mat.NewDense(n, n, nil)
	for b, y := range obs.X {
		mean, variance := g.Predict(y)
		next, err := g.Append(y, mean+1, 1)
		require.NoError(t, err)
		for a, x := range obs.X {
			before, _ := g.Predict(x)
			after, _ := next.Predict(x)
			out.Set(a, b, (after-before)*(variance+1+h.noise(y))+noiseCovariance(h, obs, a, b))
		}
	}
	return out
}

func TestLeaveOutFails(t *testing.T) {
	g := mustNew(t, nil, someHyperparameters(2), randomObservations(newRand(1), 5, 2))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := LeaveOut(ctx, g, [][]int{{1}}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	for _, block := range [][]int{{5}, {-1}, {1, 1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("no panic for the block %v", block)
				}
			}()
			_, _ = LeaveOut(t.Context(), g, [][]int{block})
		}()
	}
}

// The posterior mean that the loadings give for a draw is the one of a model with these
// outcomes, and the draws have the covariance of new observations.
func TestForeseeMatchesExtend(t *testing.T) {
	const d, tol = 3, 1e-9
	for seed := range uint64(8) {
		rng := newRand(seed)
		n, b := 5+rng.IntN(40), 1+rng.IntN(12)
		all, h := checkpoints(seed, n+b, d), noisyHyperparameters(d)
		indices := make([]int, n+b)
		for i := range indices {
			indices[i] = i
		}
		g := mustNew(t, nil, h, all.some(indices[:n]))
		next := all.some(indices[n:])
		f, err := g.Foresee(next)
		require.NoError(t, err)
		if f.Len() != b {
			t.Fatalf("%d observations, want %d", f.Len(), b)
		}
		// The outcomes that a draw stands for: mean + Pz, P from the rows of the factor.
		z, outcomes := randomNormals(rng, 1, b)[0], make([]float64, b)
		for i, x := range next.X {
			outcomes[i] = f.Predict(make([]float64, b), x)
			row := f.gp.factor[n+i]
			for a := range i + 1 {
				outcomes[i] += row[n+a] * z[a]
			}
			// The noise that the new observation shares with known ones of its run is in the
			// factor and not in the mean of the function.
			outcomes[i] += shared(f.gp, g, n+i)
		}
		for c := range b + 1 {
			part := all.some(indices[n : n+c])
			part.Y = outcomes[:c]
			after := g
			if c > 0 {
				if after, err = g.Extend(part); err != nil {
					t.Fatal(err)
				}
			}
			for _, x := range append(randomPoints(rng, 4, d), next.X...) {
				loadings := make([]float64, b)
				got := f.Predict(loadings, x)
				for i := range c {
					got += loadings[i] * z[i]
				}
				if want, _ := after.Predict(x); !scalar.EqualWithinAbsOrRel(got, want, tol, tol) {
					t.Errorf("seed %d, %d of %d outcomes: mean %v, want %v", seed, c, b, got, want)
				}
			}
		}
	}
}

// shared returns what the residuals of known observations say of the noise of observation i.
func shared(g, before *GP, i int) float64 {
	covariance := make([]float64, before.n)
	g.noise.addCovariances(covariance, i)
	sum := 0.0
	for k, c := range covariance {
		sum += c * before.weights[k]
	}
	return sum
}

func BenchmarkLeaveOut(b *testing.B) {
	for _, n := range []int{100, 512, 1200} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g := mustNew(b, nil, someHyperparameters(4), randomObservations(newRand(1), n, 4))
			blocks := make([][]int, n)
			for i := range blocks {
				blocks[i] = []int{i}
			}
			for b.Loop() {
				require.NoError(b, require.ErrOf(LeaveOut(b.Context(), g, blocks)))
			}
		})
	}
}
