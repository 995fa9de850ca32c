package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/sparsevector"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/bolt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Short names of trial states.
const (
	queued     = dparetov1.TrialState_TRIAL_STATE_QUEUED
	active     = dparetov1.TrialState_TRIAL_STATE_ACTIVE
	succeeded  = dparetov1.TrialState_TRIAL_STATE_SUCCEEDED
	infeasible = dparetov1.TrialState_TRIAL_STATE_INFEASIBLE
	failed     = dparetov1.TrialState_TRIAL_STATE_FAILED
)

// fixture is a real server with a client. It is made to live in a bubble of synctest:
// leases, pauses and graces take no time.
type fixture struct {
	t      *testing.T
	path   string
	log    bytes.Buffer
	client *dpareto.Client
	study  *dpareto.Study

	mu       sync.Mutex
	listener *bufconn.Listener // of the server that runs; nil while none does
	// fault, if set, is called for every request with the function that handles it.
	fault func(method string, req any, handle func() (any, error)) (any, error)
	stop  func()
}

// start starts a server with one study of a number of trials with leases of 30 s.
func start(t *testing.T, trials int64) *fixture {
	t.Helper()
	f := &fixture{t: t, path: filepath.Join(t.TempDir(), "dpareto.db"), stop: func() {}}
	f.serve()
	t.Cleanup(func() { f.kill() })
	var err error
	f.client, err = dpareto.Dial("passthrough:///server", dpareto.WithDialOptions(
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			f.mu.Lock()
			listener := f.listener
			f.mu.Unlock()
			if listener == nil {
				return nil, errors.New("no server")
			}
			return listener.DialContext(ctx)
		})))
	require.NoError(t, err)
	f.client.Studies = GiveBack(f.client.Studies)
	t.Cleanup(func() {
		if err := f.client.Close(); err != nil {
			t.Error(err)
		}
	})
	spec := &dparetov1.StudySpec{
		Parameters: []*dparetov1.ParameterSpec{
			{
				Id: "cutoff", Scale: dparetov1.Scale_SCALE_LINEAR,
				Domain: &dparetov1.ParameterSpec_IntegerDomain{IntegerDomain: &dparetov1.IntegerDomain{Min: 1, Max: 30}},
			},
			{
				Id: "noise_scale", Scale: dparetov1.Scale_SCALE_LOG,
				Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Min: 0.01, Max: 100}},
			},
		},
		Metrics: []*dparetov1.MetricSpec{
			{
				Id: "scale", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MAXIMIZE,
				Transform: dparetov1.Transform_TRANSFORM_LOG, ReferenceValue: new(0.01),
				Source: &dparetov1.MetricSpec_Computed{Computed: &dparetov1.ComputedSource{
					Function: &dparetov1.ComputedSource_Expression{Expression: "noise_scale"},
				}},
			},
			{
				Id: "error", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE,
				Transform: dparetov1.Transform_TRANSFORM_LOGIT, ReferenceValue: new(1.0),
				Source: &dparetov1.MetricSpec_Reported{Reported: &dparetov1.ReportedSource{}},
			},
			{
				Id: "seconds", Role: dparetov1.MetricRole_METRIC_ROLE_TRACKED,
				Source: &dparetov1.MetricSpec_Reported{Reported: &dparetov1.ReportedSource{}},
			},
		},
		Algorithm:  &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_RANDOM},
		Budget:     &dparetov1.Budget{MaxTrials: trials},
		Lease:      &dparetov1.LeasePolicy{Duration: durationpb.New(30 * time.Second), MaxAttempts: 3},
		Replicates: 2,
		Seed:       new(uint64(1)),
	}
	f.study, err = f.client.CreateStudy(t.Context(), "s", &dparetov1.Study{Spec: spec})
	require.NoError(t, err)
	return f
}

// serve starts a server on the file.
func (f *fixture) serve() {
	db, err := bolt.Open(f.path)
	if err != nil {
		f.t.Error(err)
		return
	}
	records, err := store.New(context.Background(), db)
	if err != nil {
		f.t.Error(err)
		return
	}
	s := server.New(server.Options{Store: records, Version: "test", Logger: slog.New(slog.NewTextHandler(&f.log, nil))})
	g := s.GRPC(grpc.ChainUnaryInterceptor(f.intercept))
	listener := bufconn.Listen(1 << 16)
	f.mu.Lock()
	f.listener = listener
	f.mu.Unlock()
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := g.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			f.t.Error(err)
		}
	})
	f.stop = func() {
		f.mu.Lock()
		f.listener = nil
		f.mu.Unlock()
		g.Stop()
		serving.Wait()
		s.Close()
		if err := db.Close(); err != nil {
			f.t.Error(err)
		}
		f.stop = func() {}
	}
}

// kill stops the server: calls in flight fail, and there are no answers until serve.
func (f *fixture) kill() { f.stop() }

func (f *fixture) setFault(fault func(method string, req any, handle func() (any, error)) (any, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

func (f *fixture) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	f.mu.Lock()
	fault := f.fault
	f.mu.Unlock()
	handle := func() (any, error) { return handler(ctx, req) }
	if fault == nil {
		return handle()
	}
	return fault(info.FullMethod[strings.LastIndex(info.FullMethod, "/")+1:], req, handle)
}

// trials returns all trials of the study.
func (f *fixture) trials() []*dparetov1.Trial {
	f.t.Helper()
	var out []*dparetov1.Trial
	for trial, err := range f.study.Trials(f.t.Context()) {
		require.NoError(f.t, err)
		out = append(out, trial)
	}
	return out
}

// wantStates compares the states of all trials.
func (f *fixture) wantStates(want ...dparetov1.TrialState) {
	f.t.Helper()
	var got []dparetov1.TrialState
	for _, trial := range f.trials() {
		got = append(got, trial.GetState())
	}
	if !slices.Equal(got, want) {
		f.t.Errorf("states %v, want %v", got, want)
	}
}

// funcTrainer is a trainer made from a function.
type funcTrainer func(ctx context.Context, run trainer.Run, report trainer.Report) (trainer.Measurement, error)

func (funcTrainer) Name() string { return "func" }

func (f funcTrainer) Train(ctx context.Context, run trainer.Run, report trainer.Report) (trainer.Measurement, error) {
	return f(ctx, run, report)
}

// measured is a measurement that the study takes. It has a metric that the study does
// not declare.
func measured(step int64) trainer.Measurement {
	return trainer.Measurement{
		Step:    step,
		Elapsed: time.Duration(step) * time.Second,
		Metrics: map[string][]float64{"error": {0.5, 1 / float64(1+step)}, "seconds": {1, 2}, "loss": {3, 4}},
	}
}

// checkpoints trains in a number of steps.
func checkpoints(steps int64) funcTrainer {
	return func(_ context.Context, _ trainer.Run, report trainer.Report) (trainer.Measurement, error) {
		for step := int64(1); step <= steps; step++ {
			switch err := report(measured(step)); {
			case errors.Is(err, trainer.ErrStop):
				return measured(step), nil
			case err != nil:
				return trainer.Measurement{}, err
			}
		}
		return measured(steps), nil
	}
}

// recorder keeps what events tell.
type recorder struct {
	mu       sync.Mutex
	events   []string
	outcomes map[Outcome]int
	errs     []error
}

func (r *recorder) addf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, fmt.Sprintf(format, args...))
}

func (r *recorder) hooks() Events {
	r.outcomes = make(map[Outcome]int)
	return Events{
		TrialStarted: func(worker string, trial *dpareto.Trial) { r.addf("%s starts %d", worker, trial.Number()) },
		Measured: func(worker string, trial *dpareto.Trial, m trainer.Measurement) {
			r.addf("%s measures %d at %d", worker, trial.Number(), m.Step)
		},
		TrialDone: func(worker string, trial *dpareto.Trial, outcome Outcome, m trainer.Measurement, err error) {
			r.addf("%s ends %d: %v at %d", worker, trial.Number(), outcome, m.Step)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.outcomes[outcome]++
			if err != nil {
				r.errs = append(r.errs, err)
			}
		},
	}
}

func (r *recorder) wantOutcomes(t *testing.T, want map[Outcome]int) {
	t.Helper()
	if !maps.Equal(r.outcomes, want) {
		t.Errorf("outcomes %v, want %v; errors %v", r.outcomes, want, r.errs)
	}
}

// One worker, two trials: everything that was measured arrives, and nothing else.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 2)
		var r recorder
		var runs []trainer.Run
		a := &Agent{
			Study: f.study, WorkerID: "a", Seed: new(uint64(5)), Events: r.hooks(),
			Trainer: funcTrainer(func(ctx context.Context, run trainer.Run, report trainer.Report) (trainer.Measurement, error) {
				runs = append(runs, run)
				return checkpoints(3).Train(ctx, run, report)
			}),
		}
		require.NoError(t, a.Run(t.Context()))
		f.wantStates(succeeded, succeeded)
		for i, trial := range f.trials() {
			if len(trial.GetMeasurements()) != 3 || trial.GetFinalMeasurement().GetStep() != 3 || trial.GetAttempt() != 1 {
				t.Errorf("trial %v", trial)
				continue
			}
			for _, m := range append(trial.GetMeasurements(), trial.GetFinalMeasurement()) {
				want := measured(m.GetStep())
				got := m.GetMetrics()
				if !slices.Equal(got["error"].GetRuns(), want.Metrics["error"]) || !slices.Equal(got["seconds"].GetRuns(), want.Metrics["seconds"]) ||
					got["scale"] == nil || len(got) != 3 || m.GetElapsed().AsDuration() != want.Elapsed || !m.GetSeeded() {
					t.Errorf("measurement %v", m)
				}
			}
			want := trainer.Run{
				Parameters: trainer.Parameters{
					"cutoff":      trial.GetParameters()["cutoff"].GetIntValue(),
					"noise_scale": trial.GetParameters()["noise_scale"].GetDoubleValue(),
				},
				Replicates: 2,
				Seed:       new(TrialSeed(5, trial.GetNumber(), 1)),
			}
			if diff := cmp.Diff(want, runs[i]); diff != "" {
				t.Errorf("run (-want +got):\n%s", diff)
			}
		}
		want := []string{
			"a-1 starts 1", "a-1 measures 1 at 1", "a-1 measures 1 at 2", "a-1 measures 1 at 3", "a-1 ends 1: succeeded at 3",
			"a-1 starts 2", "a-1 measures 2 at 1", "a-1 measures 2 at 2", "a-1 measures 2 at 3", "a-1 ends 2: succeeded at 3",
		}
		if diff := cmp.Diff(want, r.events); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// Without a seed the trainer gets none, and no measurement is marked as seeded.
func TestRunWithoutSeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1)
		a := &Agent{Study: f.study, WorkerID: "a", Trainer: funcTrainer(func(ctx context.Context, run trainer.Run, report trainer.Report) (trainer.Measurement, error) {
			if run.Seed != nil {
				t.Errorf("seed %d", *run.Seed)
			}
			return checkpoints(3).Train(ctx, run, report)
		})}
		require.NoError(t, a.Run(t.Context()))
		trial := f.trials()[0]
		for _, m := range append(trial.GetMeasurements(), trial.GetFinalMeasurement()) {
			if m.GetSeeded() {
				t.Errorf("measurement %v", m)
			}
		}
	})
}

// Every worker trains at the same time as the others, under its own id.
func TestWorkers(t *testing.T) {
	const workers = 3
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 2*workers)
		var ids sync.Map
		var mu sync.Mutex
		var round []chan struct{}
		a := &Agent{
			Study: f.study, WorkerID: "a", Workers: workers,
			Trainer: funcTrainer(func(context.Context, trainer.Run, trainer.Report) (trainer.Measurement, error) {
				all := make(chan struct{})
				mu.Lock()
				if round = append(round, all); len(round) == workers {
					for _, c := range round {
						close(c)
					}
					round = nil
				}
				mu.Unlock()
				<-all // deadlocks unless all workers come
				return measured(1), nil
			}),
			Events: Events{TrialStarted: func(worker string, trial *dpareto.Trial) {
				ids.Store(worker, true)
				if lease := trial.Message().GetLease(); lease.GetWorkerId() != worker {
					t.Errorf("%s got the trial of %s", worker, lease.GetWorkerId())
				}
			}},
		}
		require.NoError(t, a.Run(t.Context()))
		f.wantStates(slices.Repeat([]dparetov1.TrialState{succeeded}, 2*workers)...)
		for _, id := range []string{"a-1", "a-2", "a-3"} {
			if _, ok := ids.Load(id); !ok {
				t.Errorf("worker %s had no trial", id)
			}
		}
	})
}

// The server is killed in the middle of the training, and comes back after the lease
// has run out. The trials go on as if nothing had happened.
func TestServerKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 4)
		var r recorder
		reported := make(chan struct{}, 100)
		events := r.hooks()
		events.Measured = func(string, *dpareto.Trial, trainer.Measurement) { reported <- struct{}{} }
		a := &Agent{
			Study: f.study, WorkerID: "a", Workers: 2, Events: events,
			Trainer: funcTrainer(func(ctx context.Context, run trainer.Run, report trainer.Report) (trainer.Measurement, error) {
				return checkpoints(20).Train(ctx, run, func(m trainer.Measurement) error {
					time.Sleep(time.Second) // of the bubble's clock
					return report(m)
				})
			}),
		}
		done := make(chan error)
		go func() { done <- a.Run(t.Context()) }()
		for range 3 {
			for range 10 {
				<-reported
			}
			f.kill()
			time.Sleep(time.Minute)
			f.serve()
		}
		require.NoError(t, <-done)
		f.wantStates(succeeded, succeeded, succeeded, succeeded)
		for _, trial := range f.trials() {
			if trial.GetAttempt() != 1 || len(trial.GetMeasurements()) != 20 {
				t.Errorf("%s: attempt %d with %d measurements", trial.GetName(), trial.GetAttempt(), len(trial.GetMeasurements()))
			}
		}
		r.wantOutcomes(t, map[Outcome]int{Succeeded: 4})
	})
}

// The first answer to every request is lost after the server has acted on it.
func TestLostAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 6)
		var mu sync.Mutex
		seen := make(map[string]bool)
		var lost int
		f.setFault(func(method string, req any, handle func() (any, error)) (any, error) {
			message := req.(proto.Message)
			b, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
			if err != nil {
				t.Error(err)
			}
			resp, err := handle()
			mu.Lock()
			defer mu.Unlock()
			if key := method + string(b); !seen[key] && method != "SuggestTrials" || method == "SuggestTrials" && len(seen) == 0 {
				seen[key] = true
				lost++
				return nil, status.Error(codes.Unavailable, "the answer is lost")
			}
			return resp, err
		})
		var r recorder
		a := &Agent{Study: f.study, WorkerID: "a", Workers: 2, Trainer: checkpoints(2), Events: r.hooks()}
		require.NoError(t, a.Run(t.Context()))
		f.setFault(nil)
		if want := 1 + 6*3; lost < want { // of GetStudy, and of three for each trial
			t.Errorf("%d answers lost, want at least %d", lost, want)
		}
		f.wantStates(slices.Repeat([]dparetov1.TrialState{succeeded}, 6)...)
		r.wantOutcomes(t, map[Outcome]int{Succeeded: 6})
	})
}

// untilDone trains until the context is done.
func untilDone(started chan<- struct{}) funcTrainer {
	return func(ctx context.Context, _ trainer.Run, _ trainer.Report) (trainer.Measurement, error) {
		started <- struct{}{}
		<-ctx.Done()
		return trainer.Measurement{}, ctx.Err()
	}
}

// A cancelled agent gives its trials back before it returns.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 2)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var r recorder
		started := make(chan struct{})
		a := &Agent{Study: f.study, WorkerID: "a", Workers: 3, Trainer: untilDone(started), Events: r.hooks()}
		done := make(chan error)
		go func() { done <- a.Run(ctx) }()
		<-started
		<-started
		synctest.Wait() // the third worker waits for a trial
		cancel()
		if err := <-done; err != context.Canceled { //nolint:errorlint // it is that very error
			t.Errorf("Run = %v", err)
		}
		f.wantStates(queued, queued)
		for _, trial := range f.trials() {
			if trial.GetStateReason() != "the worker was stopped" {
				t.Errorf("released because %q", trial.GetStateReason())
			}
		}
		r.wantOutcomes(t, map[Outcome]int{Released: 2})
	})
}

// An agent that is cancelled while its question for a trial is answered gives the trial
// back, and returns soon even if the answer does not come.
func TestCancelWhileAsking(t *testing.T) {
	for name, tt := range map[string]struct {
		handOut bool // the trial is handed out, whether or not the agent hears of it
		answer  time.Duration
		took    time.Duration
		want    []dparetov1.TrialState
	}{
		"answered":       {true, time.Second, time.Second, []dparetov1.TrialState{queued}},
		"not handed out": {false, time.Second, time.Second, nil},
		"too late":       {true, time.Hour, askGrace, []dparetov1.TrialState{active}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, 1)
				handedOut, end := make(chan struct{}), make(chan struct{})
				f.setFault(func(method string, _ any, handle func() (any, error)) (any, error) {
					if method != "SuggestTrials" {
						return handle()
					}
					var resp any = new(dparetov1.SuggestTrialsResponse)
					var err error
					if tt.handOut {
						resp, err = handle()
					}
					close(handedOut)
					select {
					case <-time.After(tt.answer):
					case <-end:
					}
					return resp, err
				})
				ctx, cancel := context.WithCancel(t.Context())
				var r recorder
				a := &Agent{Study: f.study, WorkerID: "a", Trainer: checkpoints(1), Events: r.hooks()}
				done := make(chan error)
				go func() { done <- a.Run(ctx) }()
				<-handedOut
				cancel()
				begin := time.Now()
				if err := <-done; err != context.Canceled { //nolint:errorlint // it is that very error
					t.Errorf("Run = %v", err)
				}
				if took := time.Since(begin); took != tt.took {
					t.Errorf("returned after %v, want %v", took, tt.took)
				}
				close(end)
				f.setFault(nil)
				f.wantStates(tt.want...)
				if len(r.events) > 0 {
					t.Errorf("events %q", r.events)
				}
			})
		})
	}
}

// A worker that has gone asks for no trial.
func TestCancelBeforeAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if trial, err := f.study.Ask(ctx, "a-1"); trial != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("Ask = %v, %v", trial, err)
		}
		f.wantStates()
	})
}

// A result that is there when the agent is cancelled is not thrown away.
func TestCancelAfterTraining(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want dparetov1.TrialState
	}{
		"measured":   {nil, succeeded},
		"infeasible": {&trainer.InfeasibleError{Reason: "diverged"}, infeasible},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, 2)
				ctx, cancel := context.WithCancel(t.Context())
				a := &Agent{
					Study: f.study, WorkerID: "a",
					Trainer: funcTrainer(func(context.Context, trainer.Run, trainer.Report) (trainer.Measurement, error) {
						cancel()
						return measured(1), tt.err
					}),
				}
				if err := a.Run(ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("Run = %v", err)
				}
				f.wantStates(tt.want)
			})
		})
	}
}

// Without a server a cancelled agent returns when the grace is over.
func TestCancelWithoutServer(t *testing.T) {
	for _, grace := range []time.Duration{0, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			f := start(t, 1)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var r recorder
			started := make(chan struct{})
			a := &Agent{Study: f.study, WorkerID: "a", Trainer: untilDone(started), Grace: grace, Events: r.hooks()}
			done := make(chan error)
			go func() { done <- a.Run(ctx) }()
			<-started
			f.kill()
			cancel()
			begin := time.Now()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("Run = %v", err)
			}
			want := grace
			if grace == 0 {
				want = DefaultGrace
			}
			if got := time.Since(begin); got != want {
				t.Errorf("returned after %v, want %v", got, want)
			}
			r.wantOutcomes(t, map[Outcome]int{Abandoned: 1})
			f.serve()
			f.wantStates(active)
		})
	}
}

// An agent that was killed gets its trial back when it is started again, although the
// lease has not run out, and trains it with other randomness.
func TestRestartedAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1)
		require.NoError(t, require.ErrOf(f.study.Ask(t.Context(), "a-1")))
		var seed *uint64
		a := &Agent{
			Study: f.study, WorkerID: "a", Seed: new(uint64(3)),
			Trainer: funcTrainer(func(_ context.Context, run trainer.Run, _ trainer.Report) (trainer.Measurement, error) {
				seed = run.Seed
				return measured(1), nil
			}),
		}
		begin := time.Now()
		require.NoError(t, a.Run(t.Context()))
		f.wantStates(succeeded)
		if attempt := f.trials()[0].GetAttempt(); attempt != 2 || seed == nil || *seed != TrialSeed(3, 1, 2) {
			t.Errorf("attempt %d with seed %v", attempt, seed)
		}
		if waited := time.Since(begin); waited > time.Second {
			t.Errorf("waited for %v", waited)
		}
	})
}

// What trainers return decides the state of the trial.
func TestTrainerErrors(t *testing.T) {
	broken := errors.New("the disk is full")
	long := strings.Repeat("x", 3000)
	for _, tt := range []struct {
		name     string
		train    func(report trainer.Report) (trainer.Measurement, error)
		state    dparetov1.TrialState
		reason   string
		attempts int32
		outcome  Outcome
	}{
		{
			"infeasible", func(trainer.Report) (trainer.Measurement, error) {
				return trainer.Measurement{}, fmt.Errorf("training: %w", &trainer.InfeasibleError{Reason: "diverged"})
			}, infeasible, "diverged", 1, Infeasible,
		},
		{
			"infeasible without a reason", func(trainer.Report) (trainer.Measurement, error) {
				return trainer.Measurement{}, &trainer.InfeasibleError{}
			}, infeasible, "no reason given", 1, Infeasible,
		},
		{
			"broken machine", func(trainer.Report) (trainer.Measurement, error) {
				return trainer.Measurement{}, broken
			}, failed, "the disk is full", 3, Failed,
		},
		{
			"broken machine after a report", func(report trainer.Report) (trainer.Measurement, error) {
				if err := report(measured(1)); err != nil {
					return trainer.Measurement{}, err
				}
				return trainer.Measurement{}, errors.New(long)
			}, failed, long[:2000], 3, Failed,
		},
		{
			"parameter", func(trainer.Report) (trainer.Measurement, error) {
				return trainer.Measurement{}, &trainer.ParameterError{Name: "rate", Reason: "is missing"}
			}, failed, `parameter "rate" is missing`, 1, Failed,
		},
		{
			"panic", func(trainer.Report) (trainer.Measurement, error) {
				panic("index out of range")
			}, failed, "panic: index out of range", 1, Failed,
		},
		{
			"refused report, dropped by the trainer", func(report trainer.Report) (trainer.Measurement, error) {
				m := measured(1)
				m.Metrics["error"] = []float64{1.5, 0.5}
				_ = report(m)
				return measured(1), nil
			}, failed, `report on studies/s/trials/1: InvalidArgument: measurement.metrics["error"].runs[0]: must be in [0, 1] under TRANSFORM_LOGIT, is 1.5`, 1, Failed,
		},
		{
			"refused result", func(trainer.Report) (trainer.Measurement, error) {
				m := measured(1)
				m.Metrics["error"] = []float64{math.NaN(), 0.5}
				return m, nil
			}, failed, `complete studies/s/trials/1: InvalidArgument: measurement.metrics["error"].runs[0]: must be finite, is NaN (report a run that diverged as infeasible)`, 1, Failed,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, 1)
				var r recorder
				a := &Agent{
					Study: f.study, WorkerID: "a", Events: r.hooks(),
					Trainer: funcTrainer(func(_ context.Context, _ trainer.Run, report trainer.Report) (trainer.Measurement, error) {
						return tt.train(report)
					}),
				}
				require.NoError(t, a.Run(t.Context()))
				trial := f.trials()[0]
				if trial.GetState() != tt.state || trial.GetStateReason() != tt.reason || trial.GetAttempt() != tt.attempts {
					t.Errorf("%v after %d attempts because %q\nwant %v after %d because %q",
						trial.GetState(), trial.GetAttempt(), trial.GetStateReason(), tt.state, tt.attempts, tt.reason)
				}
				r.wantOutcomes(t, map[Outcome]int{tt.outcome: int(tt.attempts)})
				if p, ok := errors.AsType[*PanicError](r.errs[0]); ok != (tt.name == "panic") {
					t.Errorf("error %v", r.errs[0])
				} else if ok && !bytes.Contains(p.Stack, []byte("TestTrainerErrors")) {
					t.Errorf("stack %s", p.Stack)
				}
			})
		})
	}
}

// An agent whose trials all fail stops before it has spent the study, and a trial
// that does not fail in between makes it hope again.
func TestMaxFailures(t *testing.T) {
	broken := &trainer.ParameterError{Name: "rate", Reason: "is missing"}
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 20)
		trials := 0
		good := map[int]error{3: nil, 5: &trainer.InfeasibleError{Reason: "diverged"}}
		a := &Agent{
			Study: f.study, WorkerID: "a", MaxFailures: 3,
			Trainer: funcTrainer(func(context.Context, trainer.Run, trainer.Report) (trainer.Measurement, error) {
				trials++
				if err, ok := good[trials]; ok {
					return measured(1), err
				}
				return trainer.Measurement{}, broken
			}),
		}
		err := a.Run(t.Context())
		if got, ok := errors.AsType[*trainer.ParameterError](err); !ok || got != broken {
			t.Errorf("Run = %v", err)
		}
		if want := `agent: 3 trials failed in a row, the last one was studies/s/trials/8: parameter "rate" is missing`; err.Error() != want {
			t.Errorf("Run = %v\nwant  %s", err, want)
		}
		f.wantStates(failed, failed, succeeded, failed, infeasible, failed, failed, failed)
	})
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 20)
		a := &Agent{
			Study: f.study, WorkerID: "a",
			Trainer: funcTrainer(func(context.Context, trainer.Run, trainer.Report) (trainer.Measurement, error) {
				return trainer.Measurement{}, broken
			}),
		}
		if err := a.Run(t.Context()); err == nil {
			t.Error("Run = nil")
		}
		f.wantStates(slices.Repeat([]dparetov1.TrialState{failed}, DefaultMaxFailures)...)
	})
}

// The worker that makes the agent stop does not leave the others' trials behind.
func TestFatalErrorReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 2)
		var r recorder
		both := make(chan struct{}, 1)
		a := &Agent{
			Study: f.study, WorkerID: "a", Workers: 2, MaxFailures: 1, Events: r.hooks(),
			Trainer: funcTrainer(func(ctx context.Context, _ trainer.Run, _ trainer.Report) (trainer.Measurement, error) {
				select {
				case both <- struct{}{}: // the first one waits for the second
					<-ctx.Done()
					return trainer.Measurement{}, ctx.Err()
				default:
					return trainer.Measurement{}, &trainer.ParameterError{Name: "rate", Reason: "is missing"}
				}
			}),
		}
		if err := a.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "1 trials failed") {
			t.Errorf("Run = %v", err)
		}
		r.wantOutcomes(t, map[Outcome]int{Failed: 1, Released: 1})
	})
}

// The trainer does not measure an objective: the agent says so at the first
// measurement and gives the trial back.
func TestMissingMetric(t *testing.T) {
	for name, train := range map[string]funcTrainer{
		"final": func(context.Context, trainer.Run, trainer.Report) (trainer.Measurement, error) {
			return trainer.Measurement{Step: 1, Metrics: map[string][]float64{"loss": {1}, "accuracy": {1}}}, nil
		},
		"on the way": func(_ context.Context, _ trainer.Run, report trainer.Report) (trainer.Measurement, error) {
			err := report(trainer.Measurement{Step: 1, Metrics: map[string][]float64{"loss": {1}, "accuracy": {1}}})
			return trainer.Measurement{}, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, 2)
				a := &Agent{Study: f.study, WorkerID: "a", Trainer: train}
				err := a.Run(t.Context())
				want := &MetricError{Trainer: "func", Missing: []string{"error"}, Measured: []string{"accuracy", "loss"}}
				got, _ := errors.AsType[*MetricError](err)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("Run = %v (-want +got):\n%s", err, diff)
				}
				if want := "trainer func does not measure error, which the study needs; it measures accuracy, loss"; err.Error() != want {
					t.Errorf("Run = %v\nwant  %s", err, want)
				}
				f.wantStates(queued)
			})
		})
	}
}

// stopTrial asks for the first trial to stop.
func (f *fixture) stopTrial(ctx context.Context) {
	f.t.Helper()
	if _, err := f.client.Studies.StopTrial(ctx, &dparetov1.StopTrialRequest{Name: "studies/s/trials/1", Reason: "seen enough"}); err != nil {
		f.t.Error(err)
	}
}

// A trial that is asked to stop ends with the next measurement: at once where there is
// none yet, however often its lease is renewed.
func TestStop(t *testing.T) {
	for _, at := range []int64{1, 4} {
		synctest.Test(t, func(t *testing.T) {
			f := start(t, 1)
			var r recorder
			a := &Agent{
				Study: f.study, WorkerID: "a", Events: r.hooks(),
				Trainer: funcTrainer(func(ctx context.Context, run trainer.Run, report trainer.Report) (trainer.Measurement, error) {
					return checkpoints(10).Train(ctx, run, func(m trainer.Measurement) error {
						if m.Step == at {
							f.stopTrial(ctx)
							if at == 1 {
								time.Sleep(time.Minute)
							}
						}
						return report(m)
					})
				}),
			}
			require.NoError(t, a.Run(t.Context()))
			f.wantStates(succeeded)
			trial := f.trials()[0]
			if trial.GetFinalMeasurement().GetStep() != at || len(trial.GetMeasurements()) != int(at) || trial.GetStateReason() != "seen enough" {
				t.Errorf("trial %v", trial)
			}
			want := []string{fmt.Sprintf("a-1 measures 1 at %d", at), fmt.Sprintf("a-1 ends 1: stopped at %d", at)}
			if got := r.events[len(r.events)-2:]; !slices.Equal(got, want) {
				t.Errorf("events %q, want %q", got, want)
			}
			if len(r.errs) != 1 || !errors.Is(r.errs[0], dpareto.ErrStop) || !strings.Contains(r.errs[0].Error(), "seen enough") {
				t.Errorf("errors %v", r.errs)
			}
		})
	}
}

// A trial that is asked to stop in an epoch that takes long ends when its lease is
// renewed, with the measurement before.
func TestStopInEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1)
		var r recorder
		began := time.Now()
		a := &Agent{
			Study: f.study, WorkerID: "a", Events: r.hooks(),
			Trainer: funcTrainer(func(ctx context.Context, _ trainer.Run, report trainer.Report) (trainer.Measurement, error) {
				if err := report(measured(1)); err != nil {
					return trainer.Measurement{}, err
				}
				f.stopTrial(ctx)
				<-ctx.Done()
				return trainer.Measurement{}, ctx.Err()
			}),
		}
		require.NoError(t, a.Run(t.Context()))
		if took := time.Since(began); took != 10*time.Second { // a third of the lease
			t.Errorf("stopped after %v", took)
		}
		f.wantStates(succeeded)
		if trial := f.trials()[0]; trial.GetFinalMeasurement().GetStep() != 1 || trial.GetStateReason() != "seen enough" {
			t.Errorf("trial %v", trial)
		}
		r.wantOutcomes(t, map[Outcome]int{Stopped: 1})
	})
}

// A trainer that goes on to its end although it should stop is taken at its word.
func TestStopIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1)
		var r recorder
		a := &Agent{
			Study: f.study, WorkerID: "a", Events: r.hooks(),
			Trainer: funcTrainer(func(ctx context.Context, _ trainer.Run, report trainer.Report) (trainer.Measurement, error) {
				f.stopTrial(ctx)
				if err := report(measured(1)); !errors.Is(err, trainer.ErrStop) {
					t.Errorf("report: %v", err)
				}
				return measured(2), nil
			}),
		}
		require.NoError(t, a.Run(t.Context()))
		if step := f.trials()[0].GetFinalMeasurement().GetStep(); step != 2 {
			t.Errorf("ends at %d", step)
		}
		r.wantOutcomes(t, map[Outcome]int{Succeeded: 1})
	})
}

// The lease lasts through an epoch that is longer: no other worker gets the trial.
func TestLongEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1)
		a := &Agent{
			Study: f.study, WorkerID: "a",
			Trainer: funcTrainer(func(ctx context.Context, _ trainer.Run, _ trainer.Report) (trainer.Measurement, error) {
				ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
				defer cancel()
				if trial, err := f.study.Ask(ctx, "thief"); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Ask = %v, %v", trial, err)
				}
				return measured(1), nil
			}),
		}
		require.NoError(t, a.Run(t.Context()))
		f.wantStates(succeeded)
		if attempt := f.trials()[0].GetAttempt(); attempt != 1 {
			t.Errorf("attempt %d", attempt)
		}
	})
}

// A trial whose lease was lost is dropped, between reports or at one, without a
// failure, and the agent goes on.
func TestLeaseLost(t *testing.T) {
	for name, train := range map[string]func(ctx context.Context, report trainer.Report) (trainer.Measurement, error){
		"between reports": func(ctx context.Context, _ trainer.Report) (trainer.Measurement, error) {
			<-ctx.Done()
			return trainer.Measurement{}, errors.New("interrupted")
		},
		"at a report": func(_ context.Context, report trainer.Report) (trainer.Measurement, error) {
			time.Sleep(time.Minute)
			return measured(1), report(measured(1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, 2)
				f.setFault(func(method string, _ any, handle func() (any, error)) (any, error) {
					if method == "RenewLeases" {
						return nil, status.Error(codes.Internal, "out of order")
					}
					return handle()
				})
				var r recorder
				trials := 0
				started := make(chan struct{})
				a := &Agent{
					Study: f.study, WorkerID: "a", MaxFailures: 1, Events: r.hooks(),
					Trainer: funcTrainer(func(ctx context.Context, _ trainer.Run, report trainer.Report) (trainer.Measurement, error) {
						if trials++; trials == 1 {
							close(started)
							return train(ctx, report)
						}
						return measured(1), nil
					}),
				}
				done := make(chan error)
				go func() { done <- a.Run(t.Context()) }()
				<-started
				time.Sleep(31 * time.Second)
				thief, err := f.study.Ask(t.Context(), "thief")
				if err != nil || thief.Number() != 1 || thief.Attempt() != 2 {
					t.Fatalf("Ask = %v, %v", thief, err)
				}
				f.setFault(nil)
				_, stop := thief.KeepAlive(t.Context())
				time.Sleep(2 * time.Minute)
				stop()
				if err := thief.Complete(t.Context(), dpareto.Metrics{"error": {0.125, 0.125}}); err != nil {
					t.Error(err)
				}
				require.NoError(t, <-done)
				f.wantStates(succeeded, succeeded)
				if x := f.trials()[0].GetFinalMeasurement().GetMetrics()["error"].GetValue(); x != 0.125 {
					t.Errorf("trial 1 has the result %g, want the thief's", x)
				}
				r.wantOutcomes(t, map[Outcome]int{Abandoned: 1, Succeeded: 1})
				if !errors.Is(r.errs[0], dpareto.ErrLeaseLost) {
					t.Errorf("error %v", r.errs[0])
				}
			})
		})
	}
}

// Of two agents with one worker id, the one whose trial is taken ends, and says why.
func TestTwins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 3)
		twin := func() *Agent {
			return &Agent{
				Study: f.study, WorkerID: "a",
				Trainer: funcTrainer(func(ctx context.Context, _ trainer.Run, report trainer.Report) (trainer.Measurement, error) {
					for step := int64(1); ; step++ {
						select {
						case <-ctx.Done():
							return trainer.Measurement{}, ctx.Err()
						case <-time.After(10 * time.Second):
						}
						if err := report(measured(step)); err != nil || step == 5 {
							return measured(step), err
						}
					}
				}),
			}
		}
		first := make(chan error)
		go func() { first <- twin().Run(t.Context()) }()
		time.Sleep(5 * time.Second)
		if err := twin().Run(t.Context()); err != nil {
			t.Errorf("the second agent: %v", err)
		}
		var wrong *TwinError
		if err := <-first; !errors.As(err, &wrong) || wrong.Worker != "a-1" || !strings.Contains(err.Error(), "must be unique") {
			t.Errorf("the first agent: %v", err)
		}
		f.wantStates(succeeded, succeeded, succeeded)
	})
}

// A server that does not take results, nor failures, ends the agent with its error.
func TestServerErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		method string
		calls  int // that fail
		err    bool
		states []dparetov1.TrialState
	}{
		"complete once": {"CompleteTrial", 1, false, []dparetov1.TrialState{succeeded}}, // after another attempt
		"complete":      {"CompleteTrial", 2, true, []dparetov1.TrialState{active}},
		"ask":           {"SuggestTrials", 1, true, nil},
		"read":          {"GetStudy", 1, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, 1)
				calls := 0
				f.setFault(func(method string, _ any, handle func() (any, error)) (any, error) {
					if method == tt.method {
						if calls++; calls <= tt.calls {
							return nil, status.Error(codes.Internal, "out of order")
						}
					}
					return handle()
				})
				a := &Agent{Study: f.study, WorkerID: "a", Trainer: checkpoints(1)}
				err := a.Run(t.Context())
				if tt.err != (status.Code(err) == codes.Internal) || tt.err != (err != nil) {
					t.Errorf("Run = %v", err)
				}
				f.wantStates(tt.states...)
			})
		})
	}
}

// An agent that is cancelled before the server answers at all returns.
func TestCancelAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1)
		f.kill()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		a := &Agent{Study: f.study, WorkerID: "a", Trainer: checkpoints(1)}
		if err := a.Run(ctx); err != context.DeadlineExceeded { //nolint:errorlint // it is that very error
			t.Errorf("Run = %v", err)
		}
	})
}

func TestValidate(t *testing.T) {
	study, train := new(dpareto.Study), checkpoints(1)
	for _, a := range []*Agent{
		{Trainer: train, WorkerID: "a"},
		{Study: study, WorkerID: "a"},
		{Study: study, Trainer: train},
		{Study: study, Trainer: train, WorkerID: "a", Workers: -1},
		{Study: study, Trainer: train, WorkerID: "a", MaxFailures: -1},
		{Study: study, Trainer: train, WorkerID: "a", Grace: -1},
	} {
		if err := a.Run(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "agent: ") {
			t.Errorf("%+v: Run = %v", a, err)
		}
	}
}

// A real trainer, whose results depend on the agent's seed alone.
func TestSparseVector(t *testing.T) {
	results := func(seed uint64, workers int) (out [][]float64) {
		synctest.Test(t, func(t *testing.T) {
			f := start(t, 8)
			a := &Agent{Study: f.study, WorkerID: "a", Workers: workers, Seed: &seed, Trainer: sparsevector.Trainer{}}
			require.NoError(t, a.Run(t.Context()))
			for _, trial := range f.trials() {
				out = append(out, trial.GetFinalMeasurement().GetMetrics()["error"].GetRuns())
			}
		})
		return out
	}
	one := results(1, 1)
	if len(one) != 8 {
		t.Fatalf("%d trials", len(one))
	}
	if diff := cmp.Diff(one, results(1, 3)); diff != "" {
		t.Errorf("three workers instead of one (-want +got):\n%s", diff)
	}
	if cmp.Equal(one, results(2, 1)) {
		t.Error("another seed gives the same results")
	}
}

// The numbers below may not change: they make results reproducible.
func TestTrialSeedGolden(t *testing.T) {
	var got []uint64
	for _, arguments := range []struct {
		seed    uint64
		number  int64
		attempt int
	}{{0, 1, 1}, {0, 1, 2}, {0, 2, 1}, {1, 1, 1}, {math.MaxUint64, math.MaxInt64, 100}} {
		got = append(got, TrialSeed(arguments.seed, arguments.number, arguments.attempt))
	}
	want := []uint64{
		12401259842959014280, 17650578182555822980, 14425405118848865347, 8750741675758285871, 12264407504409793542,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("seeds (-want +got):\n%s", diff)
	}
}

// The first outputs of SplitMix64 from state 0, as published with the reference
// implementation of xoshiro (Blackman and Vigna, prng.di.unimi.it).
func TestMix(t *testing.T) {
	var state uint64
	for _, want := range []uint64{0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f} {
		if got := mix(state); got != want {
			t.Errorf("mix(%#x) = %#x, want %#x", state, got, want)
		}
		state += 0x9e3779b97f4a7c15
	}
}

func TestTrialSeedsDiffer(t *testing.T) {
	seen := make(map[uint64]bool)
	for seed := range uint64(20) {
		for number := range int64(20) {
			for attempt := range 20 {
				seen[TrialSeed(seed, number, attempt)] = true
			}
		}
	}
	if len(seen) != 20*20*20 {
		t.Errorf("%d seeds for 8000 attempts", len(seen))
	}
}

func TestOutcomeString(t *testing.T) {
	for outcome, want := range map[Outcome]string{
		Succeeded: "succeeded", Infeasible: "infeasible", Failed: "failed", Released: "released", Abandoned: "abandoned",
		Stopped: "stopped", 7: "Outcome(7)",
	} {
		if got := outcome.String(); got != want {
			t.Errorf("String() = %s, want %s", got, want)
		}
	}
}
