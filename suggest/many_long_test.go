//go:build long

package suggest_test

import (
	"testing"

	"github.com/dpareto/dpareto/suggest"
)

func TestDefaultWithManyObjectivesLong(t *testing.T) {
	for seed := range uint64(3) {
		beatsRandom(t, suggest.EngineOptions{}, 4, 60, 200, seed)
		beatsRandom(t, suggest.EngineOptions{}, 5, 60, 60, seed)
		beatsRandom(t, suggest.EngineOptions{}, 6, 60, 60, seed)
	}
}
