package dpareto_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dpareto "github.com/dpareto/dpareto/clients/go"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/bolt"
)

// startServer starts a server on a loopback address ("127.0.0.1:0" takes a free port)
// with its state in a file. It returns the address and a function that stops it.
func startServer(address, path string) (string, func(), error) {
	db, err := bolt.Open(path)
	if err != nil {
		return "", nil, err
	}
	records, err := store.New(context.Background(), db)
	if err != nil {
		return "", nil, errors.Join(err, db.Close())
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return "", nil, errors.Join(err, db.Close())
	}
	s := server.New(server.Options{Store: records, Version: "test"})
	g := s.GRPC()
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := g.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			panic(err)
		}
	})
	return listener.Addr().String(), func() {
		g.Stop()
		serving.Wait()
		s.Close()
		if err := db.Close(); err != nil {
			panic(err)
		}
	}, nil
}

// toyStudy minimises a cost that the server computes and an error that workers
// measure, in a number of trials.
func toyStudy(trials int64) *dparetov1.Study {
	return &dparetov1.Study{Spec: &dparetov1.StudySpec{
		Parameters: []*dparetov1.ParameterSpec{{
			Id:     "width",
			Domain: &dparetov1.ParameterSpec_IntegerDomain{IntegerDomain: &dparetov1.IntegerDomain{Min: 1, Max: 100}},
			Scale:  dparetov1.Scale_SCALE_LOG,
		}},
		Metrics: []*dparetov1.MetricSpec{
			{
				Id: "weights", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE,
				Goal: dparetov1.Goal_GOAL_MINIMIZE, Transform: dparetov1.Transform_TRANSFORM_LOG,
				ReferenceValue: new(1e4),
				Source: &dparetov1.MetricSpec_Computed{Computed: &dparetov1.ComputedSource{
					Function: &dparetov1.ComputedSource_Expression{Expression: "10 * width"},
				}},
			},
			{
				Id: "error", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE,
				Goal: dparetov1.Goal_GOAL_MINIMIZE, Transform: dparetov1.Transform_TRANSFORM_LOGIT,
				ReferenceValue: new(1.0),
				Source:         &dparetov1.MetricSpec_Reported{Reported: &dparetov1.ReportedSource{}},
			},
		},
		Algorithm: &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_RANDOM},
		Budget:    &dparetov1.Budget{MaxTrials: trials},
		Seed:      new(uint64(1)),
	}}
}

// The ask-tell loop of a worker, against a server with a study of three trials.
func Example() {
	folder, err := os.MkdirTemp("", "dpareto")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	address, stop, err := startServer("127.0.0.1:0", filepath.Join(folder, "dpareto.db"))
	if err != nil {
		panic(err)
	}
	defer stop()
	ctx := context.Background()

	client, err := dpareto.Dial(address)
	if err != nil {
		panic(err)
	}
	defer client.Close()
	study, err := client.CreateStudy(ctx, "toy", toyStudy(3))
	if err != nil {
		panic(err)
	}
	for {
		trial, err := study.Ask(ctx, "worker-1")
		if errors.Is(err, dpareto.ErrDone) {
			break
		} else if err != nil {
			panic(err)
		}
		// Here a model would be trained.
		loss := 1 / (1 + trial.Float("width"))
		if err := trial.Complete(ctx, dpareto.Metrics{"error": {loss}}); err != nil {
			panic(err)
		}
		fmt.Println("completed", trial.Name())
	}
	front, err := study.Front(ctx, dparetov1.FrontKind_FRONT_KIND_OBSERVED)
	if err != nil {
		panic(err)
	}
	fmt.Println(len(front.GetPoints()), "trials are on the front")

	// Output:
	// completed studies/toy/trials/1
	// completed studies/toy/trials/2
	// completed studies/toy/trials/3
	// 3 trials are on the front
}

// A worker's calls against the real server, which is stopped and started between any
// two of them.
func TestServerRestarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dpareto.db")
	address, stop, err := startServer("127.0.0.1:0", path)
	require.NoError(t, err)
	defer func() { stop() }()
	// restart comes back while the client already tries again.
	var starting sync.WaitGroup
	var notices int
	down := make(chan struct{})
	var once *sync.Once
	client, err := dpareto.Dial(address, dpareto.WithRetryNotice(func(err error) {
		if code := status.Code(err); code != codes.Unavailable {
			t.Errorf("notice of %v", err)
		}
		notices++
		once.Do(func() { down <- struct{}{} })
	}))
	require.NoError(t, err)
	defer client.Close()
	ctx := t.Context()
	step := func(name string, call func() error) {
		t.Helper()
		stop()
		once = new(sync.Once)
		starting.Go(func() {
			<-down
			var err error
			if _, stop, err = startServer(address, path); err != nil {
				t.Error(err)
			}
		})
		err := call()
		starting.Wait()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}

	var study *dpareto.Study
	var trial *dpareto.Trial
	step("CreateStudy", func() (err error) {
		study, err = client.CreateStudy(ctx, "toy", toyStudy(2))
		return err
	})
	if _, err := client.CreateStudy(ctx, "toy", toyStudy(2)); err != nil {
		t.Errorf("equal spec: %v", err)
	}
	if _, err := client.CreateStudy(ctx, "toy", toyStudy(3)); status.Code(err) != codes.AlreadyExists {
		t.Errorf("another spec: %v", err)
	}
	step("Ask", func() (err error) {
		trial, err = study.Ask(ctx, "w")
		return err
	})
	step("Report", func() error { return trial.Report(ctx, 1, dpareto.Metrics{"error": {0.5}}) })
	if err := trial.Report(ctx, 1, dpareto.Metrics{"error": {0.5}}); err != nil {
		t.Errorf("the same measurement again: %v", err)
	}
	step("Complete", func() error { return trial.CompleteWithLast(ctx) })
	if err := trial.CompleteWithLast(ctx); err != nil {
		t.Errorf("completed again: %v", err)
	}
	if err := trial.Complete(ctx, dpareto.Metrics{"error": {0.1}}); !errors.Is(err, dpareto.ErrLeaseLost) {
		t.Errorf("completed otherwise: %v", err)
	}
	step("Ask", func() (err error) {
		trial, err = study.Ask(ctx, "w")
		return err
	})
	step("Release", func() error { return trial.Release(ctx, "going home") })
	if err := trial.Release(ctx, "going home"); err != nil {
		t.Errorf("released again: %v", err)
	}
	if trial, err = study.Ask(ctx, "other"); err != nil || trial.Number() != 2 || trial.Attempt() != 2 {
		t.Fatalf("Ask = %v, %v, want attempt 2 at trial 2", trial.Message(), err)
	}
	step("Infeasible", func() error { return trial.Infeasible(ctx, "diverged") })
	step("Done", func() error {
		if _, err := study.Ask(ctx, "w"); !errors.Is(err, dpareto.ErrDone) {
			return fmt.Errorf("want ErrDone, got %w", err)
		}
		return nil
	})
	if notices < 7 {
		t.Errorf("%d notices of 7 restarts", notices)
	}

	var states []dparetov1.TrialState
	for trial, err := range study.Trials(ctx) {
		require.NoError(t, err)
		states = append(states, trial.GetState())
	}
	if len(states) != 2 || states[0] != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED || states[1] != dparetov1.TrialState_TRIAL_STATE_INFEASIBLE {
		t.Errorf("states %v", states)
	}
	replicate, err := study.Replicate(ctx, "studies/toy/trials/1", nil)
	if err != nil || replicate.GetReplicateOf() != "studies/toy/trials/1" || replicate.GetState() != dparetov1.TrialState_TRIAL_STATE_QUEUED {
		t.Errorf("replicate %v, %v", replicate, err)
	}
	if _, err := study.Replicate(ctx, "studies/toy/trials/9", nil); status.Code(err) != codes.NotFound {
		t.Errorf("replicate of no trial: %v", err)
	}
	resp, err := study.Hypervolumes(ctx, dparetov1.FrontKind_FRONT_KIND_OBSERVED)
	if points := resp.GetPoints(); err != nil || len(points) == 0 || points[len(points)-1].GetHypervolume() <= 0 {
		t.Errorf("hypervolumes %v, %v", points, err)
	}
	if resp, err := study.Hypervolumes(ctx, dparetov1.FrontKind_FRONT_KIND_POSTERIOR); err != nil || len(resp.GetPoints()) != 1 {
		t.Errorf("hypervolumes of the posterior front %v, %v", resp, err)
	}
}
