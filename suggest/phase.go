package suggest

import "context"

// Phase is a part of the work on a suggestion that takes time.
type Phase string

// The phases of model-based designers.
const (
	// PhaseFit is the fit of the model.
	PhaseFit Phase = "fit"
	// PhaseSearch is the search for the configuration of the largest acquisition.
	PhaseSearch Phase = "search"
)

// phasesKey is the context key of WithPhases.
type phasesKey struct{}

// WithPhases returns a context under which designers call begin when a phase begins, and
// the function that begin returns when it ends. evaluations is the number of evaluations in
// the history, earlier studies included.
func WithPhases(ctx context.Context, begin func(phase Phase, evaluations int) (end func())) context.Context {
	return context.WithValue(ctx, phasesKey{}, begin)
}

// BeginPhase begins a phase of a designer and returns the function that ends it.
func BeginPhase(ctx context.Context, phase Phase, h *History) (end func()) {
	if begin, ok := ctx.Value(phasesKey{}).(func(Phase, int) func()); ok {
		return begin(phase, len(h.Evaluations)+len(h.Prior))
	}
	return func() {}
}
