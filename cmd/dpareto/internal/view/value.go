package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// NamedValue reads the value of a parameter of a study.
func NamedValue(spec *dparetov1.StudySpec, id, text string) (*dparetov1.Value, error) {
	var ids []string
	for _, p := range spec.GetParameters() {
		if p.GetId() == id {
			value, err := ParameterValue(p, text)
			if err != nil {
				return nil, fmt.Errorf("parameter %s: %w", id, err)
			}
			return value, nil
		}
		ids = append(ids, p.GetId())
	}
	return nil, fmt.Errorf("the study has no parameter %q; it has %s", id, strings.Join(ids, ", "))
}

// ParameterValue returns a value in the kind that a parameter has.
func ParameterValue(p *dparetov1.ParameterSpec, value any) (*dparetov1.Value, error) {
	text := strings.TrimSpace(fmt.Sprint(value))
	switch p.GetDomain().(type) {
	case *dparetov1.ParameterSpec_IntegerDomain:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("must be an integer, is %q", text)
		}
		return &dparetov1.Value{Kind: &dparetov1.Value_IntValue{IntValue: n}}, nil
	case *dparetov1.ParameterSpec_CategoricalDomain:
		if exact := fmt.Sprint(value); slices.Contains(p.GetCategoricalDomain().GetCategories(), exact) {
			text = exact // with the spaces around it
		}
		return &dparetov1.Value{Kind: &dparetov1.Value_StringValue{StringValue: text}}, nil
	default:
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("must be a number, is %q", text)
		}
		return &dparetov1.Value{Kind: &dparetov1.Value_DoubleValue{DoubleValue: x}}, nil
	}
}
