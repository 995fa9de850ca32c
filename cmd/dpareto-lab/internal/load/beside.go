package load

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dpareto "github.com/dpareto/dpareto/clients/go"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// until makes calls on several goroutines until stop is called, which returns the first error.
func until(ctx context.Context, goroutines int, call func(ctx context.Context, i int) error) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	var working sync.WaitGroup
	failures := make(chan error, goroutines)
	for i := range goroutines {
		working.Go(func() {
			for ctx.Err() == nil {
				if err := call(ctx, i); err != nil && ctx.Err() == nil {
					failures <- err
					return
				}
			}
		})
	}
	return func() error {
		cancel()
		working.Wait()
		select {
		case err := <-failures:
			return err
		default:
			return nil
		}
	}
}

// Accounting asks for ε at many lengths of a run, by several calls at once.
type Accounting struct {
	Answered, Refused atomic.Int64 // calls so far; refused ones would cost too much

	client  *dpareto.Client
	calls   int
	request *dparetov1.ComputeEpsilonRequest
}

// NewAccounting returns a number of concurrent calls, each for a number of lengths.
func NewAccounting(address string, calls, lengths int) (*Accounting, error) {
	client, err := dpareto.Dial(address)
	if err != nil {
		return nil, err
	}
	request := &dparetov1.ComputeEpsilonRequest{Privacy: &dparetov1.PrivacySpec{
		Delta: 1e-5, Adjacency: dparetov1.Adjacency_ADJACENCY_ADD_REMOVE,
		Mechanism: &dparetov1.PrivacySpec_DpSgd{DpSgd: &dparetov1.DpSgdMechanism{
			Sampling:    dparetov1.Sampling_SAMPLING_POISSON,
			Convention:  dparetov1.Convention_CONVENTION_ROUNDED,
			DatasetSize: strconv.Itoa(60_000), BatchSize: strconv.Itoa(256), NoiseMultiplier: "1.0",
			Length: &dparetov1.DpSgdMechanism_Epochs{Epochs: "1"},
		}},
	}}
	for i := range lengths {
		request.Lengths = append(request.Lengths, int64(1+i))
	}
	return &Accounting{client: client, calls: calls, request: request}, nil
}

// Start makes calls until stop is called, which returns the first error.
func (a *Accounting) Start(ctx context.Context) (stop func() error) {
	return until(ctx, a.calls, func(ctx context.Context, _ int) error {
		_, err := a.client.Privacy.ComputeEpsilon(ctx, a.request)
		switch status.Code(err) {
		case codes.OK:
			a.Answered.Add(1)
		case codes.InvalidArgument, codes.ResourceExhausted:
			a.Refused.Add(1)
		default:
			return err
		}
		return nil
	})
}

// Close closes the connection.
func (a *Accounting) Close() error { return a.client.Close() }
