package pld

import (
	"math"
)

// TruncatedPoisson returns the pairs of the Gaussian with noise multiplier sigma, relative to the clipping norm, on
// Poisson samples of n records, of which at most size < n are kept, drawn uniformly. The guarantee compares n records
// with what remains without one of them.
//
// Proof. Let K be the number of the others that are drawn, of which the record x has no influence. Tell whether
// K >= size. If not, nothing is left out: the pairs are as for Poisson sampling. If so, without x the batch is a
// uniform set of size others. With x, it is the same set, but that x takes the place of a uniform member y with
// probability q·size/(K+1), when it is drawn and kept. Given K, the set and y are uniform, hence independent of K, so
// that x replaces y with probability
//
//	q' = size·q·E[1/(K+1) | K >= size] = size·P[Bin(n, q) > size]/(n·p), p = P[Bin(n−1, q) >= size],
//
// whatever they are. Given them, the outputs are (1−q')·N(y) + q'·N(x) and N(y), which are easiest to tell apart if x
// and y are as far from each other as two vectors of norm 1 can be: Poisson sampling with q' and sigma/2. By joint
// convexity, that dominates the mean over the set and y.
//
// If x is replaced by x', K < size gives the pair of [ReplaceOne], and K >= size (1−q')·N(y) + q'·N(x) against
// (1−q')·N(y) + q'·N(x'), which [FixedSize] dominates.
//
// The profile from below is attained if the vectors of all other records vanish: then x is in the batch with
// probability (1−p)·q + p·q'.
func TruncatedPoisson(n, size int64, q, sigma float64) Pairs {
	t := truncationOf(n, size, q)
	lower, large := Poisson(t.kept, sigma), Poisson(t.rate, 0.5*sigma)
	if q == 1 {
		return Pairs{Upper: large, Lower: lower}
	}
	small := Poisson(q, sigma)
	return Pairs{Upper: []Pair{t.mixed(small[0], large[0]), t.mixed(small[1], large[1])}, Lower: lower}
}

// TruncatedReplaceOne is TruncatedPoisson if a record is replaced.
func TruncatedReplaceOne(n, size int64, q, sigma float64) Pairs {
	t := truncationOf(n, size, q)
	lower, large := []Pair{ReplaceOne(t.kept, sigma)}, FixedSize(t.rate, 0.5*sigma)
	if q == 1 {
		return Pairs{Upper: []Pair{large}, Lower: lower}
	}
	return Pairs{Upper: []Pair{t.mixed(ReplaceOne(q, sigma), large)}, Lower: lower}
}

// truncation says how often batches are truncated, and what that does to a record.
type truncation struct {
	logShare float64 // log p
	rate     float64 // q'
	kept     float64 // probability of a record in a batch, from below
}

// rarestTruncation is the logarithm of a p for which a larger one, with q' = q, takes its place.
const rarestTruncation = -667

// truncationOf returns p and q' with the errors on the side of an upper bound, 1 <= size < n.
//
// Where p is too low by a factor 1 − e, q' must be too large by 1/(1 − e): for the pairs here ∫(P − αQ)₊, α >= 1, is
// convex in q' and 0 for q' = 0, so that it rises by at least the same factor and makes up for the missing share. With
// q' = q >= q', p may be too large: σ/2 then only makes the small batches worse.
func truncationOf(n, size int64, q float64) truncation {
	all, batch := float64(n), float64(size)
	if q == 1 {
		return truncation{0, batch / all, batch / all * (1 - 0x1p-50)}
	}
	logP, e := logBinomialTail(n-1, size, q)
	logRest, eRest := logBinomialTail(n, size+1, q)
	logTaken := logRest + math.Log(batch/all) // log p·q'
	kept := q*-math.Expm1(math.Min(0, logP+e)) + math.Exp(logTaken-eRest-0x1p-50)
	kept = math.Min(kept*(1-0x1p-48), q)
	if logP < rarestTruncation {
		return truncation{rarestTruncation, q, kept}
	}
	logP = math.Min(logP-e, -0x1p-53) * (1 + 0x1p-50)
	return truncation{logP, math.Min(q, math.Exp(logTaken+eRest-logP)*(1+0x1p-48)), kept}
}

// mixed returns the mixture of the pairs of batches with and without room.
func (t truncation) mixed(small, large Pair) Pair {
	return mixedPair{
		{logShare: math.Log(-math.Expm1(t.logShare)), pair: small.(continuousPair)},
		{logShare: t.logShare, pair: large.(continuousPair)},
	}
}
