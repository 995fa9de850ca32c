package dataset

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/internal/require"
)

// wood is the first row of the file.
var wood = "2596,51,3,258,0,510,221,232,148,6279,1,0,0,0" + woodSoil + ",5\n"

// woodSoil is the soil 29 of 40.
var woodSoil = strings.Repeat(",0", 28) + ",1" + strings.Repeat(",0", 11)

func TestLoadCovertype(t *testing.T) {
	path := filepath.Join(t.TempDir(), "covtype.data")
	write(t, path, compress(t, wood+strings.NewReplacer("258,0,", "258,-1500,", ",5\n", ",2\n").Replace(wood)))
	got, err := LoadCovertype(path)
	require.NoError(t, err)
	rest := []float32{0.051, 221. / 255, 232. / 255, 148. / 255, 0.6279, 1, 1}
	first := append([]float32{0.5192, 51. / 360, 3. / 90, 0.0258}, rest...)
	second := append([]float32{0.5192, 51. / 360, 3. / 90, 0.0258, -1}, rest...)
	want := &Dataset{
		Name: "covtype.data", Rows: 2, Dim: 54, Classes: 2, RowStart: []int{0, 11, 23},
		Indices: []int32{0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 42, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 42},
		Values:  append(first, second...), Labels: []float32{-1, 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("dataset (-want +got):\n%s", diff)
	}
	for _, tt := range []struct{ old, new, want string }{
		{",51,", ",-51,", `f:1:6: measurement -51 is negative`},
		{",51,", ",north,", `f:1:6: measurement "north" is not a finite number`},
		{",1,0,0,0", ",2,0,0,0", `f:1:38: indicator 2 is neither 0 nor 1`},
		{",5\n", ",8\n", `f:1:126: kind "8" is not a number from 1 to 7`},
		{",51,", ",", `f:1:1: 54 fields, want 55`},
	} {
		_, err := readCovertype(strings.NewReader(strings.Replace(wood, tt.old, tt.new, 1)), "f")
		if _, ok := errors.AsType[*SyntaxError](err); !ok || err.Error() != tt.want {
			t.Errorf("error %v\nwant  %s", err, tt.want)
		}
	}
}
