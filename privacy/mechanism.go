package privacy

import (
	"errors"
	"fmt"
	"math"
)

// Mechanism is one release: a randomised algorithm with its parameters and the adjacency that
// they are stated for. Implementations are values; two equal values are the same mechanism.
// Its other methods, such as [PureMechanism] and [RenyiMechanism] have, decide which
// accountants can account it.
type Mechanism interface {
	// Name returns the kind in lower_snake_case, such as "sparse_vector".
	Name() string
	// Adjacency returns the neighbouring relation of the parameters.
	Adjacency() Adjacency
	// Validate returns nil or an error that holds one FieldError for each
	// parameter outside its domain.
	Validate() error
	// Assumptions returns what must hold for the mechanism to be the one that is accounted,
	// in the order of their premises.
	Assumptions() []Assumption
}

// assumeSecretNoise is the assumption on the noise of every mechanism whose theorem is about real
// numbers.
var assumeSecretNoise = PremiseNoise.Assume("the noise comes from entropy that nobody knows, not from a seed, and what is released is computed from exact noise, " +
	"continuous or rounded with the data: the theorem does not cover noise added in floating point")

// assumePublicSize is the assumption on the number of records where one is replaced.
var assumePublicSize = PremiseData.Assume(publicSize)

const publicSize = "the number of records is public"

// assumeClipped is the assumption on the contributions of every mechanism that adds noise to sums of gradients.
var assumeClipped = PremiseSensitivity.Assume("the gradient of every record is clipped by itself, over all parameters together, " +
	"and the noise is added to the sum of a whole batch, once")

// assumeAbsentRecord is the same where one is added or removed, and would have taken another one's place in a batch.
var assumeAbsentRecord = PremiseData.Assume(publicSize + ": a record is zeroed out instead of removed (zero-out adjacency), is drawn into no batch, and takes no one's place")

// SizedMechanism is a Mechanism whose parameters are stated for a number of records.
type SizedMechanism interface {
	Mechanism
	// Records returns that number.
	Records() int64
}

// PureMechanism is a Mechanism with a pure-DP guarantee.
type PureMechanism interface {
	Mechanism
	// PureEpsilon returns the ε of one run. The parameters must be valid.
	PureEpsilon() float64
}

// RenyiMechanism is a Mechanism with a bound on its Rényi divergences.
type RenyiMechanism interface {
	Mechanism
	// RenyiCurve returns the bound for one run. The parameters must be valid.
	RenyiCurve() RenyiCurve
}

// RenyiCurve is a bound ρ(α) on the Rényi divergence of order α between the
// outputs on adjacent data sets (Mironov, "Rényi differential privacy", 2017). It may cache results: it is not
// safe for concurrent use.
type RenyiCurve interface {
	// RDP returns ρ(order) >= 0 in nats, for order > 1; +Inf where there is no
	// finite bound.
	RDP(order float64) float64
}

// Composition is the Mechanism that runs each of its parts Count times, in any
// order, each run possibly depending on the outputs of the earlier ones. The
// parameters of all parts are fixed before the first run.
type Composition []Part

// Part is one element of a Composition.
type Part struct {
	Mechanism Mechanism
	Count     int64 // how often it runs, >= 1
}

// Key identifies the mechanism and its number of runs.
func (p Part) Key() string { return fmt.Sprintf("%d %T%+v", p.Count, p.Mechanism, p.Mechanism) }

// Name returns "composition".
func (c Composition) Name() string { return "composition" }

// Adjacency returns the adjacency of the parts, or 0 for a composition without
// parts.
func (c Composition) Adjacency() Adjacency {
	if len(c) == 0 || c[0].Mechanism == nil {
		return 0
	}
	return c[0].Mechanism.Adjacency()
}

// Validate returns an error when there is no part, when a part is invalid, or
// when the parts differ in adjacency.
func (c Composition) Validate() error {
	if len(c) == 0 {
		return FieldErrorf("parts", "must not be empty")
	}
	var errs []error
	for i, p := range c {
		field := fmt.Sprintf("parts[%d]", i)
		if p.Count < 1 {
			errs = append(errs, FieldErrorf(field+".count", "must be at least 1, is %d", p.Count))
		}
		if p.Mechanism == nil {
			errs = append(errs, FieldErrorf(field+".mechanism", "must be set"))
			continue
		}
		if err := p.Mechanism.Validate(); err != nil {
			for _, fe := range FieldErrors(err) {
				errs = append(errs, &FieldError{Field: field + "." + fe.Field, Message: fe.Message})
			}
			continue
		}
		if inner := MostRuns(p.Mechanism); p.Count > math.MaxInt64/inner {
			errs = append(errs, FieldErrorf(field+".count", "%d times %d runs are too many", p.Count, inner))
		}
		if got, want := p.Mechanism.Adjacency(), c.Adjacency(); got != want {
			errs = append(errs, FieldErrorf(field+".adjacency",
				"is %s where parts[0] has %s: guarantees for different adjacencies do not compose", got, want))
		}
	}
	return errors.Join(errs...)
}

// Assumptions returns the assumptions of all parts, each once.
func (c Composition) Assumptions() []Assumption {
	lists := make([][]Assumption, len(c))
	for i, p := range c {
		lists[i] = p.Mechanism.Assumptions()
	}
	return JoinAssumptions(lists...)
}

// MostRuns returns how often the most frequent part of a valid m runs.
func MostRuns(m Mechanism) int64 {
	most := int64(1)
	if c, ok := m.(Composition); ok {
		for _, p := range c {
			most = max(most, p.Count*MostRuns(p.Mechanism))
		}
	}
	return most
}

// Parts returns the parts of m with nested compositions expanded. m must be
// valid.
func Parts(m Mechanism) []Part {
	c, ok := m.(Composition)
	if !ok {
		return []Part{{Mechanism: m, Count: 1}}
	}
	var parts []Part
	for _, p := range c {
		for _, inner := range Parts(p.Mechanism) {
			inner.Count *= p.Count
			parts = append(parts, inner)
		}
	}
	return parts
}
