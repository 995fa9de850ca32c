package accounting

import (
	"context"
	"math"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/expression"
	"github.com/dpareto/dpareto/server/invalid"
)

// CalibrateMechanism implements PrivacyService.
func (Service) CalibrateMechanism(ctx context.Context, req *dparetov1.CalibrateMechanismRequest) (*dparetov1.CalibrateMechanismResponse, error) {
	s, err := newSearch(req)
	if err != nil {
		return nil, err
	}
	response, err := s.run(ctx, req.GetTargetEpsilon())
	if err != nil {
		return nil, fieldsOf(err)
	}
	return response, nil
}

// search looks for the value of a variable whose ε comes nearest to a target from below.
type search struct {
	function  *Function
	variables map[string]any // of the others
	name      string
	integer   bool
	lo, hi    float64
}

// newSearch validates a request.
func newSearch(req *dparetov1.CalibrateMechanismRequest) (*search, error) {
	s := &search{name: req.GetSolveFor(), lo: req.GetMin(), hi: req.GetMax()}
	var fields invalid.Fields
	if !variableName.MatchString(s.name) || expression.Reserved(s.name) {
		fields.Addf("solve_for", "must be the name of a variable, is %q", s.name)
	}
	if _, given := req.GetParameters()[s.name]; given {
		fields.Addf("solve_for", "%q already has a value in parameters", s.name)
	}
	if math.IsNaN(s.lo) || math.IsInf(s.lo, 0) {
		fields.Addf("min", "must be finite, is %g", s.lo)
	}
	if !(s.lo < s.hi) || math.IsInf(s.hi, 0) {
		fields.Addf("max", "must be above min (%g) and finite, is %g", s.lo, s.hi)
	}
	if target := req.GetTargetEpsilon(); !(target > 0) || math.IsInf(target, 1) {
		fields.Addf("target_epsilon", "must be positive and finite, is %g", target)
	}
	if !fields.Empty() {
		return nil, fields.Err()
	}
	// As a double where the expressions accept one, else as an int.
	var asDouble, asInteger invalid.Fields
	if s.compile(req, &asDouble, expression.Double) {
		return s, nil
	}
	if !s.compile(req, &asInteger, expression.Int) {
		return nil, asDouble.Err()
	}
	const largest = 1 << 53 // to which every integer is a float64
	s.integer, s.lo, s.hi = true, math.Ceil(s.lo), math.Floor(s.hi)
	if s.lo < -largest || s.hi > largest || s.lo >= s.hi {
		return nil, invalid.Field("max", "must leave at least two integers between min and itself, all at most 2^53 in magnitude")
	}
	return s, nil
}

// compile compiles the mechanism with the variable to solve for of a given type.
func (s *search) compile(req *dparetov1.CalibrateMechanismRequest, fields *invalid.Fields, kind expression.Type) bool {
	variables, environment := bind(fields, req.GetParameters(), []expression.Variable{{Name: s.name, Type: kind}})
	if fields.Empty() {
		s.variables, s.function = variables, Compile("privacy", fields, environment, req.GetPrivacy())
	}
	return fields.Empty()
}

// at returns the guarantee where the variable has the value x.
func (s *search) at(x float64) (*dparetov1.PrivacyGuarantee, release, error) {
	if s.integer {
		s.variables[s.name] = int64(x)
	} else {
		s.variables[s.name] = x
	}
	r, err := s.function.mechanism.release(s.variables)
	if err != nil {
		return nil, release{}, err
	}
	g, err := s.function.guarantee(r)
	return g, r, err
}

// precision is the relative one of a value that is a double.
const precision = 1e-9

// run searches. ε is monotone in the variable: of the ends one suffices, unless both
// or none do.
func (s *search) run(ctx context.Context, target float64) (*dparetov1.CalibrateMechanismResponse, error) {
	atLo, releaseLo, err := s.at(s.lo)
	if err != nil {
		return nil, err
	}
	atHi, releaseHi, err := s.at(s.hi)
	if err != nil {
		return nil, err
	}
	// best has the smaller ε, other the larger.
	best, other := s.lo, s.hi
	g, r, worse, worseRelease := atLo, releaseLo, atHi, releaseHi
	if atHi.GetEpsilon() < atLo.GetEpsilon() {
		best, other = other, best
		g, r, worse, worseRelease = worse, worseRelease, g, r
	}
	switch {
	case g.GetEpsilon() > target:
		return s.response(false, best, g, r), nil
	case worse.GetEpsilon() <= target:
		// The end with the larger ε comes nearer to the target.
		return s.response(true, other, worse, worseRelease), nil
	}
	for !s.close(best, other) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		middle := s.between(best, other)
		if middle == best || middle == other {
			break
		}
		next, nextRelease, err := s.at(middle)
		if err != nil {
			return nil, err
		}
		if next.GetEpsilon() <= target {
			best, g, r = middle, next, nextRelease
		} else {
			other = middle
		}
	}
	return s.response(true, best, g, r), nil
}

// close reports whether nothing that matters lies between two values.
func (s *search) close(a, b float64) bool {
	if s.integer {
		return math.Abs(a-b) <= 1
	}
	return math.Abs(a-b) <= precision*math.Max(math.Abs(a), math.Abs(b))
}

// between returns a value in the middle: in logarithms where both are positive and
// far from each other.
func (s *search) between(a, b float64) float64 {
	middle := a + (b-a)/2
	if a > 0 && b > 0 && math.Max(a, b) > 2*math.Min(a, b) {
		middle = math.Sqrt(a) * math.Sqrt(b)
	}
	if s.integer { // strictly between
		middle = math.Min(math.Max(math.Floor(middle), math.Min(a, b)+1), math.Max(a, b)-1)
	}
	return middle
}

func (s *search) response(reachable bool, x float64, g *dparetov1.PrivacyGuarantee, r release) *dparetov1.CalibrateMechanismResponse {
	value := &dparetov1.Value{Kind: &dparetov1.Value_DoubleValue{DoubleValue: x}}
	if s.integer {
		value.Kind = &dparetov1.Value_IntValue{IntValue: int64(x)}
	}
	return &dparetov1.CalibrateMechanismResponse{Reachable: reachable, Value: value, Guarantee: g, Derived: r.derived}
}
