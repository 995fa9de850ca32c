package trainer

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/dpareto/dpareto/clients/go/subset"
	"github.com/dpareto/dpareto/privacy"
)

// SubsetTrainer is a trainer that can also train on a subset of its training examples.
type SubsetTrainer interface {
	Trainer
	// OnSubset returns the trainer on a subset of its training examples: it touches no other, and
	// its mechanism is that of the subset. It is an error if the subset is not of as many
	// examples as the trainer has.
	OnSubset(ctx context.Context, s subset.Subset) (Trainer, error)
}

// NewWithSubsets makes the trainer registered as name as a [SubsetTrainer]. It returns the errors of
// New, and one for a trainer without Definition.Subsets.
func (r *Registry) NewWithSubsets(ctx context.Context, name string, options Options) (Trainer, error) {
	d, err := r.definition(name)
	if err != nil {
		return nil, err
	}
	if !d.Subsets {
		return nil, d.noSubsets()
	}
	all, err := r.New(ctx, name, options)
	if err != nil {
		return nil, err
	}
	t := &withSubsets{Trainer: all, open: func(ctx context.Context, s subset.Subset) (Trainer, error) {
		own := options
		own.Subset = &s
		return r.New(ctx, name, own)
	}}
	if private, ok := all.(PrivateTrainer); ok {
		return privateWithSubsets{t, private}, nil
	}
	return t, nil
}

// noSubsets returns the error of a trainer that takes no subset.
func (d *Definition) noSubsets() error {
	return fmt.Errorf("trainer %s cannot train on a subset of its examples", d.Name)
}

// withSubsets is a trainer on all examples that can make itself on a subset.
type withSubsets struct {
	Trainer
	open func(ctx context.Context, s subset.Subset) (Trainer, error)

	mu     sync.Mutex    // guards the latest subset, which all candidates of a study share
	latest subset.Subset // zero if none was opened
	opened Trainer
}

// OnSubset implements SubsetTrainer.
func (w *withSubsets) OnSubset(ctx context.Context, s subset.Subset) (Trainer, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.opened != nil && w.latest.Size == s.Size && w.latest.Of == s.Of && slices.Equal(w.latest.Key, s.Key) {
		return w.opened, nil
	}
	t, err := w.open(ctx, s)
	if err != nil {
		return nil, err
	}
	w.latest, w.opened = s, t
	return t, nil
}

// privateWithSubsets is withSubsets for a trainer that knows its mechanism.
type privateWithSubsets struct {
	*withSubsets
	all PrivateTrainer
}

// Mechanism implements PrivateTrainer, for runs on all examples.
func (p privateWithSubsets) Mechanism(parameters Parameters) (privacy.Mechanism, error) {
	return p.all.Mechanism(parameters)
}
