package dataset

import (
	"math"
	"math/rand/v2"
)

const (
	// MNISTDim is the number of pixels of an image of MNIST.
	MNISTDim = digitSide * digitSide
	// digitSide is the number of pixels of a side of an image.
	digitSide = 28
	// digitClasses is the number of digits.
	digitClasses = 10
	// digitShift is by how many pixels a generated figure is moved at most.
	digitShift = 2
	// digitSeed draws the hidden figures, the same for every dataset.
	digitSeed = 1998
)

// GeneratedDigits returns rows made-up examples of the shape of MNIST: 784 pixels between
// 0 and 1 in steps of 1/255, ten classes. Each class has a hidden figure of a few strokes,
// the same for every seed; an example is the figure of its class, moved by up to two pixels
// in each direction and mixed with a weaker one of another class. The figures are no
// digits. The dataset's name is "mnist-generated" and it is marked as generated.
//
// Equal arguments give equal datasets. It panics when rows is negative.
func GeneratedDigits(rows int, seed uint64) *Dataset {
	if rows < 0 {
		panic("dataset: negative number of rows")
	}
	figures := newFigures()
	rng := rand.New(rand.NewPCG(seed, streamGenerated))
	d := &Dataset{
		Name: "mnist-generated", Generated: true, Rows: rows, Dim: MNISTDim, Classes: digitClasses,
		Dense:  make([]float32, rows*MNISTDim),
		Labels: make([]float32, rows),
	}
	shift := func() int { return rng.IntN(2*digitShift+1) - digitShift }
	for i := range rows {
		class := rng.IntN(digitClasses)
		other := (class + 1 + rng.IntN(digitClasses-1)) % digitClasses
		dx, dy, weak := shift(), shift(), 0.6*rng.Float64()
		_, row := d.Row(i)
		for y := range digitSide {
			for x := range digitSide {
				ink := figures[class].at(x-dx, y-dy) + weak*figures[other].at(x+dx, y+dy)
				row[y*digitSide+x] = float32(math.Round(255*min(ink, 1))) / 255
			}
		}
		d.Labels[i] = float32(class)
	}
	return d
}

// figure holds the ink of the pixels, between 0 and 1.
type figure [MNISTDim]float64

// at returns the ink at a position, 0 outside the image.
func (f *figure) at(x, y int) float64 {
	if x < 0 || y < 0 || x >= digitSide || y >= digitSide {
		return 0
	}
	return f[y*digitSide+x]
}

// newFigures draws the hidden figures: four strokes from point to point each.
func newFigures() *[digitClasses]figure {
	const (
		strokes = 4
		margin  = 5.0
		width   = 1.2 // of a stroke, as the standard deviation of its ink
		steps   = 24  // points of a stroke
	)
	rng := rand.New(rand.NewPCG(digitSeed, 0))
	point := func() (x, y float64) {
		return margin + (digitSide-2*margin)*rng.Float64(), margin + (digitSide-2*margin)*rng.Float64()
	}
	var figures [digitClasses]figure
	for c := range figures {
		x0, y0 := point()
		for range strokes {
			x1, y1 := point()
			for s := range steps {
				t := float64(s) / steps
				px, py := x0+t*(x1-x0), y0+t*(y1-y0)
				for pixel := range figures[c] {
					dx, dy := float64(pixel%digitSide)-px, float64(pixel/digitSide)-py
					ink := math.Exp(-(dx*dx + dy*dy) / (2 * width * width))
					if ink > 0.02 {
						figures[c][pixel] = max(figures[c][pixel], ink)
					}
				}
			}
			x0, y0 = x1, y1
		}
	}
	return &figures
}
