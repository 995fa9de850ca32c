package dataset

import (
	"fmt"
	"math"
)

// Sizes of histograms of oriented gradients, as Dalal and Triggs chose them, for pixels of digits.
const (
	hogCell  = 4 // pixels
	hogBins  = 9 // orientations over half a turn
	hogBlock = 2 // cells
	hogClip  = 0.2
)

// HOG returns the examples with histograms of oriented gradients in place of the pixels of square grey images, of at
// least 8 x 8 (Dalal and Triggs, "Histograms of oriented gradients for human detection", CVPR 2005): of every cell of
// 4 x 4 pixels a histogram of 9 orientations, normalised in every block of 2 x 2 cells. Every
// block has norm 1 at most: a row of MNIST, of 6 x 6 blocks, norm 6.
//
// The features of a row are a function of its pixels alone, without anything learned from other rows. A guarantee for
// the features is one for the images.
//
// It is an error if CheckHOG returns one.
func HOG(d *Dataset) (*Dataset, error) {
	if err := CheckHOG(d); err != nil {
		return nil, err
	}
	side := int(math.Sqrt(float64(d.Dim)))
	cells := side / hogCell
	blocks := cells - hogBlock + 1
	const size = hogBlock * hogBlock * hogBins
	made := *d
	made.Dim = blocks * blocks * size
	made.Dense = make([]float32, d.Rows*made.Dim)
	histograms := make([]float64, cells*cells*hogBins)
	var block [size]float64
	for i := range d.Rows {
		orientationsTo(histograms, d.Dense[i*d.Dim:(i+1)*d.Dim], side, cells)
		row := made.Dense[i*made.Dim : (i+1)*made.Dim]
		for y := range blocks {
			for x := range blocks {
				for r := range hogBlock {
					const width = hogBlock * hogBins
					copy(block[r*width:(r+1)*width], histograms[((y+r)*cells+x)*hogBins:])
				}
				normalise(block[:])
				for k, v := range block {
					block[k] = min(v, hogClip)
				}
				normalise(block[:])
				for k, v := range block {
					row[k] = float32(v)
				}
				row = row[size:]
			}
		}
	}
	return &made, nil
}

// CheckHOG returns an error unless the rows are dense, as many values as square images of at least 8 x 8 have. It allows
// outlines, whose rows hold no values.
func CheckHOG(d *Dataset) error {
	const least = hogCell * hogBlock
	side := int(math.Sqrt(float64(d.Dim)))
	switch {
	case side*side != d.Dim || side < least:
		return fmt.Errorf("dataset %s: has rows of %d features, want the pixels of square images of at least %d x %[3]d", d.Name, d.Dim, least)
	case d.Dense == nil && len(d.Indices) > 0:
		return fmt.Errorf("dataset %s: has sparse rows, want images", d.Name)
	}
	return nil
}

// normalise divides a vector by its norm, and leaves 0 as it is.
func normalise(v []float64) {
	const least = 1e-3 // below any gradient that is seen
	square := least * least
	for _, x := range v {
		square += x * x
	}
	norm := math.Sqrt(square)
	for k := range v {
		v[k] /= norm
	}
}

// orientationsTo stores the histograms of the cells of an image. A gradient counts by its length, in the two nearest
// orientations and the four nearest cells.
func orientationsTo(histograms []float64, pixels []float32, side, cells int) {
	clear(histograms)
	at := func(y, x int) float64 {
		return float64(pixels[min(max(y, 0), side-1)*side+min(max(x, 0), side-1)])
	}
	for y := range side {
		for x := range side {
			dy, dx := at(y+1, x)-at(y-1, x), at(y, x+1)-at(y, x-1)
			if dx == 0 && dy == 0 {
				continue
			}
			length := math.Hypot(dx, dy)
			turn := math.Atan2(dy, dx) / math.Pi // half turns
			bin, inBin := split((turn-math.Floor(turn))*hogBins - 0.5)
			row, inRow := split((float64(y)+0.5)/hogCell - 0.5)
			column, inColumn := split((float64(x)+0.5)/hogCell - 0.5)
			for r := range 2 {
				for c := range 2 {
					if row+r < 0 || row+r >= cells || column+c < 0 || column+c >= cells {
						continue
					}
					weight := length * share(inRow, r) * share(inColumn, c)
					cell := histograms[((row+r)*cells+column+c)*hogBins:][:hogBins]
					for b := range 2 {
						cell[(bin+b+hogBins)%hogBins] += weight * share(inBin, b)
					}
				}
			}
		}
	}
}

// split returns the whole number below v and the rest.
func split(v float64) (whole int, rest float64) {
	floor := math.Floor(v)
	return int(floor), v - floor
}

// share is the part of a value between two places that belongs to the first or the second of them.
func share(rest float64, place int) float64 {
	if place == 0 {
		return 1 - rest
	}
	return rest
}
