package mechanism

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpareto/dpareto/cmd/internal/enumflag"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// definition is a mechanism as the command line knows it. Its name is the name of its field
// in PrivacySpec, and its flags are the fields of its message, with dashes.
type definition struct {
	name      string
	adjacency dparetov1.Adjacency // by default
	solveFor  string              // flag that is calibrated by default
	base      *definition         // of repeated-selection
}

// Names of the mechanisms with special rules.
const (
	dpSGDName       = "dp-sgd"
	repeatedName    = "repeated-selection"
	compositionName = "composition"
)

const (
	addRemove  = dparetov1.Adjacency_ADJACENCY_ADD_REMOVE
	replaceOne = dparetov1.Adjacency_ADJACENCY_REPLACE_ONE
)

// definitions are all mechanisms but compositions and repeated-selection, which wrap them.
var definitions = []definition{
	{name: dpSGDName, adjacency: replaceOne, solveFor: flagNoiseMultiplier},
	{name: "gaussian", adjacency: addRemove, solveFor: flagStandardDeviation},
	{name: "laplace", adjacency: addRemove, solveFor: "scale"},
	{name: "sparse-vector", adjacency: addRemove, solveFor: "noise-scale"},
	{name: "output-perturbation", adjacency: replaceOne, solveFor: flagStandardDeviation},
	{name: "objective-perturbation", adjacency: replaceOne, solveFor: flagEpsilon},
	{name: "randomized-response", adjacency: replaceOne, solveFor: flagEpsilon},
	{name: "selection", adjacency: addRemove, solveFor: flagEpsilon},
	{name: "zero-concentrated", adjacency: addRemove, solveFor: "rho"},
	{name: "discrete-gaussian", adjacency: addRemove, solveFor: "sigma"},
	{name: "discrete-laplace", adjacency: addRemove, solveFor: "scale"},
	{name: "dp-ftrl", adjacency: addRemove, solveFor: flagNoiseMultiplier},
	{name: "random-allocation", adjacency: addRemove, solveFor: flagNoiseMultiplier},
}

// Names returns the names of all mechanisms.
func Names() []string { return append(bases(), repeatedName) }

// bases returns the names of the mechanisms that repeated-selection can run.
func bases() []string {
	names := make([]string, len(definitions))
	for i, d := range definitions {
		names[i] = d.name
	}
	return names
}

// find returns the definition of a mechanism.
func find(name string) (*definition, bool) {
	i := slices.IndexFunc(definitions, func(d definition) bool { return d.name == name })
	if i < 0 {
		return nil, false
	}
	return &definitions[i], true
}

// definitionOf returns the definition of the mechanism that flags name.
func definitionOf(v values) (*definition, error) {
	name := v[flagMechanism]
	if name == repeatedName {
		base, ok := find(v[flagBase])
		if !ok {
			return nil, fmt.Errorf("--base is required for repeated-selection: the mechanism of one run, one of %s", strings.Join(bases(), ", "))
		}
		return &definition{repeatedName, base.adjacency, base.solveFor, base}, nil
	}
	d, ok := find(name)
	switch wanted := strings.Join(Names(), ", "); {
	case name == "":
		return nil, fmt.Errorf("--mechanism is required: one of %s", wanted)
	case !ok:
		return nil, fmt.Errorf("--mechanism must be one of %s, is %q", wanted, name)
	default:
		return d, nil
	}
}

// field returns the field of a mechanism in PrivacySpec.
func (d *definition) field() protoreflect.FieldDescriptor {
	return fields.ByName(protoreflect.Name(strings.ReplaceAll(d.name, "-", "_")))
}

// flags returns the flags of the mechanism, in the order of its fields.
func (d *definition) flags() []string {
	var names []string
	for _, field := range fieldsOf(d.field().Message()) {
		names = append(names, flagOf(field))
	}
	if d.base != nil {
		names = append(names, d.base.flags()...)
	}
	return names
}

// check refuses flags of other mechanisms. The accountant refuses missing ones.
func (d *definition) check(v values) error {
	own := d.flags()
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if name != flagMechanism && !slices.Contains(common, name) && !slices.Contains(own, name) {
			return fmt.Errorf("--%s is not for the mechanism %s", name, d.name)
		}
	}
	if (v[flagTries] != "") != (v[flagDistribution] == binomial) {
		return errors.New("--tries and --distribution binomial need each other")
	}
	if v[flagEpochs] != "" && v[flagSteps] != "" {
		return errors.New("--epochs and --steps are both given: give one of them")
	}
	return nil
}

// checkSolvable checks that a flag can be solved for.
func (d *definition) checkSolvable(flag string, v values) error {
	own := d.flags()
	if o, ok := findOption(flag); !ok || !slices.Contains(own, flag) || !o.isNumber() {
		return fmt.Errorf("--solve-for %s is not a number of the mechanism %s", flag, d.name)
	}
	if slices.Contains(own, flagEpsilon) && flag != flagEpsilon {
		return fmt.Errorf("--solve-for must be epsilon for the mechanism %s, is %s: ε is its parameter, and --epsilon is the target", d.name, flag)
	}
	for _, given := range []string{flag, flagSteps} {
		if v[given] != "" && (given == flag || flag == flagEpochs) {
			return fmt.Errorf("--%s is solved for: --%s cannot be given", flag, given)
		}
	}
	return nil
}

// fill sets the mechanism of a spec.
func (d *definition) fill(v values, spec *dparetov1.PrivacySpec) {
	if d.base != nil {
		inner := &dparetov1.PrivacySpec{Adjacency: spec.GetAdjacency()}
		d.base.fill(v, inner)
		spec.Adjacency, inner.Adjacency = inner.GetAdjacency(), dparetov1.Adjacency_ADJACENCY_UNSPECIFIED
		m := &dparetov1.RepeatedSelectionMechanism{Base: inner, MeanRuns: v[flagMeanRuns], MaxRuns: v[flagMaxRuns]}
		switch name := v[flagDistribution]; name {
		case poisson, fixed:
			set(m, name, "")
		case binomial:
			set(m, binomial, v[flagTries])
		default:
			set(m, "eta", shape(name))
		}
		spec.Mechanism = &dparetov1.PrivacySpec_RepeatedSelection{RepeatedSelection: m}
		return
	}
	m := spec.ProtoReflect().Mutable(d.field()).Message().Interface()
	for _, name := range d.flags() {
		if v[name] != "" {
			set(m, strings.ReplaceAll(name, "-", "_"), v[name])
		}
	}
	if isEither := v[flagSampling] == poisson || v[flagSampling] == allocated; d.name == dpSGDName && isEither && v[flagAdjacency] == "" {
		spec.Adjacency = addRemove
	}
}

// set sets a field of a message: an expression, an enum value by its name, numbers, or an empty
// message.
func set(m protoreflect.ProtoMessage, name, text string) {
	r := m.ProtoReflect()
	switch field := r.Descriptor().Fields().ByName(protoreflect.Name(name)); {
	case field.IsList():
		all, err := numbers(text)
		if err != nil {
			panic("mechanism: " + err.Error()) // flags are checked when they are parsed
		}
		for _, x := range all {
			r.Mutable(field).List().Append(protoreflect.ValueOfFloat64(x))
		}
	case field.Message() != nil:
		r.Set(field, r.NewField(field))
	case field.Enum() != nil:
		value, err := enumflag.Find(field.Enum(), text)
		if err != nil {
			panic("mechanism: " + err.Error()) // flags are checked when they are parsed
		}
		r.Set(field, protoreflect.ValueOfEnum(value))
	default:
		r.Set(field, protoreflect.ValueOfString(text))
	}
}

// shape returns η of a truncated negative binomial distribution by its name, or as it was
// given.
func shape(distribution string) string {
	switch distribution {
	case "", "geometric":
		return "1"
	case "logarithmic":
		return "0"
	default:
		return distribution
	}
}
