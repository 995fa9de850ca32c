package pagination

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

// The pages of a sorted list equal the pages of all resources sorted at once. While they are collected,
// little more than a page is kept, whether resources are small or large.
func TestSorted(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 7))
	for _, most := range []int{10, 3 * maxBytes / 4} {
		var all []string
		notes := make(map[string]int) // lengths
		for i := range 400 {
			position := fmt.Sprintf("%05d", i)
			all = append(all, position)
			notes[position] = random.IntN(most)
		}
		long := strings.Repeat("x", most)
		var listed []string
		for token := ""; ; {
			q, err := NewQuery(17, token)
			require.NoError(t, err)
			sorted := Sorted[*dparetov1.Trial]{Query: q}
			for _, i := range random.Perm(len(all)) {
				sorted.Add(all[i], &dparetov1.Trial{State: 1, Note: long[:notes[all[i]]], Name: all[i]})
				if n := len(sorted.items); n > 2*17+1 || sorted.bytes > 2*maxBytes+most+100 {
					t.Fatalf("%d resources with %d bytes are kept", n, sorted.bytes)
				}
			}
			trials, next := sorted.Page()
			for _, trial := range trials {
				listed = append(listed, trial.GetName())
			}
			if token = next; token == "" {
				break
			}
		}
		if !slices.Equal(listed, all) {
			t.Errorf("with up to %d bytes %d of %d are listed", most, len(listed), len(all))
		}
	}
}
