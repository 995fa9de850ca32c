package trainer

import (
	"fmt"
	"maps"
	"math"
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
		return 0, p.mistyped(name, "a float64 or int64")
	}
}

// Int returns the int64 parameter name. A missing parameter, or one that is not
// an int64, gives a *ParameterError: a float64 is refused even when its value is
// whole, since it means that the study declares the parameter with the wrong
// type.
func (p Parameters) Int(name string) (int64, error) {
	v, ok := p[name].(int64)
	if !ok {
		return 0, p.mistyped(name, "an int64")
	}
	return v, nil
}

// IntIn returns the int64 parameter name, which must be between least and most, the
// ends included; math.MaxInt64 is no bound. Errors are as for Int.
func (p Parameters) IntIn(name string, least, most int64) (int64, error) {
	v, err := p.Int(name)
	switch {
	case err != nil:
		return 0, err
	case v < least && most == math.MaxInt64:
		return 0, p.mismatch(name, fmt.Sprintf("at least %d", least))
	case v < least || v > most:
		return 0, p.mismatch(name, fmt.Sprintf("between %d and %d", least, most))
	}
	return v, nil
}

// Positive returns the parameter name as Float does. It must be positive and finite.
func (p Parameters) Positive(name string) (float64, error) {
	return p.FloatWhere(name, "a positive finite number", func(v float64) bool { return v > 0 && !math.IsInf(v, 1) })
}

// NotNegative returns the parameter name as Float does. It must be finite and at
// least 0.
func (p Parameters) NotNegative(name string) (float64, error) {
	return p.FloatWhere(name, "a finite number of at least 0", func(v float64) bool { return v >= 0 && !math.IsInf(v, 1) })
}

// FloatWhere returns the parameter name as Float does. It must be valid, which the
// words say.
func (p Parameters) FloatWhere(name, words string, valid func(float64) bool) (float64, error) {
	v, err := p.Float(name)
	if err != nil {
		return 0, err
	}
	if !valid(v) {
		return 0, p.mismatch(name, words)
	}
	return v, nil
}

// Text returns the string parameter name. A missing or numeric parameter gives a
// *ParameterError.
func (p Parameters) Text(name string) (string, error) {
	v, ok := p[name].(string)
	if !ok {
		return "", p.mistyped(name, "a string")
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

// mistyped and mismatch return the error of a parameter of the wrong type, if it is
// there, and of a wrong value.
func (p Parameters) mistyped(name, want string) error {
	v, ok := p[name]
	if !ok {
		return &ParameterError{Name: name, Reason: "is missing, want " + want}
	}
	return &ParameterError{Name: name, Reason: fmt.Sprintf("is %v (%T), want %s", v, v, want)}
}

func (p Parameters) mismatch(name, want string) error {
	return &ParameterError{Name: name, Reason: fmt.Sprintf("is %v, want %s", p[name], want)}
}
