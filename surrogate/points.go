package surrogate

// points are n points of d coordinates, column by column: a d×n matrix, along whose rows
// the loops over the points go.
type points [][]float64

// newPoints returns n points at the origin of d dimensions.
func newPoints(n, d int) points {
	p := make(points, d)
	data := make([]float64, n*d)
	for j := range p {
		p[j] = data[j*n : (j+1)*n : (j+1)*n]
	}
	return p
}

// grow returns a copy of n points with m more at the origin.
func (p points) grow(n, m int) points {
	next := newPoints(n+m, len(p))
	for j := range p {
		copy(next[j], p[j][:n])
	}
	return next
}

// from returns the points from the first one given on, in the same memory.
func (p points) from(first int) points {
	rest := make(points, len(p))
	for j, column := range p {
		rest[j] = column[first:]
	}
	return rest
}

// set makes x point i.
func (p points) set(i int, x []float64) {
	for j, v := range x {
		p[j][i] = v
	}
}

// at stores point i into x.
func (p points) at(x []float64, i int) {
	for j := range p {
		x[j] = p[j][i]
	}
}

// squaredDistances stores the squared distances of x from the first len(r2) points.
func (p points) squaredDistances(r2, x []float64) {
	clear(r2)
	for j, v := range x {
		for i, w := range p[j][:len(r2)] {
			diff := v - w
			r2[i] += diff * diff
		}
	}
}
