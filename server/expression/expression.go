package expression

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
)

const (
	// maxLength bounds the source of an expression, in bytes.
	maxLength = 1000
	// maxBrackets bounds the lists, maps and indexes of an expression: the time to check
	// the type of nested ones grows with the cube of their depth, to seconds for what fits
	// into maxLength.
	maxBrackets = 32
	// numberCost and predicateCost bound one evaluation, in CEL's cost units (about
	// one per operation). A predicate may be evaluated for every configuration that a
	// search considers, a number for few.
	numberCost    = 10_000
	predicateCost = 500
)

// Type is the type of a variable.
type Type int

// The types of variables.
const (
	Int Type = iota
	Double
	String
)

// Variable declares a variable.
type Variable struct {
	Name string
	Type Type
}

// Environment compiles expressions over a fixed set of variables.
type Environment struct {
	env      *cel.Env
	position map[string]int // of the numeric variables, for Native
	names    []string       // of all variables
}

// functions is what all environments have in common; they share its memory.
var functions = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		ext.Math(),
		unary("math.exp", math.Exp),
		unary("math.log", math.Log),
		binary("math.pow", pow),
	)
})

// NewEnvironment returns an environment with the given variables, whose names must
// be CEL identifiers (see Reserved).
func NewEnvironment(variables []Variable) (*Environment, error) {
	common, err := functions()
	if err != nil {
		return nil, fmt.Errorf("expression: %w", err)
	}
	var options []cel.EnvOption
	position := make(map[string]int)
	names := make([]string, len(variables))
	for i, v := range variables {
		names[i] = v.Name
		if v.Type != String {
			position[v.Name] = i
		}
		kind := cel.DoubleType
		switch v.Type {
		case Int:
			kind = cel.IntType
		case String:
			kind = cel.StringType
		case Double:
		}
		options = append(options, cel.Variable(v.Name, kind))
	}
	env, err := common.Extend(options...)
	if err != nil {
		return nil, fmt.Errorf("expression: %w", err)
	}
	slices.Sort(names)
	return &Environment{env, position, names}, nil
}

// Reserved reports whether a name cannot be a variable because CEL gives it another
// meaning.
func Reserved(name string) bool {
	switch name {
	case "true", "false", "null", "in", "as", "break", "const", "continue", "else",
		"for", "function", "if", "import", "let", "loop", "package", "namespace",
		"return", "var", "void", "while",
		"bool", "bytes", "double", "duration", "dyn", "int", "list", "map", "null_type",
		"string", "timestamp", "type", "uint",
		"has", "all", "exists", "exists_one", "filter", "size", "math", "cel", "google":
		return true
	}
	return false
}

// Number is a compiled expression that yields a number. It is safe for concurrent use.
type Number struct {
	program  cel.Program
	integer  bool
	ast      *ast.AST
	position map[string]int
}

// Uses returns the names of the variables in the expression, in alphabetical order.
func (n *Number) Uses() []string {
	var names []string
	ast.PreOrderVisit(n.ast.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.IdentKind {
			names = append(names, e.AsIdent())
		}
	}))
	slices.Sort(names)
	return slices.Compact(names)
}

// Number compiles an expression of type int or double.
func (e *Environment) Number(source string) (*Number, error) { return e.compile(source, false) }

// Integer compiles an expression of type int.
func (e *Environment) Integer(source string) (*Number, error) { return e.compile(source, true) }

func (e *Environment) compile(source string, integer bool) (*Number, error) {
	program, tree, err := e.program(source, numberCost, func(t *cel.Type) error {
		switch {
		case t.IsExactType(cel.IntType):
			return nil
		case t.IsExactType(cel.DoubleType) && !integer:
			return nil
		case integer:
			return fmt.Errorf("must have type int, has type %s (int(x) converts)", t)
		default:
			return fmt.Errorf("must have type int or double, has type %s", t)
		}
	})
	if err != nil {
		return nil, err
	}
	return &Number{program: program, integer: integer, ast: tree, position: e.position}, nil
}

// program compiles an expression of a type that check accepts.
func (e *Environment) program(source string, cost uint64, check func(*cel.Type) error) (cel.Program, *ast.AST, error) {
	if len(source) > maxLength {
		return nil, nil, fmt.Errorf("must be at most %d bytes long, is %d", maxLength, len(source))
	}
	if source == "" {
		return nil, nil, errors.New("must be set")
	}
	if n := strings.Count(source, "[") + strings.Count(source, "{"); n > maxBrackets {
		return nil, nil, fmt.Errorf("must have at most %d opening brackets, has %d", maxBrackets, n)
	}
	checked, issues := e.env.Compile(source)
	if err := issues.Err(); err != nil {
		if strings.Contains(err.Error(), "undeclared reference") {
			err = fmt.Errorf("%w\nthe names are: %s", err, strings.Join(e.names, ", "))
		}
		return nil, nil, fmt.Errorf("expression %q: %w", source, err)
	}
	if err := check(checked.OutputType()); err != nil {
		return nil, nil, fmt.Errorf("expression %q %w", source, err)
	}
	program, err := e.env.Program(checked, cel.CostLimit(cost))
	if err != nil {
		return nil, nil, fmt.Errorf("expression %q: %w", source, err)
	}
	return program, checked.NativeRep(), nil
}

// evaluate runs a program. The error of a variable without a value says so.
func evaluate(program cel.Program, values map[string]any) (ref.Val, error) {
	result, _, err := program.Eval(values)
	if err != nil {
		if name, ok := strings.CutPrefix(err.Error(), "no such attribute(s): "); ok {
			return nil, fmt.Errorf("refers to %s, which has no value here", name)
		}
		return nil, err
	}
	return result, nil
}

// Predicate is a compiled expression that yields a bool. It is safe for concurrent use.
type Predicate struct{ program cel.Program }

// Predicate compiles an expression of type bool.
func (e *Environment) Predicate(source string) (*Predicate, error) {
	program, _, err := e.program(source, predicateCost, func(t *cel.Type) error {
		if !t.IsExactType(cel.BoolType) {
			return fmt.Errorf("must have type bool, has type %s", t)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &Predicate{program}, nil
}

// Holds evaluates the expression for values as in [Number.Float].
func (p *Predicate) Holds(values map[string]any) (bool, error) {
	result, err := evaluate(p.program, values)
	if err != nil {
		return false, err
	}
	v, ok := result.(types.Bool)
	if !ok {
		return false, fmt.Errorf("yields %v, not a bool", result)
	}
	return bool(v), nil
}

// Float evaluates the expression. The values must have the variables' Go types:
// int64, float64 or string. A variable may have no value: then it is an error to
// need it, as x ? y : z needs only one of y and z, and x && y not y where x is
// false. The result is finite.
func (n *Number) Float(values map[string]any) (float64, error) {
	result, err := evaluate(n.program, values)
	if err != nil {
		return 0, err
	}
	var x float64
	switch v := result.(type) {
	case types.Int:
		x = float64(v)
	case types.Double:
		x = float64(v)
	default:
		return 0, fmt.Errorf("yields %v, not a number", result)
	}
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, fmt.Errorf("yields %v, not a finite number", x)
	}
	return x, nil
}

// Int evaluates an expression compiled by Integer.
func (n *Number) Int(values map[string]any) (int64, error) {
	if !n.integer {
		panic("expression: Int of an expression that was not compiled by Integer")
	}
	result, err := evaluate(n.program, values)
	if err != nil {
		return 0, err
	}
	v, ok := result.(types.Int)
	if !ok {
		return 0, fmt.Errorf("yields %v, not an integer", result)
	}
	return int64(v), nil
}

func unary(name string, f func(float64) float64) cel.EnvOption {
	return cel.Function(name, cel.Overload(name+"_double", []*cel.Type{cel.DoubleType}, cel.DoubleType,
		cel.UnaryBinding(func(x ref.Val) ref.Val { return types.Double(f(float64(x.(types.Double)))) })))
}

func binary(name string, f func(x, y float64) float64) cel.EnvOption {
	return cel.Function(name, cel.Overload(name+"_double_double", []*cel.Type{cel.DoubleType, cel.DoubleType}, cel.DoubleType,
		cel.BinaryBinding(func(x, y ref.Val) ref.Val {
			return types.Double(f(float64(x.(types.Double)), float64(y.(types.Double))))
		})))
}
