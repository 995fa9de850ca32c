package view

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/text"
)

// NamedValue reads the value of a parameter of a study.
func NamedValue(spec *dparetov1.StudySpec, id, written string) (*dparetov1.Value, error) {
	var ids []string
	for _, p := range spec.GetParameters() {
		if p.GetId() == id {
			value, err := ParameterValue(p, written)
			if err != nil {
				return nil, fmt.Errorf("parameter %s: %w", id, err)
			}
			return value, nil
		}
		ids = append(ids, p.GetId())
	}
	return nil, fmt.Errorf("the study has no parameter %q; it has %s", id, strings.Join(ids, ", "))
}

// ParameterValue returns a value in the kind that a parameter has. Integers may end in ".0", as some
// programs write the integers of a column with missing values.
func ParameterValue(p *dparetov1.ParameterSpec, value any) (*dparetov1.Value, error) {
	switch value.(type) {
	case []any, map[string]any:
		return nil, errors.New("must be one value, is a list or an object")
	}
	written := strings.TrimSpace(fmt.Sprint(value))
	switch p.GetDomain().(type) {
	case *dparetov1.ParameterSpec_IntegerDomain:
		n, err := strconv.ParseInt(strings.TrimSuffix(written, ".0"), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("must be an integer, is %q", written)
		}
		return &dparetov1.Value{Kind: &dparetov1.Value_IntValue{IntValue: n}}, nil
	case *dparetov1.ParameterSpec_CategoricalDomain:
		if exact := fmt.Sprint(value); slices.Contains(p.GetCategoricalDomain().GetCategories(), exact) {
			written = exact // with the spaces around it
		}
		return &dparetov1.Value{Kind: &dparetov1.Value_StringValue{StringValue: written}}, nil
	default:
		x, err := Number(written)
		if err != nil {
			return nil, err
		}
		return &dparetov1.Value{Kind: &dparetov1.Value_DoubleValue{DoubleValue: x}}, nil
	}
}

// Number returns the finite decimal number that a text is, or says what it is instead.
func Number(written string) (float64, error) {
	written = strings.TrimSpace(written)
	x, ok := text.Number(written, 64)
	switch {
	case ok:
		return x, nil
	case slices.Contains([]string{"nan", "na", "n/a", "#n/a", "none", "null", "inf", "infinity", "<na>"}, strings.ToLower(strings.TrimLeft(written, "+-"))):
		return 0, fmt.Errorf("must be a finite number, or nothing where there is no value, is %q", written)
	case strings.ContainsAny(written, ",' \u00a0\u202f"):
		return 0, fmt.Errorf("must be a number with a decimal point and without separators of thousands, is %q", written)
	default:
		return 0, fmt.Errorf("must be a number, is %q", written)
	}
}
