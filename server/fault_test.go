package server_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/servertest"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/fault"
	"github.com/dpareto/dpareto/server/store/opentest"
)

// faultyServer serves the store at path, whose Updates fail as planned.
func faultyServer(t *testing.T, path string, plan fault.Plan) (studies dparetov1.StudyServiceClient, stop func()) {
	t.Helper()
	db := opentest.Open(t, path)
	records, err := store.New(context.Background(), fault.New(db, plan))
	require.NoError(t, err)
	s := server.New(server.Options{Store: records, Version: "test", Logger: slog.New(slog.DiscardHandler)})
	g := s.GRPC()
	listener := bufconn.Listen(1 << 20)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := g.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Error(err)
		}
	})
	conn, err := grpc.NewClient("passthrough:///bufconn",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	return dparetov1.NewStudyServiceClient(conn), func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		g.Stop()
		serving.Wait()
		s.Close()
		for _, fault := range records.Check(context.Background()) {
			t.Errorf("store: %v", fault)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

// told is what the workers know of a trial from the answers that they got. A trial that one
// gives back goes to another.
type told struct {
	value     float64 // of its result, whoever completes it
	attempted bool    // to complete it
	completed bool    // which was acknowledged
	deleting  bool    // somebody tried to delete it
	deleted   bool    // which was acknowledged
}

// record is the independent record of what was acknowledged.
type record struct {
	mu     sync.Mutex
	trials map[string]*told
}

// note changes what is known of a trial and returns it.
func (r *record) note(name string, change func(*told)) told {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.trials[name] == nil {
		r.trials[name] = &told{value: 1 / float64(2+len(r.trials))}
	}
	change(r.trials[name])
	return *r.trials[name]
}

// faultWorker makes random calls, some of which fail.
type faultWorker struct {
	t       *testing.T
	id      string
	study   string
	studies dparetov1.StudyServiceClient
	random  *rand.Rand
	record  *record
	tokens  map[string]string // by name
	names   []string
	failed  int
}

// check counts a failure, and accepts no other reason than the store, or that an earlier
// call had done its work although it failed.
func (w *faultWorker) check(action string, err error) {
	switch code := status.Code(err); {
	case code == codes.OK, code == codes.FailedPrecondition, code == codes.NotFound:
	case code == codes.Unavailable && strings.Contains(err.Error(), "cannot write its store (the disk is on fire)"):
		w.failed++
	default:
		w.t.Errorf("%s: %v", action, err)
	}
}

func (w *faultWorker) step(ctx context.Context) {
	if len(w.names) == 0 || w.random.IntN(3) == 0 {
		resp, err := w.studies.SuggestTrials(ctx, &dparetov1.SuggestTrialsRequest{Parent: w.study, WorkerId: w.id, Count: int32(1 + w.random.IntN(2))})
		w.check("suggest", err)
		for _, trial := range resp.GetTrials() {
			w.record.note(trial.GetName(), func(*told) {})
			if w.tokens[trial.GetName()] == "" {
				w.names = append(w.names, trial.GetName())
			}
			w.tokens[trial.GetName()] = trial.GetLease().GetToken()
		}
		return
	}
	name := w.names[w.random.IntN(len(w.names))]
	token := w.tokens[name]
	switch w.random.IntN(5) {
	case 0:
		_, err := w.studies.AddMeasurement(ctx, &dparetov1.AddMeasurementRequest{
			Name: name, LeaseToken: token, Measurement: servertest.Measurement(int64(w.random.IntN(5)), w.random.Float64()),
		})
		w.check("measure", err)
	case 1:
		w.record.note(name, func(t *told) { t.deleting = true })
		_, err := w.studies.DeleteTrial(ctx, &dparetov1.DeleteTrialRequest{Name: name})
		w.check("delete", err)
		w.record.note(name, func(t *told) { t.deleted = t.deleted || err == nil })
	case 2:
		_, err := w.studies.ReleaseTrial(ctx, &dparetov1.ReleaseTrialRequest{Name: name, LeaseToken: token})
		w.check("release", err)
	default:
		known := w.record.note(name, func(t *told) { t.attempted = true })
		_, err := w.studies.CompleteTrial(ctx, &dparetov1.CompleteTrialRequest{
			Name: name, LeaseToken: token,
			Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: servertest.Measurement(0, known.value)},
		})
		w.check("complete", err)
		w.record.note(name, func(t *told) { t.completed = t.completed || err == nil })
	}
}

// verify compares what was acknowledged with what there is.
func (r *record) verify(t *testing.T, studies dparetov1.StudyServiceClient) {
	t.Helper()
	for name, known := range r.trials {
		resp, err := studies.GetTrial(t.Context(), &dparetov1.GetTrialRequest{Name: name})
		trial := resp.GetTrial()
		succeeded := trial.GetState() == dparetov1.TrialState_TRIAL_STATE_SUCCEEDED
		switch {
		case status.Code(err) == codes.NotFound:
			if !known.deleting {
				t.Errorf("%s was handed out and is gone", name)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case known.deleted:
			t.Errorf("%s was deleted and is there", name)
		case known.completed && !succeeded:
			t.Errorf("%s was completed and is %v", name, trial.GetState())
		case succeeded && !known.attempted:
			t.Errorf("nobody completed %s", name)
		case succeeded && trial.GetFinalMeasurement().GetMetrics()["error"].GetValue() != known.value:
			t.Errorf("%s has the result %v instead of %v", name, trial.GetFinalMeasurement(), known.value)
		}
	}
}

// Whatever becomes of the writes of a store, what was acknowledged is there, what was not
// is there wholly or not at all, and nothing else is.
func TestFaultyStore(t *testing.T) {
	const workers, steps = 4, 120
	for seed := range uint64(3) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			var mu sync.Mutex
			random := rand.New(rand.NewPCG(seed, 0))
			var faulty atomic.Bool
			plan := func() (fault.Outcome, error) {
				mu.Lock()
				defer mu.Unlock()
				if !faulty.Load() || random.IntN(3) > 0 {
					return fault.Commit, nil
				}
				outcome := []fault.Outcome{fault.Refuse, fault.Lose, fault.Hide}[random.IntN(3)]
				return outcome, &store.UnwritableError{Reason: "the disk is on fire", Err: syscall.EIO}
			}
			path := filepath.Join(t.TempDir(), "store.db")
			studies, stop := faultyServer(t, path, plan)
			created, err := studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "fire", Study: &dparetov1.Study{Spec: servertest.SVTSpec()}})
			require.NoError(t, err)
			faulty.Store(true)
			acknowledged := &record{trials: make(map[string]*told)}
			all := make([]*faultWorker, workers)
			var running sync.WaitGroup
			for i := range all {
				all[i] = &faultWorker{
					t: t, id: fmt.Sprintf("worker-%d", i), study: created.GetStudy().GetName(), studies: studies,
					random: rand.New(rand.NewPCG(seed, uint64(i)+1)), record: acknowledged, tokens: make(map[string]string),
				}
				running.Go(func() {
					for range steps {
						all[i].step(t.Context())
					}
				})
			}
			running.Wait()
			failed := 0
			for _, w := range all {
				failed += w.failed
			}
			if failed < workers*steps/10 {
				t.Errorf("only %d calls failed", failed)
			}
			for range 2 { // also after a restart without faults
				acknowledged.verify(t, studies)
				stop()
				faulty.Store(false)
				studies, stop = faultyServer(t, path, plan)
			}
			stop()
		})
	}
}

// A store that cannot be written is no internal error, and reads go on.
func TestUnwritableStore(t *testing.T) {
	var full atomic.Bool
	plan := func() (fault.Outcome, error) {
		if full.Load() {
			return fault.Refuse, &store.UnwritableError{Reason: "no space is left on the device", Err: syscall.ENOSPC}
		}
		return fault.Commit, nil
	}
	studies, stop := faultyServer(t, filepath.Join(t.TempDir(), "secret-name.db"), plan)
	defer stop()
	create := func(id string) error {
		_, err := studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: id, Study: &dparetov1.Study{Spec: servertest.SVTSpec()}})
		return err
	}
	require.NoError(t, create("one"))
	full.Store(true)
	err := create("two")
	servertest.WantCode(t, err, codes.Unavailable, "no space is left on the device")
	if strings.Contains(err.Error(), "secret-name") {
		t.Errorf("the error tells the name of the file: %v", err)
	}
	if _, err := studies.GetStudy(t.Context(), &dparetov1.GetStudyRequest{Name: "studies/one"}); err != nil {
		t.Errorf("reading: %v", err)
	}
	full.Store(false)
	if err := create("two"); err != nil {
		t.Errorf("with space again: %v", err)
	}
}
