package front

import (
	"sync"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/study"
)

// fits caches what follows from the measurements of one study.
type fits struct {
	mu   sync.Mutex
	data *Data // the latest

	model  latest[*FittedModel]
	fronts [dparetov1.FrontKind_FRONT_KIND_WORST + 1]latest[*choice] // by kind
	traces [dparetov1.FrontKind_FRONT_KIND_WORST + 1]latest[[]*dparetov1.HypervolumePoint]
}

// studyFits are the fits of one study: to all measurements, and to final ones only.
type studyFits struct{ all, final fits }

// fits returns the cached fits for results.
func (r *Results) fits(finalOnly bool) *fits {
	both := study.Derived(r.cached, func() *studyFits { return new(studyFits) })
	if finalOnly {
		return &both.final
	}
	return &both.all
}

// kept returns the cached fits for these results.
func (r *Results) kept() *fits { return r.fits(r.finalOnly) }
