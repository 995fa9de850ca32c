package mechanism

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// values are the flags that were given, by name, as expressions.
type values map[string]string

// kind says what a flag takes.
type kind int

const (
	number kind = iota
	integer
	choice
	law // of repeated-selection: a choice, or a number
)

// option is a flag of some mechanism, or of all.
type option struct {
	name, usage string
	kind        kind
	choices     []string
}

// lawPoisson is the Poisson law of the number of runs, and of the records of a lot.
const lawPoisson = "poisson"

// Names of the flags.
const (
	flagMechanism       = "mechanism"
	flagSampling        = "sampling"
	flagTrainerSampling = "trainer-sampling"
	flagDatasetSize     = "dataset-size"
	flagBatchSize       = "batch-size"
	flagNoiseMultiplier = "noise-multiplier"
	flagEpochs          = "epochs"
	flagSteps           = "steps"
	flagSensitivity     = "sensitivity"
	flagSigma           = "sigma"
	flagScale           = "scale"
	flagBound           = "bound"
	flagNoise           = "noise"
	flagRegularization  = "regularization"
	flagFeatureNorm     = "feature-norm"
	flagRadius          = "radius"
	flagEpsilon         = "epsilon"
	flagCurvature       = "curvature"
	flagCalibration     = "calibration"
	flagSplit           = "split"
	flagCategories      = "categories"
	flagRho             = "rho"
	flagBase            = "base"
	flagMeanRuns        = "mean-runs"
	flagLaw             = "law"
	flagDelta           = "delta"
	flagAdjacency       = "adjacency"
	flagAccountant      = "accountant"
	flagConversion      = "conversion"
)

// options are the flags, in the order in which they are documented.
var options = []option{
	{flagSampling, "how lots are drawn", choice, []string{"fixed-size", lawPoisson, "shuffled"}},
	{flagTrainerSampling, "how the trainer really draws its lots, if that is different", choice, []string{"fixed-size", lawPoisson, "shuffled"}},
	{flagDatasetSize, "number of training records", integer, nil},
	{flagBatchSize, "records per lot; the expected number for Poisson sampling", integer, nil},
	{flagNoiseMultiplier, "standard deviation of the noise over the sensitivity under the adjacency", number, nil},
	{flagEpochs, "passes over the data; round(dataset-size/batch-size) steps each, unless shuffled", integer, nil},
	{flagSteps, "steps; if given, epochs do not count", integer, nil},
	{flagSensitivity, "ℓ2 (gaussian) or ℓ1 (laplace) distance between the results on adjacent data", number, nil},
	{flagSigma, "standard deviation of the noise", number, nil},
	{flagScale, "scale of the Laplace noise", number, nil},
	{flagBound, "C, the number of positive answers after which the mechanism stops", integer, nil},
	{flagNoise, "b, the total noise scale, shared by threshold and queries", number, nil},
	{flagRegularization, "coefficient of the ridge penalty, on the mean loss", number, nil},
	{flagFeatureNorm, "public bound on the ℓ2 norm of a record", number, nil},
	{flagRadius, "radius of the ball to which the iterates are projected; none by default", number, nil},
	{flagEpsilon, "ε, where that is a parameter of the mechanism", number, nil},
	{flagCurvature, "bound on the second derivative of the loss (default 0.25, logistic)", number, nil},
	{flagCalibration, "how ε is divided", choice, []string{"rank-one", "chaudhuri", "continuous"}},
	{flagSplit, "share of ε for the regulariser in the calibration rank-one (default 0.05)", number, nil},
	{flagCategories, "number of possible answers", integer, nil},
	{flagRho, "ρ of zero-concentrated differential privacy", number, nil},
	{flagBase, "mechanism of one run of repeated-selection", choice, nil},
	{flagMeanRuns, "mean number of runs of repeated-selection", number, nil},
	{flagLaw, "law of the number of runs: geometric (default), logarithmic, poisson, or η of the truncated negative binomial law", law, []string{"geometric", "logarithmic", lawPoisson}},
	{flagDelta, "δ; 0 for a pure guarantee where the mechanism has one", number, nil},
	{flagAdjacency, "adjacency of the guarantee; the default depends on the mechanism", choice, []string{"add-remove", "replace-one"}},
	{flagAccountant, "how ε is computed (default tightest)", choice, []string{"tightest", "exact", "pld", "rdp", "gdp", "pure", "pure-advanced", "pure-optimal"}},
	{flagConversion, "from Rényi divergence to ε (default improved)", choice, []string{"improved", "classic"}},
}

// common are the options of every mechanism.
var common = []string{flagDelta, flagAdjacency, flagAccountant, flagConversion}

// Flags hold a mechanism's flags. The zero value is ready to be registered.
type Flags struct {
	texts map[string]*string // by name
}

// Register adds the flags to a set.
func (f *Flags) Register(flags *pflag.FlagSet) {
	f.register(flags, func(option) bool { return true })
}

// RegisterWithoutEpsilon adds the flags to a set but --epsilon: for a command that
// takes a target by that name.
func (f *Flags) RegisterWithoutEpsilon(flags *pflag.FlagSet) {
	f.register(flags, func(o option) bool { return o.name != flagEpsilon })
}

// RegisterCommon adds the flags to a set that hold for a composition as a whole.
func (f *Flags) RegisterCommon(flags *pflag.FlagSet) {
	f.texts = make(map[string]*string)
	f.registerOptions(flags, func(o option) bool { return slices.Contains(common, o.name) })
}

func (f *Flags) register(flags *pflag.FlagSet, include func(option) bool) {
	f.texts = map[string]*string{
		flagMechanism: flags.String(flagMechanism, "", "what is accounted: "+strings.Join(Names(), ", ")),
	}
	f.registerOptions(flags, include)
}

func (f *Flags) registerOptions(flags *pflag.FlagSet, include func(option) bool) {
	for _, o := range options {
		if !include(o) {
			continue
		}
		usage := o.usage
		if o.kind == choice && o.choices != nil {
			usage += ": " + strings.Join(o.choices, ", ")
		}
		text := new(string)
		flags.Var(&textValue{text, o}, o.name, usage)
		f.texts[o.name] = text
	}
}

// textValue is a flag that is kept as it was written.
type textValue struct {
	text   *string
	option option
}

// String implements pflag.Value.
func (v *textValue) String() string { return *v.text }

// Set implements pflag.Value.
func (v *textValue) Set(text string) error {
	checked, err := v.option.parse(text)
	if err == nil {
		*v.text = checked
	}
	return err
}

// Type implements pflag.Value.
func (v *textValue) Type() string {
	switch v.option.kind {
	case integer:
		return "int"
	case number:
		return "float"
	default:
		return "name"
	}
}

// parse checks a value and returns it as an expression.
func (o option) parse(text string) (string, error) {
	choices := o.choices
	if o.name == flagBase {
		choices = bases()
	}
	switch {
	case slices.Contains(choices, text) && text != "":
		return text, nil
	case o.kind == choice:
		return "", fmt.Errorf("want %s", strings.Join(choices, ", "))
	case o.kind == integer:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return "", errors.New("want a whole number")
		}
		return strconv.FormatInt(n, 10), nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		if o.kind == law {
			return "", fmt.Errorf("want %s or a number", strings.Join(choices, ", "))
		}
		return "", errors.New("want a finite number")
	}
	expression := strconv.FormatFloat(x, 'g', -1, 64)
	if !strings.ContainsAny(expression, ".e") {
		expression += ".0" // a double for the expression language
	}
	return expression, nil
}

// Names returns the names of all mechanisms.
func Names() []string {
	names := make([]string, 0, len(definitions)+1)
	for _, d := range definitions {
		names = append(names, d.name)
	}
	return append(names, repeatedName)
}

// bases returns the names of the mechanisms that repeated-selection can run.
func bases() []string {
	return slices.DeleteFunc(Names(), func(name string) bool { return name == repeatedName })
}

// find returns the definition of a mechanism.
func find(name string) (definition, bool) {
	i := slices.IndexFunc(definitions, func(d definition) bool { return d.name == name })
	if i < 0 {
		return definition{}, false
	}
	return definitions[i], true
}

// given returns the flags that are set.
func (f *Flags) given() values {
	v := make(values)
	for name, text := range f.texts {
		if *text != "" {
			v[name] = *text
		}
	}
	return v
}

// Mechanism is what flags describe.
type Mechanism struct {
	// Name of the mechanism.
	Name string
	// Spec is the mechanism with its accountant; the flag to solve for, if any, is
	// the variable [Variable] there.
	Spec *dparetov1.PrivacySpec
	// SolveFor is the flag to solve for.
	SolveFor string
}

// Variable is the name of the variable to solve for.
const Variable = "x"

// Mechanism returns the mechanism that the flags describe, with everything given.
func (f *Flags) Mechanism() (*Mechanism, error) { return mechanismOf(f.given(), nil) }

// Unsolved returns the mechanism with one flag to solve for: the named one, or the
// mechanism's own choice if the name is empty.
func (f *Flags) Unsolved(solveFor string) (*Mechanism, error) {
	return mechanismOf(f.given(), &solveFor)
}

func mechanismOf(v values, solveFor *string) (*Mechanism, error) {
	d, err := definitionOf(v)
	if err != nil {
		return nil, err
	}
	m := &Mechanism{Name: d.name}
	if solveFor != nil {
		if m.SolveFor = *solveFor; m.SolveFor == "" {
			m.SolveFor = d.solveFor
		}
		if err := solvable(d, m.SolveFor, v); err != nil {
			return nil, err
		}
		v[m.SolveFor] = Variable
	}
	if err := complete(d, v); err != nil {
		return nil, err
	}
	m.Spec, err = specOf(d, v)
	return m, err
}

// definitionOf returns the definition of the mechanism that is named.
func definitionOf(v values) (definition, error) {
	name := v[flagMechanism]
	wanted := strings.Join(Names(), ", ")
	if name == repeatedName {
		base, ok := find(v[flagBase])
		if !ok {
			return definition{}, errors.New("--base is required for repeated-selection: the mechanism of one run")
		}
		return repeated(base), nil
	}
	d, ok := find(name)
	switch {
	case name == "":
		return d, fmt.Errorf("--mechanism is required: one of %s", wanted)
	case !ok:
		return d, fmt.Errorf("--mechanism %q is unknown, want one of %s", name, wanted)
	default:
		return d, nil
	}
}

// solvable checks that a flag can be solved for.
func solvable(d definition, name string, v values) error {
	i := slices.IndexFunc(options, func(o option) bool { return o.name == name })
	belongs := slices.Contains(d.required, name) || slices.Contains(d.optional, name)
	if i < 0 || !belongs || options[i].kind == choice || options[i].kind == law {
		return fmt.Errorf("--solve-for %q: not a number of the mechanism %s", name, d.name)
	}
	if slices.Contains(d.required, flagEpsilon) && name != flagEpsilon {
		return fmt.Errorf("--solve-for %s: ε is a parameter of the mechanism %s, and --epsilon is the target here, so that only epsilon can be solved for",
			name, d.name)
	}
	for _, given := range []string{name, flagSteps} {
		if v[given] != "" && (given == name || name == flagEpochs) {
			return fmt.Errorf("--%s is to be solved for: --%s must not be given", name, given)
		}
	}
	return nil
}

// complete checks that the flags fit the mechanism.
func complete(d definition, v values) error {
	for name := range v {
		known := name == flagMechanism || slices.Contains(common, name) ||
			slices.Contains(d.required, name) || slices.Contains(d.optional, name)
		if !known {
			return fmt.Errorf("--%s is not for the mechanism %s", name, d.name)
		}
	}
	for _, name := range d.required {
		if v[name] == "" && (name != flagEpochs || v[flagSteps] == "") {
			if name == flagEpochs {
				return fmt.Errorf("--epochs or --steps is required for the mechanism %s", d.name)
			}
			return fmt.Errorf("--%s is required for the mechanism %s", name, d.name)
		}
	}
	return nil
}

// specOf returns the spec of complete flags.
func specOf(d definition, v values) (*dparetov1.PrivacySpec, error) {
	spec := &dparetov1.PrivacySpec{
		Adjacency:  d.adjacency,
		Accountant: dparetov1.Accountant(enum(v[flagAccountant], "ACCOUNTANT_", dparetov1.Accountant_value)),
		Conversion: dparetov1.Conversion(enum(v[flagConversion], "CONVERSION_", dparetov1.Conversion_value)),
	}
	if spec.GetAccountant() == dparetov1.Accountant_ACCOUNTANT_RDP && spec.GetConversion() == 0 {
		spec.Conversion = dparetov1.Conversion_CONVERSION_IMPROVED
	}
	if given := v[flagAdjacency]; given != "" {
		spec.Adjacency = dparetov1.Adjacency(enum(given, "ADJACENCY_", dparetov1.Adjacency_value))
	}
	if text := v[flagDelta]; text != "" {
		delta, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("--delta: %w", err)
		}
		spec.Delta = delta
	}
	d.fill(v, spec)
	return spec, nil
}

// Length returns the unit and the value of the flag that says how long a run of the
// mechanism is: epochs or steps, or "" without one. What repeated-selection runs
// several times may have a length, itself it has none.
func (f *Flags) Length() (unit string, length int64) {
	if f.given()[flagMechanism] != dpSGDName {
		return "", 0
	}
	for _, unit := range []string{flagSteps, flagEpochs} {
		if length, err := strconv.ParseInt(f.given()[unit], 10, 64); err == nil {
			return unit, length
		}
	}
	return "", 0
}

// Range returns where a flag is searched by default.
func (f *Flags) Range(name string) (least, most float64) {
	switch name {
	case flagEpochs, flagSteps:
		return 1, 1e9
	case flagBatchSize:
		if n, err := strconv.ParseInt(f.given()[flagDatasetSize], 10, 64); err == nil {
			return 1, float64(n)
		}
		return 1, 1e9
	case flagDatasetSize:
		if n, err := strconv.ParseInt(f.given()[flagBatchSize], 10, 64); err == nil {
			return float64(n), 1e12
		}
		return 1, 1e12
	case flagBound:
		return 1, 1e9
	case flagCategories:
		return 2, 1e9
	case flagMeanRuns:
		return 1.01, 1e9
	case flagSplit:
		return 1e-3, 1 - 1e-3
	case flagNoiseMultiplier:
		return 1e-4, 1e9
	default:
		return 1e-9, 1e12
	}
}

// Part reads a part of a composition: flags without dashes, separated by commas, and
// count, how often the part is applied.
func Part(text string) (*dparetov1.CompositionMechanism_Part, error) {
	v := make(values)
	part := new(dparetov1.CompositionMechanism_Part)
	for item := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(item), "=")
		if !ok {
			return nil, fmt.Errorf("%q is not name=value", item)
		}
		var err error
		switch i := slices.IndexFunc(options, func(o option) bool { return o.name == name }); {
		case v[name] != "" || name == "count" && part.GetCount() != "":
			return nil, fmt.Errorf("%s is given twice", name)
		case name == flagMechanism:
			v[name] = value
		case name == "count":
			part.Count, err = option{kind: integer}.parse(value)
		case i < 0 || slices.Contains(common, name):
			return nil, fmt.Errorf("%s is not for parts", name)
		default:
			v[name], err = options[i].parse(value)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	m, err := mechanismOf(v, nil)
	if err != nil {
		return nil, err
	}
	part.Mechanism = m.Spec
	return part, nil
}

// Compose returns the composition of parts under the flags that hold for all:
// adjacency, accountant, conversion and delta. Without an adjacency, that of the parts
// holds, on which they have to agree.
func (f *Flags) Compose(parts []*dparetov1.CompositionMechanism_Part) (*Mechanism, error) {
	v := f.given()
	for name := range v {
		if !slices.Contains(common, name) {
			return nil, fmt.Errorf("--%s belongs into a --part", name)
		}
	}
	d := definition{name: "composition", adjacency: parts[0].GetMechanism().GetAdjacency()}
	d.fill = func(_ values, spec *dparetov1.PrivacySpec) {
		spec.Mechanism = &dparetov1.PrivacySpec_Composition{Composition: &dparetov1.CompositionMechanism{Parts: parts}}
	}
	for i, p := range parts {
		if got := p.GetMechanism().GetAdjacency(); got != d.adjacency && v[flagAdjacency] == "" {
			return nil, fmt.Errorf("--part %d is for another adjacency than --part 1 by default; give --adjacency", i+1)
		}
		p.Mechanism.Adjacency = dparetov1.Adjacency_ADJACENCY_UNSPECIFIED
	}
	spec, err := specOf(d, v)
	return &Mechanism{Name: d.name, Spec: spec}, err
}

// flagNames are the flags of fields that have another name in the contract.
var flagNames = map[string]string{
	"standard_deviation": flagSigma,
	"cutoff":             flagBound,
	"noise_scale":        flagNoise,
	"length":             flagEpochs,
	"target_epsilon":     flagEpsilon,
	"distribution":       flagLaw,
	"eta":                flagLaw,
}

// Flag returns the flag that a field of a request came from, with the part it was in.
func Flag(path string) string {
	prefix := ""
	if rest, ok := strings.CutPrefix(path, "privacy.composition.parts["); ok {
		if i, err := strconv.Atoi(rest[:max(0, strings.IndexByte(rest, ']'))]); err == nil {
			prefix = fmt.Sprintf("--part %d: ", i+1)
		}
	}
	field := path[strings.LastIndexByte(path, '.')+1:]
	if name, ok := flagNames[field]; ok {
		field = name
	}
	if prefix != "" {
		return prefix + strings.ReplaceAll(field, "_", "-")
	}
	return "--" + strings.ReplaceAll(field, "_", "-")
}

// Words returns a message with the names of the contract as the command line has them.
func Words(message string) string {
	for _, prefix := range []string{"ADJACENCY_", "ACCOUNTANT_", "CONVERSION_", "SAMPLING_"} {
		for {
			before, after, found := strings.Cut(message, prefix)
			if !found {
				break
			}
			end := strings.IndexFunc(after, func(r rune) bool { return r != '_' && (r < 'A' || r > 'Z') })
			if end < 0 {
				end = len(after)
			}
			message = before + strings.ToLower(strings.ReplaceAll(after[:end], "_", "-")) + after[end:]
		}
	}
	return message
}

// Help describes the mechanisms and their flags.
func Help() string {
	var text strings.Builder
	for _, d := range definitions {
		fmt.Fprintf(&text, "  %s\n      %s\n      ", d.name, d.summary)
		names := make([]string, 0, len(d.required)+len(d.optional))
		for _, name := range d.required {
			names = append(names, "--"+name)
		}
		for _, name := range d.optional {
			names = append(names, "[--"+name+"]")
		}
		text.WriteString(strings.Join(names, " ") + "\n")
	}
	fmt.Fprintf(&text, "  %s\n      the best of a random number of runs of another mechanism (Papernot and Steinke 2022)\n"+
		"      --base --mean-runs [--law] and the flags of the base\n", repeatedName)
	return text.String()
}
