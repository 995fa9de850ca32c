package dataset

import (
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/internal/require"
)

// gisetteLine returns a line of 5000 numbers that begins with the given ones.
func gisetteLine(first string) string {
	return first + strings.Repeat(" 0", GisetteDim-len(strings.Fields(first))) + " \n"
}

func TestLoadGisette(t *testing.T) {
	folder := t.TempDir()
	examples, labels := filepath.Join(folder, "x.data"), filepath.Join(folder, "x.labels")
	write(t, examples, compress(t, gisetteLine("999 0 333")+gisetteLine("0")))
	write(t, labels, "1\r\n-1\n")
	got, err := LoadGisette(examples, labels)
	require.NoError(t, err)
	want := &Dataset{
		Name: "x.data", Rows: 2, Dim: 5000, Classes: 2,
		RowStart: []int{0, 2, 2}, Indices: []int32{0, 2}, Values: []float32{1, 1. / 3}, Labels: []float32{1, -1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("dataset (-want +got):\n%s", diff)
	}

	for _, tt := range []struct{ examples, labels, want string }{
		{gisetteLine("0"), "1\n0\n", labels + `:2:1: label "0" is not -1 or 1`},
		{gisetteLine("0"), "1\n-1\n", examples + " has 1 examples, " + labels + " 2 labels"},
		{gisetteLine("0") + gisetteLine("0"), "1\n", examples + ":2: more examples than the 1 labels of " + labels},
		{"1 2 3\n", "1\n", examples + ":1:6: 3 features, want 5000"},
		{gisetteLine("0 1000"), "1\n", examples + ":1:3: feature 2 is not a whole number between 0 and 999"},
		{gisetteLine("0 0 -1"), "1\n", examples + ":1:5: feature 3 is not a whole number between 0 and 999"},
		{strings.Repeat("0 ", GisetteDim) + "7\n", "1\n", examples + `:1:10001: more than 5000 features: "7"`},
	} {
		write(t, examples, tt.examples)
		write(t, labels, tt.labels)
		if _, err := LoadGisette(examples, labels); err == nil || err.Error() != tt.want {
			t.Errorf("error %v\nwant  %s", err, tt.want)
		}
	}
}

const nucleus = "842302,M,25,10.38,122.8,1001,0.1184,0.2776,0.3001,0.1471,0.2419,0.07871," +
	"1.095,0.9053,8.589,153.4,0.006399,0.04904,0.05373,0.01587,0.03003,0.006193," +
	"25.38,17.33,184.6,5001,0.1622,0.6656,0.7119,0.2654,0.4601,0.1189\n"

func TestReadBreastCancer(t *testing.T) {
	got, err := ReadBreastCancer(strings.NewReader(nucleus+strings.Replace(nucleus, "M", "B", 1)), "wdbc")
	require.NoError(t, err)
	if got.Rows != 2 || got.Dim != 30 || got.Classes != 2 || !cmp.Equal(got.Labels, []float32{1, -1}) {
		t.Errorf("%d rows, dimension %d, %d classes, labels %v", got.Rows, got.Dim, got.Classes, got.Labels)
	}
	for i, want := range map[int]float64{0: 25. / 50, 1: 10.38 / 50, 10: 1.095 / 50, 13: 153.4 / 5000, 23: 1, 29: 0.1189 / 0.5} {
		if math.Abs(float64(got.Dense[i])-want) > 1e-7 {
			t.Errorf("feature %d is %v, want %v", i, got.Dense[i], want)
		}
	}
	for _, tt := range []struct{ old, new, want string }{
		{"M", "X", `f:1:8: diagnosis "X" is neither M nor B`},
		{",25,", ",-25,", `f:1:10: measurement -25 is negative`},
		{",25,", ",many,", `f:1:10: measurement "many" is not a finite number`},
		{",25,", ",", `f:1:1: 31 fields, want 32`},
	} {
		_, err := ReadBreastCancer(strings.NewReader(strings.Replace(nucleus, tt.old, tt.new, 1)), "f")
		if _, ok := errors.AsType[*SyntaxError](err); !ok || err.Error() != tt.want {
			t.Errorf("error %v\nwant  %s", err, tt.want)
		}
	}
}
