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
	name, summary string
	adjacency     dparetov1.Adjacency // by default
	solveFor      string              // flag that is calibrated by default
	base          *definition         // of repeated-selection
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
	{dpSGDName, "DP-SGD, DP-Adam and every other method with clipped gradients and Gaussian noise", replaceOne, flagNoiseMultiplier, nil},
	{"gaussian", "Gaussian noise added to a vector", addRemove, flagStandardDeviation, nil},
	{"laplace", "Laplace noise added to a vector", addRemove, "scale", nil},
	{"sparse-vector", "the sparse vector technique", addRemove, "noise-scale", nil},
	{"output-perturbation", "Gaussian noise on the weights of a regularised linear model", replaceOne, flagStandardDeviation, nil},
	{"objective-perturbation", "noise on the objective of a regularised linear model; only --epsilon is required, the rest is for its β and τ", replaceOne, flagEpsilon, nil},
	{"randomized-response", "one answer of a record, true with a certain probability only", replaceOne, flagEpsilon, nil},
	{"selection", "a private choice among candidates by their scores", addRemove, flagEpsilon, nil},
	{"zero-concentrated", "any mechanism that is ρ-zCDP", addRemove, "rho", nil},
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
		return &definition{repeatedName, base.summary, base.adjacency, base.solveFor, base}, nil
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

// fields are the fields of PrivacySpec.
var fields = new(dparetov1.PrivacySpec).ProtoReflect().Descriptor().Fields()

// dashed returns the flag of a field.
func dashed(name protoreflect.Name) string { return strings.ReplaceAll(string(name), "_", "-") }

// field returns the field of a mechanism in PrivacySpec.
func (d *definition) field() protoreflect.FieldDescriptor {
	return fields.ByName(protoreflect.Name(strings.ReplaceAll(d.name, "-", "_")))
}

// flags returns the flags of the mechanism, in the order of its fields.
func (d *definition) flags() []string {
	if d.base != nil {
		return append([]string{flagBase, flagMeanRuns, flagDistribution, flagTries, flagMaxRuns}, d.base.flags()...)
	}
	message := d.field().Message().Fields()
	var names []string
	for i := range message.Len() {
		if name := message.Get(i).Name(); !ofModels[name] {
			names = append(names, dashed(name))
		}
	}
	return names
}

// ofModels are the fields of mechanisms that only the models of a study use.
var ofModels = map[protoreflect.Name]bool{"learning_rate": true, "clipping_norm": true, "optimizer": true}

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
	i := slices.IndexFunc(options, func(o option) bool { return o.name == flag })
	if i < 0 || !slices.Contains(own, flag) || options[i].kind != number && options[i].kind != integer {
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
	if d.name == dpSGDName && v[flagSampling] == poisson && v[flagAdjacency] == "" {
		spec.Adjacency = addRemove
	}
}

// set sets a field of a message: an expression, an enum value by its name, or an empty
// message.
func set(m protoreflect.ProtoMessage, name, text string) {
	r := m.ProtoReflect()
	switch field := r.Descriptor().Fields().ByName(protoreflect.Name(name)); {
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
