package dataset

import (
	"slices"
)

// Dataset holds labelled examples: sparse ones in compressed sparse rows, or dense
// ones as a matrix. It must not be modified after it is made, and is then safe for
// concurrent use.
//
// Row i of sparse data consists of the features Indices[RowStart[i]:RowStart[i+1]] and
// their values at the same positions of Values; within a row the indices increase. Row i
// of dense data is Dense[i*Dim:(i+1)*Dim].
type Dataset struct {
	// Name for people, such as "adult-published-train".
	Name string
	// Generated means that the examples are made up, by Generated or GeneratedDigits, and
	// must be labelled as such wherever results are shown.
	Generated bool
	// Rows is the number of examples.
	Rows int
	// Dim is the number of features; indices are in [0, Dim).
	Dim int
	// Classes is the number of classes: 2 for labels −1 and 1, K > 2 for labels 0 to
	// K−1, and 0 for labels that are neither.
	Classes int
	// ClassNames are the texts of the classes in a user's own data; nil in others.
	ClassNames []string
	// FeatureNorm is a public bound on the Euclidean norm of every row, by which a schema encodes it. 0 where
	// none is stated.
	FeatureNorm float64
	// LabelRange has the ends of the public range of labels that are numbers. Labels are then in [−1, 1], from the
	// first end to the second, and Classes is 0. Both ends are 0 for classes.
	LabelRange [2]float64
	// RowStart has Rows+1 elements, from 0 to the number of stored values. Nil for
	// dense data.
	RowStart []int
	// Indices of the stored values, from 0. Nil for dense data.
	Indices []int32
	// Values is nil when every stored value is 1, as in one-hot encoded data, and for
	// dense data.
	Values []float32
	// Dense holds the Rows x Dim features by rows. Nil for sparse data, and only then.
	Dense []float32
	// Labels of the examples: see Classes.
	Labels []float32
	// Groups of the examples, from 0, whose errors a schema compares; −1 for an example of none. Nil where no schema
	// names groups.
	Groups []int
}

// Row returns the indices and values of row i in [0, Rows). For sparse data, values is
// nil if every stored value is 1; for dense data, indices is nil and values has all Dim
// features. The slices belong to the dataset.
func (d *Dataset) Row(i int) (indices []int32, values []float32) {
	if d.Dense != nil {
		return nil, d.Dense[i*d.Dim : (i+1)*d.Dim]
	}
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

// Numeric reports whether the labels are numbers to predict (regression).
func (d *Dataset) Numeric() bool { return d.LabelRange[0] < d.LabelRange[1] }

// LeastGroup is the least number of examples of a group whose error is compared: the standard error of a rate is at most
// 0.05 then.
const LeastGroup = 100

// Compared returns the rows of every group of at least LeastGroup examples, by group.
func (d *Dataset) Compared() [][]int {
	var groups [][]int
	for i, group := range d.Groups {
		for group >= len(groups) {
			groups = append(groups, nil)
		}
		if group >= 0 {
			groups[group] = append(groups[group], i)
		}
	}
	return slices.DeleteFunc(groups, func(rows []int) bool { return len(rows) < LeastGroup })
}

// Select returns a new dataset of the given rows, in that order. A row may occur
// more than once; a row outside [0, Rows) panics.
func (d *Dataset) Select(name string, rows []int) *Dataset {
	stored := len(rows) * d.Dim
	if d.Dense == nil {
		stored = 0
		for _, i := range rows {
			stored += d.RowStart[i+1] - d.RowStart[i]
		}
	}
	b := newBuilder(len(rows), stored, d.Dense != nil)
	for _, i := range rows {
		indices, values := d.Row(i)
		b.add(d.Labels[i], indices, values)
	}
	selected := b.dataset(name, d.Dim)
	selected.Generated = d.Generated
	selected.Classes, selected.ClassNames, selected.FeatureNorm, selected.LabelRange = d.Classes, d.ClassNames, d.FeatureNorm, d.LabelRange
	if d.Groups != nil {
		selected.Groups = make([]int, len(rows))
		for k, i := range rows {
			selected.Groups[k] = d.Groups[i]
		}
	}
	return selected
}

// Concat returns a new dataset of the rows of a followed by the rows of b, with the
// larger number of classes. It panics if their dimensions differ or only one of them is
// dense.
func Concat(name string, a, b *Dataset) *Dataset {
	if a.Dim != b.Dim {
		panic("dataset: dimension mismatch")
	}
	if (a.Dense == nil) != (b.Dense == nil) {
		panic("dataset: sparse and dense data")
	}
	stored := len(a.Indices) + len(b.Indices) + len(a.Dense) + len(b.Dense)
	all := newBuilder(a.Rows+b.Rows, stored, a.Dense != nil)
	for _, d := range []*Dataset{a, b} {
		for i := range d.Rows {
			indices, values := d.Row(i)
			all.add(d.Labels[i], indices, values)
		}
	}
	joined := all.dataset(name, a.Dim)
	joined.Generated = a.Generated || b.Generated
	joined.Classes = max(a.Classes, b.Classes)
	return joined
}

// classLabel returns the label of class k of the given number of classes.
func classLabel(k, classes int) float32 {
	if classes == 2 {
		return float32(2*k - 1)
	}
	return float32(k)
}

// countClasses returns the number of classes by the labels, as in Dataset.
func countClasses(labels []float32) int {
	signs, whole, largest := true, true, float32(0)
	for _, label := range labels {
		signs = signs && (label == -1 || label == 1)
		whole = whole && label >= 0 && label < maxClasses && label == float32(int(label))
		largest = max(largest, label)
	}
	switch {
	case signs:
		return 2
	case whole && largest >= 2:
		return int(largest) + 1
	default:
		return 0
	}
}

// maxClasses bounds the number of classes that labels can show: larger numbers are
// measurements.
const maxClasses = 1 << 16

// builder collects the rows of a dataset.
type builder struct {
	rowStart []int
	indices  []int32
	values   []float32 // of sparse data always stored; dropped at the end when all are 1
	labels   []float32
	dense    bool
}

// newBuilder makes room for the given numbers of rows and stored values.
func newBuilder(rows, stored int, dense bool) *builder {
	b := &builder{dense: dense, values: make([]float32, 0, stored), labels: make([]float32, 0, rows)}
	if !dense {
		b.rowStart = append(make([]int, 0, rows+1), 0)
		b.indices = make([]int32, 0, stored)
	}
	return b
}

// add appends a row; in sparse data nil values stand for ones.
func (b *builder) add(label float32, indices []int32, values []float32) {
	b.labels = append(b.labels, label)
	b.values = append(b.values, values...)
	if b.dense {
		return
	}
	b.indices = append(b.indices, indices...)
	if values == nil {
		for range indices {
			b.values = append(b.values, 1)
		}
	}
	b.rowStart = append(b.rowStart, len(b.indices))
}

// dataset returns the collected examples. The builder must not be used afterwards.
func (b *builder) dataset(name string, dim int) *Dataset {
	d := &Dataset{
		Name:     name,
		Rows:     len(b.labels),
		Dim:      dim,
		Classes:  countClasses(b.labels),
		RowStart: b.rowStart,
		Indices:  b.indices,
		Labels:   b.labels,
	}
	switch {
	case b.dense:
		d.Dense = b.values
	case slices.ContainsFunc(b.values, func(v float32) bool { return v != 1 }):
		d.Values = b.values
	}
	return d
}
