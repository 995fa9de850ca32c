package trainer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Parameters maps the names of a configuration's parameters to their values,
// each a float64, an int64 or a string.
type Parameters map[string]any

// ParameterError says which parameter is wrong, and why.
type ParameterError struct {
	// Name of the parameter.
	Name string
	// Reason in words, such as "is 0, want at least 1".
	Reason string
}

// Error implements error.
func (e *ParameterError) Error() string { return fmt.Sprintf("parameter %q %s", e.Name, e.Reason) }

// Float returns the float64 or int64 parameter name as a float64. A missing or
// textual parameter gives a *ParameterError.
func (p Parameters) Float(name string) (float64, error) {
	switch v := p[name].(type) {
	case float64:
		return v, nil
	case int64:
		return float64(v), nil
	default:
		return 0, p.mismatch(name, "a float64 or int64")
	}
}

// Int returns the int64 parameter name. A missing parameter, or one that is not
// an int64, gives a *ParameterError: a float64 is refused even when its value is
// whole, since it means that the study declares the parameter with the wrong
// type.
func (p Parameters) Int(name string) (int64, error) {
	v, ok := p[name].(int64)
	if !ok {
		return 0, p.mismatch(name, "an int64")
	}
	return v, nil
}

// Text returns the string parameter name. A missing or numeric parameter gives a
// *ParameterError.
func (p Parameters) Text(name string) (string, error) {
	v, ok := p[name].(string)
	if !ok {
		return "", p.mismatch(name, "a string")
	}
	return v, nil
}

// Has reports whether the parameter name is present.
func (p Parameters) Has(name string) bool {
	_, ok := p[name]
	return ok
}

// Only returns a *ParameterError when p holds a parameter that is not among the
// known names, so that a misspelt one is not ignored.
func (p Parameters) Only(known ...string) error {
	for _, name := range slices.Sorted(maps.Keys(p)) {
		if !slices.Contains(known, name) {
			return &ParameterError{Name: name, Reason: "is unknown, want one of " + strings.Join(known, ", ")}
		}
	}
	return nil
}

func (p Parameters) mismatch(name, want string) error {
	v, ok := p[name]
	if !ok {
		return &ParameterError{Name: name, Reason: "is missing, want " + want}
	}
	return &ParameterError{Name: name, Reason: fmt.Sprintf("is %v (%T), want %s", v, v, want)}
}
