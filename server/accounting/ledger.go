package accounting

import (
	"context"
	"errors"
	"fmt"
	"math"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/pause"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/adaptive"
	"github.com/dpareto/dpareto/privacy/meter"
)

// maxExactParts is the largest number of different mechanisms that a composition accounts as
// tightly as possible, at up to a millisecond each. Larger ones use Rényi divergences alone.
const maxExactParts = 1000

// Ledger adds up the cost of many runs of a [Function]'s mechanism, each for its values of the
// variables. It is not safe for concurrent use.
type Ledger struct {
	function *Function
	parts    []part
	byKey    map[string]int // indices of parts
	runs     int64
}

// part is a mechanism, at its length, with the number of its runs.
type part struct {
	evaluated evaluated
	runs      int64
}

// NewLedger returns an empty ledger.
func NewLedger(f *Function) *Ledger { return &Ledger{function: f, byKey: make(map[string]int)} }

// Charge adds runs of the mechanism for values of the variables, or nothing and returns the
// error of [Function.Check].
func (l *Ledger) Charge(variables map[string]any, runs int64) error {
	if runs < 1 {
		panic("accounting: a charge of no runs")
	}
	r, err := l.function.mechanism.evaluate(variables)
	if err != nil {
		return err
	}
	key := fmt.Sprintf("%d %T%+v", r.runs, r.mechanism, r.mechanism)
	i, ok := l.byKey[key]
	if !ok {
		i = len(l.parts)
		l.byKey[key] = i
		l.parts = append(l.parts, part{evaluated: r})
	}
	l.parts[i].runs += runs
	l.runs += runs
	return nil
}

// Mechanisms returns the number of different mechanisms, with their lengths, so far.
func (l *Ledger) Mechanisms() int { return len(l.parts) }

// Function returns the function of the ledger.
func (l *Ledger) Function() *Function { return l.function }

// Composed returns the guarantee of all runs together, for a δ in (0, 1), or 0 where the
// mechanism is pure. The parameters of all runs are taken to be fixed in advance, and
// accounted as tightly as package privacy can with the work of a call, and otherwise by Rényi
// divergences. It stops with ctx's error.
func (l *Ledger) Composed(ctx context.Context, delta float64) (*dparetov1.PrivacyGuarantee, error) {
	if len(l.parts) == 0 {
		return l.nothing(delta), nil
	}
	composed := make(privacy.Composition, len(l.parts))
	for i, p := range l.parts {
		if p.runs > math.MaxInt64/p.evaluated.runs {
			return nil, &privacy.FieldError{Field: "runs", Message: "are too many to add up"}
		}
		composed[i] = privacy.Part{Mechanism: p.evaluated.mechanism, Count: p.runs * p.evaluated.runs}
	}
	accountant := privacy.Accountant(privacy.Tightest{UpperOnly: true})
	if len(l.parts) > maxExactParts && delta > 0 {
		accountant = privacy.RDP{}
	}
	within := func(a privacy.Accountant, limit int64) (privacy.Guarantee, error) {
		return privacy.Epsilon(privacy.Within(a, Service{MaxWork: limit}.work(ctx)), composed, 1, delta)
	}
	g, err := within(accountant, MaxWork)
	if _, tooMuch := errors.AsType[*meter.LimitError](err); tooMuch {
		g, err = within(privacy.RDP{}, 0)
	}
	if err != nil {
		return nil, err
	}
	if pure, ok := l.pure(); ok && pure < g.Epsilon {
		g.Epsilon, g.Accountant, g.Order = pure, privacy.Pure{}.Name(), 0
	}
	return l.message(g, privacy.PremiseFixedInAdvance.Assume("the configurations and the number of runs were fixed before the first run, not chosen by results")), nil
}

// Adaptive returns the guarantee of all runs together where the parameters of each may
// have been chosen by the results of earlier ones. It is the guarantee of a
// [adaptive.Odometer], or the sum of the ε of pure mechanisms if that is less. It takes up to a
// millisecond for every different mechanism, and stops with ctx's error.
func (l *Ledger) Adaptive(ctx context.Context, delta float64) (*dparetov1.PrivacyGuarantee, error) {
	if len(l.parts) == 0 {
		return l.nothing(delta), nil
	}
	assumption := privacy.PremiseFixedInAdvance.Assume("only results that the ledger charges for decided when to stop a run and which one to start next")
	sum, isPure := l.pure()
	if delta == 0 {
		g := privacy.Guarantee{Epsilon: sum, Accountant: privacy.Pure{}.Name(), Assumptions: l.composition().Assumptions()}
		if !isPure {
			g.Epsilon = math.Inf(1)
		}
		return l.message(g, assumption), nil
	}
	odometer, err := adaptive.NewOdometer(delta, adjacencyOf(l.function.spec.GetAdjacency()))
	if err != nil {
		return nil, err
	}
	var g privacy.Guarantee
	for _, p := range l.parts {
		if err := pause.Check(ctx); err != nil {
			return nil, err
		}
		if p.runs > math.MaxInt64/p.evaluated.runs {
			return nil, &privacy.FieldError{Field: "runs", Message: "are too many to add up"}
		}
		if g, err = odometer.Spend(p.evaluated.mechanism, p.runs*p.evaluated.runs); err != nil {
			return nil, err
		}
	}
	g.Assumptions = privacy.JoinAssumptions(l.composition().Assumptions(), g.Assumptions)
	if isPure && sum < g.Epsilon {
		g.Epsilon, g.Accountant, g.Order = sum, privacy.Pure{}.Name(), 0
	}
	return l.message(g, assumption), nil
}

// composition returns the mechanisms, each once.
func (l *Ledger) composition() privacy.Composition {
	c := make(privacy.Composition, len(l.parts))
	for i, p := range l.parts {
		c[i] = privacy.Part{Mechanism: p.evaluated.mechanism, Count: 1}
	}
	return c
}

// pure returns the sum of the ε of all runs, false if one has no pure guarantee. It holds
// with certainty, however the runs were chosen.
func (l *Ledger) pure() (sum float64, ok bool) {
	for _, p := range l.parts {
		g, err := privacy.Epsilon(privacy.Pure{}, p.evaluated.mechanism, p.evaluated.runs, 0)
		if err != nil {
			return math.Inf(1), false
		}
		sum += float64(p.runs) * g.Epsilon
	}
	return sum, true
}

// nothing is the guarantee of no runs.
func (l *Ledger) nothing(delta float64) *dparetov1.PrivacyGuarantee {
	g := l.message(privacy.Guarantee{Delta: delta})
	g.Accountant = dparetov1.Accountant_ACCOUNTANT_PURE
	return g
}

// message converts a guarantee of all runs, under further assumptions if there are runs.
func (l *Ledger) message(g privacy.Guarantee, assumptions ...privacy.Assumption) *dparetov1.PrivacyGuarantee {
	var all evaluated
	for _, p := range l.parts {
		all.datasetSize = max(all.datasetSize, p.evaluated.datasetSize)
	}
	m := l.function.message(g, all)
	m.Steps = l.runs
	// A lower bound needs data sets that attain the losses of all parts together.
	// Different configurations need not share any.
	m.EpsilonLower = nil
	if len(l.parts) > 0 {
		assumptions = append(assumptions, privacy.PremiseIndependence.Assume("the runs have independent randomness"))
	}
	m.Assumptions = show.Assumptions(g.Assumptions, assumptions)
	return m
}
