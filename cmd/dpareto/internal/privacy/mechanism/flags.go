package mechanism

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/dpareto/dpareto/clients/go/trainer"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// values are the flags that were given, by name, as expressions.
type values map[string]string

// Distributions of the number of runs with fields of their own.
const (
	poisson  = "poisson"
	binomial = "binomial"
	fixed    = "fixed"
)

// allocated is the value of --sampling that, like poisson, has add/remove as its default adjacency.
const allocated = "random-allocation"

// distributions are the names that --distribution takes.
var distributions = []string{"geometric", "logarithmic", poisson, binomial, fixed}

// Flags with special rules.
const (
	flagMechanism         = "mechanism"
	flagSampling          = "sampling"
	flagProbability       = "sampling-probability"
	flagDatasetSize       = "dataset-size"
	flagBatchSize         = "batch-size"
	flagNoiseMultiplier   = "noise-multiplier"
	flagEpochs            = "epochs"
	flagSteps             = "steps"
	flagStandardDeviation = "standard-deviation"
	flagEpsilon           = "epsilon"
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

// common are the options of every mechanism.
var common = []string{flagDelta, flagAdjacency, flagAccountant, flagConversion}

// ofGuarantees are the accountants of ledgers and of other guarantees, which specs cannot name.
var ofGuarantees = []string{"rdp-odometer", "adaptive-composition", "chernoff"}

// Flags hold a mechanism's flags. The zero value is ready to be registered.
type Flags struct {
	texts map[string]*string // by name
}

// Register adds the flags to a set but those that the command takes otherwise.
func (f *Flags) Register(flags *pflag.FlagSet, without ...string) {
	f.texts = map[string]*string{
		flagMechanism: flags.String(flagMechanism, "", "mechanism to account: "+strings.Join(Names(), ", ")),
	}
	f.register(flags, func(o option) bool { return !slices.Contains(without, o.name) })
}

// RegisterCommon adds the flags to a set that hold for a composition as a whole.
func (f *Flags) RegisterCommon(flags *pflag.FlagSet) {
	f.texts = make(map[string]*string)
	f.register(flags, func(o option) bool { return slices.Contains(common, o.name) })
}

func (f *Flags) register(flags *pflag.FlagSet, include func(option) bool) {
	for _, o := range options() {
		if include(o) {
			text := new(string)
			flags.Var(&textValue{text, o}, o.name, o.usage)
			f.texts[o.name] = text
		}
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
	switch {
	case v.option.isNumber():
		return "number"
	case v.option.list:
		return "numbers"
	}
	return "name"
}

// parse checks a value and returns it as an expression. The compiler of the expression refuses a fraction
// where the contract wants a whole number.
func (o option) parse(text string) (string, error) {
	if name := strings.ToLower(strings.ReplaceAll(text, "_", "-")); slices.Contains(o.choices, name) {
		return name, nil // as in study files
	}
	if !o.number && len(o.choices) > 0 {
		return "", errors.New("must be " + trainer.Enumerate(o.choices...))
	}
	if o.list {
		if _, err := numbers(text); err != nil {
			return "", errors.New("must be finite numbers with commas or colons between them")
		}
		return text, nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return strconv.FormatInt(n, 10), nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		if len(o.choices) > 0 {
			return "", fmt.Errorf("must be %s or a number", strings.Join(o.choices, ", "))
		}
		return "", errors.New("must be a finite number")
	}
	expression := strconv.FormatFloat(x, 'g', -1, 64)
	if !strings.ContainsAny(expression, ".e") {
		expression += ".0" // a double for the expression language
	}
	return expression, nil
}

// numbers parses numbers with commas or colons between them.
func numbers(text string) ([]float64, error) {
	var all []float64
	for field := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ':' }) {
		x, err := strconv.ParseFloat(field, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("%q is not a finite number", field)
		}
		all = append(all, x)
	}
	return all, nil
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

// ranges are where numbers are searched by default, but for others than from 1e-9 to 1e12.
var ranges = map[string][2]float64{
	flagEpochs: {1, 1e9}, flagSteps: {1, 1e9}, flagBatchSize: {1, 1e9}, flagDatasetSize: {1, 1e12}, "cutoff": {1, 1e9},
	flagMeanRuns: {1.01, 1e9}, flagProbability: {1e-9, 1}, flagNoiseMultiplier: {1e-4, 1e9},
}

// Range returns where a flag is searched by default. A lot has at most all records.
func (f *Flags) Range(name string) (least, most float64) {
	least, most = 1e-9, 1e12
	if r, ok := ranges[name]; ok {
		least, most = r[0], r[1]
	}
	given := func(other string) (float64, bool) {
		n, err := strconv.ParseInt(f.given()[other], 10, 64)
		return float64(n), err == nil
	}
	if n, ok := given(flagDatasetSize); ok && name == flagBatchSize {
		most = n
	}
	if n, ok := given(flagBatchSize); ok && name == flagDatasetSize {
		least = n
	}
	return least, most
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
		o, ok := findOption(name)
		switch {
		case v[name] != "" || name == "count" && part.GetCount() != "":
			return nil, fmt.Errorf("%s is given twice", name)
		case name == flagMechanism:
			v[name] = value
		case name == "count":
			part.Count, err = option{number: true}.parse(value)
		case !ok || slices.Contains(common, name):
			return nil, fmt.Errorf("%s is not for parts", name)
		default:
			v[name], err = o.parse(value)
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

// ofEnums matches names of enum values in the contract.
var ofEnums = regexp.MustCompile(`\b(?:ADJACENCY|ACCOUNTANT|CONVERSION|CONVENTION|SAMPLING|OBJECTIVE_CALIBRATION|NOISE_MATRIX)_([A-Z_]+)`)

// Words returns a message with the names of the contract as the command line has them.
func Words(message string) string {
	if strings.HasPrefix(message, "must have type int, has type double") {
		return "must be a whole number"
	}
	return ofEnums.ReplaceAllStringFunc(message, func(name string) string {
		return strings.ToLower(strings.ReplaceAll(ofEnums.FindStringSubmatch(name)[1], "_", "-"))
	})
}

// Help describes the mechanisms and their flags.
func Help() string {
	var text strings.Builder
	for _, d := range append(slices.Clone(definitions), definition{name: repeatedName}) {
		fmt.Fprintf(&text, "  %s\n      %s\n      %s\n", d.name, usage(d.field()), d.synopsis())
	}
	return text.String()
}
