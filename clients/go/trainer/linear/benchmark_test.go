package linear

import (
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/internal/require"
)

// One Newton step is one pass, one Hessian and one factorisation.
func BenchmarkNewton(b *testing.B) {
	d := dataset.Generated(10000, 1)
	o := Objective{Risk: newRisk(b, d, 4, Logistic{}), Ridge: 1e-3, Linear: randomVector(d.Dim, 0.01, 1)}
	theta := randomVector(d.Dim, 1, 2)
	perExample := func(b *testing.B) {
		b.Helper()
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(d.Rows), "ns/example")
	}
	b.Run("pass", func(b *testing.B) {
		p := o.newPoint()
		copy(p.theta, theta)
		b.ReportAllocs()
		for b.Loop() {
			p.evaluate(o)
		}
		perExample(b)
	})
	b.Run("hessian", func(b *testing.B) {
		p := o.newPoint()
		p.evaluate(o)
		hessian := mat.NewSymDense(d.Dim, nil)
		b.ReportAllocs()
		for b.Loop() {
			o.Risk.hessianTo(hessian, p.second)
		}
		perExample(b)
	})
	b.Run("factorize", func(b *testing.B) {
		p := o.newPoint()
		p.evaluate(o)
		hessian, work := mat.NewSymDense(d.Dim, nil), mat.NewSymDense(d.Dim, nil)
		o.Risk.hessianTo(hessian, p.second)
		var factor mat.Cholesky
		b.ReportAllocs()
		for b.Loop() {
			work.CopySym(hessian)
			o.factorizeTo(&factor, work)
		}
	})
	b.Run("minimize", func(b *testing.B) {
		b.ReportAllocs()
		steps := 0
		for b.Loop() {
			m, err := o.Minimize(b.Context(), nil, 0)
			require.NoError(b, err)
			steps = m.Iterations
		}
		b.ReportMetric(float64(steps), "steps")
	})
}
