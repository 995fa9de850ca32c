package accounting

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/adaptive"
	"github.com/dpareto/dpareto/privacy/meter"
	"github.com/dpareto/dpareto/privacy/tuning"
	"github.com/dpareto/dpareto/server/expression"
	"github.com/dpareto/dpareto/server/invalid"
)

// Codes of warnings that package privacy does not give.
const (
	// warnLargeDelta marks a guarantee whose δ is not below 1/dataset_size, so that it allows
	// publishing a record.
	warnLargeDelta = "LARGE_DELTA"
	// warnAtRangeEnd marks the answer of a calibration at an end of the range, where ε is
	// still below the target.
	warnAtRangeEnd = "AT_RANGE_END"
)

// What a Function keeps; the package comment says why.
const (
	keptCurves = 32
	keptCosts  = 4096
)

// Function is the guarantee of a mechanism as a function of the variables in its
// expressions. It is safe for concurrent use.
type Function struct {
	spec       *dparetov1.PrivacySpec
	accountant privacy.Accountant
	mechanism  *mechanism
	limit      int64 // of the operations of one guarantee, 0 for none

	mu     sync.Mutex // held while a curve is made
	curves *lru.Cache[string, privacy.Curve]
	costs  *lru.Cache[string, float64]
}

// newFunction returns the function of a mechanism.
func newFunction(spec *dparetov1.PrivacySpec, m *mechanism, accountant privacy.Accountant) *Function {
	return &Function{
		spec: spec, mechanism: m, accountant: accountant,
		curves: newCache[string, privacy.Curve](keptCurves), costs: newCache[string, float64](keptCosts),
	}
}

// newCache returns a cache of size entries.
func newCache[K comparable, V any](size int) *lru.Cache[K, V] {
	cache, err := lru.New[K, V](size)
	if err != nil {
		panic(err) // size is positive
	}
	return cache
}

// Compile validates a spec and compiles it. Violations are added to fields, under paths
// that begin with path; then the result is nil.
func Compile(path string, fields *invalid.Fields, environment *expression.Environment, spec *dparetov1.PrivacySpec) *Function {
	before := fields.Len()
	if spec == nil {
		fields.Addf(path, "must be set")
		return nil
	}
	c := &compiler{fields: fields, environment: environment, root: path}
	c.adjacency = adjacencyOf(spec.GetAdjacency())
	if c.adjacency == 0 {
		c.addf("adjacency", "must be ADJACENCY_ADD_REMOVE or ADJACENCY_REPLACE_ONE, is %v", spec.GetAdjacency())
	}
	f := newFunction(spec, nil, c.accountant(spec))
	if f.mechanism = c.mechanism("", spec); f.mechanism != nil {
		c.check(spec, f.mechanism)
	}
	if fields.Len() != before {
		return nil
	}
	return f
}

// Limit bounds the operations that one guarantee takes (see [meter.Work]). One that would take more
// is a *meter.LimitError. Call it before the first guarantee.
func (f *Function) Limit(operations int64) { f.limit = operations }

// UpperOnly leaves the lower bound of ε out of guarantees, which may take longer than ε. Call it before
// the first guarantee.
func (f *Function) UpperOnly() { f.accountant = privacy.UpperOnly(f.accountant) }

// adjacencyOf returns 0 for anything but the two adjacencies.
func adjacencyOf(a dparetov1.Adjacency) privacy.Adjacency {
	switch a {
	case dparetov1.Adjacency_ADJACENCY_ADD_REMOVE:
		return privacy.AddRemove
	case dparetov1.Adjacency_ADJACENCY_REPLACE_ONE:
		return privacy.ReplaceOne
	default:
		return 0
	}
}

// accountant returns the accountant that a spec asks for.
func (c *compiler) accountant(spec *dparetov1.PrivacySpec) privacy.Accountant {
	conversion := spec.GetConversion()
	if spec.GetAccountant() != dparetov1.Accountant_ACCOUNTANT_RDP && conversion != dparetov1.Conversion_CONVERSION_UNSPECIFIED {
		c.addf("conversion", "is only for ACCOUNTANT_RDP")
	}
	switch spec.GetAccountant() {
	case dparetov1.Accountant_ACCOUNTANT_UNSPECIFIED, dparetov1.Accountant_ACCOUNTANT_TIGHTEST:
		return privacy.Tightest{}
	case dparetov1.Accountant_ACCOUNTANT_EXACT:
		return privacy.Exact{}
	case dparetov1.Accountant_ACCOUNTANT_PLD:
		return privacy.PLD{}
	case dparetov1.Accountant_ACCOUNTANT_GDP:
		return privacy.GDP{}
	case dparetov1.Accountant_ACCOUNTANT_PURE:
		return privacy.Pure{}
	case dparetov1.Accountant_ACCOUNTANT_PURE_ADVANCED:
		return privacy.Pure{Rule: privacy.Advanced}
	case dparetov1.Accountant_ACCOUNTANT_PURE_OPTIMAL:
		return privacy.Pure{Rule: privacy.Optimal}
	case dparetov1.Accountant_ACCOUNTANT_LOCATION:
		return tuning.Location{}
	case dparetov1.Accountant_ACCOUNTANT_RDP:
		switch conversion {
		case dparetov1.Conversion_CONVERSION_CLASSIC:
			return privacy.RDP{Conversion: privacy.Classic}
		case dparetov1.Conversion_CONVERSION_IMPROVED:
			return privacy.RDP{Conversion: privacy.Improved}
		default:
			c.addf("conversion", "must be CONVERSION_CLASSIC or CONVERSION_IMPROVED with ACCOUNTANT_RDP, is %v", conversion)
		}
	default:
		c.addf("accountant", "is unknown: %v", spec.GetAccountant())
	}
	return nil
}

// check checks that the accountant can account the mechanism with this δ, for any values of
// the variables.
func (c *compiler) check(spec *dparetov1.PrivacySpec, m *mechanism) {
	accountant, delta := spec.GetAccountant(), spec.GetDelta()
	refuse := func(reason string) { c.addf("accountant", "cannot be %v: %s", accountant, reason) }
	switch accountant {
	case dparetov1.Accountant_ACCOUNTANT_PURE, dparetov1.Accountant_ACCOUNTANT_PURE_ADVANCED, dparetov1.Accountant_ACCOUNTANT_PURE_OPTIMAL:
		if !m.pure {
			refuse("the mechanism has no pure guarantee")
		}
	case dparetov1.Accountant_ACCOUNTANT_GDP:
		if !m.gaussian {
			refuse("the mechanism is not one of Gaussian noise without sampling")
		}
	case dparetov1.Accountant_ACCOUNTANT_EXACT, dparetov1.Accountant_ACCOUNTANT_PLD:
		if !m.pair {
			refuse("the mechanism has no dominating pair of distributions; ACCOUNTANT_RDP can account it")
		}
	case dparetov1.Accountant_ACCOUNTANT_LOCATION:
		if !m.selection {
			refuse("the mechanism is not repeated_selection")
		}
	default:
	}
	pureAllowed := m.pure && (accountant == dparetov1.Accountant_ACCOUNTANT_UNSPECIFIED ||
		accountant == dparetov1.Accountant_ACCOUNTANT_TIGHTEST)
	switch {
	case accountant == dparetov1.Accountant_ACCOUNTANT_PURE:
		if delta != 0 {
			c.addf("delta", "must be 0 with ACCOUNTANT_PURE, is %g", delta)
		}
	case delta == 0 && pureAllowed:
	default:
		if fault := privacy.DeltaFault(delta); fault != "" {
			c.addf("delta", "%s", fault)
		}
	}
}

// Guarantee returns the guarantee of the mechanism for values of the variables, of
// their Go types int64, float64 or string. The error of an invalid value is a
// *privacy.FieldError, or several of them joined, whose Field is the path of the
// expression below the spec.
func (f *Function) Guarantee(variables map[string]any) (*dparetov1.PrivacyGuarantee, error) {
	r, err := f.mechanism.evaluate(variables)
	if err != nil {
		return nil, err
	}
	return f.guarantee(r)
}

// Check returns Guarantee's error about an invalid value, without the work of accounting.
func (f *Function) Check(variables map[string]any) error {
	_, err := f.mechanism.evaluate(variables)
	return err
}

// Part returns the mechanism for values of the variables, with the number of its runs, or the
// same error as Check.
func (f *Function) Part(variables map[string]any) (privacy.Part, error) {
	r, err := f.mechanism.evaluate(variables)
	return privacy.Part{Mechanism: r.mechanism, Count: r.runs}, err
}

// guarantee accounts an evaluated mechanism.
func (f *Function) guarantee(r evaluated) (*dparetov1.PrivacyGuarantee, error) {
	curve, err := f.curve(r.mechanism)
	if err != nil {
		return nil, err
	}
	g, err := curve.Epsilon(r.runs, f.spec.GetDelta())
	if err != nil {
		return nil, err
	}
	return f.message(g, r), nil
}

// curve returns the curve of a mechanism, from an earlier call if possible.
func (f *Function) curve(m privacy.Mechanism) (privacy.Curve, error) {
	key := privacy.Part{Mechanism: m}.Key()
	f.mu.Lock()
	defer f.mu.Unlock()
	if kept, ok := f.curves.Get(key); ok {
		return kept, nil
	}
	curve, err := f.newCurve(m)
	if err == nil {
		f.curves.Add(key, curve)
	}
	return curve, err
}

// newCurve returns the curve of a mechanism within the limit.
func (f *Function) newCurve(m privacy.Mechanism) (privacy.Curve, error) {
	if f.limit == 0 {
		return f.accountant.Curve(m)
	}
	bounded := &boundedCurve{limit: f.limit}
	var err error
	bounded.curve, err = privacy.Within(f.accountant, &bounded.work).Curve(m)
	return bounded, err
}

// boundedCurve is a curve whose answers take limited work each. It is safe for concurrent use.
type boundedCurve struct {
	limit int64

	mu    sync.Mutex
	work  meter.Work // of the latest answer
	curve privacy.Curve
}

// Epsilon implements privacy.Curve.
func (b *boundedCurve) Epsilon(steps int64, delta float64) (privacy.Guarantee, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.work = meter.Work{Limit: b.limit}
	return b.curve.Epsilon(steps, delta)
}

// message converts the guarantee of an evaluated mechanism.
func (f *Function) message(g privacy.Guarantee, r evaluated) *dparetov1.PrivacyGuarantee {
	message := Message(g, f.spec.GetAdjacency())
	if text := show.LargeDelta(g.Delta, r.datasetSize); text != "" {
		message.Warnings = append(message.Warnings, &dparetov1.Warning{Code: warnLargeDelta, Message: text})
	}
	return message
}

// Message converts a guarantee under an adjacency to its message.
func Message(g privacy.Guarantee, adjacency dparetov1.Adjacency) *dparetov1.PrivacyGuarantee {
	message := &dparetov1.PrivacyGuarantee{
		Epsilon:     g.Epsilon,
		Delta:       g.Delta,
		Adjacency:   adjacency,
		Order:       g.Order,
		Steps:       g.Steps,
		Assumptions: show.Assumptions(g.Assumptions),
	}
	message.Accountant, message.Conversion = accountantOf(g.Accountant)
	if g.EpsilonLower > 0 {
		message.EpsilonLower = &g.EpsilonLower
	}
	for _, w := range g.Warnings {
		if w.Code == privacy.WarnContradiction {
			slog.Error("bounds on epsilon contradict each other: please report it", "accountant", g.Accountant, "steps", g.Steps, "delta", g.Delta, "fault", w.Message)
		}
		message.Warnings = append(message.Warnings, &dparetov1.Warning{Code: string(w.Code), Message: w.Message})
	}
	return message
}

// accountantOf returns the accountant with a name of package privacy.
func accountantOf(name string) (dparetov1.Accountant, dparetov1.Conversion) {
	switch name {
	case privacy.Exact{}.Name():
		return dparetov1.Accountant_ACCOUNTANT_EXACT, dparetov1.Conversion_CONVERSION_UNSPECIFIED
	case privacy.PLD{}.Name():
		return dparetov1.Accountant_ACCOUNTANT_PLD, dparetov1.Conversion_CONVERSION_UNSPECIFIED
	case privacy.GDP{}.Name():
		return dparetov1.Accountant_ACCOUNTANT_GDP, dparetov1.Conversion_CONVERSION_UNSPECIFIED
	case privacy.Pure{}.Name():
		return dparetov1.Accountant_ACCOUNTANT_PURE, dparetov1.Conversion_CONVERSION_UNSPECIFIED
	case privacy.Pure{Rule: privacy.Advanced}.Name():
		return dparetov1.Accountant_ACCOUNTANT_PURE_ADVANCED, dparetov1.Conversion_CONVERSION_UNSPECIFIED
	case privacy.Pure{Rule: privacy.Optimal}.Name():
		return dparetov1.Accountant_ACCOUNTANT_PURE_OPTIMAL, dparetov1.Conversion_CONVERSION_UNSPECIFIED
	case "rdp_odometer": // see adaptive.Odometer
		return dparetov1.Accountant_ACCOUNTANT_RDP_ODOMETER, dparetov1.Conversion_CONVERSION_UNSPECIFIED
	case tuning.Location{}.Name():
		return dparetov1.Accountant_ACCOUNTANT_LOCATION, dparetov1.Conversion_CONVERSION_UNSPECIFIED
	case privacy.Chernoff:
		return dparetov1.Accountant_ACCOUNTANT_CHERNOFF, dparetov1.Conversion_CONVERSION_UNSPECIFIED
	case privacy.RDP{}.Name():
		return dparetov1.Accountant_ACCOUNTANT_RDP, dparetov1.Conversion_CONVERSION_IMPROVED
	case privacy.RDP{Conversion: privacy.Classic}.Name():
		return dparetov1.Accountant_ACCOUNTANT_RDP, dparetov1.Conversion_CONVERSION_CLASSIC
	default:
		return dparetov1.Accountant_ACCOUNTANT_UNSPECIFIED, dparetov1.Conversion_CONVERSION_UNSPECIFIED
	}
}

// below puts a path before the fields of the FieldErrors in err, with the names that
// the contract has for them. Other errors are returned as they are.
func below(path string, names map[string]string, err error) error {
	found := privacy.FieldErrors(err)
	if len(found) == 0 {
		return err
	}
	renamed := make([]error, len(found))
	for i, fe := range found {
		field := fe.Field
		if name, ok := names[field]; ok {
			field = name
		}
		renamed[i] = &privacy.FieldError{Field: join(path, field), Message: fe.Message}
	}
	return errors.Join(renamed...)
}

// join joins the parts of a path. Any of them may be empty.
func join(parts ...string) string {
	path := ""
	for _, p := range parts {
		switch {
		case path == "":
			path = p
		case p != "":
			path += "." + p
		}
	}
	return path
}

// Divergence bounds the Rényi divergence of an order of the mechanism, for values of the
// variables as [Function.Guarantee] takes them. It returns errors like Guarantee and
// [privacy.Divergence].
func (f *Function) Divergence(variables map[string]any, order float64) (float64, error) {
	r, err := f.mechanism.evaluate(variables)
	if err != nil {
		return 0, err
	}
	return privacy.Divergence(r.mechanism, r.runs, order)
}

// GaussianCost returns what repeats >= 1 times the mechanism cost of a budget as one access, for
// values of the variables as [Function.Guarantee] takes them. It keeps its latest answers. It returns
// errors like Guarantee and [adaptive.GaussianBudget.Cost].
func (f *Function) GaussianCost(variables map[string]any, repeats int64, budget adaptive.GaussianBudget) (float64, error) {
	r, err := f.mechanism.evaluate(variables)
	if err != nil {
		return 0, err
	}
	if r.runs > math.MaxInt64/repeats {
		return math.Inf(1), nil
	}
	key := fmt.Sprintf("%v %s", budget, privacy.Part{Mechanism: r.mechanism, Count: repeats * r.runs}.Key())
	if cost, ok := f.costs.Get(key); ok {
		return cost, nil
	}
	cost, err := budget.Cost(r.mechanism, repeats*r.runs)
	if err == nil {
		f.costs.Add(key, cost)
	}
	return cost, err
}

// PublicSize reports whether the guarantees assume [privacy.PublicSizeAssumption].
func (f *Function) PublicSize() bool { return f.mechanism.publicSize }

// Adjacency returns the adjacency of the guarantees.
func (f *Function) Adjacency() dparetov1.Adjacency { return f.spec.GetAdjacency() }
