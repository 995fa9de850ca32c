package trainer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dpareto/dpareto/clients/go/subset"
)

// Options are the inputs of a new trainer.
type Options struct {
	// DataDir is a folder in which data files are looked for first. Empty means
	// that only the platform's cache folder is used.
	DataDir string
	// Outline makes a trainer that can declare its study, but has only the numbers of its examples, and
	// not their features: it needs no data files, and must not train.
	Outline bool
	// Settings are the trainer's own settings by name; absent ones take their
	// default. They are fixed for a trainer, unlike the parameters, which vary
	// from one configuration to the next.
	Settings Settings
	// Subset, when not nil, holds the training examples that the trainer trains on, and touches no
	// others. Only trainers with Definition.Subsets take one.
	Subset *subset.Subset
	// Progress, when not nil, is called while data files are downloaded, with the
	// number of bytes done and the total, or -1 where the total is not known.
	Progress func(done, total int64)
}

// Setting describes one setting of a trainer.
type Setting struct {
	Name    string // as in Options.Settings
	Default string // the value used when the setting is absent
	Usage   string // one line: meaning, unit and range
}

// Definition describes a trainer and makes it.
type Definition struct {
	// Name of the trainer, unique in a registry.
	Name string
	// Summary is one line about the trained model and its data.
	Summary string
	// Settings that New understands. A registry refuses all others.
	Settings []Setting
	// Subsets says that New and Declare honour Options.Subset.
	Subsets bool
	// New makes the trainer. It loads the data, and so may take long: it honours
	// the context.
	New func(ctx context.Context, options Options) (Trainer, error)
	// Declare returns the declaration of the trainer that New makes. It also loads the
	// data, to count it. Nil means that the trainer declares nothing.
	Declare func(ctx context.Context, options Options) (Declaration, error)
}

// Registry maps names to trainers. The zero value is empty and ready to use. A
// registry may be read by many goroutines once the last Register has returned.
type Registry struct {
	definitions map[string]Definition
}

// Register adds a trainer. It panics when the definition has no name or no New,
// or when the name is taken.
func (r *Registry) Register(d Definition) {
	if d.Name == "" || d.New == nil {
		panic("trainer: definition without a name or constructor")
	}
	if _, ok := r.definitions[d.Name]; ok {
		panic("trainer: name registered twice: " + d.Name)
	}
	if r.definitions == nil {
		r.definitions = make(map[string]Definition)
	}
	r.definitions[d.Name] = d
}

// Definitions returns the registered trainers, sorted by name.
func (r *Registry) Definitions() []Definition {
	return slices.SortedFunc(maps.Values(r.definitions), func(a, b Definition) int {
		return strings.Compare(a.Name, b.Name)
	})
}

// New makes the trainer registered as name. A setting with the name of a declared
// parameter fixes that parameter, which Train then does not accept. Errors for unknown
// names and settings list the known ones.
func (r *Registry) New(ctx context.Context, name string, options Options) (Trainer, error) {
	d, err := r.definition(name)
	if err != nil {
		return nil, err
	}
	if options.Subset != nil && !d.Subsets {
		return nil, d.noSubsets()
	}
	parts, settings, err := options.Settings.parts()
	if err != nil {
		return nil, err
	}
	options.Settings = settings
	if parts > 1 {
		return r.newOnParts(ctx, name, options, parts)
	}
	own, fixed, err := d.fixedParameters(ctx, options)
	if err != nil {
		return nil, err
	}
	t, err := d.New(ctx, own)
	if err != nil {
		return nil, fmt.Errorf("trainer %s: %w", name, err)
	}
	return fix(t, fixed), nil
}

// Declare returns the declaration of the trainer that New makes of the same arguments,
// with the same errors; fixed parameters are constants in it. It is an error if the
// trainer declares nothing.
func (r *Registry) Declare(ctx context.Context, name string, options Options) (Declaration, error) {
	d, err := r.definition(name)
	if err != nil {
		return Declaration{}, err
	}
	if d.Declare == nil {
		return Declaration{}, fmt.Errorf("trainer %s declares no study", name)
	}
	parts, settings, err := options.Settings.parts()
	if err != nil {
		return Declaration{}, err
	}
	if options.Settings = settings; parts > 1 {
		options.Settings[SettingShards] = strconv.Itoa(parts) // a copy: what a part is, is declared
	}
	own, fixed, err := d.fixedParameters(ctx, options)
	if err != nil {
		return Declaration{}, err
	}
	declaration, err := d.Declare(ctx, own)
	if err != nil {
		return Declaration{}, fmt.Errorf("trainer %s: %w", name, err)
	}
	return declaration.without(fixed), nil
}

// definition returns the definition registered as name.
func (r *Registry) definition(name string) (*Definition, error) {
	d, ok := r.definitions[name]
	if !ok {
		return nil, fmt.Errorf("trainer %q is unknown, want %s", name, oneOf(slices.Sorted(maps.Keys(r.definitions))))
	}
	return &d, nil
}

func oneOf(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return "one of " + strings.Join(names, ", ")
}
