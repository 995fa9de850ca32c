package suggest

import (
	"math"
	"slices"

	"github.com/dpareto/dpareto/suggest/space"
)

// CheckpointIndex returns the index of the checkpoint parameter, or -1.
func (p *Problem) CheckpointIndex() int {
	if p.Checkpoint == "" {
		return -1
	}
	return slices.IndexFunc(p.Space.Parameters, func(q space.Parameter) bool { return q.Name == p.Checkpoint })
}

// LastUseful returns the largest value of the checkpoint parameter, at most that in q,
// at which every known objective is strictly better than its reference and every known
// constraint holds. No later state of a run of q is on a front. It returns 0 if there is
// no such value.
//
// It is found by bisection, in the logarithm of the number of values evaluations, on the
// assumption that a run that has left the reference does not come back, as a privacy loss
// does not. Where that does not hold at the end of the run, the end is still found.
// It panics if p has no checkpoint parameter or q another length.
func (p *Problem) LastUseful(q space.Point) int64 { return p.lastUseful(q, (*Objective).KnownCost) }

// UsefulLength returns the value of the checkpoint parameter that a run with the
// other parameters of q should have if only its checkpoints matter: the last that can
// be on a front by the cheap stand-ins of known objectives, or the smallest if none can.
func (p *Problem) UsefulLength(q space.Point) float64 {
	c := p.CheckpointIndex()
	if fixed := p.Space.Parameters[c].Fixed; fixed != nil {
		return *fixed
	}
	longest := q.Clone()
	longest[c] = p.Space.Parameters[c].Max
	return math.Max(float64(p.lastUseful(longest, (*Objective).SearchCost)), p.Space.Parameters[c].Min)
}

// lastUseful is LastUseful with known costs from the given function.
func (p *Problem) lastUseful(q space.Point, known func(*Objective, space.Point) float64) int64 {
	c := p.CheckpointIndex()
	if c < 0 || len(q) != len(p.Space.Parameters) {
		panic("suggest: no checkpoint parameter, or a point of another length")
	}
	at := q.Clone()
	useful := func(step int64) bool {
		at[c] = float64(step)
		return p.isUseful(at, known)
	}
	last := int64(q[c])
	if useful(last) {
		return last
	}
	lo := int64(p.Space.Parameters[c].Min) - 1 // useful, or the one before the first
	if lo = min(lo, last); lo+1 < last && !useful(lo+1) {
		return 0
	}
	for hi := last; hi-lo > 1; {
		if mid := lo + (hi-lo)/2; useful(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	if lo < int64(p.Space.Parameters[c].Min) {
		return 0
	}
	return lo
}

// isUseful reports whether q can be on a front by its known objectives and constraints.
func (p *Problem) isUseful(q space.Point, known func(*Objective, space.Point) float64) bool {
	for j := range p.Objectives {
		o := &p.Objectives[j]
		if o.Known != nil && !(known(o, q) < o.Cost(o.Reference)) {
			return false
		}
	}
	for j := range p.Constraints {
		c := &p.Constraints[j]
		if c.Known != nil && !c.Holds(c.Known(q)) {
			return false
		}
	}
	return true
}
