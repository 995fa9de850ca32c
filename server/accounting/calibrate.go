package accounting

import (
	"context"
	"fmt"
	"math"
	"slices"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/pause"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/server/expression"
	"github.com/dpareto/dpareto/server/invalid"
)

// CalibrateMechanism implements PrivacyService.
func (s Service) CalibrateMechanism(ctx context.Context, req *dparetov1.CalibrateMechanismRequest) (*dparetov1.CalibrateMechanismResponse, error) {
	c, err := newCalibration(req)
	if err != nil {
		return nil, err
	}
	// Only the answer has a lower bound of ε, which may take longer than ε.
	whole, work := c.function, s.work(ctx)
	c.function = newFunction(whole.spec, whole.mechanism, privacy.Within(privacy.UpperOnly(whole.accountant), work))
	found, err := c.run(ctx, req.GetTargetEpsilon())
	if err != nil {
		return nil, fieldsOf(err)
	}
	whole.accountant = privacy.Within(whole.accountant, work)
	c.function = whole
	answer, err := c.at(found.x)
	if err != nil {
		return nil, fieldsOf(err)
	}
	// ε stays the one that the search compared with the target: computed anew it may differ in its last digits.
	// A lower bound within this difference is left out.
	if lower := answer.guarantee.EpsilonLower; lower != nil && *lower <= found.epsilon() {
		found.guarantee.EpsilonLower = lower
	}
	value := &dparetov1.Value{Kind: &dparetov1.Value_DoubleValue{DoubleValue: found.x}}
	if c.integer {
		value.Kind = &dparetov1.Value_IntValue{IntValue: int64(found.x)}
	}
	return &dparetov1.CalibrateMechanismResponse{Reachable: found.reachable, Value: value, Guarantee: found.guarantee, Derived: found.derived}, nil
}

// calibration finds the value of a variable whose ε comes nearest to a target from below.
type calibration struct {
	function  *Function
	variables map[string]any // the others
	name      string
	integer   bool
	lo, hi    float64
}

// newCalibration validates a request.
func newCalibration(req *dparetov1.CalibrateMechanismRequest) (*calibration, error) {
	c := &calibration{name: req.GetSolveFor(), lo: req.GetMin(), hi: req.GetMax()}
	var fields invalid.Fields
	if !variableName.MatchString(c.name) || expression.Reserved(c.name) {
		fields.Addf("solve_for", "must be the name of a variable, is %q", c.name)
	}
	if _, given := req.GetParameters()[c.name]; given {
		fields.Addf("solve_for", "%q already has a value in parameters", c.name)
	}
	if math.IsNaN(c.lo) || math.IsInf(c.lo, 0) {
		fields.Addf("min", "must be finite, is %g", c.lo)
	}
	if !(c.lo < c.hi) || math.IsInf(c.hi, 0) {
		fields.Addf("max", "must be above min (%g) and finite, is %g", c.lo, c.hi)
	}
	if target := req.GetTargetEpsilon(); !(target > 0) || math.IsInf(target, 1) {
		fields.Addf("target_epsilon", "must be positive and finite, is %g", target)
	}
	if !fields.Empty() {
		return nil, fields.Err()
	}
	// As a double where the expressions accept one, else as an int.
	var asDouble, asInteger invalid.Fields
	if c.compile(req, &asDouble, expression.Double) {
		return c, nil
	}
	if !c.compile(req, &asInteger, expression.Int) {
		return nil, asDouble.Err()
	}
	const largest = 1 << 53 // to which every integer is a float64
	c.integer, c.lo, c.hi = true, math.Ceil(c.lo), math.Floor(c.hi)
	if c.lo < -largest || c.hi > largest || c.lo >= c.hi {
		return nil, invalid.Field("max", "must leave at least two integers between min and itself, all at most 2^53 in magnitude")
	}
	return c, nil
}

// compile compiles the mechanism with the variable to solve for of a given type.
func (c *calibration) compile(req *dparetov1.CalibrateMechanismRequest, fields *invalid.Fields, kind expression.Type) bool {
	variables, environment := bind(fields, req.GetParameters(), []expression.Variable{{Name: c.name, Type: kind}})
	if fields.Empty() {
		c.variables, c.function = variables, Compile("privacy", fields, environment, req.GetPrivacy())
	}
	return fields.Empty()
}

// point is a value of the variable with its guarantee.
type point struct {
	x         float64
	guarantee *dparetov1.PrivacyGuarantee
	derived   map[string]float64
}

func (p point) epsilon() float64 { return p.guarantee.GetEpsilon() }

// at returns the point where the variable has the value x.
func (c *calibration) at(x float64) (point, error) {
	if c.integer {
		c.variables[c.name] = int64(x)
	} else {
		c.variables[c.name] = x
	}
	r, err := c.function.mechanism.evaluate(c.variables)
	if err != nil {
		return point{}, err
	}
	g, err := c.function.guarantee(r)
	return point{x, g, r.derived}, err
}

// ends returns the points at the ends of the range. It blames min or max for what is invalid at
// one of them only.
func (c *calibration) ends() (lo, hi point, err error) {
	lo, errLo := c.at(c.lo)
	hi, errHi := c.at(c.hi)
	violatedLo, violatedHi := privacy.FieldErrors(errLo), privacy.FieldErrors(errHi)
	if errLo != nil && len(violatedLo) == 0 {
		return lo, hi, errLo
	}
	if errHi != nil && len(violatedHi) == 0 {
		return lo, hi, errHi
	}
	among := func(all []*privacy.FieldError, fe *privacy.FieldError) bool {
		return slices.ContainsFunc(all, func(other *privacy.FieldError) bool { return *other == *fe })
	}
	var fields invalid.Fields
	for _, fe := range violatedLo {
		if among(violatedHi, fe) {
			fields.Addf(join("privacy", fe.Field), "%s", fe.Message)
		} else {
			fields.Addf("min", "makes %s invalid: %s", fe.Field, fe.Message)
		}
	}
	for _, fe := range violatedHi {
		if !among(violatedLo, fe) {
			fields.Addf("max", "makes %s invalid: %s", fe.Field, fe.Message)
		}
	}
	return lo, hi, fields.Err()
}

// precision is the relative precision of a double.
const precision = 1e-9

// solution is the result of a search.
type solution struct {
	point
	reachable bool
}

// run bisects: ε is monotone in the variable.
func (c *calibration) run(ctx context.Context, target float64) (solution, error) {
	lo, hi, err := c.ends()
	if err != nil {
		return solution{}, err
	}
	best, other := lo, hi // with the smaller and the larger ε
	if other.epsilon() < best.epsilon() {
		best, other = other, best
	}
	switch {
	case best.epsilon() == other.epsilon() && !math.IsInf(best.epsilon(), 1):
		return solution{}, invalid.Field("solve_for", "epsilon does not depend on it: it is %g at both ends of the range", best.epsilon())
	case best.epsilon() > target:
		return solution{best, false}, nil
	case other.epsilon() <= target:
		// The end with the larger ε comes nearer to the target.
		if other.epsilon() < target {
			other.guarantee.Warnings = append(other.guarantee.Warnings, &dparetov1.Warning{
				Code:    warnAtRangeEnd,
				Message: fmt.Sprintf("epsilon is below the target %g in the whole range, whose end is %g", target, other.x),
			})
		}
		return solution{other, true}, nil
	}
	for !c.close(best.x, other.x) {
		if err := pause.Check(ctx); err != nil {
			return solution{}, err
		}
		middle := c.between(best.x, other.x)
		if middle == best.x || middle == other.x {
			break
		}
		next, err := c.at(middle)
		if err != nil {
			return solution{}, err
		}
		if next.epsilon() <= target {
			best = next
		} else {
			other = next
		}
	}
	return solution{best, true}, nil
}

// close reports whether two values are as close as precision asks.
func (c *calibration) close(a, b float64) bool {
	if c.integer {
		return math.Abs(a-b) <= 1
	}
	return math.Abs(a-b) <= precision*math.Max(math.Abs(a), math.Abs(b))
}

// between returns a value in the middle: in logarithms where both are positive and
// far from each other.
func (c *calibration) between(a, b float64) float64 {
	middle := a + (b-a)/2
	if a > 0 && b > 0 && math.Max(a, b) > 2*math.Min(a, b) {
		middle = math.Sqrt(a) * math.Sqrt(b)
	}
	if c.integer { // strictly between
		middle = math.Min(math.Max(math.Floor(middle), math.Min(a, b)+1), math.Max(a, b)-1)
	}
	return middle
}
