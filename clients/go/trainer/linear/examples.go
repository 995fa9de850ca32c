package linear

import (
	"fmt"
	"math"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
)

// Examples are the signed and scaled records z_i of a dataset, whose norm is at
// most 1. They are not modified after they are made, and safe for concurrent use.
type Examples struct {
	data    *dataset.Dataset
	factors []float64 // z_i = factors[i]·x_i
}

// NewExamples returns the examples of a dataset for the norm bound B > 0, which must be a
// public constant: a maximum over the data would be private information. It returns an
// error if the dataset has no rows, a label is not −1 or 1, or a value is not finite. It
// panics if the bound is not positive and finite.
func NewExamples(data *dataset.Dataset, bound float64) (*Examples, error) {
	if !(bound > 0) || math.IsInf(bound, 1) {
		panic("linear: norm bound not positive and finite")
	}
	if data.Rows == 0 {
		return nil, fmt.Errorf("dataset %s is empty", data.Name)
	}
	factors := make([]float64, data.Rows)
	for i, label := range data.Labels {
		if label != -1 && label != 1 {
			return nil, fmt.Errorf("dataset %s: label of row %d is %v, want -1 or 1", data.Name, i, label)
		}
		norm := math.Sqrt(data.SquaredNorm(i))
		if math.IsNaN(norm) || math.IsInf(norm, 1) {
			return nil, fmt.Errorf("dataset %s: row %d has a value that is not finite", data.Name, i)
		}
		factors[i] = float64(label) / max(bound, norm)
	}
	return &Examples{data: data, factors: factors}, nil
}

// Rows returns the number of examples, at least 1.
func (e *Examples) Rows() int { return e.data.Rows }

// Dim returns the number of features.
func (e *Examples) Dim() int { return e.data.Dim }

// SquaredNorm returns ‖z_i‖² <= 1, up to rounding.
func (e *Examples) SquaredNorm(i int) float64 {
	return e.factors[i] * e.factors[i] * e.data.SquaredNorm(i)
}

// Margin returns θ·z_i, which is positive when θ classifies example i rightly.
func (e *Examples) Margin(i int, theta []float64) float64 {
	indices, values := e.data.Row(i)
	var sum float64
	switch {
	case values == nil:
		for _, index := range indices {
			sum += theta[index]
		}
	case indices == nil: // dense
		for k, value := range values {
			sum += theta[k] * float64(value)
		}
	default:
		for k, index := range indices {
			sum += theta[index] * float64(values[k])
		}
	}
	return e.factors[i] * sum
}

// AddScaled adds c·z_i to dst.
func (e *Examples) AddScaled(dst []float64, c float64, i int) {
	indices, values := e.data.Row(i)
	c *= e.factors[i]
	switch {
	case values == nil:
		for _, index := range indices {
			dst[index] += c
		}
	case indices == nil: // dense
		for k, value := range values {
			dst[k] += c * float64(value)
		}
	default:
		for k, index := range indices {
			dst[index] += c * float64(values[k])
		}
	}
}

// addOuter adds c·z_i·z_iᵀ to the upper triangle of the matrix dst, which is
// stored by rows of Dim elements.
func (e *Examples) addOuter(dst []float64, c float64, i int) {
	indices, values := e.data.Row(i)
	c *= e.factors[i] * e.factors[i]
	dim := e.data.Dim
	switch {
	case values == nil:
		for k, index := range indices {
			row := dst[int(index)*dim:][:dim]
			for _, other := range indices[k:] {
				row[other] += c
			}
		}
	case indices == nil: // dense
		for k, value := range values {
			row := dst[k*dim:][:dim]
			scaled := c * float64(value)
			for l := k; l < dim; l++ {
				row[l] += scaled * float64(values[l])
			}
		}
	default:
		for k, index := range indices {
			row := dst[int(index)*dim:][:dim]
			scaled := c * float64(values[k])
			for l := k; l < len(indices); l++ {
				row[indices[l]] += scaled * float64(values[l])
			}
		}
	}
}

// Evaluate returns the fraction of examples that the model θ classifies wrongly,
// a score θ·x of 0 being on the negative side, and their mean loss.
func (e *Examples) Evaluate(loss Loss, theta []float64) (errorRate, meanLoss float64) {
	checkLength(len(theta), e.Dim())
	wrong := 0
	var sum float64
	for i, factor := range e.factors {
		z := e.Margin(i, theta)
		if z < 0 || (z == 0 && factor > 0) {
			wrong++
		}
		sum += loss.Value(z)
	}
	n := float64(e.Rows())
	return float64(wrong) / n, sum / n
}

func checkLength(got, want int) {
	if got != want {
		panic("linear: dimension mismatch")
	}
}
