package engine

import (
	"slices"

	"github.com/dpareto/dpareto/suggest/space"
)

// maxCombinations bounds the combinations of categories from which local searches start.
const maxCombinations = 16

// combination returns the categories of a configuration as a map key.
func combination(s *space.Space, q space.Point) string {
	var categories space.Point
	for j := range s.Parameters {
		if s.Parameters[j].Kind == space.Categorical {
			categories = append(categories, q[j])
		}
	}
	return categories.Key()
}

// covering returns the first n candidates of a list in descending order, and the first of
// every combination of categories, up to maxCombinations. The best categories need not look
// best with values drawn at random.
func (e *explorer) covering(list []candidate, n int) []candidate {
	n = min(n, len(list))
	kept := slices.Clone(list[:n])
	seen := make(map[string]bool)
	for i, c := range list {
		k := combination(e.problem.Space, c.point)
		if seen[k] || len(seen) == maxCombinations {
			continue
		}
		seen[k] = true
		if i >= n {
			kept = append(kept, c)
		}
	}
	return kept
}
