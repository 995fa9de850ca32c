package mechanism

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpareto/dpareto/clients/go/trainer"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
)

// values are the flags that were given, by name, as expressions.
type values map[string]string

// kind says what a flag takes.
type kind int

const (
	number kind = iota
	integer
	choice       // a value of an enum, or a mechanism
	distribution // of the number of runs: a name, or a number
)

// option is a flag of some mechanism, or of all.
type option struct {
	name, usage string
	kind        kind
}

// poisson is the Poisson distribution of the number of runs, and of the records of a lot.
const poisson = "poisson"

// Distributions of a bounded number of runs.
const (
	binomial = "binomial"
	fixed    = "fixed"
)

// distributions are the names that --distribution takes.
var distributions = []string{"geometric", "logarithmic", poisson, binomial, fixed}

// Flags with special rules.
const (
	flagMechanism         = "mechanism"
	flagSampling          = "sampling"
	flagConvention        = "convention"
	flagProbability       = "sampling-probability"
	flagDatasetSize       = "dataset-size"
	flagBatchSize         = "batch-size"
	flagNoiseMultiplier   = "noise-multiplier"
	flagEpochs            = "epochs"
	flagSteps             = "steps"
	flagStandardDeviation = "standard-deviation"
	flagEpsilon           = "epsilon"
	flagSplit             = "split"
	flagBase              = "base"
	flagMeanRuns          = "mean-runs"
	flagDistribution      = "distribution"
	flagTries             = "tries"
	flagMaxRuns           = "max-runs"
	flagDelta             = "delta"
	flagAdjacency         = "adjacency"
	flagAccountant        = "accountant"
	flagConversion        = "conversion"
)

// options are the flags, in the order in which they are documented.
var options = []option{
	{flagSampling, "how the trainer draws its lots", choice},
	{flagDatasetSize, "number of training records", integer},
	{flagBatchSize, "records per lot; the expected number for Poisson sampling", integer},
	{flagNoiseMultiplier, "standard deviation of the noise over the sensitivity under the adjacency", number},
	{flagConvention, "which tool's probability and steps of Poisson sampling; they differ where lots do not divide the data", choice},
	{flagProbability, "probability of Poisson sampling, with --steps, in place of sizes and convention", number},
	{flagEpochs, "passes over the data; round(dataset-size/batch-size) steps each, unless shuffled or Poisson sampled", integer},
	{flagSteps, "steps, in place of epochs", integer},
	{"sensitivity", "ℓ2 (gaussian) or ℓ1 (laplace) distance between the results on adjacent data", number},
	{flagStandardDeviation, "standard deviation of the noise", number},
	{"scale", "scale of the Laplace noise", number},
	{"cutoff", "number of positive answers after which sparse-vector stops", integer},
	{"noise-scale", "total noise scale of sparse-vector, shared by threshold and queries", number},
	{"regularization", "coefficient of the ridge penalty, on the mean loss", number},
	{"feature-norm", "public bound on the ℓ2 norm of a record", number},
	{"radius", "radius of the ball to which the iterates are projected; none by default", number},
	{flagEpsilon, "ε, where it is a parameter of the mechanism", number},
	{"curvature", "bound on the second derivative of the loss (default 0.25, logistic)", number},
	{"calibration", "how ε is divided", choice},
	{flagSplit, "share of ε for the regulariser in the calibration rank-one (default 0.05)", number},
	{"categories", "number of possible answers", integer},
	{"method", "how selection chooses", choice},
	{"rho", "ρ of zero-concentrated differential privacy", number},
	{flagBase, "mechanism of one run of repeated-selection", choice},
	{flagMeanRuns, "mean number of runs of repeated-selection", number},
	{flagDistribution, "distribution of the number of runs: geometric (default), logarithmic, poisson, binomial, fixed, or η of the truncated negative binomial distribution", distribution},
	{flagTries, "number of tries of the binomial distribution", integer},
	{flagMaxRuns, "largest number of runs: the number is drawn given that it is at most this", integer},
	{flagDelta, "δ; 0 for a pure guarantee if the mechanism has one", number},
	{flagAdjacency, "adjacency of the guarantee; the default depends on the mechanism", choice},
	{flagAccountant, "how ε is computed (default tightest)", choice},
	{flagConversion, "from Rényi divergence to ε (default improved)", choice},
}

// common are the options of every mechanism.
var common = []string{flagDelta, flagAdjacency, flagAccountant, flagConversion}

// optional are the flags that no mechanism requires.
var optional = []string{flagConvention, flagProbability, flagSteps, "radius", "curvature", "calibration", flagSplit}

// enums are the enums of flags.
var enums = func() map[string]protoreflect.EnumDescriptor {
	all := make(map[string]protoreflect.EnumDescriptor)
	add := func(fields protoreflect.FieldDescriptors) {
		for i := range fields.Len() {
			if field := fields.Get(i); field.Enum() != nil {
				all[dashed(field.Name())] = field.Enum()
			}
		}
	}
	add(fields)
	for _, d := range definitions {
		add(d.field().Message().Fields())
	}
	return all
}()

// choices returns the values that the option takes by name.
func (o option) choices() []string {
	switch {
	case o.kind == distribution:
		return distributions
	case o.name == flagBase:
		return bases()
	case o.kind == choice:
		return slices.DeleteFunc(enum.Names(enums[o.name]), func(name string) bool { return slices.Contains(ofGuarantees, name) })
	default:
		return nil
	}
}

// ofGuarantees are the accountants of ledgers and of other guarantees, which specs cannot name.
var ofGuarantees = []string{"rdp-odometer", "adaptive-composition", "chernoff"}

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
		if o.kind == choice && o.name != flagBase {
			usage += ": " + strings.Join(o.choices(), ", ")
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
	choices := o.choices()
	if name := strings.ToLower(strings.ReplaceAll(text, "_", "-")); slices.Contains(choices, name) {
		return name, nil // as in study files
	}
	switch o.kind {
	case choice:
		return "", errors.New("must be " + trainer.Enumerate(choices...))
	case integer:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return "", errors.New("must be a whole number")
		}
		return strconv.FormatInt(n, 10), nil
	default:
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		if o.kind == distribution {
			return "", fmt.Errorf("must be %s or a number", strings.Join(choices, ", "))
		}
		return "", errors.New("must be a finite number")
	}
	expression := strconv.FormatFloat(x, 'g', -1, 64)
	if !strings.ContainsAny(expression, ".e") {
		expression += ".0" // a double for the expression language
	}
	return expression, nil
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
		m.SolveFor = cmp.Or(*solveFor, d.solveFor)
		if err := d.checkSolvable(m.SolveFor, v); err != nil {
			return nil, err
		}
		v[m.SolveFor] = Variable
	}
	if err := d.check(v); err != nil {
		return nil, err
	}
	m.Spec, err = specOf(v, d.adjacency)
	if err == nil {
		d.fill(v, m.Spec)
	}
	return m, err
}

// specOf returns the spec of the flags of every mechanism, without the mechanism.
func specOf(v values, adjacency dparetov1.Adjacency) (*dparetov1.PrivacySpec, error) {
	spec := &dparetov1.PrivacySpec{Adjacency: adjacency}
	for _, name := range []string{flagAdjacency, flagAccountant, flagConversion} {
		if v[name] != "" {
			set(spec, name, v[name])
		}
	}
	if spec.GetAccountant() == dparetov1.Accountant_ACCOUNTANT_RDP && spec.GetConversion() == 0 {
		spec.Conversion = dparetov1.Conversion_CONVERSION_IMPROVED
	}
	if text := v[flagDelta]; text != "" {
		delta, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("--delta: %w", err)
		}
		spec.Delta = delta
	}
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
	case "cutoff":
		return 1, 1e9
	case "categories":
		return 2, 1e9
	case flagMeanRuns:
		return 1.01, 1e9
	case flagSplit:
		return 1e-3, 1 - 1e-3
	case flagProbability:
		return 1e-9, 1
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
			return nil, fmt.Errorf("must be name=value, is %q", item)
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
			return nil, fmt.Errorf("%s: %w, is %q", name, err, value)
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
// adjacency, accountant, conversion and delta. Without an adjacency the parts
// must agree on theirs.
func (f *Flags) Compose(parts []*dparetov1.CompositionMechanism_Part) (*Mechanism, error) {
	v := f.given()
	for name := range v {
		if !slices.Contains(common, name) {
			return nil, fmt.Errorf("--%s must be in a --part", name)
		}
	}
	adjacency := parts[0].GetMechanism().GetAdjacency()
	for i, p := range parts {
		if got := p.GetMechanism().GetAdjacency(); got != adjacency && v[flagAdjacency] == "" {
			return nil, fmt.Errorf("--part %d is for another adjacency than --part 1 by default; give --adjacency", i+1)
		}
		p.Mechanism.Adjacency = dparetov1.Adjacency_ADJACENCY_UNSPECIFIED
	}
	spec, err := specOf(v, adjacency)
	if err != nil {
		return nil, err
	}
	spec.Mechanism = &dparetov1.PrivacySpec_Composition{Composition: &dparetov1.CompositionMechanism{Parts: parts}}
	return &Mechanism{Name: compositionName, Spec: spec}, nil
}

// flagNames are the flags of fields with other names in requests.
var flagNames = map[string]string{
	"length":         flagEpochs,
	"target_epsilon": flagEpsilon,
	"distribution":   flagDistribution,
	"eta":            flagDistribution,
	"binomial":       flagTries,
}

// Flag returns the flag that a field of a request came from, with the part it was in.
func Flag(path string) string {
	prefix := ""
	if rest, ok := strings.CutPrefix(path, "privacy.composition.parts["); ok {
		if i, err := strconv.Atoi(rest[:max(0, strings.IndexByte(rest, ']'))]); err == nil {
			prefix = fmt.Sprintf("--part %d: ", i+1)
		}
	}
	if strings.HasPrefix(path, "final_run.") {
		prefix = "--final-run: "
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
	for _, prefix := range []string{"ADJACENCY_", "ACCOUNTANT_", "CONVERSION_", "CONVENTION_", "SAMPLING_"} {
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
		fmt.Fprintf(&text, "  %s\n      %s\n     ", d.name, d.summary)
		for _, name := range d.flags() {
			if slices.Contains(optional, name) {
				name = "[--" + name + "]"
			} else {
				name = "--" + name
			}
			text.WriteString(" " + name)
		}
		text.WriteByte('\n')
	}
	fmt.Fprintf(&text, "  %s\n      the best of a random number of runs of another mechanism (Papernot and Steinke 2022)\n"+
		"      --base --mean-runs [--distribution] [--tries] [--max-runs] and the flags of the base\n", repeatedName)
	return text.String()
}
