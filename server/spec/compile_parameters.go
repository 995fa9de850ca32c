package spec

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/expression"
	"github.com/dpareto/dpareto/suggest/space"
)

// Limits of the parameters.
const (
	maxParameters     = 100
	maxValues         = 1000 // of a discrete or categorical domain, and of all conditions
	maxGridLevels     = 1000
	maxCategoryLength = 1000
	maxDimension      = 500     // of encoded points: one for a number, one for every category
	maxInteger        = 1 << 53 // largest magnitude at which every int64 is a float64
)

// identifier is the form of the ids of parameters and metrics.
var identifier = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)

// spaceCompiler compiles the parameters.
type spaceCompiler struct {
	*violations

	spec *dparetov1.StudySpec
}

// compile returns the search space. It is named if expressions can be compiled over its parameters,
// whatever else is wrong with them.
func (c *spaceCompiler) compile() (s *space.Space, isNamed bool) {
	before := c.fields.Len()
	if n := len(c.spec.GetParameters()); n < 1 || n > maxParameters {
		c.addf("parameters", "must hold 1 to %d parameters, holds %d", maxParameters, n)
		return new(space.Space), false
	}
	s = &space.Space{Parameters: make([]space.Parameter, len(c.spec.GetParameters()))}
	for i, p := range c.spec.GetParameters() {
		s.Parameters[i] = c.parameter(fmt.Sprintf("parameters[%d]", i), p)
	}
	isNamed = c.uniqueIDs() && !slices.ContainsFunc(s.Parameters, func(p space.Parameter) bool { return p.Kind == 0 })
	c.conditions(s)
	if c.fields.Len() == before {
		c.spaceErrors(s.Validate())
	}
	if dim := s.Dim(); c.fields.Len() == before && dim > maxDimension {
		c.addf("parameters", "may have at most %d numerical parameters and categories together, have %d", maxDimension, dim)
	}
	return s, isNamed
}

// uniqueIDs checks the ids of parameters and metrics, and reports whether the ids of parameters
// are valid.
func (c *spaceCompiler) uniqueIDs() bool {
	before := c.fields.Len()
	seen := make(map[string]string)
	check := func(field, id string, variable bool) {
		switch other, used := seen[id]; {
		case !identifier.MatchString(id):
			c.addf(field, "must be a letter followed by at most 63 letters, digits or underscores, is %q", id)
		case variable && expression.Reserved(id):
			c.addf(field, "%q is a reserved word of the expression language", id)
		case used:
			c.addf(field, "%q is already the id of %s", id, other)
		default:
			seen[id] = field[:len(field)-len(".id")]
		}
	}
	for i, p := range c.spec.GetParameters() {
		check(fmt.Sprintf("parameters[%d].id", i), p.GetId(), true)
	}
	valid := c.fields.Len() == before
	for i, m := range c.spec.GetMetrics() {
		check(fmt.Sprintf("metrics[%d].id", i), m.GetId(), false)
	}
	return valid
}

// parameter converts one parameter and checks what space.Space.Validate does not.
func (c *spaceCompiler) parameter(field string, p *dparetov1.ParameterSpec) space.Parameter {
	out := space.Parameter{Name: p.GetId(), Levels: int(p.GetGridLevels())}
	switch domain := p.GetDomain().(type) {
	case *dparetov1.ParameterSpec_DoubleDomain:
		out.Kind = space.Double
		out.Min, out.Max = domain.DoubleDomain.GetMin(), domain.DoubleDomain.GetMax()
		if !(out.Min < out.Max) {
			c.addf(field+".double_domain.max", "must be above min (%g), is %g", out.Min, out.Max)
		}
	case *dparetov1.ParameterSpec_IntegerDomain:
		out.Kind = space.Integer
		lo, hi := domain.IntegerDomain.GetMin(), domain.IntegerDomain.GetMax()
		if lo < -maxInteger {
			c.addf(field+".integer_domain.min", "must be at least -2^53, is %d", lo)
		}
		if hi > maxInteger {
			c.addf(field+".integer_domain.max", "must be at most 2^53, is %d", hi)
		}
		if lo >= hi {
			c.addf(field+".integer_domain.max", "must be above min (%d), is %d", lo, hi)
		}
		out.Min, out.Max = float64(lo), float64(hi)
	case *dparetov1.ParameterSpec_DiscreteDomain:
		out.Kind = space.Discrete
		out.Values = domain.DiscreteDomain.GetValues()
		c.size(field+".discrete_domain.values", len(out.Values))
	case *dparetov1.ParameterSpec_CategoricalDomain:
		out.Kind = space.Categorical
		out.Choices = domain.CategoricalDomain.GetCategories()
		c.size(field+".categorical_domain.categories", len(out.Choices))
		for i, category := range out.Choices {
			if n := len(category); n > maxCategoryLength {
				c.addf(fmt.Sprintf("%s.categorical_domain.categories[%d]", field, i), "must have at most %d bytes, has %d", maxCategoryLength, n)
			}
		}
	default:
		c.addf(field+".domain", "one of double_domain, integer_domain, discrete_domain and categorical_domain must be set")
		return out
	}
	switch scale := p.GetScale(); {
	case out.Kind == space.Categorical && scale != dparetov1.Scale_SCALE_UNSPECIFIED:
		c.addf(field+".scale", "must not be set for a categorical parameter, is %v", scale)
	case out.Kind == space.Categorical:
	case scale == dparetov1.Scale_SCALE_LINEAR:
		out.Scale = space.Linear
	case scale == dparetov1.Scale_SCALE_LOG:
		out.Scale = space.Log
	default:
		c.addf(field+".scale", "must be SCALE_LINEAR or SCALE_LOG, is %v", scale)
	}
	if n := p.GetGridLevels(); n < 0 || n > maxGridLevels {
		c.addf(field+".grid_levels", "must be in [1, %d], or 0 for the default, is %d", maxGridLevels, n)
	}
	if p.GetDesign() != nil {
		out.Design = c.design(field+".design", p.GetDesign(), out)
	}
	return out
}

// size checks the number of values of a finite domain.
func (c *spaceCompiler) size(field string, n int) {
	if n < 2 || n > maxValues {
		c.addf(field, "must hold 2 to %d values, holds %d", maxValues, n)
	}
}

func (c *spaceCompiler) design(field string, d *dparetov1.DesignDistribution, p space.Parameter) space.Distribution {
	if p.Kind != space.Double && p.Kind != space.Integer {
		c.addf(field, "is only for double and integer parameters")
		return nil
	}
	lo, hi := p.Min, p.Max
	if d.AcceptMin != nil {
		lo = d.GetAcceptMin()
	}
	if d.AcceptMax != nil {
		hi = d.GetAcceptMax()
	}
	if !(lo < hi) {
		c.addf(field+".accept_max", "must be above accept_min (%g), is %g", lo, hi)
		return nil
	}
	switch distribution := d.GetDistribution().(type) {
	case *dparetov1.DesignDistribution_Uniform:
		return space.Uniform{AcceptMin: lo, AcceptMax: hi}
	case *dparetov1.DesignDistribution_LogUniform:
		return space.LogUniform{AcceptMin: lo, AcceptMax: hi}
	case *dparetov1.DesignDistribution_Normal:
		return space.Normal{
			Mean: distribution.Normal.GetMean(), StdDev: distribution.Normal.GetStandardDeviation(),
			AcceptMin: lo, AcceptMax: hi,
		}
	case *dparetov1.DesignDistribution_ShiftedExponential:
		return space.ShiftedExponential{
			Rate: distribution.ShiftedExponential.GetRate(), Shift: distribution.ShiftedExponential.GetShift(),
			AcceptMin: lo, AcceptMax: hi,
		}
	default:
		c.addf(field+".distribution", "one of uniform, log_uniform, normal and shifted_exponential must be set")
		return nil
	}
}

// spaceErrors records the violations that a Space found, under the names of the
// message's fields.
func (c *spaceCompiler) spaceErrors(err error) {
	if err == nil {
		return
	}
	var fields space.FieldErrors
	if !errors.As(err, &fields) {
		c.addf("parameters", "%v", err)
		return
	}
	for _, f := range fields {
		c.addf(c.messageField(f.Field), "%s", f.Message)
	}
}

// spaceField matches the path of a field of a space.Parameter.
var spaceField = regexp.MustCompile(`^parameters\[(\d+)\]\.(min|max|values|choices|levels|name|design\.mean|design\.std_dev|design\.rate|design\.shift)(.*)$`)

// messageField translates the path of a field of a space.Space into the path of the
// ParameterSpec's field behind it.
func (c *spaceCompiler) messageField(path string) string {
	match := spaceField.FindStringSubmatch(path)
	if match == nil {
		return path
	}
	var i int
	if _, err := fmt.Sscan(match[1], &i); err != nil || i >= len(c.spec.GetParameters()) {
		return path
	}
	name := match[2]
	switch name {
	case "name":
		name = "id"
	case "levels":
		name = "grid_levels"
	case "values":
		name = "discrete_domain.values"
	case "design.mean":
		name = "design.normal.mean"
	case "design.std_dev":
		name = "design.normal.standard_deviation"
	case "design.rate":
		name = "design.shifted_exponential.rate"
	case "design.shift":
		name = "design.shifted_exponential.shift"
	case "choices":
		name = "categorical_domain.categories"
	case "min", "max":
		if c.spec.GetParameters()[i].GetIntegerDomain() != nil {
			name = "integer_domain." + name
		} else {
			name = "double_domain." + name
		}
	}
	return fmt.Sprintf("parameters[%d].%s%s", i, name, match[3])
}

// conditions compiles the conditions of the parameters into s. space.Space.Validate checks
// them.
func (c *spaceCompiler) conditions(s *space.Space) {
	index := make(map[string]int)
	for i, p := range c.spec.GetParameters() {
		index[p.GetId()] = i
	}
	listed := 0
	for i, p := range c.spec.GetParameters() {
		condition := p.GetCondition()
		if condition == nil {
			continue
		}
		field := fmt.Sprintf("parameters[%d].condition", i)
		parent, ok := index[condition.GetParent()]
		if !ok {
			c.addf(field+".parent", "%q is not a parameter", condition.GetParent())
			continue
		}
		if listed += len(condition.GetValues()); listed > maxValues {
			c.addf(field+".values", "bring the values in conditions to %d, of at most %d", listed, maxValues)
			return
		}
		s.Parameters[i].Condition = &space.Condition{
			Parent: parent,
			Values: c.conditionValues(field, condition.GetValues(), &s.Parameters[parent]),
		}
	}
}

// conditionValues converts the values of a parent. It skips values of a parent without a
// kind, which is a violation elsewhere.
func (c *spaceCompiler) conditionValues(field string, values []*dparetov1.Value, parent *space.Parameter) []float64 {
	if parent.Kind == 0 || parent.Kind == space.Double {
		return nil
	}
	converted := make([]float64, len(values))
	for k, value := range values {
		x, message := coordinate(parent, value)
		if message != "" {
			c.addf(fmt.Sprintf("%s.values[%d]", field, k), "%s", message)
		}
		converted[k] = x
	}
	return converted
}
