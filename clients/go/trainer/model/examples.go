package model

import (
	"fmt"
	"math"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
)

// Examples are a dataset prepared for models. They are read-only, and can be shared by
// any number of models.
type Examples struct {
	data *dataset.Dataset
	// classes of the rows, from 0.
	classes []int32
	count   int
	// signs of the rows, −1 and 1, when there are two classes; numbers to predict; nil otherwise.
	signs []float32
	// squaredNorms of the rows; nil when all stored values are 1, since the norm is
	// then the number of them.
	squaredNorms []float64
}

// NewExamples prepares a dataset. It is an error if there are no rows, or if the
// labels are not −1 and 1 or, with more than two classes, 0 to Classes−1, or if a row's norm is
// not finite or above 2⁵⁰.
func NewExamples(d *dataset.Dataset) (*Examples, error) {
	if d.Rows == 0 {
		return nil, fmt.Errorf("dataset %s is empty", d.Name)
	}
	e := &Examples{data: d, count: max(d.Classes, 2), classes: make([]int32, d.Rows)}
	if d.Numeric() {
		e.count, e.signs = 1, d.Labels
	}
	for i, label := range d.Labels {
		if d.Numeric() {
			if !(label >= -1 && label <= 1) {
				return nil, fmt.Errorf("dataset %s: label of row %d is outside [-1, 1]", d.Name, i)
			}
			continue
		}
		class := int32(label)
		if d.Classes <= 2 {
			if label != -1 && label != 1 {
				return nil, fmt.Errorf("dataset %s: label of row %d is %v, want -1 or 1", d.Name, i, label)
			}
			class = (class + 1) / 2
		} else if label != float32(class) || class < 0 || int(class) >= d.Classes {
			return nil, fmt.Errorf("dataset %s: label of row %d is %v, want a whole number from 0 to %d",
				d.Name, i, label, d.Classes-1)
		}
		e.classes[i] = class
	}
	if e.count == 2 {
		e.signs = make([]float32, d.Rows)
		for i, class := range e.classes {
			e.signs[i] = float32(2*class - 1)
		}
	}
	if d.Dense != nil || d.Values != nil {
		e.squaredNorms = make([]float64, d.Rows)
		for i := range e.squaredNorms {
			e.squaredNorms[i] = d.SquaredNorm(i)
			if !(e.squaredNorms[i] <= largestActivations) {
				return nil, fmt.Errorf("dataset %s: row %d has norm %.3g, want a finite number of at most %.3g",
					d.Name, i, math.Sqrt(e.squaredNorms[i]), math.Sqrt(largestActivations))
			}
		}
	}
	return e, nil
}

// Classes returns the number of classes, at least 2, or 1 if labels are numbers.
func (e *Examples) Classes() int { return e.count }

// squaredNorm returns the squared norm of a row.
func (e *Examples) squaredNorm(row int32) float64 {
	if e.squaredNorms == nil {
		return float64(e.data.RowStart[row+1] - e.data.RowStart[row])
	}
	return e.squaredNorms[row]
}

// dense returns the values of a row of a dense dataset.
func (e *Examples) dense(row int32) []float32 {
	dim := e.data.Dim
	return e.data.Dense[int(row)*dim : (int(row)+1)*dim]
}
