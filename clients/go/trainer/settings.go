package trainer

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Settings maps the names of a trainer's settings to their values. An empty value counts
// as absent: getters then return the default.
type Settings map[string]string

// SettingError says which setting is wrong, and why.
type SettingError struct {
	// Name of the setting.
	Name string
	// Reason in words, such as `is "many", want a whole number of at least 1`.
	Reason string
}

// Error implements error.
func (e *SettingError) Error() string { return fmt.Sprintf("setting %s %s", e.Name, e.Reason) }

// Text returns the setting name.
func (s Settings) Text(name, fallback string) string {
	if value := s[name]; value != "" {
		return value
	}
	return fallback
}

// Choice returns the setting name, which must be one of the choices; the first is the
// default.
func (s Settings) Choice(name string, choices ...string) (string, error) {
	value := s.Text(name, choices[0])
	if !slices.Contains(choices, value) {
		return "", s.Mismatch(name, Enumerate(choices...))
	}
	return value, nil
}

// Bool returns the setting name, which is false by default.
func (s Settings) Bool(name string) (bool, error) {
	v, err := strconv.ParseBool(s.Text(name, "false"))
	if err != nil {
		return false, s.Mismatch(name, "true or false")
	}
	return v, nil
}

// Int returns the setting name, a whole number of at least least.
func (s Settings) Int(name string, least, fallback int) (int, error) {
	if s[name] == "" {
		return fallback, nil
	}
	v, err := strconv.Atoi(s[name])
	if err != nil || v < least {
		return 0, s.Mismatch(name, fmt.Sprintf("a whole number of at least %d", least))
	}
	return v, nil
}

// Seed returns the setting name, any whole number between 0 and 2⁶⁴−1.
func (s Settings) Seed(name string, fallback uint64) (uint64, error) {
	if s[name] == "" {
		return fallback, nil
	}
	v, err := strconv.ParseUint(s[name], 10, 64)
	if err != nil {
		return 0, s.Mismatch(name, "a whole number between 0 and 2⁶⁴−1")
	}
	return v, nil
}

// Positive returns the setting name, a positive finite number.
func (s Settings) Positive(name string, fallback float64) (float64, error) {
	if s[name] == "" {
		return fallback, nil
	}
	v, err := strconv.ParseFloat(s[name], 64)
	if err != nil || !(v > 0) || math.IsInf(v, 1) {
		return 0, s.Mismatch(name, "a positive finite number")
	}
	return v, nil
}

// Mismatch returns the *SettingError of a setting with a wrong value.
func (s Settings) Mismatch(name, want string) error {
	return &SettingError{Name: name, Reason: fmt.Sprintf("is %q, want %s", s[name], want)}
}

// Enumerate returns the choices for a sentence, as in "a, b or c".
func Enumerate[T ~string](choices ...T) string {
	var b strings.Builder
	for i, c := range choices {
		switch {
		case i == 0:
		case i == len(choices)-1:
			b.WriteString(" or ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(string(c))
	}
	return b.String()
}
