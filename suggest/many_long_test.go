//go:build long

package suggest_test

import "testing"

func TestDefaultWithManyObjectivesLong(t *testing.T) {
	for seed := range uint64(3) {
		beatsRandom(t, 4, 60, 200, seed)
		beatsRandom(t, 5, 60, 60, seed)
		beatsRandom(t, 6, 60, 60, seed)
	}
}
