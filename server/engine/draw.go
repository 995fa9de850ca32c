package engine

import (
	"context"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/quasirandom"
	"github.com/dpareto/dpareto/suggest/designers/random"
	"github.com/dpareto/dpareto/suggest/restrict"
)

// drawsAtOnce reports whether new trials can be created in the transaction that found none to hand
// out. The designer must need no history, and constraints and computed metrics must be cheap. Then
// one transaction replaces three, and a long study costs no more than a new one.
func drawsAtOnce(designer suggest.Designer, study *spec.Study, policy study.Policy) bool {
	if policy.Traits().OneByOne {
		return false
	}
	switch designer.Name() {
	case random.New().Name(), quasirandom.New().Name():
		return study.Problem.Allowed == nil && len(study.Problem.Constraints) == 0 && study.Metrics.ComputesAtOnce()
	default:
		return false
	}
}

// draw is the draw of a designer that needs no history, in the transaction of its call.
type draw struct {
	applies   bool // whether the designer draws at once, and one pass is enough
	trials    []*dparetov1.Trial
	exhausted bool
}

// drawAtOnce creates a worker's missing trials, if the designer draws at once and one pass is enough.
func (e *Engine) drawAtOnce(ctx context.Context, c *study.Change, worker string, missing int) (draw, error) {
	from := &snapshot{
		record: c.Study, revision: c.Study.GetStudy().GetRevision(), policy: c.Policy, compiled: c.Compiled, history: new(suggest.History),
	}
	p := newPass(e.designerFor(from, restrict.Condition{}), nil, from, missing, maxRounds)
	if missing > maxBatch || !drawsAtOnce(p.designer, c.Compiled, c.Policy) {
		return draw{}, nil
	}
	if err := e.draw(ctx, p, c.Study); err != nil {
		return draw{}, err
	}
	trials, err := e.create(c, p, 0, missing, worker)
	return draw{true, trials, p.exhausted}, err
}

// complete adds the trials to a response, and returns how many are still missing: none if the
// designer draws at once.
func (d draw) complete(c *study.Change, resp *dparetov1.SuggestTrialsResponse, missing int) int {
	if !d.applies {
		return missing
	}
	resp.Trials = append(resp.Trials, d.trials...)
	c.Explain(resp, missing-len(d.trials))
	if d.exhausted && !isEnd(resp) {
		resp.EndReason = dparetov1.EndReason_END_REASON_SPACE_EXHAUSTED
	}
	return 0
}
