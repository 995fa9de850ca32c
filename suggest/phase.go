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

// phasesKey is the key of what WithPhases sets.
type phasesKey struct{}

// WithPhases returns a context under which designers call begin at the beginning of
// each phase, with the number of evaluations that they know, those of earlier studies
// included, and at the end of the phase the function that it returns.
func WithPhases(ctx context.Context, begin func(phase Phase, evaluations int) (end func())) context.Context {
	return context.WithValue(ctx, phasesKey{}, begin)
}

// beginPhase begins a phase; the function that it returns ends it.
func beginPhase(ctx context.Context, phase Phase, h *History) (end func()) {
	if begin, ok := ctx.Value(phasesKey{}).(func(Phase, int) func()); ok {
		return begin(phase, len(h.Evaluations)+len(h.Prior))
	}
	return func() {}
}
