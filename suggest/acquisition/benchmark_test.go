package acquisition

import (
	"fmt"
	"math"
	"testing"

	"github.com/dpareto/dpareto/suggest/pareto"
)

func BenchmarkHVPoI(b *testing.B) {
	front := exampleFront()
	distributions := []Distribution{{LogNormal, -1.2, 0.2}, {LogitNormal, -1, 0.15}}
	b.ReportAllocs()
	for b.Loop() {
		HVPoI(front, distributions)
	}
}

func BenchmarkEHVI(b *testing.B) {
	front := exampleFront()
	distributions := []Distribution{{LogNormal, -1.2, 0.2}, {LogitNormal, -1, 0.15}}
	b.ReportAllocs()
	for b.Loop() {
		EHVI(front, distributions)
	}
}

func BenchmarkLogShortfall(b *testing.B) {
	for _, family := range families {
		for _, z := range []float64{-20, -2, 2} {
			b.Run(fmt.Sprintf("family=%d/z=%g", family, z), func(b *testing.B) {
				l := Distribution{family, -1, 0.3}
				t := l.Quantile(z)
				if family == NegatedLogNormal {
					t = l.Quantile(-z)
				}
				b.ReportAllocs()
				for b.Loop() {
					l.LogShortfall(t)
				}
			})
		}
	}
}

// convexFront has n points in (epsilon, error).
func convexFront(n int) *pareto.Front {
	points := make([][]float64, n)
	for i := range points {
		x := 0.1 * math.Pow(80, float64(i)/float64(n))
		points[i] = []float64{x, 0.1 + 0.4/(1+x)}
	}
	return pareto.NewFront(points, []float64{10, 1})
}

func BenchmarkLogEHVI(b *testing.B) {
	d := make([]Partial, 4)
	run := func(name string, front *pareto.Front, distributions ...Distribution) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				LogEHVI(front, distributions, d[:len(distributions)])
			}
		})
	}
	run("m=2", convexFront(20), Distribution{LogNormal, 0, 0.3}, Distribution{LogitNormal, -1.5, 0.3})
	run("m=2/known", convexFront(20), Distribution{Gaussian, 1, 0}, Distribution{LogitNormal, -1.5, 0.3})
	run("m=2/known/Gaussian", convexFront(20), Distribution{Gaussian, 1, 0}, Distribution{Gaussian, 0.2, 0.05})
	points := make([][]float64, 25)
	for i := range points {
		x := float64(i)
		points[i] = []float64{math.Mod(x*0.618, 1), math.Mod(x*0.414, 1), math.Mod(x*0.732, 1), 2 - math.Mod(x*0.236, 1)}
	}
	run("m=4", pareto.NewFront(points, []float64{1, 1, 1, 2}),
		Distribution{Gaussian, 0.5, 0.1}, Distribution{Gaussian, 0.4, 0.1}, Distribution{Gaussian, 0.5, 0.1}, Distribution{Gaussian, 1.5, 0.1})
}

func BenchmarkLogTrajectoryEHVI(b *testing.B) {
	front := convexFront(19)
	known := make([]float64, 7)
	d := make([]Partial, len(known))
	dKnown := make([]float64, len(known))
	for _, family := range []Family{Gaussian, LogitNormal} {
		for _, first := range []float64{0.05, 1} {
			distributions := make([]Distribution, len(known))
			for t := range known {
				known[t] = first * math.Pow(1.3, float64(t))
				distributions[t] = Distribution{family, 0.3 - 0.02*float64(t), 0.1}
				if family == LogitNormal {
					distributions[t].Mean = logit(distributions[t].Mean)
				}
			}
			b.Run(fmt.Sprintf("family=%d/first=%g", family, first), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					LogTrajectoryEHVI(front, 0, known, distributions, dKnown, d)
				}
			})
		}
	}
}
