//go:build unix

package engine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/internal/sample"
	"github.com/dpareto/dpareto/suggest/space"
)

// cpuSeconds returns the processor time that this process has used, of all threads:
// unlike the wall clock it tells what a suggestion costs on a machine that is
// shared.
func cpuSeconds(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(u.Utime) + seconds(u.Stime)
}

// meter reports the processor time per operation of what it runs. With
// -cpu 1 that is the time of one thread.
func meter(b *testing.B, setUp, operation func()) {
	b.Helper()
	b.ReportAllocs()
	total := 0.0
	for b.Loop() {
		b.StopTimer()
		setUp()
		runtime.GC()
		before := cpuSeconds(b)
		b.StartTimer()
		operation()
		total += cpuSeconds(b) - before
	}
	b.ReportMetric(total/float64(b.N), "cpu-s/op")
}

// benchmarkStudy is a study in five parameters and two objectives.
type benchmarkStudy struct {
	problem  *suggest.Problem
	evaluate func(q space.Point, rng *rand.Rand) suggest.Evaluation
}

// exactStudy is DTLZ2 (Deb, Thiele, Laumanns, Zitzler, CEC 2002) with Gaussian noise
// of the given standard deviation.
func exactStudy(noise float64) benchmarkStudy {
	s := &space.Space{}
	for j := range 5 {
		s.Parameters = append(s.Parameters, space.Parameter{Name: fmt.Sprint("x", j), Kind: space.Double, Min: 0, Max: 1})
	}
	return benchmarkStudy{
		problem: &suggest.Problem{Space: s, Objectives: []suggest.Objective{
			{Name: "f1", Goal: suggest.Minimize, Reference: 1.1},
			{Name: "f2", Goal: suggest.Minimize, Reference: 1.1},
		}},
		evaluate: func(q space.Point, rng *rand.Rand) suggest.Evaluation {
			g := 1.0
			for _, v := range q[1:] {
				g += (v - 0.5) * (v - 0.5)
			}
			sin, cos := math.Sincos(q[0] * math.Pi / 2)
			e := suggest.Evaluation{Point: q, Values: []float64{g * cos, g * sin}}
			if noise == 0 {
				e.StdErrors = []float64{0, 0}
				return e
			}
			for j := range e.Values {
				e.Values[j] += noise * rng.NormFloat64()
			}
			return e
		},
	}
}

// exactKnownStudy is exactStudy without noise, its first objective known.
func exactKnownStudy() benchmarkStudy {
	s := exactStudy(0)
	s.problem.Objectives[0].Known = func(q space.Point) float64 { return s.evaluate(q, nil).Values[0] }
	return s
}

// outlierStudy is exactStudy with noise, where a tenth of the evaluations diverged.
func outlierStudy() benchmarkStudy {
	s := exactStudy(0.05)
	evaluate := s.evaluate
	s.evaluate = func(q space.Point, rng *rand.Rand) suggest.Evaluation {
		e := evaluate(q, rng)
		if rng.IntN(10) == 0 {
			e.Values[1] = 1e30
		}
		return e
	}
	return s
}

// knownStudy has a known privacy loss and a noisy error, on the scales of training
// with differential privacy.
func knownStudy() benchmarkStudy {
	p := &suggest.Problem{
		Space: &space.Space{Parameters: []space.Parameter{
			{Name: "rate", Kind: space.Double, Min: 1e-3, Max: 1, Scale: space.Log},
			{Name: "clip", Kind: space.Double, Min: 0.1, Max: 4},
			{Name: "noise", Kind: space.Double, Min: 0.1, Max: 16, Scale: space.Log},
			{Name: "lot", Kind: space.Integer, Min: 8, Max: 512, Scale: space.Log},
			{Name: "epochs", Kind: space.Integer, Min: 1, Max: 64, Scale: space.Log},
		}},
		Objectives: []suggest.Objective{
			{Name: "epsilon", Goal: suggest.Minimize, Transform: suggest.Log, Reference: 10, Known: func(q space.Point) float64 {
				return math.Sqrt(q[4]*q[3]) / q[2] / 10
			}},
			{Name: "error", Goal: suggest.Minimize, Transform: suggest.Logit, Reference: 1},
		},
	}
	return benchmarkStudy{
		problem: p,
		evaluate: func(q space.Point, rng *rand.Rand) suggest.Evaluation {
			away := math.Log(q[0]*q[1]/0.05) / 3
			z := -1.5 + away*away + 2*q[2]/q[3] + 1/q[4] + 0.1*rng.NormFloat64()
			return suggest.Evaluation{Point: q, Values: []float64{p.Objectives[0].Known(q), 1 / (1 + math.Exp(-z))}}
		},
	}
}

// trajectoryStudy is knownStudy with a measurement after every epoch.
func trajectoryStudy() benchmarkStudy {
	s := knownStudy()
	s.problem.Checkpoint = "epochs"
	return s
}

// history returns n runs, half of them spread over the space and half near the
// front's end of it, as a designer leaves them.
func (s benchmarkStudy) history(n int) *suggest.History {
	rng := rand.New(rand.NewPCG(1, 1))
	h := &suggest.History{}
	c := s.problem.CheckpointIndex()
	for i := range n {
		q := s.problem.Space.Sample(rng)
		if i%2 == 1 && len(h.Evaluations) > 0 {
			last := h.Evaluations[rng.IntN(len(h.Evaluations))].Point
			q = sample.Perturb(s.problem.Space, rng, last, 0.05)
		}
		if c < 0 {
			h.Evaluations = append(h.Evaluations, s.evaluate(q, rng))
			continue
		}
		for step := 1.0; step <= s.problem.Space.Parameters[c].Max; step++ {
			at := q.Clone()
			at[c] = step
			e := s.evaluate(at, rng)
			e.Run = int64(i + 1)
			h.Evaluations = append(h.Evaluations, e)
		}
	}
	return h
}

var benchmarkStudies = map[string]func() benchmarkStudy{
	"exact": func() benchmarkStudy { return exactStudy(0) },
	"noisy": func() benchmarkStudy { return exactStudy(0.05) },
	"known": knownStudy,

	"known exact": exactKnownStudy,
	"outliers":    outlierStudy,
}

// BenchmarkStudy is a whole study: 16 initial points and 256 suggestions, one after
// the other.
func BenchmarkStudy(b *testing.B) {
	for _, name := range []string{"exact", "known exact", "noisy", "known"} {
		b.Run(name, func(b *testing.B) {
			s := benchmarkStudies[name]()
			meter(b, func() {}, func() {
				d := New(Options{InitialPoints: 16})
				rng := rand.New(rand.NewPCG(2, 1))
				h := &suggest.History{}
				for i := range 16 + 256 {
					list, err := d.Suggest(b.Context(), s.problem, h, suggest.Request{Count: 1, Seed: 1, Number: int64(i + 1)})
					require.NoError(b, err)
					h.Evaluations = append(h.Evaluations, s.evaluate(list[0].Point, rng))
				}
			})
		})
	}
}

// benchmarkSuggest is one suggestion after history h, "cold" as after a restart, when
// hyperparameters must be learned again, and "warm".
func benchmarkSuggest(b *testing.B, name string, p *suggest.Problem, h *suggest.History) {
	b.Helper()
	d := New(Options{})
	suggest := func() {
		require.NoError(b, require.ErrOf(d.Suggest(b.Context(), p, h, suggest.Request{Count: 1, Seed: 1, Number: int64(len(h.Evaluations) + 1)})))
	}
	b.Run(name+"/cold", func(b *testing.B) { meter(b, func() { d = New(Options{}) }, suggest) })
	b.Run(name+"/warm", func(b *testing.B) { suggest(); meter(b, func() {}, suggest) })
}

// BenchmarkSuggest is one suggestion after n evaluations.
func BenchmarkSuggest(b *testing.B) {
	for _, name := range []string{"exact", "noisy", "known"} {
		for _, n := range []int{100, 1000, 5000, 10000} {
			s := benchmarkStudies[name]()
			benchmarkSuggest(b, fmt.Sprintf("%s/n=%d", name, n), s.problem, s.history(n))
		}
	}
}

// BenchmarkTrajectory is one suggestion after runs of 64 epochs each.
func BenchmarkTrajectory(b *testing.B) {
	for _, runs := range []int{20, 80, 300} {
		s := trajectoryStudy()
		benchmarkSuggest(b, fmt.Sprintf("runs=%d", runs), s.problem, s.history(runs))
	}
}

// BenchmarkPhases is one suggestion, or eight at once, after n evaluations, with the hyperparameters of earlier ones in
// memory. It reports the processor time of its phases: of the fit, of the search, and of the rest.
func BenchmarkPhases(b *testing.B) {
	for _, name := range []string{"exact", "noisy", "known", "outliers"} {
		for _, n := range []int{10, 100, 1000} {
			for _, count := range []int{1, 8} {
				b.Run(fmt.Sprintf("%s/n=%d/count=%d", name, n, count), func(b *testing.B) {
					s := benchmarkStudies[name]()
					h := s.history(n)
					d := New(Options{InitialPoints: 1})
					spent := make(map[suggest.Phase]float64)
					ctx := suggest.WithPhases(b.Context(), func(phase suggest.Phase, _ int) func() {
						before := cpuSeconds(b)
						return func() { spent[phase] += cpuSeconds(b) - before }
					})
					ask := func() {
						require.NoError(b, require.ErrOf(d.Suggest(ctx, s.problem, h, suggest.Request{Count: count, Seed: 1, Number: int64(n + 1)})))
					}
					ask()
					clear(spent)
					before := cpuSeconds(b)
					meter(b, func() {}, ask)
					all := cpuSeconds(b) - before
					fit, search := spent[suggest.PhaseFit], spent[suggest.PhaseSearch]
					b.ReportMetric(fit/float64(b.N), "fit-cpu-s/op")
					b.ReportMetric(search/float64(b.N), "search-cpu-s/op")
					b.ReportMetric((all-fit-search)/float64(b.N), "rest-cpu-s/op")
				})
			}
		}
	}
}
