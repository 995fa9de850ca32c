package dataset

import "slices"

// Dataset holds labelled examples in compressed sparse rows. It must not be
// modified after it is made, and is then safe for concurrent use.
//
// Row i consists of the features Indices[RowStart[i]:RowStart[i+1]] and their
// values at the same positions of Values. Within a row the indices increase.
type Dataset struct {
	// Name for people, such as "adult-published-train".
	Name string
	// Generated tells that the examples are made up, by Generated, and must be
	// labelled as such wherever results are shown.
	Generated bool
	// Rows is the number of examples.
	Rows int
	// Dim is the number of features; indices are in [0, Dim).
	Dim int
	// RowStart has Rows+1 elements, from 0 to the number of stored values.
	RowStart []int
	// Indices of the stored values, from 0.
	Indices []int32
	// Values is nil when every stored value is 1, as in one-hot encoded data.
	Values []float32
	// Labels of the examples as in the file: −1 and 1 in Adult.
	Labels []float32
}

// Row returns the indices and values of row i in [0, Rows). The values are nil
// when every stored value is 1. The slices belong to the dataset.
func (d *Dataset) Row(i int) (indices []int32, values []float32) {
	lo, hi := d.RowStart[i], d.RowStart[i+1]
	if d.Values != nil {
		values = d.Values[lo:hi]
	}
	return d.Indices[lo:hi], values
}

// SquaredNorm returns the squared Euclidean norm of row i in [0, Rows).
func (d *Dataset) SquaredNorm(i int) float64 {
	indices, values := d.Row(i)
	if values == nil {
		return float64(len(indices))
	}
	var sum float64
	for _, v := range values {
		sum += float64(v) * float64(v)
	}
	return sum
}

// Positives returns the number of rows whose label is positive.
func (d *Dataset) Positives() int {
	n := 0
	for _, label := range d.Labels {
		if label > 0 {
			n++
		}
	}
	return n
}

// Select returns a new dataset of the given rows, in that order. A row may occur
// more than once; a row outside [0, Rows) panics.
func (d *Dataset) Select(name string, rows []int) *Dataset {
	stored := 0
	for _, i := range rows {
		stored += d.RowStart[i+1] - d.RowStart[i]
	}
	b := newBuilder(len(rows), stored)
	for _, i := range rows {
		indices, values := d.Row(i)
		b.add(d.Labels[i], indices, values)
	}
	selected := b.dataset(name, d.Dim)
	selected.Generated = d.Generated
	return selected
}

// Concat returns a new dataset of the rows of a followed by those of b. It panics
// when their dimensions differ.
func Concat(name string, a, b *Dataset) *Dataset {
	if a.Dim != b.Dim {
		panic("dataset: dimension mismatch")
	}
	all := newBuilder(a.Rows+b.Rows, len(a.Indices)+len(b.Indices))
	for _, d := range []*Dataset{a, b} {
		for i := range d.Rows {
			indices, values := d.Row(i)
			all.add(d.Labels[i], indices, values)
		}
	}
	joined := all.dataset(name, a.Dim)
	joined.Generated = a.Generated || b.Generated
	return joined
}

// builder collects the rows of a dataset.
type builder struct {
	rowStart []int
	indices  []int32
	values   []float32 // always stored; dropped at the end when all are 1
	labels   []float32
}

// newBuilder makes room for the given numbers of rows and stored values.
func newBuilder(rows, stored int) *builder {
	return &builder{
		rowStart: append(make([]int, 0, rows+1), 0),
		indices:  make([]int32, 0, stored),
		values:   make([]float32, 0, stored),
		labels:   make([]float32, 0, rows),
	}
}

// add appends a row; nil values stand for ones.
func (b *builder) add(label float32, indices []int32, values []float32) {
	b.labels = append(b.labels, label)
	b.indices = append(b.indices, indices...)
	if values == nil {
		for range indices {
			b.values = append(b.values, 1)
		}
	} else {
		b.values = append(b.values, values...)
	}
	b.rowStart = append(b.rowStart, len(b.indices))
}

// dataset returns what was collected. The builder must not be used afterwards.
func (b *builder) dataset(name string, dim int) *Dataset {
	d := &Dataset{
		Name:     name,
		Rows:     len(b.labels),
		Dim:      dim,
		RowStart: b.rowStart,
		Indices:  b.indices,
		Labels:   b.labels,
	}
	if slices.ContainsFunc(b.values, func(v float32) bool { return v != 1 }) {
		d.Values = b.values
	}
	return d
}
