package estimate

import (
	"testing"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/linear"
	"github.com/dpareto/dpareto/internal/require"
)

// What one draw costs in the shape of Adult, 10,000 records of 123 features with 14 ones.
func BenchmarkDraw(b *testing.B) {
	examples, err := linear.NewExamples(dataset.Generated(10000, 1), 4)
	require.NoError(b, err)
	p := Problem{Risk: linear.Risk{Examples: examples, Loss: linear.Logistic{}}, Regularization: 1e-6}
	u := unitNoise(examples.Dim(), 1, 0)
	s, err := p.Solve(b.Context(), u, 0.5, nil)
	require.NoError(b, err)
	b.Run("solve", func(b *testing.B) {
		for b.Loop() {
			if _, err := p.Solve(b.Context(), u, 0.5, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("derivatives", func(b *testing.B) {
		for b.Loop() {
			if _, err := p.Derivatives(u, s); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("quadratic", func(b *testing.B) {
		for b.Loop() {
			if _, err := p.Quadratic(s.Theta); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("hermite", func(b *testing.B) {
		for b.Loop() {
			if _, err := p.Hermite(b.Context(), u, Anchors(0.05, 1, 4)); err != nil {
				b.Fatal(err)
			}
		}
	})
	path, err := p.Hermite(b.Context(), u, Anchors(0.05, 1, 4))
	require.NoError(b, err)
	b.Run("utility", func(b *testing.B) {
		for b.Loop() {
			if _, err := path.Utility(b.Context(), 0.3); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("newton20", func(b *testing.B) {
		for b.Loop() {
			exact := p.Newton(u)
			for k := 20; k > 0; k-- {
				if _, err := exact.Utility(b.Context(), float64(k)/20); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
