package dataset

import (
	"context"
	"errors"
	"maps"
	"math"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset/datasettest"
	"github.com/dpareto/dpareto/internal/require"
)

// adultRows is the number of examples of a9a and a9a.t together.
const adultRows = 48842

// offline is a source that only has the data folder.
func offline(t *testing.T, dataDir string) Source {
	t.Helper()
	source := serveMirror(t, http.NotFound)
	source.DataDir = dataDir
	return source
}

// rowLengths counts the rows by their number of features.
func rowLengths(d *Dataset) map[int]int {
	lengths := make(map[int]int)
	for i := range d.Rows {
		indices, _ := d.Row(i)
		lengths[len(indices)]++
	}
	return lengths
}

// trainAndTest returns two of the parts of a dataset.
func trainAndTest(parts *Parts, err error) (train, test *Dataset, _ error) {
	if err != nil {
		return nil, nil, err
	}
	return parts.Train, parts.Test, nil
}

func TestAdultFiles(t *testing.T) {
	source := offline(t, datasettest.Folder(t, "adult"))
	for _, tt := range []struct {
		split          Division
		train, test    int
		trainPositives int
		testPositives  int
	}{
		{Division{Split: SplitPublished}, 30956, 1605, 7446, 395},
		{Division{Split: SplitUCI}, 32561, 16281, 7841, 3846},
	} {
		train, test, err := trainAndTest(Load(t.Context(), NameAdult, tt.split, source))
		require.NoError(t, err)
		if train.Rows != tt.train || test.Rows != tt.test {
			t.Errorf("%s: %d and %d rows, want %d and %d", tt.split.Split, train.Rows, test.Rows, tt.train, tt.test)
		}
		if datasettest.Positives(train.Labels) != tt.trainPositives || datasettest.Positives(test.Labels) != tt.testPositives {
			t.Errorf("%s: %d and %d positive, want %d and %d", tt.split.Split,
				datasettest.Positives(train.Labels), datasettest.Positives(test.Labels), tt.trainPositives, tt.testPositives)
		}
		for _, d := range []*Dataset{train, test} {
			if d.Values != nil || d.Dim != AdultDim || d.Generated {
				t.Errorf("%s: values %t, dimension %d, generated %t", d.Name, d.Values != nil, d.Dim, d.Generated)
			}
		}
		if tt.split.Split == SplitPublished {
			if diff := cmp.Diff(map[int]int{14: 28684, 13: 530, 12: 1715, 11: 27}, rowLengths(train)); diff != "" {
				t.Errorf("features a row of a1a.t (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(map[int]int{14: 1478, 13: 33, 12: 94}, rowLengths(test)); diff != "" {
				t.Errorf("features a row of a1a (-want +got):\n%s", diff)
			}
		}
	}
}

// The untouched split has the published examples for training and validation, and for testing UCI's, of which none is
// among them.
func TestAdultUntouched(t *testing.T) {
	source := offline(t, datasettest.Folder(t, "adult"))
	load := func(split string) *Parts {
		parts, err := Load(t.Context(), NameAdult, Division{Split: split}, source)
		require.NoError(t, err)
		return parts
	}
	parts, published, uci := load(SplitUntouched), load(SplitPublished), load(SplitUCI)
	for name, pair := range map[string][2]*Dataset{
		"training": {parts.Train, published.Train}, "validation": {parts.Validation, published.Test}, "test": {parts.Test, uci.Test},
	} {
		if diff := cmp.Diff(fingerprints(pair[1]), fingerprints(pair[0])); diff != "" {
			t.Errorf("%s examples differ (-want +got):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(fingerprints(uci.Train), fingerprints(parts.Train, parts.Validation)); diff != "" {
		t.Errorf("training and validation examples are not UCI's training examples (-want +got):\n%s", diff)
	}
	want := "adult untouched: 30956 train, 1605 validation, 16281 test, seed 0, hold-out seed 0"
	if got := parts.Split.String(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// fingerprints counts rows by their content.
func fingerprints(datasets ...*Dataset) map[[16]int32]int {
	rows := make(map[[16]int32]int)
	for _, d := range datasets {
		for i := range d.Rows {
			var key [16]int32
			key[0] = int32(d.Labels[i])
			indices, _ := d.Row(i)
			for k, index := range indices {
				key[k+1] = index + 1
			}
			rows[key]++
		}
	}
	return rows
}

func TestAdultShuffled(t *testing.T) {
	source := offline(t, datasettest.Folder(t, "adult"))
	load := func(split Division) (*Dataset, *Dataset) {
		t.Helper()
		train, test, err := trainAndTest(Load(t.Context(), NameAdult, split, source))
		require.NoError(t, err)
		return train, test
	}
	train, test := load(Division{Split: SplitShuffled, Seed: 1})
	if train.Rows != DefaultTrainRows || test.Rows != adultRows-DefaultTrainRows {
		t.Errorf("%d and %d rows, want %d and %d", train.Rows, test.Rows, DefaultTrainRows, adultRows-DefaultTrainRows)
	}
	// Every row of the two files is in one of the parts, and in one only.
	uciTrain, uciTest := load(Division{Split: SplitUCI})
	if !maps.Equal(fingerprints(uciTrain, uciTest), fingerprints(train, test)) {
		t.Error("the split does not hold the rows of the files")
	}
	// The parts resemble one another: 23.93 % of all are positive.
	for _, d := range []*Dataset{train, test} {
		rate := float64(datasettest.Positives(d.Labels)) / float64(d.Rows)
		if standardError := math.Sqrt(0.2393 * 0.7607 / float64(d.Rows)); math.Abs(rate-0.2393) > 4*standardError {
			t.Errorf("%s: %v positive, want 0.2393 ± %v", d.Name, rate, standardError)
		}
	}
	again, _ := load(Division{Split: SplitShuffled, Seed: 1, TrainRows: DefaultTrainRows})
	if !slices.Equal(train.Indices, again.Indices) || !slices.Equal(train.Labels, again.Labels) {
		t.Error("the same seed gives other rows")
	}
	other, _ := load(Division{Split: SplitShuffled, Seed: 2})
	if slices.Equal(train.Indices, other.Indices) {
		t.Error("another seed gives the same rows")
	}
	tiny, rest := load(Division{Split: SplitShuffled, Seed: 1, TrainRows: 10})
	if tiny.Rows != 10 || rest.Rows != adultRows-10 {
		t.Errorf("%d and %d rows, want 10 and %d", tiny.Rows, rest.Rows, adultRows-10)
	}
}

func TestAdultErrors(t *testing.T) {
	for _, tt := range []struct {
		name  string
		split Division
		want  string
	}{
		{"unknown", Division{Split: "paper"}, `split "paper" is unknown, want one of published, untouched, uci, shuffled`},
		{"rows of a fixed split", Division{Split: SplitUCI, TrainRows: 5}, "train rows 5 given for split uci"},
		{"negative rows", Division{Split: SplitShuffled, TrainRows: -1}, "train rows -1"},
		{"no test rows", Division{Split: SplitShuffled, TrainRows: adultRows}, "train rows 48842"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := trainAndTest(Load(t.Context(), NameAdult, tt.split, Source{}))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}

	source := offline(t, t.TempDir())
	if _, _, err := trainAndTest(Load(t.Context(), NameAdult, Division{Split: SplitUCI}, source)); err == nil ||
		!strings.Contains(err.Error(), "a9a: 404 Not Found") {
		t.Errorf("no files: error %v", err)
	}
	write(t, filepath.Join(source.DataDir, "a9a"), twoRows)
	write(t, filepath.Join(source.DataDir, "a9a.t"), twoRows)
	_, _, err := trainAndTest(Load(t.Context(), NameAdult, Division{Split: SplitUCI}, source))
	if err == nil || !strings.Contains(err.Error(), "a9a: the file has SHA-256") {
		t.Errorf("another file: error %v", err)
	}
	e, err := find(NameAdult)
	require.NoError(t, err)
	if _, err := e.readPart(t.Context(), e.splits[2].train, []string{filepath.Join(source.DataDir, "a9a")}); err == nil ||
		!strings.Contains(err.Error(), "2 examples, want the 32561 of a9a") {
		t.Errorf("too few rows: error %v", err)
	}
	write(t, filepath.Join(source.DataDir, "a9a"), "+1 124:1\n")
	_, err = e.readPart(t.Context(), e.splits[2].train, []string{filepath.Join(source.DataDir, "a9a")})
	if _, ok := errors.AsType[*SyntaxError](err); !ok {
		t.Errorf("feature 124: error %v, want a *SyntaxError", err)
	}
}

func TestGenerated(t *testing.T) {
	const rows = 50000
	d := Generated(rows, 1)
	if d.Name != "adult-generated" || !d.Generated || d.Rows != rows || d.Dim != AdultDim || d.Values != nil {
		t.Errorf("name %q, generated %t, %d rows, dimension %d, values %t",
			d.Name, d.Generated, d.Rows, d.Dim, d.Values != nil)
	}
	sum := 0
	for _, size := range adultGroups {
		sum += size
	}
	if sum != AdultDim {
		t.Fatalf("groups have %d features, want %d", sum, AdultDim)
	}

	// At most one feature of each group, 13 or 14 in all.
	var group [AdultDim]int
	first := 0
	for g, size := range adultGroups {
		for k := range size {
			group[first+k] = g
		}
		first += size
	}
	for i := range d.Rows {
		indices, _ := d.Row(i)
		for k := 1; k < len(indices); k++ {
			if group[indices[k]] <= group[indices[k-1]] {
				t.Fatalf("row %d: features %v share a group", i, indices)
			}
		}
	}
	lengths := rowLengths(d)
	if lengths[13]+lengths[14] != rows {
		t.Errorf("features a row: %v, want 13 or 14", lengths)
	}
	if rate := float64(lengths[13]) / rows; math.Abs(rate-unknownRate) > 0.005 {
		t.Errorf("a group is missing in %v of the rows, want %v", rate, unknownRate)
	}
	if rate := float64(datasettest.Positives(d.Labels)) / rows; math.Abs(rate-0.24) > 0.01 {
		t.Errorf("%v positive, want 0.24", rate)
	}

	// The best linear model has the error of the hidden one.
	hidden := newHiddenModel()
	wrong := 0
	for i := range d.Rows {
		score := hiddenBias
		indices, _ := d.Row(i)
		for _, index := range indices {
			score += hidden.weights[index]
		}
		if (score > 0) != (d.Labels[i] > 0) {
			wrong++
		}
	}
	if rate := float64(wrong) / rows; rate < 0.14 || rate > 0.155 {
		t.Errorf("the hidden model's error is %v, want about 0.15", rate)
	}
}

func TestGeneratedIsDeterministic(t *testing.T) {
	if diff := cmp.Diff(Generated(200, 5), Generated(200, 5)); diff != "" {
		t.Errorf("the same seed again (-first +second):\n%s", diff)
	}
	if cmp.Equal(Generated(200, 5).Indices, Generated(200, 6).Indices) {
		t.Error("another seed gives the same rows")
	}
	// May not change: stored results depend on it.
	d := Generated(2, 1)
	golden := []int32{
		4, 9, 17, 20, 38, 42, 52, 61, 68, 71, 73, 75, 80, 90,
		0, 7, 15, 22, 34, 39, 47, 64, 68, 71, 73, 75, 78, 89,
	}
	if diff := cmp.Diff(golden, d.Indices); diff != "" {
		t.Errorf("features (-want +got):\n%s", diff)
	}
}

func TestAdultGenerated(t *testing.T) {
	for _, tt := range []struct {
		split       Division
		train, test int
	}{
		{Division{Split: SplitPublished, Generated: true}, 30956, 1605},
		{Division{Split: SplitUntouched, Generated: true}, 30956, 16281},
		{Division{Split: SplitUCI, Generated: true}, 32561, 16281},
		{Division{Split: SplitShuffled, Generated: true, TrainRows: 1000, Seed: 3}, 1000, 47842},
	} {
		train, test, err := trainAndTest(Load(t.Context(), NameAdult, tt.split, Source{}))
		require.NoError(t, err)
		if train.Rows != tt.train || test.Rows != tt.test {
			t.Errorf("%s: %d and %d rows, want %d and %d", tt.split.Split, train.Rows, test.Rows, tt.train, tt.test)
		}
		if !train.Generated || !test.Generated || train.Name != "adult-generated-train" {
			t.Errorf("%s is not labelled as generated (%t, %t)", train.Name, train.Generated, test.Generated)
		}
	}
}

func TestCache(t *testing.T) {
	cache := NewCache()
	split := Division{Split: SplitShuffled, TrainRows: 100, Generated: true}
	train, test, err := trainAndTest(cache.Load(t.Context(), NameAdult, split, Source{}))
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			otherTrain, otherTest, err := trainAndTest(cache.Load(t.Context(), NameAdult, split, Source{}))
			if err != nil || otherTrain != train || otherTest != test {
				t.Errorf("loaded again, error %v", err)
			}
		})
	}
	wg.Wait()
	split.Seed = 1
	if other, _, err := trainAndTest(cache.Load(t.Context(), NameAdult, split, Source{})); err != nil || other == train {
		t.Errorf("another seed gives the same dataset, error %v", err)
	}

	// A failure is not remembered.
	source := offline(t, t.TempDir())
	if _, _, err := trainAndTest(cache.Load(t.Context(), NameAdult, Division{Split: SplitUCI}, source)); err == nil {
		t.Error("no files, but no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := trainAndTest(cache.Load(ctx, NameAdult, Division{Split: SplitUCI}, source)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v", err)
	}
}
