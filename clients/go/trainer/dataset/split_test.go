package dataset

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dpareto/dpareto/internal/require"
)

// numbered returns a dataset whose row i holds the number i.
func numbered(rows int) *Dataset {
	d := &Dataset{Name: "numbered", Rows: rows, Dim: 1, Classes: 2, Dense: make([]float32, rows), Labels: make([]float32, rows)}
	for i := range rows {
		d.Dense[i] = float32(i)
		d.Labels[i] = float32(1 - 2*(i%2))
	}
	return d
}

// The parts are disjoint and together the whole, their rows keep their labels, and their
// sizes are those that were asked for and are recorded.
func TestSplitsAreDisjoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(1, 60).Draw(t, "rows")
		train := rapid.IntRange(1, rows).Draw(t, "train")
		validation := rapid.IntRange(0, train-1).Draw(t, "validation")
		seed := rapid.Uint64().Draw(t, "seed")
		whole, err := Shuffle(numbered(rows), seed, train)
		require.NoError(t, err)
		parts, err := whole.HoldOut(seed+1, validation)
		require.NoError(t, err)
		var seen []float32
		for _, part := range []struct {
			data *Dataset
			want int
		}{{parts.Train, train - validation}, {parts.Validation, validation}, {parts.Test, rows - train}} {
			if part.data == nil {
				if part.want != 0 {
					t.Errorf("no part of %d rows", part.want)
				}
				continue
			}
			if part.data.Rows != part.want {
				t.Errorf("%s has %d rows, want %d", part.data.Name, part.data.Rows, part.want)
			}
			for i, number := range part.data.Dense {
				if want := float32(1 - 2*(int(number)%2)); part.data.Labels[i] != want {
					t.Errorf("label of row %v is %v, want %v", number, part.data.Labels[i], want)
				}
			}
			seen = append(seen, part.data.Dense...)
		}
		slices.Sort(seen)
		if diff := cmp.Diff(numbered(rows).Dense, seen); diff != "" {
			t.Errorf("rows of all parts (-want +got):\n%s", diff)
		}
		want := Split{
			Dataset: "numbered", Name: SplitShuffled, Seed: seed,
			Train: train - validation, Validation: validation, Test: rows - train,
		}
		if validation > 0 {
			want.HoldOutSeed = seed + 1
		}
		if diff := cmp.Diff(want, parts.Split); diff != "" {
			t.Errorf("record (-want +got):\n%s", diff)
		}
	})
}

// May not change: stored results depend on it.
func TestSplitGolden(t *testing.T) {
	whole, err := Shuffle(numbered(10), 1, 7)
	require.NoError(t, err)
	parts, err := whole.HoldOut(2, 3)
	require.NoError(t, err)
	got := map[string][]float32{"train": parts.Train.Dense, "validation": parts.Validation.Dense, "test": parts.Test.Dense}
	want := map[string][]float32{"train": {3, 9, 4, 8}, "validation": {6, 1, 7}, "test": {2, 0, 5}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	const text = "numbered shuffled: 4 train, 3 validation, 3 test, seed 1, hold-out seed 2"
	if got := parts.Split.String(); got != text {
		t.Errorf("record %s, want %s", got, text)
	}
	encoded, err := json.Marshal(parts.Split)
	require.NoError(t, err)
	const object = `{"dataset":"numbered","name":"shuffled","seed":1,"hold_out_seed":2,"train":4,"validation":3,"test":3}`
	if string(encoded) != object {
		t.Errorf("record %s, want %s", encoded, object)
	}
	// Held out anew, from what is left.
	again, err := parts.HoldOut(2, 0)
	require.NoError(t, err)
	if again.Validation != nil || again.Split.HoldOutSeed != 0 || again.Train.Rows != 4 {
		t.Errorf("record %v", again.Split)
	}
}

func TestSplitErrors(t *testing.T) {
	d := numbered(5)
	for _, train := range []int{-1, 0, 6} {
		if _, err := Shuffle(d, 1, train); err == nil || !strings.Contains(err.Error(), "of 5 rows for training") {
			t.Errorf("%d training rows: error %v", train, err)
		}
	}
	parts, err := Shuffle(d, 1, 3)
	require.NoError(t, err)
	for _, validation := range []int{-1, 3} {
		if _, err := parts.HoldOut(1, validation); err == nil || !strings.Contains(err.Error(), "of 3 rows") {
			t.Errorf("%d validation rows: error %v", validation, err)
		}
	}
}

// Shards are disjoint, of equal size, always the same, and cut by positions alone.
func TestShard(t *testing.T) {
	parts, err := Load(t.Context(), NameAdult, Division{Split: SplitPublished, Generated: true, ValidationRows: 956}, Source{})
	require.NoError(t, err)
	const count = 7
	owner := make(map[int]int) // by position
	for index := range count {
		shard, err := parts.Shard(index, count)
		require.NoError(t, err)
		if shard.Train.Rows != 30_000/count || shard.Split.Train != 30_000/count || shard.Validation != parts.Validation || shard.Test != parts.Test {
			t.Errorf("shard %d: %v", index, shard.Split)
		}
		again, err := parts.Shard(index, count)
		if err != nil || !reflect.DeepEqual(again.Train, shard.Train) {
			t.Errorf("shard %d differs the second time: %v", index, err)
		}
		for _, i := range permutation(30_000, 0, streamShard)[index*shard.Train.Rows : (index+1)*shard.Train.Rows] {
			if other, ok := owner[i]; ok {
				t.Fatalf("row %d is in shards %d and %d", i, other, index)
			}
			owner[i] = index
		}
	}
	if _, err := parts.Shard(0, 30_001); err == nil {
		t.Error("more shards than rows are accepted")
	}
	if one, err := parts.Shard(0, 1); err != nil || one.Train.Rows != 30_000 {
		t.Errorf("one shard: %v, %v", one, err)
	}
}
