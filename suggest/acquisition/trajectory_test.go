package acquisition

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/suggest/pareto"
)

// randomRun draws a run of T checkpoints whose known costs rise from below the
// front to beyond the reference, in the objective of the axis.
func randomRun(rng *rand.Rand, axis, checkpoints int, stdDev float64) (*pareto.Front, []float64, []Distribution) {
	points := make([][]float64, rng.IntN(7))
	for i := range points {
		x := rng.Float64()
		points[i] = []float64{x, x}
		points[i][1-axis] = 0.1 + 0.3*(1-x) + 0.1*rng.Float64()
	}
	known, distributions := make([]float64, checkpoints), make([]Distribution, checkpoints)
	for t := range known {
		known[t] = 0.05 + (float64(t)+0.8*rng.Float64())*1.1/float64(checkpoints)
		distributions[t] = Distribution{LogitNormal, logit(0.1 + 0.3*rng.Float64()), stdDev * (0.5 + rng.Float64())}
		if axis == 1 {
			distributions[t].Family = Gaussian
			distributions[t].Mean, distributions[t].StdDev = expit(distributions[t].Mean), distributions[t].StdDev/6
		}
	}
	return pareto.NewFront(points, []float64{1, 1}), known, distributions
}

// The improvement that a run with these outcomes brings, by hypervolumes.
func runImprovement(front *pareto.Front, axis int, known, outcomes []float64) float64 {
	points := front.Points()[:front.Len():front.Len()]
	for t, y := range outcomes {
		p := []float64{known[t], known[t]}
		p[1-axis] = y
		points = append(points, p)
	}
	return pareto.Hypervolume(points, front.Reference()) - front.Hypervolume()
}

// The value is a lower bound of the expectation: equal to it for one checkpoint,
// close for small StdDev.
func TestTrajectoryMonteCarlo(t *testing.T) {
	const draws = 20_000
	rng := rand.New(rand.NewPCG(8, 8))
	for k := range 24 {
		axis, checkpoints, stdDev := k%2, 1+k%3*3, []float64{0.03, 0.3}[k/2%2]
		front, known, distributions := randomRun(rng, axis, checkpoints, stdDev)
		outcomes := make([]float64, checkpoints)
		var sum, squares float64
		for range draws {
			for i, l := range distributions {
				outcomes[i] = l.Quantile(rng.NormFloat64())
			}
			gain := runImprovement(front, axis, known, outcomes)
			sum += gain
			squares += gain * gain
		}
		mean := sum / draws
		noise := 5*math.Sqrt(math.Max(squares/draws-mean*mean, 0)/draws) + 1e-12
		got := math.Exp(LogTrajectoryEHVI(front, axis, known, distributions, nil, nil))
		switch {
		case got > mean+noise:
			t.Errorf("case %d: %g, more than the expectation %g ± %g", k, got, mean, noise)
		case checkpoints == 1 && got < mean-noise:
			t.Errorf("case %d: %g for one checkpoint, want %g ± %g", k, got, mean, noise)
		case stdDev < 0.1 && got < 0.95*mean-noise:
			t.Errorf("case %d: %g, far below the expectation %g", k, got, mean)
		}
	}
}

// The value is the sum of its definition, over the strips that the front's cells
// are, with a maximum over all checkpoints before.
func TestTrajectoryDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 12))
	for range 500 {
		front, known, distributions := randomRun(rng, 0, 1+rng.IntN(9), 0.3)
		want := 0.0
		for _, c := range front.Cells() {
			for i := range known {
				next := front.Reference()[0]
				if i+1 < len(known) {
					next = math.Min(next, known[i+1])
				}
				width := math.Min(next, c.Upper[0]) - math.Max(known[i], c.Lower[0])
				best := 0.0
				for _, l := range distributions[:i+1] {
					best = math.Max(best, expectedGap(l, c.Upper[1]))
				}
				want += math.Max(width, 0) * best
			}
		}
		near(t, distributions, 0, "value", LogTrajectoryEHVI(front, 0, known, distributions, nil, nil), math.Log(want), 1e-11)
	}
}

// With outcomes known the value is the improvement itself.
func TestTrajectoryOfKnownOutcomes(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for k := range 500 {
		axis := k % 2
		front, known, distributions := randomRun(rng, axis, rng.IntN(8), 0)
		outcomes := make([]float64, len(distributions))
		for i, l := range distributions {
			outcomes[i] = l.Median()
		}
		want := runImprovement(front, axis, known, outcomes)
		got := math.Exp(LogTrajectoryEHVI(front, axis, known, distributions, nil, nil))
		near(t, distributions, 0, "improvement", got, want, 1e-13)
	}
}

func TestTrajectoryDerivatives(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 10))
	kinks := 0
	for k := range 300 {
		axis := k % 2
		front, known, distributions := randomRun(rng, axis, 1+rng.IntN(7), 0.3)
		for i := range distributions {
			distributions[i].Mean += 0.5 * float64(k%3) // up to the far tail on axis 1
		}
		dKnown, d := make([]float64, len(known)), make([]Partial, len(known))
		value := LogTrajectoryEHVI(front, axis, known, distributions, dKnown, d)
		if math.IsInf(value, -1) {
			continue
		}
		check := func(name string, i int, x *float64, got float64) {
			old, h := *x, 1e-7
			at := func(v float64) float64 {
				*x = v
				defer func() { *x = old }()
				return LogTrajectoryEHVI(front, axis, known, distributions, nil, nil)
			}
			if forward, backward := (at(old+h)-value)/h, (value-at(old-h))/h; math.Abs(forward-backward) > 1e-3*(1+math.Abs(forward)) {
				kinks++ // a derivative from one side only
				return
			}
			near(t, name, float64(i), "derivative", got, slope(at, old, h), 1e-4)
		}
		for i := range distributions {
			check("Mean", i, &distributions[i].Mean, d[i].Mean)
			check("StdDev", i, &distributions[i].StdDev, d[i].StdDev)
			check("known", i, &known[i], dKnown[i])
		}
	}
	if kinks > 30 {
		t.Errorf("%d derivatives were not compared", kinks)
	}
}

// One checkpoint is a point with a known objective.
func TestTrajectoryOfOneCheckpoint(t *testing.T) {
	front := exampleFront()
	l := Distribution{LogitNormal, -1, 0.3}
	got := math.Exp(LogTrajectoryEHVI(front, 0, []float64{0.7}, []Distribution{l}, nil, nil))
	// Strips by hand: from 0.7 to 2 below 0.25, to 8 below 0.20, to 10 below 0.17.
	want := 1.3*expectedGap(l, 0.25) + 6*expectedGap(l, 0.20) + 2*expectedGap(l, 0.17)
	near(t, l, 0.7, "improvement", got, want, 1e-13)
}

// A checkpoint that shares its known cost with a point of the front has the
// derivative of an infinitesimally later one.
func TestTrajectoryTie(t *testing.T) {
	front := exampleFront()
	distributions := []Distribution{{LogitNormal, -1, 0.3}, {LogitNormal, -1.2, 0.3}}
	tie, later := make([]float64, 2), make([]float64, 2)
	LogTrajectoryEHVI(front, 0, []float64{0.3, 0.5}, distributions, tie, nil)
	LogTrajectoryEHVI(front, 0, []float64{0.3, 0.5 + 1e-9}, distributions, later, nil)
	near(t, distributions, 0.5, "derivative", tie[1], later[1], 1e-7)
}

func TestTrajectoryBeyondReference(t *testing.T) {
	front := exampleFront()
	l := Distribution{LogitNormal, -1, 0.3}
	dKnown, d := make([]float64, 3), make([]Partial, 3)
	with := LogTrajectoryEHVI(front, 0, []float64{0.7, 10, math.Inf(1)}, []Distribution{l, l, l}, dKnown, d)
	if without := LogTrajectoryEHVI(front, 0, []float64{0.7}, []Distribution{l}, nil, nil); with != without {
		t.Errorf("%g with checkpoints beyond the reference, %g without", with, without)
	}
	if dKnown[1] != 0 || d[2] != (Partial{}) {
		t.Errorf("derivatives %v, %v beyond the reference", dKnown, d)
	}
	if got := LogTrajectoryEHVI(front, 0, []float64{10, 11, 12}, []Distribution{l, l, l}, dKnown, d); !math.IsInf(got, -1) || d[0] != (Partial{}) {
		t.Errorf("value %g, derivatives %v of a run beyond the reference", got, d)
	}
	if got := LogTrajectoryEHVI(front, 0, nil, nil, nil, nil); !math.IsInf(got, -1) {
		t.Errorf("no checkpoints: %g", got)
	}
}
