package suggest

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dpareto/dpareto/suggest/space"
)

// ErrExhausted is returned by [Designer.Suggest], with the suggestions that
// were still possible, when a designer that never repeats a configuration has
// used up its space, or when any finds no other configuration that is allowed.
var ErrExhausted = errors.New("suggest: no further configuration of the space was found")

// Designer chooses configurations. Implementations are stateless and safe for
// concurrent use.
type Designer interface {
	// Name is the designer's stable lower-case identifier, such as "dpareto".
	Name() string

	// Version changes whenever the same arguments can give other suggestions.
	Version() string

	// Suggest returns r.Count configurations for p given h. Each is chosen in
	// view of those before it, so that one request for q of them is the same
	// as q requests with the earlier ones pending.
	//
	// It returns fewer together with [ErrExhausted] when the space is used up,
	// the context's error when it is cancelled, and a [space.FieldErrors] when
	// p is invalid or h does not fit p.
	Suggest(ctx context.Context, p *Problem, h *History, r Request) ([]Suggestion, error)
}

// Request says what to suggest.
type Request struct {
	// Count is the number of configurations wanted. 0 gives none.
	Count int

	// Seed and Number determine every random draw: the i-th suggestion, from
	// 0, depends on Seed and Number+i only. Number is the study's number of
	// the first trial to be created, Seed that of the study.
	Seed   uint64
	Number int64
}

// Prediction is the posterior of one objective at a configuration, in the
// objective's own unit: of the mean that very many runs would have. Lower and
// Upper bound its central 90 % interval, Lower <= Median <= Upper. All three
// are equal for an objective that is known exactly.
type Prediction struct {
	Median, Lower, Upper float64
}

// Suggestion is a configuration to be evaluated, and where it comes from.
type Suggestion struct {
	Point space.Point

	// Predictions has one value per objective, or is nil if no model was used.
	Predictions []Prediction

	// Replicate tells that the configuration has been evaluated before and is to be
	// run again, because that says more about the front than a new one would.
	Replicate bool

	// Acquisition is the value of the designer's criterion, 0 if it has none.
	Acquisition float64

	// Designer is the name of the designer that really made the suggestion.
	// It differs from the one asked for the initial points of a model-based
	// designer, and where its model failed.
	Designer string

	// FallbackReason says why another designer had to step in. Empty if none.
	FallbackReason string
}

// validate checks the arguments that every designer shares.
func validate(p *Problem, h *History, r Request) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if err := h.validate(p); err != nil {
		return err
	}
	if r.Count < 0 {
		return space.FieldErrors{{Field: "count", Message: "must not be negative"}}
	}
	return nil
}

// The independent random streams of one suggestion.
const (
	streamDesign     = iota + 1 // initial points
	streamCandidates            // scrambling of the candidates of an acquisition
	streamSearch                // perturbations of its local search
	streamFit                   // restarts of the surrogate's fit
	streamFronts                // draws of an uncertain front
	streamRays                  // directions along which a front is seen
)

// newRand returns the stream of the given purpose for trial number of a study.
func newRand(seed uint64, number int64, purpose uint64) *rand.Rand {
	return rand.New(rand.NewPCG(mix(seed+purpose), mix(uint64(number)^mix(purpose))))
}

// mix is the finaliser of SplitMix64 (Steele, Lea, Flood, "Fast splittable
// pseudorandom number generators", OOPSLA 2014): a bijection whose outputs look
// independent for consecutive inputs, such as trial numbers.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// pointSet is a set of configurations.
type pointSet map[string]struct{}

// keyBuffer holds the key of a point of few coordinates on the stack.
type keyBuffer [128]byte

// key returns the coordinates of q as a map key; -0 counts as 0.
func key(q space.Point) string {
	var buffer keyBuffer
	return string(appendKey(buffer[:0], q))
}

func appendKey(b []byte, q space.Point) []byte {
	for _, v := range q {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v+0))
	}
	return b
}

func (s pointSet) add(q space.Point) { s[key(q)] = struct{}{} }

func (s pointSet) contains(q space.Point) bool {
	var buffer keyBuffer
	_, ok := s[string(appendKey(buffer[:0], q))]
	return ok
}

// tried returns every configuration that h holds in whatever state.
func (h *History) tried() pointSet {
	s := make(pointSet, len(h.Evaluations)+len(h.Infeasible)+len(h.Pending))
	for i := range h.Evaluations {
		s.add(h.Evaluations[i].Point)
	}
	for _, q := range h.Infeasible {
		s.add(q)
	}
	for _, q := range h.Pending {
		s.add(q)
	}
	return s
}

// modelled makes suggestions one after the other: those of an initial design as far as
// it goes, then those of a model, and where that fails quasi-random ones.
type modelled struct {
	// designed reports whether the run after n others is one of the initial design.
	designed func(n int) bool

	// initial returns a configuration of the initial design, false if there is none.
	initial func(tried pointSet, number int64) (Suggestion, bool)

	// next returns the model's suggestion given the pending configurations, false if
	// there is none. After an error it is not asked again.
	next func(pending []space.Point, tried pointSet, number int64) (Suggestion, bool, error)
}

// suggest answers a request after the given number of runs, evaluated and others.
func (m modelled) suggest(ctx context.Context, p *Problem, h *History, r Request, started int) ([]Suggestion, error) {
	tried := h.tried()
	pending := slices.Clone(h.Pending)
	out := make([]Suggestion, 0, r.Count)
	var failure error // of the model
	for i := range r.Count {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		number := r.Number + int64(i)
		var s Suggestion
		var ok bool
		if m.designed(started + i) {
			s, ok = m.initial(tried, number)
		} else {
			if failure == nil {
				s, ok, failure = m.next(pending, tried, number)
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if failure != nil {
				s, ok = fallback(p, tried, r.Seed, number)
				s.FallbackReason = failure.Error()
			}
		}
		if !ok {
			return out, ErrExhausted
		}
		out = append(out, s)
		tried.add(s.Point)
		pending = append(pending, s.Point)
	}
	return out, nil
}
