package expression

import (
	"math"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// Native is an expression as a Go function of the variables' values, in the order in
// which the environment declares them. It yields the number that CEL yields, or NaN
// where CEL reports an error or its value is not a finite number.
//
// Every number is a float64; an integer beyond 2^53, which that does not hold exactly,
// counts as an error too.
type Native func(values []float64) float64

// Native returns the expression as a Go function, or nil if it uses anything but
// numbers, numeric variables, arithmetic, conversions and the mathematical functions.
// It takes tens of nanoseconds where CEL takes about a microsecond.
func (n *Number) Native() Native {
	t := translator{ast: n.ast, position: n.position}
	f := t.translate(n.ast.Expr())
	if f == nil {
		return nil
	}
	return func(values []float64) float64 {
		if x := f(values); !math.IsInf(x, 0) {
			return x
		}
		return math.NaN()
	}
}

// Function is Native with a detour through CEL where there is no Go form. named returns the values of
// the variables for Float.
func (n *Number) Function(named func(values []float64) map[string]any) Native {
	if f := n.Native(); f != nil {
		return f
	}
	return func(values []float64) float64 {
		x, err := n.Float(named(values))
		if err != nil {
			return math.NaN()
		}
		return x
	}
}

// translator turns the checked syntax tree of an expression into closures.
type translator struct {
	ast      *ast.AST
	position map[string]int // of the numeric variables
}

// isInt reports whether a subexpression has type int, and not double.
func (t *translator) isInt(e ast.Expr) bool { return t.ast.GetType(e.ID()).IsExactType(types.IntType) }

// translate returns nil for an expression without a Go form.
func (t *translator) translate(e ast.Expr) Native {
	switch e.Kind() {
	case ast.LiteralKind:
		switch v := e.AsLiteral().(type) {
		case types.Int:
			x := exact(float64(v))
			return func([]float64) float64 { return x }
		case types.Double:
			x := float64(v)
			return func([]float64) float64 { return x }
		}
	case ast.IdentKind:
		i, ok := t.position[e.AsIdent()]
		switch {
		case ok && t.isInt(e):
			return func(values []float64) float64 { return exact(values[i]) }
		case ok:
			return func(values []float64) float64 { return values[i] }
		}
	case ast.CallKind:
		return t.call(e)
	default:
	}
	return nil
}

// call translates a call.
func (t *translator) call(e ast.Expr) Native {
	call := e.AsCall()
	operands := make([]Native, 0, 2)
	ints := 0
	for _, arg := range call.Args() {
		f := t.translate(arg)
		if f == nil {
			return nil
		}
		operands = append(operands, f)
		if t.isInt(arg) {
			ints++
		}
	}
	switch len(operands) {
	case 1:
		if f := unaryOperation(call.FunctionName(), ints == 1); f != nil {
			x := operands[0]
			return func(values []float64) float64 { return f(x(values)) }
		}
	case 2:
		if f := binaryOperation(call.FunctionName(), ints); f != nil {
			x, y := operands[0], operands[1]
			return func(values []float64) float64 { return f(x(values), y(values)) }
		}
	}
	return nil
}

// unaryOperation returns a function of one int or double.
func unaryOperation(name string, isInt bool) func(float64) float64 {
	switch name {
	case operators.Negate:
		if isInt {
			return func(x float64) float64 { return exact(-x) }
		}
		return func(x float64) float64 { return -x }
	case "double":
		return func(x float64) float64 { return x }
	case "int":
		return func(x float64) float64 { return exact(math.Trunc(x)) }
	case "math.sqrt":
		return math.Sqrt
	case "math.abs":
		return math.Abs
	}
	if isInt {
		return nil
	}
	switch name {
	case "math.exp":
		return math.Exp
	case "math.log":
		return math.Log
	case "math.ceil":
		return math.Ceil
	case "math.floor":
		return math.Floor
	case "math.round":
		return math.Round
	case "math.trunc":
		return math.Trunc
	}
	return nil
}

// binaryOperation returns a function of two numbers. ints says how many have type int.
func binaryOperation(name string, ints int) func(x, y float64) float64 {
	var f func(x, y float64) float64
	switch name {
	case operators.Add:
		f = func(x, y float64) float64 { return x + y }
	case operators.Subtract:
		f = func(x, y float64) float64 { return x - y }
	case operators.Multiply:
		f = func(x, y float64) float64 { return x * y }
	case operators.Divide:
		if ints == 2 {
			return func(x, y float64) float64 { return exact(math.Trunc(x / y)) }
		}
		return func(x, y float64) float64 { return x / y }
	case operators.Modulo:
		f = math.Mod
	case "math.pow":
		f = pow
	default:
		return nil
	}
	if ints == 2 {
		return func(x, y float64) float64 { return exact(f(x, y)) }
	}
	return f
}

// pow is math.Pow, but NaN if an operand is: IEEE 754 has 1 to any power, and any number
// to the power of 0, be 1, and so would hide that an operand has no value.
func pow(x, y float64) float64 {
	if math.IsNaN(x) || math.IsNaN(y) {
		return math.NaN()
	}
	return math.Pow(x, y)
}

// exact returns an integer, or NaN if a float64 may not hold it exactly. Integers have
// one zero: -0 becomes 0.
func exact(x float64) float64 {
	if math.Abs(x) > 1<<53 {
		return math.NaN()
	}
	return x + 0
}
