package slots

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/internal/orders"
	"github.com/dpareto/dpareto/privacy/meter"
)

// Limits of [NewSlots], and the number of mechanisms that slots remember.
const (
	keptFits     = 4096
	maxSlotKinds = 100
	maxSlots     = 1_000_000
)

// slotSlackShare is the share of δ that the accesses may take together beyond the pairs of their
// slots. It costs some 1e-4 of ε.
const slotSlackShare = 1e-3

// slotsWork bounds the operations for the price of slots (see [meter.Work]), to some seconds. A hundred kinds of
// DP-SGD take a tenth of it.
const slotsWork = 1 << 27

// Slot is a mechanism that is declared beforehand, for a number of accesses.
type Slot struct {
	Mechanism privacy.Mechanism
	Steps     int64 // of the mechanism in one access, >= 1
	Count     int64 // number of accesses, >= 1
}

// Slots are slots for accesses that are chosen one after another, each possibly from the outputs of
// the earlier ones, parameters included. An access needs an unused slot whose pair of distributions
// dominates it but for a probability of slack: δ(ε) ≤ slack + (1 − slack)·δ_slot(ε) for all ε and both
// orders of the data sets.
//
// All accesses together cost as much as the slots that are fixed beforehand, however they are
// chosen and in whatever order, plus the slacks, which together take a thousandth of δ.
//
// Proof. Draw an output of the pair of every slot first, independently. An access is, with
// probability 1 − slack, a post-processing of the output in its slot (Blackwell, 1953), by a function
// that depends on the access and hence on earlier outputs. No output is used twice, so that all that
// is shown is a post-processing of all outputs of the pairs. A step, or an epoch, is a slot in the
// same way: a run that stops early shows a part of what its slot pays for. ∎
//
// Slots are safe for concurrent use.
type Slots struct {
	slots      []Slot
	order      []int // from the cheapest slot on
	dominators []*dominator
	delta      float64
	price      privacy.Guarantee
	rhos       [][]float64 // divergences of each kind, of the first of stretchOrders

	mu   sync.Mutex
	fits map[string][]bool // by mechanism and steps: which slots dominate it
}

// NewSlots returns slots whose price is stated at delta. The errors are FieldErrors for "delta" and
// "slots", errors for their mechanisms and for different adjacencies among them, named
// "slots[i].mechanism.field", an *UnsupportedError for a mechanism without a pair of distributions, and a
// *meter.LimitError for a price that would take some seconds to compute.
func NewSlots(slots []Slot, delta float64) (*Slots, error) {
	if err := privacy.CheckDelta(delta); err != nil {
		return nil, err
	}
	if n := len(slots); n < 1 || n > maxSlotKinds {
		return nil, privacy.FieldErrorf("slots", "must hold 1 to %d kinds, holds %d", maxSlotKinds, n)
	}
	total := int64(0)
	for i, s := range slots {
		at := fmt.Sprintf("slots[%d].", i)
		switch {
		case s.Mechanism == nil:
			return nil, privacy.FieldErrorf(at+"mechanism", "must be set")
		case s.Steps < 1:
			return nil, privacy.FieldErrorf(at+"steps", "must be at least 1, is %d", s.Steps)
		case s.Count < 1 || s.Count > maxSlots:
			return nil, privacy.FieldErrorf(at+"count", "must be in [1, %d], is %d", maxSlots, s.Count)
		}
		if err := s.Mechanism.Validate(); err != nil {
			var errs []error
			for _, fe := range privacy.FieldErrors(err) {
				errs = append(errs, &privacy.FieldError{Field: at + "mechanism." + fe.Field, Message: fe.Message})
			}
			return nil, errors.Join(errs...)
		}
		if got, want := s.Mechanism.Adjacency(), slots[0].Mechanism.Adjacency(); got != want {
			return nil, privacy.FieldErrorf(at+"mechanism.adjacency", "is %s, of the first slot %s", got, want)
		}
		if s.Steps > math.MaxInt32/privacy.MostRuns(s.Mechanism) {
			return nil, privacy.FieldErrorf(at+"steps", "are too many, %d", s.Steps)
		}
		total += s.Count
	}
	out := &Slots{slots: slices.Clone(slots), delta: delta, fits: make(map[string][]bool)}
	accountant := privacy.Within(privacy.Exact{}, &meter.Work{Limit: slotsWork})
	prices := make([]float64, len(slots))
	for i, s := range slots {
		d, err := newDominator(privacy.Part{Mechanism: s.Mechanism, Count: s.Steps}, slotSlackShare*delta/float64(total))
		if err != nil {
			return nil, err
		}
		g, err := privacy.Epsilon(accountant, s.Mechanism, s.Steps, delta)
		if err != nil {
			return nil, err
		}
		prices[i] = g.Epsilon
		out.dominators, out.order = append(out.dominators, d), append(out.order, i)
		rhos, err := divergences(s.Mechanism, s.Steps, d.slack)
		if err != nil {
			return nil, err
		}
		out.rhos = append(out.rhos, rhos)
	}
	slices.SortStableFunc(out.order, func(a, b int) int { return cmp.Compare(prices[a], prices[b]) })
	counts := make([]int64, len(slots))
	for i, slot := range slots {
		counts[i] = slot.Count
	}
	var err error
	out.price, err = out.spent(accountant, counts)
	return out, err
}

// Slots returns the declared slots.
func (s *Slots) Slots() []Slot { return slices.Clone(s.slots) }

// Price returns the guarantee of accesses in all slots.
func (s *Slots) Price() privacy.Guarantee { return s.price }

// Spent returns the guarantee of a number of slots of each kind, if they were fixed beforehand: ε = 0
// for none. It panics on a slice of another length.
func (s *Slots) Spent(used []int64) (privacy.Guarantee, error) {
	if len(used) != len(s.slots) {
		panic("privacy: slots differ in number")
	}
	return s.spent(privacy.Exact{}, used)
}

func (s *Slots) spent(accountant privacy.Accountant, used []int64) (privacy.Guarantee, error) {
	var c privacy.Composition
	for i, n := range used {
		if n > 0 {
			c = append(c, privacy.Part{Mechanism: s.slots[i].Mechanism, Count: s.slots[i].Steps * n})
		}
	}
	if len(c) == 0 {
		return privacy.Guarantee{Delta: s.delta, Adjacency: s.slots[0].Mechanism.Adjacency(), Accountant: privacy.Exact{}.Name()}, nil
	}
	g, err := privacy.Epsilon(accountant, c, 1, s.delta*(1-slotSlackShare))
	g.Delta, g.EpsilonLower = s.delta, 0
	g.Assumptions = append(g.Assumptions, privacy.PremiseAdmission.Assume("every access to the data was admitted to a slot before it happened"))
	return g, err
}

// Fit returns the cheapest kind of slot that is not used up and dominates steps runs of m, or −1 if
// none does. used holds how many of each kind are used; nil means none. The first time for a mechanism
// it can take some tenths of a second, and as much for every kind the first time of all. A comparison that
// would take longer counts as one that finds no domination, unless the parameters alone show it. The errors
// are m's validation error, FieldErrors for "mechanism", "steps" and "adjacency", and an *UnsupportedError for an m
// without profile.
func (s *Slots) Fit(m privacy.Mechanism, steps int64, used []int64) (int, error) {
	if err := privacy.CheckRuns(s.price, m, steps); err != nil {
		return -1, err
	}
	dominated, err := s.dominated(privacy.Part{Mechanism: m, Count: steps})
	if err != nil {
		return -1, err
	}
	for _, i := range s.order {
		if dominated[i] && (used == nil || used[i] < s.slots[i].Count) {
			return i, nil
		}
	}
	return -1, nil
}

// Knows reports whether [Slots.Fit] answers at once.
func (s *Slots) Knows(m privacy.Mechanism, steps int64) bool {
	if privacy.CheckRuns(s.price, m, steps) != nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.fits[privacy.Part{Mechanism: m, Count: steps}.Key()]
	return ok
}

// dominated returns which slots dominate an access.
func (s *Slots) dominated(part privacy.Part) ([]bool, error) {
	key := part.Key()
	s.mu.Lock()
	known, ok := s.fits[key]
	s.mu.Unlock()
	if ok {
		return known, nil
	}
	a, err := newAccess(part)
	if err != nil {
		return nil, err
	}
	dominated := make([]bool, len(s.slots))
	for i, d := range s.dominators {
		if dominated[i], err = d.dominates(a); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.fits) == keptFits {
		clear(s.fits)
	}
	s.fits[key] = dominated
	return dominated, nil
}

// stretchMargin is by how much the divergences of a slot must exceed the divergences of an access that
// its parameters do not compare with, so that [Slots.Fit] hardly ever refuses what [Slots.Stretch]
// allows.
const stretchMargin = 2e-3

// Stretch returns, as a stand-in for [Slots.Fit] that takes a tenth of a millisecond, by how much the Rényi
// divergences of steps runs of m exceed the divergences of the unused slot that comes nearest: the largest
// ratio over some orders, or the one at the smallest order if that exceeds 1 already. It is at most about 1
// where a slot fits, and +Inf where none is left. used is as for Fit. It is for searches: a slot may not
// fit although the ratio is below 1.
func (s *Slots) Stretch(m privacy.Mechanism, steps int64, used []int64) float64 {
	if privacy.CheckRuns(s.price, m, steps) != nil {
		return math.Inf(1)
	}
	var unused []int
	for i, slot := range s.slots {
		if used != nil && used[i] >= slot.Count {
			continue
		}
		if isWeaker(privacy.Part{Mechanism: m, Count: steps}, privacy.Part{Mechanism: slot.Mechanism, Count: slot.Steps}) {
			return 1
		}
		unused = append(unused, i)
	}
	curve, err := privacy.Renyi(m)
	if err != nil {
		return math.Inf(1)
	}
	at := func(order float64) float64 { return curve.RDP(order) * float64(steps) }
	// A quadrature for one order serves smaller ones, and one for a small order is short: that refuses most.
	least, first := math.Inf(1), at(stretchOrders[0])
	var near []int
	orders := 0
	for _, i := range unused {
		if ratio := first / s.rhos[i][0]; ratio > 1 {
			least = math.Min(least, ratio)
		} else {
			near, orders = append(near, i), max(orders, len(s.rhos[i]))
		}
	}
	if len(near) == 0 {
		return least * (1 + stretchMargin)
	}
	own := make([]float64, orders)
	own[0] = first
	for k := orders - 1; k > 0; k-- {
		own[k] = at(stretchOrders[k])
	}
	least = math.Inf(1)
	for _, i := range near {
		ratio := 0.0
		for k, rho := range s.rhos[i] {
			ratio = math.Max(ratio, own[k]/rho)
		}
		if ratio < least { // not if it is no number
			least = ratio
		}
	}
	return least * (1 + stretchMargin)
}

// stretchOrders are the orders at which [Slots.Stretch] compares divergences.
var stretchOrders = []float64{1.5, 5, 17, 65, 257}

// divergences returns Rényi divergences of stretchOrders up to the one that decides ε at a δ of slack: the
// tails that higher orders tell of may differ by as much.
func divergences(m privacy.Mechanism, steps int64, slack float64) ([]float64, error) {
	curve, err := privacy.Renyi(m)
	if err != nil {
		return nil, err
	}
	at := func(order float64) float64 { return curve.RDP(order) * float64(steps) }
	_, decisive := orders.Least(func(order, _ float64) float64 { return at(order) + orders.Surcharge(order, math.Log(slack)) })
	var rhos []float64
	for k, order := range stretchOrders {
		if k == 0 || order <= decisive {
			rhos = append(rhos, at(order))
		}
	}
	return rhos, nil
}
