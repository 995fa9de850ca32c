package orders

import (
	"math"
)

// Surcharge returns ε − ρ(order) of the best conversion known of a Rényi divergence, privacy.Improved.
func Surcharge(order, logDelta float64) float64 {
	return math.Log1p(-1/order) - (logDelta+math.Log(order))/(order-1)
}

// Max ends the search for orders; integers up to it are exact.
const Max = 1 << 52

// Least returns the least value of f, which falls and then rises, over the orders
// α > 1, and the order. It may stop at any value that is not positive, and f may return +Inf
// for a value above limit.
func Least(f func(order, limit float64) float64) (best, at float64) {
	best, at = LeastInteger(f)
	if best > 0 {
		best, at = refineOrder(best, at, f)
	}
	return best, at
}

// LeastInteger is leastOverOrders for the integers α >= 2.
//
// Powers of two are tried until f rises twice in a row, in case the minimum of
// two bounds has a shallow dent; then the bracket is halved. The orders that are
// tried are dyadic, so that different calls share most of them.
func LeastInteger(f func(order, limit float64) float64) (best, at float64) {
	best, at = f(2, math.Inf(1)), 2
	for alpha, rises := 4.0, 0; alpha <= Max && rises < 2 && best > 0; alpha *= 2 {
		if v := f(alpha, best); v < best {
			best, at, rises = v, alpha, 0
		} else {
			rises++
		}
	}
	lo, hi := at/2, math.Min(Max, 2*at)
	for hi-lo > math.Max(2, at*0x1p-40) && best > 0 {
		mid := math.Floor((at + hi) / 2)
		if at-lo > hi-at {
			mid = math.Ceil((lo + at) / 2)
		}
		v := f(mid, best)
		switch {
		case v < best && mid < at:
			best, at, hi = v, mid, at
		case v < best:
			best, at, lo = v, mid, at
		case mid < at:
			lo = mid
		default:
			hi = mid
		}
	}
	return best, at
}

// refineOrder continues the search from the best integer order to real ones, in
// u = log(α − 1): it steps to the vertex of a parabola through the best point and
// the points next to it, on whose two sides the minimum is known to lie.
func refineOrder(best, at float64, f func(order, limit float64) float64) (least, order float64) {
	const (
		lowest    = -28.0   // of u
		largest   = 1 << 20 // beyond it integers are close enough
		precision = 1e-6    // of u; the error of ε is about its square
		nearby    = 1e-3    // distance of the last points
	)
	if at >= largest {
		return best, at
	}
	type point struct{ u, value float64 }
	atOrder := func(order float64) point { return point{math.Log(order - 1), f(order, math.Inf(1))} }
	value := func(u float64) point { return point{u, f(1+math.Exp(u), math.Inf(1))} }
	mid, right := point{math.Log(at - 1), best}, atOrder(at+1)
	left := value(mid.u - math.Ln2)
	if at > 2 {
		left = atOrder(at - 1)
	}
	for left.value < mid.value && left.u > lowest {
		left, mid, right = value(left.u-2*(mid.u-left.u)), left, mid
	}
	for right.value < mid.value {
		left, mid, right = mid, right, value(right.u+2*(right.u-mid.u))
	}
	settled, width := false, math.Inf(1)
	for i := 0; mid.value > 0 && right.u-left.u > precision; i++ {
		down, up := (mid.value-left.value)/(mid.u-left.u), (right.value-mid.value)/(right.u-mid.u)
		// The slope of the parabola is linear between the two midpoints.
		u := 0.5 * (left.u + mid.u - down*(right.u-left.u)/(up-down))
		drop := (up - down) / (right.u - left.u) * (u - mid.u) * (u - mid.u)
		slow := false
		if i%4 == 3 { // next to a cliff a parabola does not help
			slow, width = right.u-left.u > 0.5*width, right.u-left.u
		}
		switch {
		case slow || !(u > left.u && u < right.u):
			if u = 0.5 * (left.u + mid.u); right.u-mid.u > mid.u-left.u {
				u = 0.5 * (right.u + mid.u)
			}
		case math.Abs(u-mid.u) < precision && drop < 1e-12*mid.value:
			if settled {
				return mid.value, 1 + math.Exp(mid.u)
			}
			settled = true
			if right.u-mid.u > mid.u-left.u {
				u = mid.u + math.Min(nearby, 0.5*(right.u-mid.u))
			} else {
				u = mid.u - math.Min(nearby, 0.5*(mid.u-left.u))
			}
		}
		switch next := value(u); {
		case next.value < mid.value && u < mid.u:
			mid, right = next, mid
		case next.value < mid.value:
			left, mid = mid, next
		case u < mid.u:
			left = next
		default:
			right = next
		}
	}
	return mid.value, 1 + math.Exp(mid.u)
}
