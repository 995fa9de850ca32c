package dataset

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset/datasettest"
	"github.com/dpareto/dpareto/internal/require"
)

// The raw files give the rows of LIBSVM's files, bit for bit and in their order.
func TestCensusIsA9a(t *testing.T) {
	folder := datasettest.Folder(t, "adult")
	for raw, encoded := range map[string]string{"adult.data": "a9a", "adult.test": "a9a.t"} {
		got, err := LoadCensus(filepath.Join(folder, raw))
		require.NoError(t, err)
		want, err := LoadLIBSVM(filepath.Join(folder, encoded), AdultDim)
		require.NoError(t, err)
		got.Name = encoded
		if !cmp.Equal(want, got) {
			t.Errorf("%s does not give the rows of %s", raw, encoded)
		}
	}
}

// The groups of features are those that generated examples have.
func TestCensusGroups(t *testing.T) {
	sum := 0
	for i, size := range adultGroups {
		if got := censusColumns[i].features; got != size {
			t.Errorf("%s has %d features, want %d", censusColumns[i].name, got, size)
		}
		sum += size
	}
	if sum != AdultDim {
		t.Errorf("%d features in all, want %d", sum, AdultDim)
	}
}

const person = "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, United-States, "

func TestReadCensus(t *testing.T) {
	text := "|a comment\n" + person + "<=50K\n\n" + strings.Replace(person, "State-gov", "?", 1) + ">50K.\n"
	got, err := ReadCensus(strings.NewReader(text), "census")
	require.NoError(t, err)
	// The first line of LIBSVM's a9a, which counts from 1: 3 11 14 19 39 42 55 64 67 73 75 76 80 83.
	want := &Dataset{
		Name: "census", Rows: 2, Dim: AdultDim, Classes: 2,
		RowStart: []int{0, 14, 27},
		Indices: []int32{
			2, 10, 13, 18, 38, 41, 54, 63, 66, 72, 74, 75, 79, 82,
			2, 13, 18, 38, 41, 54, 63, 66, 72, 74, 75, 79, 82,
		},
		Labels: []float32{-1, 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

func TestReadCensusErrors(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{person + "50K\n", `f:1:123: income "50K" is neither >50K nor <=50K`},
		{"\n" + strings.Replace(person, "39", "old", 1) + ">50K\n", `f:2:1: age "old" is unknown`},
		{strings.Replace(person, "39", "-1", 1) + ">50K\n", `f:1:1: age "-1" is unknown`},
		{strings.Replace(person, "State-gov", "State", 1) + ">50K\n", `f:1:5: workclass "State" is unknown`},
		{"39, State-gov\n", `f:1:1: 2 fields, want 15`},
		{"\"39, State-gov\n", `f:1:16: extraneous or missing " in quoted-field`},
	} {
		_, err := ReadCensus(strings.NewReader(tt.text), "f")
		if _, ok := errors.AsType[*SyntaxError](err); !ok || err.Error() != tt.want {
			t.Errorf("error %v\nwant  %s", err, tt.want)
		}
	}
}

func FuzzReadCensus(f *testing.F) {
	f.Add(person + "<=50K\n|x\n" + person + ">50K.\n")
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := ReadCensus(strings.NewReader(text), "f"); err == nil {
			checkShape(t, d)
		}
	})
}

// The features of sex are where AdultFemale and AdultMale say.
func TestSexFeatures(t *testing.T) {
	first := 0
	for _, c := range censusColumns {
		if c.name == "sex" {
			female, _, _ := c.encode("Female")
			male, _, _ := c.encode("Male")
			if first+female != AdultFemale || first+male != AdultMale {
				t.Errorf("women have feature %d, men %d, want %d and %d", first+female, first+male, AdultFemale, AdultMale)
			}
		}
		first += c.features
	}
	if first != AdultDim {
		t.Errorf("%d features", first)
	}
}
