package engine_test

import (
	"context"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/pool"
	"github.com/dpareto/dpareto/suggest/designers/random"
)

// Results are stored, and random trials handed out, while the pool is busy with something that never
// pauses.
func TestBusyPoolHoldsNoResultUp(t *testing.T) {
	s := simple(t, random.New())
	began, done := make(chan struct{}), make(chan struct{})
	go func() {
		_ = s.Pool.Run(context.Background(), pool.Analysis, func(context.Context) error {
			close(began)
			<-done
			return nil
		})
	}()
	<-began
	defer close(done)
	for range 3 {
		s.Complete(t, s.Ask(t, "w"), &dparetov1.Measurement{Metrics: map[string]*dparetov1.MetricValue{"y": {Value: new(0.5)}}})
	}
}
