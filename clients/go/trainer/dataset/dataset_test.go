package dataset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// small has three rows of four features.
func small() *Dataset {
	return &Dataset{
		Name: "small", Rows: 3, Dim: 4, Classes: 2,
		RowStart: []int{0, 2, 2, 5},
		Indices:  []int32{0, 3, 0, 1, 2},
		Values:   []float32{0.5, 2, 1, 1, 1},
		Labels:   []float32{1, -1, 1},
	}
}

func TestDatasetRows(t *testing.T) {
	d := small()
	indices, values := d.Row(0)
	if diff := cmp.Diff([]int32{0, 3}, indices); diff != "" {
		t.Errorf("indices of row 0 (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float32{0.5, 2}, values); diff != "" {
		t.Errorf("values of row 0 (-want +got):\n%s", diff)
	}
	if indices, _ := d.Row(1); len(indices) != 0 {
		t.Errorf("row 1 has indices %v, want none", indices)
	}
	for i, want := range []float64{4.25, 0, 3} {
		if got := d.SquaredNorm(i); got != want {
			t.Errorf("SquaredNorm(%d) = %v, want %v", i, got, want)
		}
	}
}

func TestSelect(t *testing.T) {
	got := small().Select("some", []int{2, 0, 2})
	want := &Dataset{
		Name: "some", Rows: 3, Dim: 4, Classes: 2,
		RowStart: []int{0, 3, 5, 8},
		Indices:  []int32{0, 1, 2, 0, 3, 0, 1, 2},
		Values:   []float32{1, 1, 1, 0.5, 2, 1, 1, 1},
		Labels:   []float32{1, 1, 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Select (-want +got):\n%s", diff)
	}
	// Without the row that holds other values than 1, none need be stored.
	ones := small().Select("ones", []int{1, 2})
	if ones.Values != nil {
		t.Errorf("values %v of rows of ones, want nil", ones.Values)
	}
	if got := ones.SquaredNorm(1); got != 3 {
		t.Errorf("squared norm of three ones = %v, want 3", got)
	}
}

func TestConcat(t *testing.T) {
	d := small()
	ones := d.Select("ones", []int{2})
	ones.Generated = true
	got := Concat("all", ones, d)
	want := d.Select("all", []int{2, 0, 1, 2})
	want.Generated = true
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Concat (-want +got):\n%s", diff)
	}
	wantPanic(t, "dataset: dimension mismatch", func() { Concat("wrong", d, &Dataset{RowStart: []int{0}, Dim: 5}) })
	wantPanic(t, "dataset: sparse and dense data", func() { Concat("wrong", d, &Dataset{Dense: []float32{}, Dim: 4}) })
}

func wantPanic(t *testing.T, want any, f func()) {
	t.Helper()
	defer func() {
		if got := recover(); got != want {
			t.Errorf("panic with %v, want %v", got, want)
		}
	}()
	f()
}

// smallDense has three rows of two features.
func smallDense() *Dataset {
	return &Dataset{
		Name: "dense", Rows: 3, Dim: 2, Classes: 3,
		Dense:  []float32{3, 4, 0, 0, 1, 2},
		Labels: []float32{0, 2, 1},
	}
}

func TestDense(t *testing.T) {
	d := smallDense()
	indices, values := d.Row(2)
	if diff := cmp.Diff([]float32{1, 2}, values); indices != nil || diff != "" {
		t.Errorf("indices %v, values of row 2 (-want +got):\n%s", indices, diff)
	}
	for i, want := range []float64{25, 0, 5} {
		if got := d.SquaredNorm(i); got != want {
			t.Errorf("SquaredNorm(%d) = %v, want %v", i, got, want)
		}
	}
	want := &Dataset{
		Name: "two", Rows: 2, Dim: 2, Classes: 3,
		Dense:  []float32{1, 2, 3, 4},
		Labels: []float32{1, 0},
	}
	if diff := cmp.Diff(want, d.Select("two", []int{2, 0})); diff != "" {
		t.Errorf("Select (-want +got):\n%s", diff)
	}
	all := d.Select("all", []int{0, 1, 2, 2, 0})
	if diff := cmp.Diff(all, Concat("all", d, want)); diff != "" {
		t.Errorf("Concat (-want +got):\n%s", diff)
	}
	if got := Concat("more", &Dataset{Dim: 2, Classes: 2, Dense: []float32{}}, d).Classes; got != 3 {
		t.Errorf("%d classes of two and three, want 3", got)
	}
	// A selection that lacks the last classes still has them.
	if got := d.Select("one", []int{0}).Classes; got != 3 {
		t.Errorf("%d classes, want 3", got)
	}
}

func TestCountClasses(t *testing.T) {
	for _, tt := range []struct {
		labels []float32
		want   int
	}{
		{nil, 2},
		{[]float32{-1, 1, 1}, 2},
		{[]float32{1}, 2},
		{[]float32{0, 9, 3}, 10},
		{[]float32{0, 1}, 0}, // neither −1 and 1 nor more than two classes
		{[]float32{1, 2}, 3},
		{[]float32{-1, 2}, 0},
		{[]float32{0, 2.5}, 0},
		{[]float32{0, 1e9}, 0},
	} {
		if got := countClasses(tt.labels); got != tt.want {
			t.Errorf("labels %v: %d classes, want %d", tt.labels, got, tt.want)
		}
	}
}
