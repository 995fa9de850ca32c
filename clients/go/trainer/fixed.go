package trainer

import (
	"context"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"

	"github.com/dpareto/dpareto/privacy"
)

// fixedParameters divides settings into the definition's own and those that fix a
// declared parameter: a study that does not vary the lot size sets it like the model and
// the data.
func (d *Definition) fixedParameters(ctx context.Context, options Options) (Options, Parameters, error) {
	own := options
	own.Settings = make(map[string]string)
	others := make(map[string]string)
	for name, value := range options.Settings {
		switch {
		case slices.ContainsFunc(d.Settings, func(s Setting) bool { return s.Name == name }):
			own.Settings[name] = value
		case value != "": // as if it were absent
			others[name] = value
		}
	}
	if len(others) == 0 {
		return own, nil, nil
	}
	var declared Declaration
	if d.Declare != nil {
		var err error
		if declared, err = d.Declare(ctx, own); err != nil {
			return own, nil, fmt.Errorf("trainer %s: %w", d.Name, err)
		}
	}
	fixed := make(Parameters)
	for _, name := range slices.Sorted(maps.Keys(others)) {
		i := slices.IndexFunc(declared.Parameters, func(p ParameterDeclaration) bool { return p.Name == name })
		if i < 0 {
			known := make([]string, 0, len(d.Settings)+len(declared.Parameters))
			for _, s := range d.Settings {
				known = append(known, s.Name)
			}
			for _, p := range declared.Parameters {
				known = append(known, p.Name)
			}
			return own, nil, fmt.Errorf("setting %q of trainer %s is unknown, want %s", name, d.Name, oneOf(known))
		}
		value, err := declared.Parameters[i].parse(others[name])
		if err != nil {
			return own, nil, fmt.Errorf("trainer %s: %w", d.Name, err)
		}
		fixed[name] = value
	}
	return own, fixed, nil
}

// parse reads a value of the parameter. The value may lie outside the domain, which only
// bounds searches.
func (p ParameterDeclaration) parse(text string) (any, error) {
	if p.Integer {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("setting %s is %q, want a whole number", p.Name, text)
		}
		return n, nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return nil, fmt.Errorf("setting %s is %q, want a finite number", p.Name, text)
	}
	return x, nil
}

// fixedTrainer is a trainer some of whose parameters are fixed.
type fixedTrainer struct {
	Trainer
	fixed Parameters
}

// Train implements Trainer.
func (t fixedTrainer) Train(ctx context.Context, run Run, report Report) (Measurement, error) {
	all := maps.Clone(t.fixed)
	for name, value := range run.Parameters {
		if _, ok := t.fixed[name]; ok {
			return Measurement{}, &ParameterError{Name: name, Reason: "is fixed by a setting of the trainer, and must not be a parameter of the study"}
		}
		all[name] = value
	}
	run.Parameters = all
	return t.Trainer.Train(ctx, run, report)
}

// privateFixedTrainer is a fixedTrainer that knows its mechanism.
type privateFixedTrainer struct {
	fixedTrainer
	inner PrivateTrainer
}

// Mechanism implements PrivateTrainer.
func (t privateFixedTrainer) Mechanism(p Parameters) (privacy.Mechanism, error) {
	all := maps.Clone(t.fixed)
	maps.Copy(all, p)
	return t.inner.Mechanism(all)
}

// fix returns the trainer with some parameters fixed.
func fix(t Trainer, fixed Parameters) Trainer {
	if len(fixed) == 0 {
		return t
	}
	outer := fixedTrainer{t, fixed}
	if private, ok := t.(PrivateTrainer); ok {
		return privateFixedTrainer{outer, private}
	}
	return outer
}

// identifier matches the names in an expression, with the dot before a member.
var identifier = regexp.MustCompile(`\.?[A-Za-z_][A-Za-z0-9_]*`)

// without returns the declaration with some parameters fixed.
func (d Declaration) without(fixed Parameters) Declaration {
	if len(fixed) == 0 {
		return d
	}
	d.Parameters = slices.DeleteFunc(slices.Clone(d.Parameters), func(p ParameterDeclaration) bool { return fixed.Has(p.Name) })
	if fixed.Has(d.CheckpointParameter) {
		d.CheckpointParameter = ""
	}
	if d.Privacy == nil {
		return d
	}
	private := *d.Privacy
	private.Fields = make(map[string]string, len(d.Privacy.Fields))
	for name, expression := range d.Privacy.Fields {
		private.Fields[name] = identifier.ReplaceAllStringFunc(expression, func(name string) string {
			switch value := fixed[name].(type) {
			case int64:
				return strconv.FormatInt(value, 10)
			case float64:
				text := strconv.FormatFloat(value, 'f', -1, 64)
				if value == math.Trunc(value) {
					text += ".0" // a double, for the expression language
				}
				return text
			default:
				return name
			}
		})
	}
	d.Privacy = &private
	return d
}
