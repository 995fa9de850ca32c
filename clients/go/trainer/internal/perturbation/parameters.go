package perturbation

import (
	"fmt"
	"math"

	"github.com/dpareto/dpareto/clients/go/trainer"
)

// Positive returns a positive finite parameter.
func Positive(p trainer.Parameters, name string) (float64, error) {
	return number(p, name, "a positive finite number", func(v float64) bool { return v > 0 && !math.IsInf(v, 1) })
}

// NotNegative returns a finite parameter of at least 0.
func NotNegative(p trainer.Parameters, name string) (float64, error) {
	return number(p, name, "a finite number of at least 0", func(v float64) bool { return v >= 0 && !math.IsInf(v, 1) })
}

// PositiveOrInfinite returns a positive parameter that may be +Inf.
func PositiveOrInfinite(p trainer.Parameters, name string) (float64, error) {
	return number(p, name, "a positive number", func(v float64) bool { return v > 0 })
}

// Fraction returns a parameter strictly between 0 and 1.
func Fraction(p trainer.Parameters, name string) (float64, error) {
	return number(p, name, "a number strictly between 0 and 1", func(v float64) bool { return v > 0 && v < 1 })
}

func number(p trainer.Parameters, name, want string, valid func(float64) bool) (float64, error) {
	v, err := p.Float(name)
	if err != nil {
		return 0, err
	}
	if !valid(v) {
		return 0, &trainer.ParameterError{Name: name, Reason: fmt.Sprintf("is %v, want %s", v, want)}
	}
	return v, nil
}
