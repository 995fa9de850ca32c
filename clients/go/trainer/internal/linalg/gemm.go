package linalg

import (
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// Gemm computes
//
//	C = alpha * op(A) * op(B) + beta * C
//
// where op(A) is A of m by k or, with tA of [blas.Trans], the transpose of A of k by
// m, and op(B) of k by n likewise. As in the reference BLAS (Dongarra, Du Croz,
// Hammarling and Duff, "A Set of Level 3 Basic Linear Algebra Subprograms", ACM
// Transactions on Mathematical Software 16(1), 1990) C is not read if beta is 0, and
// neither A nor B if alpha is 0; otherwise NaN and infinities take part by the rules
// of IEEE 754. C must overlap neither A nor B. Gemm panics if shapes disagree or a
// matrix has too few elements.
func (e *Engine) Gemm(tA, tB blas.Transpose, alpha float32, a, b blas32.General, beta float32, c blas32.General) {
	check(a)
	check(b)
	check(c)
	transA, transB := transposed(tA), transposed(tB)
	m, k := a.Rows, a.Cols
	if transA {
		m, k = k, m
	}
	kB, n := b.Rows, b.Cols
	if transB {
		kB, n = n, kB
	}
	if kB != k || c.Rows != m || c.Cols != n {
		panic(badShape)
	}
	e.gemm(operands{
		m: m, n: n, k: k,
		alpha: alpha, beta: beta,
		a: operand{a.Data, a.Stride, transA},
		b: operand{b.Data, b.Stride, !transB},
		c: c.Data, ldc: c.Stride,
	})
}

func check(a blas32.General) {
	checkMatrix(a.Rows, a.Cols, a.Stride, a.Data)
}

func checkMatrix(rows, cols, stride int, data []float32) {
	switch {
	case rows < 0 || cols < 0:
		panic(badDimension)
	case stride < max(1, cols):
		panic(badStride)
	case rows > 0 && cols > 0 && len(data) < (rows-1)*stride+cols:
		panic(shortData)
	}
}

func transposed(t blas.Transpose) bool {
	if t != blas.NoTrans && t != blas.Trans && t != blas.ConjTrans {
		panic(badTranspose)
	}
	return t != blas.NoTrans
}

// Sizes of the blocks of a product. What is packed of B, blockK by a panel, should
// stay in the first-level cache, blockM by blockK of A in the second. The sums of an
// element of C are grouped by blocks of k, so that blockK decides about bits and
// must be the same for all kernels. blockM is a multiple of the rows and blockN of
// the columns of all tiles.
const (
	blockM = 144
	blockN = 1024
	blockK = 256
)

// maxTile is the number of elements in the largest tile.
const maxTile = 12 * 32

// parallelWork is the least number of multiplications for which another worker is
// worth waking.
const parallelWork = 1 << 19

// operand is a factor of a product, seen as vectors of k elements: the rows of
// op(A) or the columns of op(B).
type operand struct {
	data   []float32
	ld     int
	across bool // the vectors lie across the rows of data, not along them
}

// at returns what follows element p of vector i.
func (o operand) at(i, p int) []float32 {
	if o.across {
		return o.data[p*o.ld+i:]
	}
	return o.data[i*o.ld+p:]
}

// operands are the arguments of one product.
type operands struct {
	m, n, k     int
	alpha, beta float32
	a, b        operand
	c           []float32
	ldc         int
}

// workspace holds the packed blocks of one worker.
type workspace struct {
	a    [blockM * blockK]float32
	b    [blockN * blockK]float32
	tile [maxTile]float32
}

// gemm divides C into a grid, one part for each worker.
func (e *Engine) gemm(o operands) {
	if o.m == 0 || o.n == 0 {
		return
	}
	work := float64(o.m) * float64(o.n) * float64(o.k)
	workers := int(min(float64(e.workers), work/parallelWork))
	if workers <= 1 {
		w := e.workspace()
		e.kernels.part(w, &o, 0, o.m, 0, o.n)
		e.release(w)
		return
	}
	p := e.product()
	p.operands = o
	p.down, p.right = grid(o.m, o.n, workers)
	p.next.Store(0)
	parts := p.down * p.right
	p.done.Add(parts)
	for range parts - 1 {
		go p.work()
	}
	p.work()
	p.done.Wait()
	p.operands = operands{}
	e.mu.Lock()
	e.products = append(e.products, p)
	e.mu.Unlock()
}

// grid returns the division of m by n elements into down by right parts, at most
// workers, in which the parts have the least sum of edges: that is what they pack.
func grid(m, n, workers int) (down, right int) {
	down, right = workers, 1
	for d := 1; d < workers; d++ {
		r := workers / d
		if d*r*4 >= workers*3 && m/d+n/r < m/down+n/right {
			down, right = d, r
		}
	}
	return down, right
}

// product is one division of labour. Each of its goroutines computes one part.
type product struct {
	operands

	down, right int
	next        atomic.Int64
	done        sync.WaitGroup
	work        func()
}

// product returns an idle product of e.
func (e *Engine) product() *product {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := len(e.products); n > 0 {
		p := e.products[n-1]
		e.products = e.products[:n-1]
		return p
	}
	p := new(product)
	p.work = func() { // made once: starting a method value would allocate
		defer p.done.Done()
		i := int(p.next.Add(1)) - 1
		w := e.workspace()
		row, column := i/p.right, i%p.right
		i0, i1 := share(p.m, p.down, row, e.kernels.rows)
		j0, j1 := share(p.n, p.right, column, e.kernels.columns)
		e.kernels.part(w, &p.operands, i0, i1, j0, j1)
		e.release(w)
	}
	return p
}

// share returns the bounds of part i of n elements divided among parts, at
// multiples of unit.
func share(n, parts, i, unit int) (from, to int) {
	units := (n + unit - 1) / unit
	return min(n, units*i/parts*unit), min(n, units*(i+1)/parts*unit)
}

func (e *Engine) workspace() *workspace {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := len(e.workspaces); n > 0 {
		w := e.workspaces[n-1]
		e.workspaces = e.workspaces[:n-1]
		return w
	}
	return new(workspace)
}

func (e *Engine) release(w *workspace) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.workspaces = append(e.workspaces, w)
}

// part computes rows i0 to i1 and columns j0 to j1 of C.
func (s *kernels) part(w *workspace, o *operands, i0, i1, j0, j1 int) {
	if i0 == i1 || j0 == j1 {
		return
	}
	for i := i0; i < i1; i++ {
		row := o.c[i*o.ldc+j0 : i*o.ldc+j1]
		switch o.beta {
		case 0:
			clear(row)
		case 1:
		default:
			s.scale(o.beta, row)
		}
	}
	if o.alpha == 0 || o.k == 0 {
		return
	}
	// As few blocks of k as possible, the first ones longer by one if they cannot be
	// equal: a last block of a few steps would not be worth its packing.
	blocks := (o.k + blockK - 1) / blockK
	shortest, longer := o.k/blocks, o.k%blocks
	for j := j0; j < j1; j += blockN {
		width := min(blockN, j1-j)
		for p := 0; p < o.k; {
			k := shortest
			if p < longer*(shortest+1) {
				k++
			}
			s.pack(w.b[:], s.columns, &o.b, j, width, p, k)
			for i := i0; i < i1; i += blockM {
				height := min(blockM, i1-i)
				s.pack(w.a[:], s.rows, &o.a, i, height, p, k)
				s.multiply(w, o, i, height, j, width, k)
			}
			p += k
		}
	}
}

// pack copies elements p to p+k of count vectors from i on to dst: panels of width
// vectors, the elements of equal index side by side. The last panel is filled up
// with zeros.
func (s *kernels) pack(dst []float32, width int, o *operand, i, count, p, k int) {
	for ; count > 0; i, count = i+width, count-width {
		panel, have := dst[:k*width], min(width, count)
		dst = dst[k*width:]
		if have < width {
			clear(panel)
		}
		if o.across && have == width {
			s.copyRows(panel, width, o.at(i, p), o.ld, k)
			continue
		}
		if o.across {
			for q := range k {
				copy(panel[q*width:], o.at(i, p+q)[:have])
			}
			continue
		}
		v := 0
		for ; v+4 <= have; v += 4 {
			s.transpose4(panel[v:], width, o.at(i+v, p), o.ld, k)
		}
		for ; v < have; v++ {
			for q, x := range o.at(i+v, p)[:k] {
				panel[q*width+v] = x
			}
		}
	}
}

// multiply adds the product of the packed blocks to C. Tiles on an edge of C are
// computed in the workspace, from and to which they are copied, so that their
// elements undergo the same operations as all others.
func (s *kernels) multiply(w *workspace, o *operands, i, height, j, width, k int) {
	for y := 0; y < width; y += s.columns {
		b := w.b[y*k : (y+s.columns)*k]
		for x := 0; x < height; x += s.rows {
			a := w.a[x*k : (x+s.rows)*k]
			c := o.c[(i+x)*o.ldc+j+y:]
			rows, columns := min(s.rows, height-x), min(s.columns, width-y)
			if rows == s.rows && columns == s.columns {
				s.tile(k, o.ldc, o.alpha, a, b, c)
				continue
			}
			for r := range rows {
				copy(w.tile[r*s.columns:][:columns], c[r*o.ldc:])
			}
			s.tile(k, s.columns, o.alpha, a, b, w.tile[:])
			for r := range rows {
				copy(c[r*o.ldc:][:columns], w.tile[r*s.columns:])
			}
		}
	}
}
