package suggest

import (
	"context"
	"errors"

	"github.com/dpareto/dpareto/suggest/space"
)

// ErrExhausted is returned by [Designer.Suggest], with the suggestions that
// were still possible, when the designer finds no further configuration that is allowed, or
// none that is new if it never repeats one.
var ErrExhausted = errors.New("suggest: no further configuration of the space was found")

// Designer chooses configurations. Implementations are safe for concurrent use. Their
// memory between calls changes no suggestion.
type Designer interface {
	// Name is the designer's stable lower-case identifier, such as "dpareto".
	Name() string

	// Version changes whenever the same arguments can give other suggestions.
	Version() string

	// Suggest returns r.Count configurations for p given h. Each takes the ones before it
	// for pending, so that one request for q of them is the same as q requests.
	//
	// It returns fewer together with [ErrExhausted] when the space is used up,
	// the context's error when it is cancelled, and a [space.FieldErrors] when
	// p is invalid or h does not fit p.
	Suggest(ctx context.Context, p *Problem, h *History, r Request) ([]Suggestion, error)
}

// Request says what to suggest.
type Request struct {
	// Count is the number of configurations wanted. 0 gives none.
	Count int

	// Seed and Number determine every random draw: the draws of suggestion i, from
	// 0, depend on Seed and Number+i only. Seed is the study's seed, Number the number of
	// the first trial to be created.
	Seed   uint64
	Number int64
}

// Prediction is the posterior of one objective at a configuration, in the
// objective's own unit: the posterior of the mean over very many runs. Lower and
// Upper bound its central 90 % interval, Lower <= Median <= Upper. All three
// are equal for an objective that is known exactly.
type Prediction struct {
	Median, Lower, Upper float64
}

// Suggestion is a configuration to be evaluated, and where it comes from.
type Suggestion struct {
	Point space.Point

	// Predictions has one value per objective, or is nil if no model was used.
	Predictions []Prediction

	// Replicate is set if the configuration has been evaluated before and another run of
	// it says more about the front than a new configuration would.
	Replicate bool

	// Acquisition is the value of the designer's criterion, 0 if it has none.
	Acquisition float64

	// Designer is the name of the designer that made the suggestion. It is another than
	// the designer asked for initial points of a model-based designer, and where its model
	// failed.
	Designer string

	// FallbackReason says why another designer stepped in. Empty if none did.
	FallbackReason string
}

// Validate checks the arguments of [Designer.Suggest]. It returns nil or a
// [space.FieldErrors] with every violation found.
func Validate(p *Problem, h *History, r Request) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if err := h.validate(p); err != nil {
		return err
	}
	if r.Count < 0 {
		return space.FieldErrors{{Field: "count", Message: "must not be negative"}}
	}
	return nil
}
