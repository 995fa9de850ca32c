package spec

import (
	"fmt"
	"iter"
	"strings"

	"github.com/dpareto/dpareto/suggest/space"
)

// maxBranches bounds the branches of a space at which expressions are tried.
const maxBranches = 200

// branches yields a point for every combination of parameters' conditions that can hold
// together, up to maxBranches.
func (p *Points) branches() iter.Seq[space.Point] {
	return func(yield func(space.Point) bool) {
		n := 0
		for point := range p.space.Branches() {
			if n == maxBranches || !yield(point) {
				return
			}
			n++
		}
	}
}

// firstBranch returns a point of the branch of first categories and smallest values.
func (p *Points) firstBranch() space.Point {
	for point := range p.space.Branches() {
		return point
	}
	panic("spec: a space without points")
}

// corners returns the centre, the lowest and the highest corner of the branch of a
// point: parents of others keep their values, and other categorical parameters the
// first category.
func (p *Points) corners(branch space.Point) []space.Point {
	corners := make([]space.Point, 0, 3)
	for _, u := range []float64{0.5, 0, 1} {
		point := branch.Clone()
		for i := range p.space.Parameters {
			parameter := &p.space.Parameters[i]
			if parameter.Kind != space.Categorical && !p.space.IsParent(i) {
				point[i] = parameter.At(u)
			}
		}
		corners = append(corners, p.space.Canonical(point))
	}
	return corners
}

// requirement says in words when a parameter with a condition exists.
func (p *Points) requirement(i int) string {
	condition := p.space.Parameters[i].Condition
	parent := &p.space.Parameters[condition.Parent]
	values := make([]string, len(condition.Values))
	for k, x := range condition.Values {
		values[k] = fmt.Sprint(native(parent, x))
	}
	if len(values) == 1 {
		return fmt.Sprintf("%s = %s", parent.Name, values[0])
	}
	return fmt.Sprintf("%s is one of %s", parent.Name, strings.Join(values, ", "))
}

// describe returns the values of the parameters that exist at a point, for a message.
func (p *Points) describe(point space.Point) string {
	return p.list(point, func(int) bool { return true })
}

// describeBranch returns the values of a branch's parents, for a message.
func (p *Points) describeBranch(branch space.Point) string { return p.list(branch, p.space.IsParent) }

func (p *Points) list(point space.Point, listed func(i int) bool) string {
	var parts []string
	for i := range p.space.Parameters {
		parameter := &p.space.Parameters[i]
		if listed(i) && p.space.Active(point, i) {
			parts = append(parts, fmt.Sprintf("%s = %v", parameter.Name, native(parameter, point[i])))
		}
	}
	return strings.Join(parts, ", ")
}
