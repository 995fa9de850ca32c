package statement

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
	"github.com/dpareto/dpareto/server/expression"
)

const distribution = "distribution"

// flag is a flag of dpareto privacy epsilon, without dashes, and its value.
type flag struct{ name, value string }

// evaluator evaluates the expressions of a mechanism at a configuration.
type evaluator struct {
	environment *expression.Environment
	values      map[string]any
}

// newEvaluator returns the evaluator for a configuration.
func newEvaluator(parameters map[string]*dparetov1.Value) (*evaluator, error) {
	var variables []expression.Variable
	e := &evaluator{values: make(map[string]any)}
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		v := expression.Variable{Name: name}
		switch kind := parameters[name].GetKind().(type) {
		case *dparetov1.Value_IntValue:
			v.Type, e.values[name] = expression.Int, kind.IntValue
		case *dparetov1.Value_StringValue:
			v.Type, e.values[name] = expression.String, kind.StringValue
		default:
			v.Type, e.values[name] = expression.Double, parameters[name].GetDoubleValue()
		}
		variables = append(variables, v)
	}
	var err error
	e.environment, err = expression.NewEnvironment(variables)
	return e, err
}

// number returns the value of an expression as text that the command line reads as the same number.
func (e *evaluator) number(source string) (string, error) {
	n, err := e.environment.Number(source)
	if err != nil {
		return "", err
	}
	x, err := n.Float(e.values)
	if err != nil {
		return "", err
	}
	if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
		return strconv.FormatFloat(x, 'f', -1, 64), nil
	}
	return strconv.FormatFloat(x, 'g', -1, 64), nil
}

// unused are the fields of mechanisms that no ε depends on.
var unused = []protoreflect.Name{"learning_rate", "clipping_norm", "optimizer"}

// mechanismOf returns the message of a spec's mechanism, and the name of the mechanism on the command line.
func mechanismOf(spec *dparetov1.PrivacySpec) (m protoreflect.Message, name string) {
	r := spec.ProtoReflect()
	field := r.WhichOneof(r.Descriptor().Oneofs().ByName("mechanism"))
	return r.Get(field).Message(), dashed(field.Name())
}

func dashed(name protoreflect.Name) string { return strings.ReplaceAll(string(name), "_", "-") }

// flags returns the flags of a mechanism but compositions.
func (e *evaluator) flags(spec *dparetov1.PrivacySpec) ([]flag, error) {
	if r := spec.GetRepeatedSelection(); r != nil {
		return e.repeated(r)
	}
	m, name := mechanismOf(spec)
	flags := []flag{{"mechanism", name}}
	for i := range m.Descriptor().Fields().Len() {
		field := m.Descriptor().Fields().Get(i)
		if !m.Has(field) || slices.Contains(unused, field.Name()) {
			continue
		}
		var value string
		switch kind := field.Kind(); {
		case kind == protoreflect.DoubleKind && field.IsList():
			list := m.Get(field).List()
			numbers := make([]string, list.Len())
			for j := range numbers {
				numbers[j] = strconv.FormatFloat(list.Get(j).Float(), 'g', -1, 64)
			}
			value = strings.Join(numbers, ":") // which no shell changes, and parts keep
		case kind == protoreflect.EnumKind:
			value = strings.ReplaceAll(enum.Of(field.Enum(), m.Get(field).Enum()), "_", "-")
		case kind == protoreflect.StringKind:
			var err error
			if value, err = e.number(m.Get(field).String()); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("no command has the field %s of %s", field.Name(), name)
		}
		flags = append(flags, flag{dashed(field.Name()), value})
	}
	return flags, nil
}

// repeated returns the flags of repeated selection, and of its base.
func (e *evaluator) repeated(r *dparetov1.RepeatedSelectionMechanism) ([]flag, error) {
	if r.GetBase().GetComposition() != nil || r.GetBase().GetRepeatedSelection() != nil {
		return nil, errors.New("no command has a repeated selection of what is composed of others")
	}
	base, err := e.flags(r.GetBase())
	if err != nil {
		return nil, err
	}
	flags := []flag{{"mechanism", "repeated-selection"}, {"base", base[0].value}}
	expressions := []flag{{"mean-runs", r.GetMeanRuns()}, {"max-runs", r.GetMaxRuns()}}
	switch d := r.GetDistribution().(type) {
	case *dparetov1.RepeatedSelectionMechanism_Eta:
		expressions = append(expressions, flag{distribution, d.Eta})
	case *dparetov1.RepeatedSelectionMechanism_Binomial:
		flags, expressions = append(flags, flag{distribution, "binomial"}), append(expressions, flag{"tries", d.Binomial})
	case *dparetov1.RepeatedSelectionMechanism_Poisson:
		flags = append(flags, flag{distribution, "poisson"})
	case *dparetov1.RepeatedSelectionMechanism_Fixed:
		flags = append(flags, flag{distribution, "fixed"})
	}
	for _, x := range expressions {
		if x.value == "" {
			continue
		}
		value, err := e.number(x.value)
		if err != nil {
			return nil, err
		}
		flags = append(flags, flag{x.name, value})
	}
	return append(flags, base[1:]...), nil
}

// outer returns the flags that hold for every mechanism.
func outer(spec *dparetov1.PrivacySpec) []flag {
	flags := []flag{{"adjacency", enum.Name(spec.GetAdjacency())}}
	if spec.GetDelta() > 0 {
		flags = append(flags, flag{"delta", strconv.FormatFloat(spec.GetDelta(), 'g', -1, 64)})
	}
	if a := spec.GetAccountant(); a != dparetov1.Accountant_ACCOUNTANT_UNSPECIFIED {
		flags = append(flags, flag{"accountant", enum.Name(a)})
	}
	if c := spec.GetConversion(); c != dparetov1.Conversion_CONVERSION_UNSPECIFIED {
		flags = append(flags, flag{"conversion", enum.Name(c)})
	}
	return flags
}

// recompute returns the command that computes the ε of a mechanism at a configuration.
func (e *evaluator) recompute(spec *dparetov1.PrivacySpec) (string, error) {
	composition := spec.GetComposition()
	if composition == nil {
		flags, err := e.flags(spec)
		if err != nil {
			return "", err
		}
		return line("dpareto privacy epsilon", append(flags, outer(spec)...)), nil
	}
	command := []string{line("dpareto privacy compose", outer(spec))}
	for _, p := range composition.GetParts() {
		if p.GetMechanism().GetComposition() != nil {
			return "", errors.New("no command has a composition within a composition")
		}
		flags, err := e.flags(p.GetMechanism())
		if err != nil {
			return "", err
		}
		if p.GetCount() != "" {
			count, err := e.number(p.GetCount())
			if err != nil {
				return "", err
			}
			flags = append(flags, flag{"count", count})
		}
		pairs := make([]string, len(flags))
		for i, f := range flags {
			pairs[i] = f.name + "=" + f.value
		}
		command = append(command, "--part "+strings.Join(pairs, ","))
	}
	return strings.Join(command, " "), nil
}

func line(command string, flags []flag) string {
	words := []string{command}
	for _, f := range flags {
		words = append(words, "--"+f.name, f.value)
	}
	return strings.Join(words, " ")
}

// find returns the value of a flag, "" if there is none.
func find(flags []flag, name string) string {
	for _, f := range flags {
		if f.name == name {
			return f.value
		}
	}
	return ""
}
