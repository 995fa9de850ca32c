package show

import (
	"fmt"
	"strconv"
	"strings"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
)

// Domain returns the values that a parameter may have.
func Domain(p *dparetov1.ParameterSpec) string {
	switch d := p.GetDomain().(type) {
	case *dparetov1.ParameterSpec_DoubleDomain:
		return "from " + Plain(d.DoubleDomain.GetMin()) + " to " + Plain(d.DoubleDomain.GetMax())
	case *dparetov1.ParameterSpec_IntegerDomain:
		return "whole numbers from " + strconv.FormatInt(d.IntegerDomain.GetMin(), 10) + " to " + strconv.FormatInt(d.IntegerDomain.GetMax(), 10)
	case *dparetov1.ParameterSpec_DiscreteDomain:
		var values []string
		for _, v := range d.DiscreteDomain.GetValues() {
			values = append(values, Plain(v))
		}
		return "one of " + strings.Join(values, ", ")
	case *dparetov1.ParameterSpec_CategoricalDomain:
		return "one of " + strings.Join(d.CategoricalDomain.GetCategories(), ", ")
	default:
		return ""
	}
}

// Parameter returns the domain of a parameter, its scale if that is logarithmic, and the condition under
// which it exists.
func Parameter(p *dparetov1.ParameterSpec) string {
	text := Domain(p)
	if p.GetScale() == dparetov1.Scale_SCALE_LOG {
		text += ", logarithmic"
	}
	if c := p.GetCondition(); c != nil {
		values := make([]string, len(c.GetValues()))
		for i, v := range c.GetValues() {
			values[i] = Value(v)
		}
		text += ", where " + c.GetParent() + " is " + strings.Join(values, " or ")
	}
	return text
}

// Value returns the value of a parameter with all its digits.
func Value(v *dparetov1.Value) string {
	switch kind := v.GetKind().(type) {
	case *dparetov1.Value_DoubleValue:
		return Plain(kind.DoubleValue)
	case *dparetov1.Value_IntValue:
		return strconv.FormatInt(kind.IntValue, 10)
	case *dparetov1.Value_StringValue:
		return kind.StringValue
	default:
		return ""
	}
}

// Metric says what a metric is: its role, where its values come from, and what counts.
func Metric(m *dparetov1.MetricSpec) string {
	parts := []string{enum.Name(m.GetRole())}
	if m.GetRole() == dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE {
		parts[0] = "objective to " + enum.Name(m.GetGoal())
	}
	switch {
	case m.GetComputed().GetPrivacy() != nil:
		parts = append(parts, "computed, ε of one run")
	case m.GetComputed() != nil:
		parts = append(parts, "computed, "+m.GetComputed().GetExpression())
	case m.GetReported().GetNoise() == dparetov1.Noise_NOISE_NONE:
		parts = append(parts, "measured without noise")
	case m.GetReported().GetNoise() == dparetov1.Noise_NOISE_KNOWN:
		parts = append(parts, "measured with standard errors")
	default:
		parts = append(parts, "measured")
	}
	if m.ReferenceValue != nil {
		parts = append(parts, "counts better than "+Plain(m.GetReferenceValue()))
	}
	if b := m.GetBounds(); b != nil && b.Min != nil {
		parts = append(parts, "at least "+Plain(b.GetMin()))
	}
	if b := m.GetBounds(); b != nil && b.Max != nil {
		parts = append(parts, "at most "+Plain(b.GetMax()))
	}
	if m.GetUnit() != "" {
		parts = append(parts, "unit "+m.GetUnit())
	}
	return strings.Join(parts, ", ")
}

// RandomTrials says how many trials a study with random stopping has.
func RandomTrials(r *dparetov1.RandomStoppingSpec) string {
	unit := "trials"
	if k := r.GetPortfolio(); k > 1 {
		unit = "portfolios of " + strconv.Itoa(int(k))
	}
	mean := Plain(r.GetMeanTrials())
	switch {
	case r.GetFixed() != nil:
		return mean + " " + unit
	case r.GetMaxTrials() > 0:
		return fmt.Sprintf("a secret number of at most %d %s, %s on average without that bound", r.GetMaxTrials(), unit, mean)
	default:
		return "a secret number of " + unit + ", " + mean + " on average"
	}
}
