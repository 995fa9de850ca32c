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

// fillings are the positions at which parameters are tried that a change of category
// brings into existence.
var fillings = []float64{1.0 / 6, 0.5, 5.0 / 6}

// entered returns completions of q, which differs from old in one parameter, with several
// values for the numerical parameters that exist only now.
func (e *explorer) entered(q, old space.Point) []space.Point {
	var born []int
	s := e.problem.Space
	for j := range s.Parameters {
		if s.Parameters[j].Kind != space.Categorical && s.Active(q, j) && !s.Active(old, j) {
			born = append(born, j)
		}
	}
	list := []space.Point{e.complete(q)}
	if len(born) == 0 {
		return list
	}
	for _, t := range fillings {
		r := q.Clone()
		for _, j := range born {
			r[j] = s.Parameters[j].At(t)
		}
		list = append(list, e.complete(r))
	}
	return list
}
