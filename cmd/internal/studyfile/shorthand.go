package studyfile

import (
	"encoding/json"
	"maps"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

const (
	// whenField is the field of a parameter that is short for its condition.
	whenField = "when"
	// The fields of a Value: for a category, an integer, and any other number.
	textField   = "string_value"
	wholeField  = "int_value"
	numberField = "double_value"
)

var (
	specName  = (*dparetov1.StudySpec)(nil).ProtoReflect().Descriptor().FullName()
	valueName = (*dparetov1.Value)(nil).ProtoReflect().Descriptor().FullName()
)

// shorthand expands, in place, the short forms of a spec: the conditions of parameters, the values of
// parameters where their types matter, and the cost. It leaves invalid values to the checks that follow.
func (n *normaliser) shorthand(path string, descriptor protoreflect.MessageDescriptor, fields map[string]any) {
	if descriptor.FullName() != specName {
		return
	}
	if name, ok := fields["cost"].(string); ok {
		switch name {
		case "runs", "checkpoint_parameter":
			fields["cost"] = map[string]any{name: map[string]any{}}
		default:
			fields["cost"] = map[string]any{"metric": name}
		}
	}
	parameters, ok := fields["parameters"].([]any)
	if !ok {
		return
	}
	kinds := make(map[string]string)
	for _, p := range parameters {
		if parameter, ok := p.(map[string]any); ok {
			if id, ok := stringOf(parameter["id"]); ok {
				kinds[id] = valueField(parameter)
			}
		}
	}
	for i, p := range parameters {
		if parameter, ok := p.(map[string]any); ok {
			n.when(indexed(path+".parameters", i), parameter, kinds)
			if condition, ok := parameter["condition"].(map[string]any); ok {
				parent, _ := stringOf(condition["parent"])
				if values, ok := condition["values"].([]any); ok {
					for k := range values {
						values[k] = typed(values[k], kinds[parent])
					}
				}
			}
		}
	}
	for _, name := range []string{"prior_values", "priorValues"} {
		if values, ok := fields[name].(map[string]any); ok {
			typeAll(values, kinds)
		}
	}
	for _, name := range []string{"private_mode", "privateMode"} {
		mode, _ := fields[name].(map[string]any)
		slots, _ := mode["slots"].([]any)
		for _, s := range slots {
			slot, _ := s.(map[string]any)
			if values, ok := slot["parameters"].(map[string]any); ok {
				typeAll(values, kinds)
			}
		}
	}
	for _, name := range []string{"random_stopping", "randomStopping"} {
		stopping, _ := fields[name].(map[string]any)
		for _, name := range []string{"final_run", "finalRun"} {
			run, _ := stopping[name].(map[string]any)
			if values, ok := run["values"].(map[string]any); ok {
				typeAll(values, kinds)
			}
		}
	}
}

// stringOf returns the text of a scalar where a text belongs.
func stringOf(written any) (text string, ok bool) {
	switch v := written.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	default:
		return "", false
	}
}

// typeAll gives numbers the types of their parameters.
func typeAll(values map[string]any, kinds map[string]string) {
	for id := range values {
		values[id] = typed(values[id], kinds[id])
	}
}

// typed returns a number as the Value of a parameter with a kind of values, and all else as it is. The
// category 3.10 is a text.
func typed(written any, kind string) any {
	if _, ok := written.(json.Number); ok && kind != "" {
		return map[string]any{kind: written}
	}
	return written
}

// valueField returns the field of a Value for the domain of a parameter.
func valueField(parameter map[string]any) string {
	for _, domain := range []struct{ text, json, field string }{
		{"integer_domain", "integerDomain", wholeField},
		{"categorical_domain", "categoricalDomain", textField},
	} {
		if parameter[domain.text] != nil || parameter[domain.json] != nil {
			return domain.field
		}
	}
	return numberField
}

// when replaces {parent: value} or {parent: [value, ...]} by a condition.
func (n *normaliser) when(path string, parameter map[string]any, kinds map[string]string) {
	written, ok := parameter[whenField]
	if !ok {
		return
	}
	delete(parameter, whenField)
	path += "." + whenField
	if parameter["condition"] != nil {
		n.addf(path, "cannot be combined with condition")
		return
	}
	entries, ok := written.(map[string]any)
	if !ok || len(entries) != 1 {
		n.addf(path, "must be one parameter with its values such as {optimizer: [adam, lamb]}, is %s", describe(written))
		return
	}
	parent := slices.Collect(maps.Keys(entries))[0]
	field, ok := kinds[parent]
	if !ok {
		n.addf(path, "%q is not a parameter", parent)
		return
	}
	values, ok := entries[parent].([]any)
	if !ok {
		values = []any{entries[parent]}
	}
	converted := make([]any, len(values))
	for k, value := range values {
		_, number := value.(json.Number)
		_, text := value.(string)
		switch {
		case field == textField && !text && !number:
			n.addf(path, "must have names of categories of %s, has %s%s", parent, describe(value), quoteHint(value))
		case field != textField && !number:
			n.addf(path, "must have numbers for %s, has %s", parent, describe(value))
		}
		converted[k] = map[string]any{field: value}
	}
	parameter["condition"] = map[string]any{"parent": parent, "values": converted}
}
