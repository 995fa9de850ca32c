package privacy

import (
	"fmt"
	"math"
	"strconv"
)

// Adjacency says which pairs of data sets a guarantee protects. The zero value
// is no adjacency: it is never a default.
type Adjacency int

const (
	// AddRemove means that one record is added to, or removed from, the data set.
	AddRemove Adjacency = iota + 1
	// ReplaceOne means that the number of records is public and one record is replaced.
	ReplaceOne
)

// String returns "add_remove", "replace_one" or, for any other value,
// "Adjacency(n)".
func (a Adjacency) String() string {
	switch a {
	case AddRemove:
		return "add_remove"
	case ReplaceOne:
		return "replace_one"
	default:
		return "Adjacency(" + strconv.Itoa(int(a)) + ")"
	}
}

// Guarantee is an (ε, δ)-DP statement with everything needed to read it.
type Guarantee struct {
	// Epsilon is an upper bound on the privacy loss, >= 0. It is +Inf only where
	// no finite bound exists, or where it exceeds the largest float64.
	Epsilon float64
	// EpsilonLower is a value below which no valid accountant can go for this
	// mechanism, 0 <= EpsilonLower <= Epsilon; 0 where none is known.
	EpsilonLower float64
	// Delta is the δ of the statement, in [0, 1).
	Delta float64
	// Adjacency is the neighbouring relation that Epsilon holds for.
	Adjacency Adjacency
	// Accountant is the name of the accountant, as [Accountant.Name] returns it.
	Accountant string
	// Order is the Rényi order that attains Epsilon, > 1; 0 where the accountant
	// has none.
	Order float64
	// Steps is how often the mechanism was run, >= 0.
	Steps int64
	// Assumptions must be true for the statement to hold. They have the order of their premises.
	Assumptions []Assumption
	// Warnings are facts that a reader of Epsilon should know.
	Warnings []Warning
}

// String returns the statement in one line, ε rounded up to six digits.
func (g Guarantee) String() string {
	return fmt.Sprintf("(%s, %g)-DP, %s, %d steps, %s", formatUp(g.Epsilon), g.Delta, g.Adjacency, g.Steps, g.Accountant)
}

// formatUp prints x >= 0 with six significant digits, never below x.
func formatUp(x float64) string {
	for up := x; ; up *= 1 + 1e-6 { // by at most one unit of the last digit
		s := strconv.FormatFloat(up, 'g', 6, 64)
		if printed, err := strconv.ParseFloat(s, 64); err != nil || printed >= x {
			return s
		}
	}
}

// Warning is a structured remark about a Guarantee.
type Warning struct {
	Code    WarningCode
	Message string
}

// WarningCode identifies a kind of Warning. Codes are stable; messages are not.
type WarningCode string

const (
	// WarnOrderAtEdge says that the best Rényi order is the smallest or the largest that
	// the mechanism or the search allows, so a better one may lie outside.
	WarnOrderAtEdge WarningCode = "ORDER_AT_EDGE"
	// WarnLooseBound says that Epsilon is valid, and known to be far above what another
	// accountant would give.
	WarnLooseBound WarningCode = "LOOSE_BOUND"
	// WarnVacuous says that Epsilon is infinite: the statement says nothing.
	WarnVacuous WarningCode = "VACUOUS"
	// WarnContradiction says that a lower bound was found above Epsilon: one of the two is wrong, which is a fault
	// of this package. EpsilonLower is 0 then.
	WarnContradiction WarningCode = "BOUNDS_CONTRADICT"
)

// boundsRounding is the relative difference up to which two bounds count as equal: where ε is known exactly, both
// are it but for rounding.
const boundsRounding = 1e-12

// WithLower returns g with a lower bound on its ε, or with a warning if the bound contradicts it.
func (g Guarantee) WithLower(lower float64) Guarantee {
	if lower <= g.Epsilon*(1+boundsRounding) {
		g.EpsilonLower = math.Min(lower, g.Epsilon)
		return g
	}
	g.EpsilonLower = 0
	return g.Warn(WarnContradiction, fmt.Sprintf("an attack shows epsilon %.17g, above the bound %.17g: one of them is wrong, rely on neither", lower, g.Epsilon))
}
