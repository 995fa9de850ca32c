package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/bench"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// Options say how to put a server under load.
type Options struct {
	Address     string // of the server, or several, separated by commas: connections go to them in turn
	Workers     int
	Connections int           // that the workers share
	Studies     int           // that the workers go round
	Warmup      time.Duration // before the measurement
	Duration    time.Duration // of the measurement
	Rate        float64       // pairs per second that are attempted; 0: as many as possible
}

// Validate returns an error that names an option out of range.
func (o *Options) Validate() error {
	switch {
	case o.Workers < 1:
		return fmt.Errorf("--workers must be at least 1, is %d", o.Workers)
	case o.Studies < 1 || o.Studies > maxStudies:
		return fmt.Errorf("--studies must be 1 to %d, is %d", maxStudies, o.Studies)
	case o.Connections < 1 || o.Connections > o.Workers:
		return fmt.Errorf("--connections must be 1 to %d, the number of workers, is %d", o.Workers, o.Connections)
	case o.Duration <= 0 || o.Warmup < 0:
		return fmt.Errorf("--duration must be positive, is %v", o.Duration)
	case o.Rate < 0:
		return fmt.Errorf("--rate must be at least 0, is %g", o.Rate)
	}
	return nil
}

// maxStudies is the number of studies up to which their ids sort.
const maxStudies = 10_000

// sample is the latencies of one pair.
type sample struct{ suggest, complete time.Duration }

// Run puts the server under load. Every worker asks for a trial and completes it, again
// and again; begin and end are called where the measurement begins and ends.
func Run(ctx context.Context, o Options, begin, end func(context.Context) error) (*Load, error) {
	clients, err := connect(o)
	defer func() {
		for _, client := range clients {
			_ = client.Close() // nothing is lost
		}
	}()
	if err != nil {
		return nil, err
	}
	study, err := newStudy(dparetov1.Algorithm_ALGORITHM_RANDOM)
	if err != nil {
		return nil, err
	}
	for i := range o.Studies {
		if _, err := clients[0].CreateStudy(ctx, studyID(i), study); err != nil {
			return nil, err
		}
	}

	var measuring, stopping atomic.Bool
	samples := make([][]sample, o.Workers)
	workers, working := errgroup.WithContext(ctx)
	for i := range o.Workers {
		client := clients[i%len(clients)]
		workers.Go(func() error {
			pace := newPace(o, i)
			for round := 0; !stopping.Load() && pace.wait(working); round++ {
				measured := measuring.Load()
				study := client.Study(studyID((i + round*o.Workers) % o.Studies)) // every one has its turn
				one, err := pair(working, study, fmt.Sprintf("worker-%d", i))
				if err != nil {
					return err
				}
				if measured && measuring.Load() {
					samples[i] = append(samples[i], one)
				}
			}
			return working.Err()
		})
	}
	load := new(Load)
	workers.Go(func() error {
		defer stopping.Store(true)
		if err := sleep(working, o.Warmup); err != nil {
			return err
		}
		if err := begin(working); err != nil {
			return err
		}
		start, processor := time.Now(), bench.ProcessorTime()
		measuring.Store(true)
		if err := sleep(working, o.Duration); err != nil {
			return err
		}
		measuring.Store(false)
		load.Elapsed, load.Processor = time.Since(start), bench.ProcessorTime()-processor
		return end(working)
	})
	if err := workers.Wait(); err != nil {
		return nil, err
	}
	load.collect(samples)
	return load, nil
}

// connect returns the clients that the workers share. Clients that were made are also
// returned with an error.
func connect(o Options) ([]*dpareto.Client, error) {
	var clients []*dpareto.Client
	addresses := strings.Split(o.Address, ",")
	for i := range o.Connections {
		client, err := dpareto.Dial(addresses[i%len(addresses)])
		if err != nil {
			return clients, err
		}
		clients = append(clients, client)
	}
	return clients, nil
}

// pair asks for a trial and completes it.
func pair(ctx context.Context, study *dpareto.Study, worker string) (sample, error) {
	start := time.Now()
	trial, err := study.Ask(ctx, worker)
	if err != nil {
		return sample{}, err
	}
	asked := time.Now()
	if err := trial.Complete(ctx, dpareto.Metrics{"error": {utility(trial)}}); err != nil {
		return sample{}, err
	}
	return sample{asked.Sub(start), time.Since(asked)}, nil
}

// utility returns what a worker reports: any number that differs between trials.
func utility(trial *dpareto.Trial) float64 {
	return rand.New(rand.NewPCG(uint64(trial.Number()), 0)).Float64()
}

// pace spreads the pairs of a worker over time.
type pace struct {
	every time.Duration // 0: no waiting
	next  time.Time
}

// newPace returns the pace of worker i. The pairs of different workers begin at different
// times.
func newPace(o Options, i int) *pace {
	if o.Rate == 0 {
		return &pace{}
	}
	every := time.Duration(float64(o.Workers) / o.Rate * float64(time.Second))
	return &pace{every, time.Now().Add(every * time.Duration(i) / time.Duration(o.Workers))}
}

// wait waits until the next pair is due. It returns false if ctx is done.
func (p *pace) wait(ctx context.Context) bool {
	if p.every == 0 {
		return ctx.Err() == nil
	}
	defer func() { p.next = p.next.Add(p.every) }()
	return sleep(ctx, time.Until(p.next)) == nil
}

// sleep waits, or returns the context's error when it is done before.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Fitting asks for suggestions of a study that fits a model to many trials for each of them.
type Fitting struct {
	Suggestions atomic.Int64 // made so far

	study  *dpareto.Study
	client *dpareto.Client
}

// fittingID is the id of the study with the model.
const fittingID = "load-fitting"

// fittingWorkers is the number of workers that ask for these suggestions.
const fittingWorkers = 2

// NewFitting creates the study and gives it completed trials.
func NewFitting(ctx context.Context, address string, trials int) (*Fitting, error) {
	client, err := dpareto.Dial(address)
	if err != nil {
		return nil, err
	}
	study, err := newStudy(dparetov1.Algorithm_ALGORITHM_DEFAULT)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	f := &Fitting{client: client}
	if f.study, err = client.CreateStudy(ctx, fittingID, study); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	random := rand.New(rand.NewPCG(1, 1))
	imports, importing := errgroup.WithContext(ctx)
	imports.SetLimit(64)
	for range trials {
		cutoff, noise, failed := 1+random.Int64N(30), 0.01+random.Float64(), random.Float64()
		imports.Go(func() error {
			_, err := client.Studies.CreateTrial(importing, &dparetov1.CreateTrialRequest{Parent: f.study.Name(), Trial: &dparetov1.Trial{
				Parameters: map[string]*dparetov1.Value{
					"cutoff":      {Kind: &dparetov1.Value_IntValue{IntValue: cutoff}},
					"noise_scale": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: noise}},
				},
				FinalMeasurement: dpareto.Metrics{"error": {failed}}.Measurement(0, 0),
			}})
			return err
		})
	}
	if err := imports.Wait(); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return f, nil
}

// Start keeps the model busy until stop is called, which returns the first error.
func (f *Fitting) Start(ctx context.Context) (stop func() error) {
	return until(ctx, fittingWorkers, func(ctx context.Context, i int) error {
		if _, err := pair(ctx, f.study, fmt.Sprintf("worker-%d", i)); err != nil {
			return err
		}
		f.Suggestions.Add(1)
		return nil
	})
}

// Close closes the connection.
func (f *Fitting) Close() error { return f.client.Close() }
