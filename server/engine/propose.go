package engine

import (
	"context"

	"github.com/dpareto/dpareto/server/pool"
	"github.com/dpareto/dpareto/suggest/restrict"
	"github.com/dpareto/dpareto/suggest/space"
)

// Proposal is the next suggestion of a study's designer.
type Proposal struct {
	// Next are the configurations of the trials to come. They are fewer than asked for if the
	// designer finds no others, or if the study's policy cannot afford them.
	Next []space.Point
	// Pending are the configurations of the open trials.
	Pending []space.Point
	// Number is the number of the first trial to come.
	Number int64
}

// Propose returns the configurations that the designer of a study would hand out together, at most
// count. It creates no trials, and it ignores every budget that can be raised, pauses included. It
// returns NOT_FOUND if the study with this uid was deleted.
func Propose(ctx context.Context, e *Engine, id, uid string, count int) (*Proposal, error) {
	from, err := e.snapshot(ctx, id, uid)
	if err != nil {
		return nil, err
	}
	p := &Proposal{Pending: from.history.Pending, Number: from.record.GetNextTrialNumber()}
	designer := e.designerFor(from, restrict.Condition{})
	suggestions, _, err := e.design(ctx, e.pool.Task(ctx, pool.Analysis), designer, from, p.Number, count)
	if err != nil {
		return nil, err
	}
	if chooser, ok := from.policy.(Chooser); ok {
		suggestions = suggestions[:chooser.Affords(from.record, from.compiled, suggestions)]
	}
	for _, s := range suggestions {
		p.Next = append(p.Next, s.Point)
	}
	return p, nil
}
