package subset_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/clients/go/subset"
	"github.com/dpareto/dpareto/internal/require"
)

// key returns a key that differs for every number.
func key(number int) []byte {
	sum := sha256.Sum256([]byte(strconv.Itoa(number)))
	return sum[:]
}

// Clients in other languages draw the same subsets: the vectors were computed in Python from the
// description of Indices, with hashlib's SHAKE256.
func TestIndicesVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/vectors.json")
	require.NoError(t, err)
	var vectors []struct {
		Key     string `json:"key"`
		Size    int    `json:"size"`
		Of      int    `json:"of"`
		Indices []int  `json:"indices"`
	}
	require.NoError(t, json.Unmarshal(data, &vectors))
	if len(vectors) < 4 {
		t.Fatalf("%d vectors", len(vectors))
	}
	for _, v := range vectors {
		k, err := hex.DecodeString(v.Key)
		require.NoError(t, err)
		got := subset.Subset{Key: k, Size: v.Size, Of: v.Of}.Indices()
		if diff := cmp.Diff(v.Indices, got); diff != "" {
			t.Errorf("%d of %d (-want +got):\n%s", v.Size, v.Of, diff)
		}
	}
}

// Every record is in the subset equally often, so is every pair, and at every place.
func TestIndicesAreUniform(t *testing.T) {
	const size, of, draws = 3, 7, 42_000
	var places [size][of]float64
	var pairs [of][of]float64
	for n := range draws {
		got := subset.Subset{Key: key(n), Size: size, Of: of}.Indices()
		for place, i := range got {
			places[place][i]++
			for _, j := range got[:place] {
				if i == j {
					t.Fatalf("%v repeats a record", got)
				}
				pairs[min(i, j)][max(i, j)]++
			}
		}
	}
	within := func(what string, count, probability float64) {
		deviation := math.Sqrt(draws * probability * (1 - probability))
		if math.Abs(count-draws*probability) > 4.5*deviation { // 42 counts: one in 3,000 tests of random bits
			t.Errorf("%s: %g of %d draws, want %g", what, count, draws, draws*probability)
		}
	}
	for place := range places {
		for i, count := range places[place] {
			within("record "+strconv.Itoa(i)+" at "+strconv.Itoa(place), count, 1.0/of)
		}
	}
	for i := range of {
		for j := i + 1; j < of; j++ {
			within("pair "+strconv.Itoa(i)+", "+strconv.Itoa(j), pairs[i][j], float64(size*(size-1))/(of*(of-1)))
		}
	}
}

// A subset of all records holds each once, and a smaller one of the same key is its beginning.
func TestIndicesOfAll(t *testing.T) {
	all := subset.Subset{Key: key(1), Size: 1000, Of: 1000}.Indices()
	if got := (subset.Subset{Key: key(1), Size: 100, Of: 1000}).Indices(); !slices.Equal(got, all[:100]) {
		t.Errorf("%v is not the beginning of %v", got, all[:100])
	}
	slices.Sort(all)
	for i, index := range all {
		if i != index {
			t.Fatalf("record %d is missing", i)
		}
	}
}

// A subset that is no subset is refused, by an error without the key.
func TestValidate(t *testing.T) {
	good := subset.Subset{Key: key(1), Size: 3, Of: 5}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*subset.Subset){
		"short key": func(s *subset.Subset) { s.Key = s.Key[1:] },
		"nothing":   func(s *subset.Subset) { s.Size = 0 },
		"too many":  func(s *subset.Subset) { s.Size = 6 },
		"of none":   func(s *subset.Subset) { s.Of = 0 },
	} {
		s := good
		change(&s)
		err := s.Validate()
		if err == nil || strings.Contains(err.Error(), hex.EncodeToString(s.Key[:4])) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
