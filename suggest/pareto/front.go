package pareto

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"sort"
	"sync"
)

// Front is the non-dominated set of some points below a reference, with the
// region that it leaves to be improved. A *Front is immutable and safe for
// concurrent use; what its methods return must not be changed.
type Front struct {
	reference []float64
	points    [][]float64

	divide sync.Once // guards what only some uses of a front need
	cells  []Cell

	number    sync.Once // guards the levels
	levels    [][]float64
	positions []CellLevels
}

// Cell is the box Lower < v < Upper, one value per objective. Lower can be -Inf.
type Cell struct{ Lower, Upper []float64 }

// CellLevels are the positions of a cell's bounds in [Front.Levels], one per objective.
type CellLevels struct{ Lower, Upper []int }

// NewFront builds the front of points with respect to the reference: points
// that are not finite, not strictly below the reference in every objective,
// dominated or duplicate are left out. It panics if lengths differ or the
// reference is empty.
func NewFront(points [][]float64, reference []float64) *Front {
	kept := inside(points, reference)
	f := &Front{reference: slices.Clone(reference), points: make([][]float64, len(kept))}
	for i, p := range kept {
		f.points[i] = slices.Clone(p)
	}
	return f
}

// level finds the levels and the positions of the cells' bounds among them.
func (f *Front) level() {
	cells := f.Cells()
	f.levels = make([][]float64, len(f.reference))
	for j := range f.levels {
		all := make([]float64, 0, 2*len(cells))
		for _, c := range cells {
			all = append(all, c.Lower[j], c.Upper[j])
		}
		slices.Sort(all)
		f.levels[j] = slices.Compact(all)
	}
	f.positions = make([]CellLevels, len(cells))
	for i, c := range cells {
		f.positions[i] = CellLevels{f.find(c.Lower), f.find(c.Upper)}
	}
}

// find returns the positions of the values among the levels.
func (f *Front) find(values []float64) []int {
	positions := make([]int, len(values))
	for j, v := range values {
		positions[j], _ = slices.BinarySearch(f.levels[j], v)
	}
	return positions
}

// Len returns the number of points.
func (f *Front) Len() int { return len(f.points) }

// Points returns the front in lexicographic order.
func (f *Front) Points() [][]float64 { return f.points }

// Reference returns the reference point.
func (f *Front) Reference() []float64 { return f.reference }

// Hypervolume returns the volume that the front dominates; see [Hypervolume].
func (f *Front) Hypervolume() float64 { return hypervolume(f.points, f.reference) }

// Cells returns disjoint boxes whose union is, but for a set of measure zero,
// the region below the reference that no point of the front dominates. In two
// objectives they are the n+1 vertical strips of a front of n points, in three
// 2n+1. Beyond that their number grows faster: random fronts of 40 points have
// 260 in four objectives and 870 in five, of 100 points 740 and 3100. They are
// found when first asked for.
func (f *Front) Cells() []Cell {
	f.divide.Do(func() { f.cells = partition(f.points, f.reference) })
	return f.cells
}

// Levels returns the distinct bounds of the cells in objective j in increasing
// order, from -Inf to the reference. There are at most Len()+2 of them, while
// cells are many in higher dimensions: a function of one objective's bound is
// best evaluated once per level.
func (f *Front) Levels(j int) []float64 {
	f.number.Do(f.level)
	return f.levels[j]
}

// CellLevels returns the positions of the cells' bounds among the levels, in the order
// of Cells.
func (f *Front) CellLevels() []CellLevels {
	f.number.Do(f.level)
	return f.positions
}

// Improvement returns by how much the hypervolume would grow with v added:
//
//	Σ_cells Π_j max(0, u_j - max(l_j, v_j)).
//
// It is a sum of non-negative terms, so that small improvements keep their
// digits. It is 0 if v is not finite, and panics if the length differs.
func (f *Front) Improvement(v []float64) float64 {
	checkLength(v, f.reference)
	if !finite(v) {
		return 0
	}
	cells := f.Cells()
	if len(v) == 2 {
		return stripImprovement(cells, v)
	}
	sum := 0.0
	for _, c := range cells {
		volume := 1.0
		for j, u := range c.Upper {
			side := u - math.Max(c.Lower[j], v[j])
			if side <= 0 {
				volume = 0
				break
			}
			volume *= side
		}
		sum += volume
	}
	return sum
}

// stripImprovement is Front.Improvement for two objectives, where the cells that v
// reaches follow each other: the first ends beyond v, and their heights fall.
func stripImprovement(cells []Cell, v []float64) float64 {
	first := sort.Search(len(cells), func(k int) bool { return cells[k].Upper[0] > v[0] })
	sum := 0.0
	for k := first; k < len(cells) && cells[k].Upper[1] > v[1]; k++ {
		c := &cells[k]
		sum += (c.Upper[0] - math.Max(c.Lower[0], v[0])) * (c.Upper[1] - v[1])
	}
	return sum
}

// Improves reports whether Improvement(v) is positive, without cells.
func (f *Front) Improves(v []float64) bool {
	checkLength(v, f.reference)
	if !finite(v) {
		return false
	}
	for j, r := range f.reference {
		if !(v[j] < r) {
			return false
		}
	}
	if len(v) == 2 { // the second objective falls along the front
		next := sort.Search(len(f.points), func(k int) bool { return f.points[k][0] > v[0] })
		return next == 0 || f.points[next-1][1] > v[1]
	}
	return !slices.ContainsFunc(f.points, func(p []float64) bool {
		for j, x := range p {
			if x > v[j] {
				return false
			}
		}
		return true
	})
}

// partition slices the non-dominated region along the last objective: between
// two neighbouring values of the front, the slice is the region that the points below
// leave in the other objectives. Boxes that pass unchanged from one slice to
// the next are joined, which leaves O(n) of them in three objectives.
func partition(front [][]float64, reference []float64) []Cell {
	m := len(reference)
	switch m {
	case 1:
		c := Cell{Lower: []float64{math.Inf(-1)}, Upper: []float64{reference[0]}}
		if len(front) > 0 {
			c.Upper[0] = front[0][0]
		}
		return []Cell{c}
	case 2:
		return strips(front, reference)
	}
	last := m - 1
	order := slices.Clone(front)
	slices.SortStableFunc(order, func(p, q []float64) int { return cmp.Compare(p[last], q[last]) })

	var done []Cell
	open := map[string]Cell{} // the boxes of the slice before, by their shape
	var shapes []string       // their keys in order, for a reproducible result
	lower := math.Inf(-1)
	for k := 0; ; {
		upper := reference[last]
		if k < len(order) {
			upper = order[k][last]
		}
		projected := make([][]float64, k)
		for i, p := range order[:k] {
			projected[i] = p[:last]
		}
		slice := map[string]Cell{}
		var sliceShapes []string
		for _, c := range partition(prune(projected), reference[:last]) {
			key := shape(c)
			merged, ok := open[key]
			if !ok {
				merged = Cell{Lower: append(slices.Clone(c.Lower), lower), Upper: append(slices.Clone(c.Upper), upper)}
			}
			merged.Upper[last] = upper
			slice[key] = merged
			sliceShapes = append(sliceShapes, key)
		}
		for _, key := range shapes {
			if _, ok := slice[key]; !ok {
				done = append(done, open[key])
			}
		}
		open, shapes = slice, sliceShapes
		if k == len(order) {
			break
		}
		lower = upper
		for k < len(order) && order[k][last] == upper {
			k++
		}
	}
	for _, key := range shapes {
		done = append(done, open[key])
	}
	return done
}

// strips is partition for two objectives: the strip from x_i to x_{i+1} lies
// below y_i, with x_0 = -Inf, y_0 = r_2 and x_{n+1} = r_1.
func strips(front [][]float64, reference []float64) []Cell {
	cells := make([]Cell, 0, len(front)+1)
	left, height := math.Inf(-1), reference[1]
	add := func(right float64) {
		cells = append(cells, Cell{
			Lower: []float64{left, math.Inf(-1)},
			Upper: []float64{right, height},
		})
	}
	for _, p := range front {
		add(p[0])
		left, height = p[0], p[1]
	}
	add(reference[0])
	return cells
}

// shape returns the bounds of a box as a map key.
func shape(c Cell) string {
	key := make([]byte, 0, 16*len(c.Lower))
	for j := range c.Lower {
		key = binary.LittleEndian.AppendUint64(key, math.Float64bits(c.Lower[j]))
		key = binary.LittleEndian.AppendUint64(key, math.Float64bits(c.Upper[j]))
	}
	return string(key)
}
