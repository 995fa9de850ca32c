package dataset

import (
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset/datasettest"
	"github.com/dpareto/dpareto/internal/require"
)

// checkShape checks what every dataset promises.
func checkShape(t *testing.T, d *Dataset) {
	t.Helper()
	if len(d.Labels) != d.Rows {
		t.Fatalf("%s: %d labels of %d rows", d.Name, len(d.Labels), d.Rows)
	}
	if d.Classes > 2 {
		for i, label := range d.Labels {
			if label < 0 || label >= float32(d.Classes) || label != float32(int(label)) {
				t.Fatalf("%s: label of row %d is %v of %d classes", d.Name, i, label, d.Classes)
			}
		}
	}
	if d.Dense != nil {
		if len(d.Dense) != d.Rows*d.Dim || d.RowStart != nil || d.Indices != nil || d.Values != nil {
			t.Fatalf("%s: %d dense values of %d rows", d.Name, len(d.Dense), d.Rows)
		}
		return
	}
	if len(d.RowStart) != d.Rows+1 || d.RowStart[0] != 0 || d.RowStart[d.Rows] != len(d.Indices) ||
		d.Values != nil && len(d.Values) != len(d.Indices) {
		t.Fatalf("%s: inconsistent lengths", d.Name)
	}
	for i := range d.Rows {
		last := int32(-1)
		indices, _ := d.Row(i)
		for _, index := range indices {
			if index <= last || int(index) >= d.Dim {
				t.Fatalf("%s: indices of row %d: %v", d.Name, i, indices)
			}
			last = index
		}
	}
}

// The numbers of positive rows are counted from the files with other tools.
func TestLoadFiles(t *testing.T) {
	source := offline(t, filepath.Dir(datasettest.Folder(t, "adult")))
	for _, tt := range []struct {
		name      string
		division  Division
		record    string
		positives [2]int // of the training and the test examples
		maxNorm   float64
	}{
		{NameAdult, Division{}, "adult published: 30956 train, 0 validation, 1605 test, seed 0", [2]int{7446, 395}, math.Sqrt(14)},
		{NameAdultRaw, Division{Seed: 3}, "adult-raw uci: 32561 train, 0 validation, 16281 test, seed 0", [2]int{7841, 3846}, math.Sqrt(14)},
		{NameMNIST, Division{}, "mnist published: 60000 train, 0 validation, 10000 test, seed 0", [2]int{60000 - 5923, 10000 - 980}, 28},
		{NameKDDCup99, Division{}, "kddcup99 published: 494021 train, 0 validation, 311029 test, seed 0", [2]int{494021 - 97278, 311029 - 60593}, math.Sqrt(41)},
		{NameBreastCancer, Division{TrainRows: 568, Seed: 1}, "breast-cancer shuffled: 568 train, 0 validation, 1 test, seed 1", [2]int{-1, -1}, math.Sqrt(30)},
		{NameBreastCancerOriginal, Division{TrainRows: 698, Seed: 1}, "breast-cancer-original shuffled: 698 train, 0 validation, 1 test, seed 1", [2]int{-1, -1}, 3},
	} {
		parts, err := Load(t.Context(), tt.name, tt.division, source)
		require.NoError(t, err)
		if got := parts.Split.String(); got != tt.record {
			t.Errorf("split %s, want %s", got, tt.record)
		}
		for i, d := range []*Dataset{parts.Train, parts.Test} {
			checkShape(t, d)
			if got, want := datasettest.Positives(d.Labels), tt.positives[i]; got != want && want >= 0 {
				t.Errorf("%s: %d positive, want %d", d.Name, got, want)
			}
			for row := range d.Rows {
				if norm := math.Sqrt(d.SquaredNorm(row)); norm > tt.maxNorm {
					t.Fatalf("%s: norm of row %d is %v, want at most %v", d.Name, row, norm, tt.maxNorm)
				}
			}
		}
		malignant := map[string]int{NameBreastCancer: 212, NameBreastCancerOriginal: 241}
		if want, ok := malignant[tt.name]; ok {
			if got := datasettest.Positives(parts.Train.Labels) + datasettest.Positives(parts.Test.Labels); got != want {
				t.Errorf("%s: %d malignant, want %d", tt.name, got, want)
			}
		}
		if tt.name == NameMNIST { // the first training image is a 5; its brightest pixels are 255
			if parts.Train.Labels[0] != 5 || parts.Train.Dense[7*28+11] != 253./255 {
				t.Errorf("first image: label %v, pixel (7, 11) %v", parts.Train.Labels[0], parts.Train.Dense[7*28+11])
			}
		}
	}
	for _, name := range []string{NameGisette, NameCovertype} {
		if _, err := Load(t.Context(), name, Division{}, source); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: error %v, want %v", name, err, fs.ErrNotExist)
		}
	}
}

func TestLoadValidation(t *testing.T) {
	cache := NewCache()
	load := func(d Division) *Parts {
		t.Helper()
		d.Generated = true
		parts, err := cache.Load(t.Context(), NameAdult, d, Source{})
		require.NoError(t, err)
		return parts
	}
	whole := load(Division{Split: SplitShuffled, TrainRows: 1000, Seed: 4})
	if whole.Validation != nil || whole.Split.Validation != 0 {
		t.Errorf("a validation part, but none was asked for: %v", whole.Split)
	}
	parts := load(Division{Split: SplitShuffled, TrainRows: 1000, ValidationRows: 300, Seed: 4})
	want := Split{
		Dataset: "adult", Name: "shuffled", Seed: 4, HoldOutSeed: 4,
		Train: 700, Validation: 300, Test: adultRows - 1000, Generated: true,
	}
	if diff := cmp.Diff(want, parts.Split); diff != "" {
		t.Errorf("split (-want +got):\n%s", diff)
	}
	if parts.Validation.Name != "adult-generated-validation" || !parts.Validation.Generated {
		t.Errorf("validation part %s, generated %t", parts.Validation.Name, parts.Validation.Generated)
	}
	// Test examples stay what they are.
	if !cmp.Equal(whole.Test, parts.Test) {
		t.Error("the test part has changed")
	}
	if again := load(Division{Split: SplitShuffled, TrainRows: 1000, ValidationRows: 300, Seed: 4}); again != parts {
		t.Error("loaded again")
	}
	for _, rows := range []int{-1, 1000} {
		_, err := Load(t.Context(), NameAdult, Division{Split: SplitShuffled, TrainRows: 1000, ValidationRows: rows}, Source{})
		if err == nil || !strings.Contains(err.Error(), "are not between 0 and 999") {
			t.Errorf("%d validation rows: error %v", rows, err)
		}
	}
}

// What has no effect does not tell divisions apart.
func TestDivisionSeed(t *testing.T) {
	e, err := find(NameAdult)
	require.NoError(t, err)
	for _, tt := range []struct {
		division Division
		want     uint64
	}{
		{Division{Seed: 7}, 0},
		{Division{Seed: 7, Split: SplitUCI}, 0},
		{Division{Seed: 7, ValidationRows: 1}, 7},
		{Division{Seed: 7, Generated: true}, 7},
		{Division{Seed: 7, Split: SplitShuffled}, 7},
	} {
		if got, err := tt.division.normal(e); err != nil || got.Seed != tt.want {
			t.Errorf("%+v: seed %d, error %v, want %d", tt.division, got.Seed, err, tt.want)
		}
	}
}

func TestDivisionErrors(t *testing.T) {
	for _, tt := range []struct {
		name     string
		division Division
		want     string
	}{
		{NameMNIST, Division{Split: SplitUCI}, `split "uci" is unknown, want one of published, shuffled`},
		{NameBreastCancer, Division{Split: SplitPublished}, `split "published" is unknown, want one of shuffled`},
		{NameAdult, Division{Split: SplitUntouched, ValidationRows: 5}, "validation rows 5 given for split untouched, which has its own"},
		{NameKDDCup99, Division{Generated: true}, "there are no generated examples of dataset kddcup99"},
	} {
		if _, err := Load(t.Context(), tt.name, tt.division, Source{}); err == nil || err.Error() != tt.want {
			t.Errorf("error %v, want %s", err, tt.want)
		}
	}
}

func TestCatalog(t *testing.T) {
	for _, info := range Catalog() {
		if info.Summary == "" || info.Licence == "" || info.TrainRows == 0 || len(info.Files) == 0 {
			t.Errorf("%+v lacks something", info)
		}
		for _, f := range info.Files {
			for _, address := range f.URLs {
				if !strings.HasPrefix(address, "https://") || !strings.HasSuffix(address, "/"+f.Name) {
					t.Errorf("%s: address %s", f.Name, address)
				}
			}
			if len(f.URLs) == 0 || info.Name == NameMNIST && len(f.URLs) < 2 {
				t.Errorf("%s has %d addresses", f.Name, len(f.URLs))
			}
			if f.Downloadable != (info.Name != NameGisette && info.Name != NameCovertype) {
				t.Errorf("%s: downloadable %t", f.Name, f.Downloadable)
			}
		}
		wantSize := map[string]int64{NameAdult: 5824378, NameGisette: 0}
		if want, ok := wantSize[info.Name]; ok && info.Size() != want {
			t.Errorf("%s: size %d, want %d", info.Name, info.Size(), want)
		}
	}
}
