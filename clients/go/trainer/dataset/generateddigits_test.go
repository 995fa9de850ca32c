package dataset

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGeneratedDigits(t *testing.T) {
	d := GeneratedDigits(3000, 1)
	checkShape(t, d)
	if d.Name != "mnist-generated" || !d.Generated || d.Rows != 3000 || d.Dim != 784 || d.Classes != 10 {
		t.Errorf("name %s, generated %t, %d rows, dimension %d, %d classes", d.Name, d.Generated, d.Rows, d.Dim, d.Classes)
	}
	for i, v := range d.Dense {
		if pixel := 255 * float64(v); v < 0 || v > 1 || math.Abs(pixel-math.Round(pixel)) > 1e-4 {
			t.Fatalf("pixel %d of row %d is %v, no multiple of 1/255 between 0 and 1", i%784, i/784, v)
		}
	}

	// The class means classify most examples of another seed, but not all: there is
	// something to learn.
	var means [10][MNISTDim]float64
	var counts [10]float64
	for i, label := range d.Labels {
		_, row := d.Row(i)
		counts[int(label)]++
		for k, v := range row {
			means[int(label)][k] += float64(v)
		}
	}
	for c, count := range counts {
		if count < 200 || count > 400 {
			t.Errorf("%v examples of class %d, want about 300", count, c)
		}
		for k := range means[c] {
			means[c][k] /= count
		}
	}
	test := GeneratedDigits(500, 2)
	right := 0
	for i, label := range test.Labels {
		_, row := test.Row(i)
		best, nearest := math.Inf(1), -1
		for c := range means {
			var distance float64
			for k, v := range row {
				distance += (float64(v) - means[c][k]) * (float64(v) - means[c][k])
			}
			if distance < best {
				best, nearest = distance, c
			}
		}
		if nearest == int(label) {
			right++
		}
	}
	if rate := float64(right) / 500; rate < 0.7 || rate > 0.99 {
		t.Errorf("the nearest mean is right for %v of the examples", rate)
	}
}

func TestGeneratedDigitsAreDeterministic(t *testing.T) {
	if !cmp.Equal(GeneratedDigits(20, 5), GeneratedDigits(20, 5)) {
		t.Error("the same seed gives other examples")
	}
	if cmp.Equal(GeneratedDigits(20, 5).Dense, GeneratedDigits(20, 6).Dense) {
		t.Error("another seed gives the same examples")
	}
	// May not change: stored results depend on it.
	d := GeneratedDigits(3, 1)
	var ink [3]int
	for i := range ink {
		_, row := d.Row(i)
		for _, v := range row {
			ink[i] += int(math.Round(255 * float64(v)))
		}
	}
	if diff := cmp.Diff([3]int{32025, 32630, 39499}, ink); diff != "" {
		t.Errorf("ink of the first images (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float32{9, 9, 3}, d.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}
