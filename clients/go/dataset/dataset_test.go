package dataset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// small has three rows of four features.
func small() *Dataset {
	return &Dataset{
		Name: "small", Rows: 3, Dim: 4,
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
	if got := d.Positives(); got != 2 {
		t.Errorf("Positives() = %d, want 2", got)
	}
}

func TestSelect(t *testing.T) {
	got := small().Select("some", []int{2, 0, 2})
	want := &Dataset{
		Name: "some", Rows: 3, Dim: 4,
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
	defer func() {
		if recover() == nil {
			t.Error("Concat of different dimensions did not panic")
		}
	}()
	Concat("wrong", d, &Dataset{RowStart: []int{0}, Dim: 5})
}
