package linalg

import (
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
	w := e.workspace()
	e.kernels.product(w, &operands{
		m: m, n: n, k: k,
		alpha: alpha, beta: beta,
		a: operand{a.Data, a.Stride, transA},
		b: operand{b.Data, b.Stride, !transB},
		c: c.Data, ldc: c.Stride,
	})
	e.release(w)
}

func check(a blas32.General) {
	switch {
	case a.Rows < 0 || a.Cols < 0:
		panic(badDimension)
	case a.Stride < max(1, a.Cols):
		panic(badStride)
	case a.Rows > 0 && a.Cols > 0 && len(a.Data) < (a.Rows-1)*a.Stride+a.Cols:
		panic(shortData)
	}
}

func transposed(t blas.Transpose) bool {
	if t != blas.NoTrans && t != blas.Trans && t != blas.ConjTrans {
		panic(badTranspose)
	}
	return t != blas.NoTrans
}

// Sizes of the blocks of a product. A panel of B, blockK long, should stay in the
// first-level cache, and a block of A, blockM by blockK, in the second. blockM is a
// multiple of the rows and blockN of the columns of all tiles.
const (
	blockM = 144
	blockN = 1024
	blockK = 256
)

// maxTile is the number of elements in the largest tile.
const maxTile = 12 * 32

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

// workspace holds the packed blocks of one product.
type workspace struct {
	a    [blockM * blockK]float32
	b    [blockN * blockK]float32
	tile [maxTile]float32
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

// product computes C.
func (s *kernels) product(w *workspace, o *operands) {
	if o.m == 0 || o.n == 0 {
		return
	}
	for i := range o.m {
		row := o.c[i*o.ldc:][:o.n]
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
	for j := 0; j < o.n; j += blockN {
		width := min(blockN, o.n-j)
		for p := 0; p < o.k; {
			k := shortest
			if p < longer*(shortest+1) {
				k++
			}
			s.pack(w.b[:], s.columns, &o.b, j, width, p, k)
			for i := 0; i < o.m; i += blockM {
				height := min(blockM, o.m-i)
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
