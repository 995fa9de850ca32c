package dataset

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
)

// images returns random images, the last one blank.
func images(rows, side int) *Dataset {
	rng := rand.New(rand.NewPCG(1, 2))
	b := newBuilder(rows, rows*side*side, true)
	for i := range rows {
		pixels := make([]float32, side*side)
		for k := range pixels {
			if i < rows-1 {
				pixels[k] = rng.Float32()
			}
		}
		b.add(float32(i%3), nil, pixels)
	}
	return b.dataset("images", side*side)
}

// Blocks have norm 1, a blank image is 0, and labels stay.
func TestHOG(t *testing.T) {
	d := images(7, 28)
	made, err := HOG(d)
	require.NoError(t, err)
	if made.Dim != 6*6*4*9 || made.Rows != d.Rows || !slices.Equal(made.Labels, d.Labels) || made.Classes != 3 {
		t.Fatalf("%d rows of %d features, %d classes", made.Rows, made.Dim, made.Classes)
	}
	for i := range made.Rows {
		norm := math.Sqrt(made.SquaredNorm(i))
		if want := map[bool]float64{true: 0, false: 6}[i == made.Rows-1]; norm > 6+1e-5 || norm < want-1e-2 {
			t.Errorf("row %d has norm %v, want %v", i, norm, want)
		}
	}
}

// A row is a function of its own pixels: what stands in other rows does not change it. Neither brightness nor
// contrast does, and turning an image by half a turn reverses the blocks and the cells in them.
func TestHOGIsOfOneRow(t *testing.T) {
	d := images(5, 16)
	all, err := HOG(d)
	require.NoError(t, err)
	for i := range d.Rows {
		alone, err := HOG(d.Select("one", []int{i}))
		require.NoError(t, err)
		if _, want := all.Row(i); !slices.Equal(alone.Dense, want) {
			t.Errorf("row %d is another without the others", i)
		}
		turned, brighter := d.Select("turned", []int{i}), d.Select("brighter", []int{i})
		slices.Reverse(turned.Dense)
		for k := range brighter.Dense {
			brighter.Dense[k] = 3*brighter.Dense[k] + 2
		}
		half, err := HOG(turned)
		require.NoError(t, err)
		bright, err := HOG(brighter)
		require.NoError(t, err)
		cells := len(half.Dense) / hogBins
		for k, want := range alone.Dense {
			cell := k / hogBins
			if got := half.Dense[(cells-1-cell)*hogBins+k%hogBins]; math.Abs(float64(got-want)) > 1e-4 {
				t.Fatalf("turned: feature %d is %v, want %v", k, got, want)
			}
			if got := bright.Dense[k]; math.Abs(float64(got-want)) > 1e-4 {
				t.Fatalf("brighter: feature %d is %v, want %v", k, got, want)
			}
		}
	}
}

// An edge has its orientation: of vertical stripes the gradient is horizontal, at the border of the last and the
// first bin.
func TestHOGOrientation(t *testing.T) {
	const side = 8
	pixels := make([]float32, side*side)
	for k := range pixels {
		pixels[k] = float32(k % side)
	}
	d := &Dataset{Name: "ramp", Rows: 1, Dim: side * side, Dense: pixels, Labels: []float32{1}}
	made, err := HOG(d)
	require.NoError(t, err)
	for k, v := range made.Dense {
		if bin := k % hogBins; (bin == 0 || bin == hogBins-1) != (v > 0) {
			t.Errorf("feature %d (bin %d) is %v", k, bin, v)
		}
	}
}

func TestCheckHOG(t *testing.T) {
	for want, d := range map[string]*Dataset{
		"dataset a: has rows of 50 features, want the pixels of square images of at least 8 x 8": {Name: "a", Rows: 1, Dim: 50, Dense: make([]float32, 50)},
		"dataset b: has rows of 49 features, want the pixels of square images of at least 8 x 8": {Name: "b", Rows: 1, Dim: 49, Dense: make([]float32, 49)},
		"dataset c: has sparse rows, want images":                                                {Name: "c", Rows: 1, Dim: 64, RowStart: []int{0, 1}, Indices: []int32{1}},
	} {
		if _, err := HOG(d); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if err := CheckHOG(&Dataset{Name: "outline", Rows: 1, Dim: 64, RowStart: []int{0, 0}}); err != nil {
		t.Error(err)
	}
}
