//go:build long

package engine_test

import (
	"testing"

	"github.com/dpareto/dpareto/suggest/designers/engine"
)

func TestDefaultWithManyObjectivesLong(t *testing.T) {
	for seed := range uint64(3) {
		beatsRandom(t, engine.Options{}, 4, 60, 200, seed)
		beatsRandom(t, engine.Options{}, 5, 60, 60, seed)
		beatsRandom(t, engine.Options{}, 6, 60, 60, seed)
	}
}
