package server_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/clock/clocktest"
	"github.com/dpareto/dpareto/server/servertest"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/opentest"
)

// replicas starts two servers that share a store.
func replicas(t *testing.T) []*servertest.Fixture {
	t.Helper()
	opentest.OnPostgres(t)
	return replicasOf(&servertest.Fixture{T: t, Path: t.TempDir(), Shared: true}, 2)
}

// replicasOf starts servers like first.
func replicasOf(first *servertest.Fixture, n int) []*servertest.Fixture {
	t := first.T
	t.Helper()
	all := make([]*servertest.Fixture, n)
	for i := range all {
		f := *first
		f.Clock = clocktest.NewManual(time.Date(2026+i, 1, 2, 3, 4, 5, 0, time.UTC)) // clocks that are wrong, and stand still
		f.Serve()
		t.Cleanup(func() { f.Stop() })
		all[i] = &f
	}
	return all
}

// Servers that are asked at once for one study hand out no trial and no point twice, whether the designer
// draws in the transaction, needs the history or fits a model, and users may create trials meanwhile.
func TestReplicasSuggestDifferentPoints(t *testing.T) {
	for _, unlocked := range []bool{false, true} {
		t.Run(fmt.Sprintf("unlocked=%t", unlocked), func(t *testing.T) {
			opentest.OnPostgres(t)
			checkDifferentPoints(t, replicasOf(&servertest.Fixture{T: t, Path: t.TempDir(), Shared: true, Unlocked: unlocked}, 3))
		})
	}
}

func checkDifferentPoints(t *testing.T, servers []*servertest.Fixture) {
	t.Helper()
	for algorithm, each := range map[dparetov1.Algorithm]int{
		dparetov1.Algorithm_ALGORITHM_RANDOM: 20, dparetov1.Algorithm_ALGORITHM_NSGA2: 10, dparetov1.Algorithm_ALGORITHM_DEFAULT: 4,
	} {
		spec := servertest.SVTSpec()
		spec.Algorithm.Name = algorithm
		study := servers[0].Create(fmt.Sprintf("s%d", algorithm), spec)
		var mu sync.Mutex
		points, trials := make(map[string]string), make(map[string]string)
		var workers sync.WaitGroup
		for i := range 9 {
			f, worker := servers[i%len(servers)], fmt.Sprint("worker ", i)
			workers.Go(func() {
				for n := range each {
					resp, err := f.Studies.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: study, WorkerId: worker})
					if err != nil || len(resp.GetTrials()) != 1 {
						t.Errorf("%v, %v", resp, err)
						return
					}
					trial := resp.GetTrials()[0]
					mu.Lock()
					point := fmt.Sprint(trial.GetParameters()["cutoff"], trial.GetParameters()["noise_scale"])
					if trials[trial.GetName()] != "" || trial.GetOrigin() == dparetov1.TrialOrigin_TRIAL_ORIGIN_SUGGESTED && points[point] != "" {
						t.Errorf("%v: %s and %s are at %s, the first was with %s", algorithm, points[point], trial.GetName(), point, trials[trial.GetName()])
					}
					points[point], trials[trial.GetName()] = trial.GetName(), worker
					mu.Unlock()
					if n%3 == 2 {
						if _, err := f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{Parameters: trial.GetParameters()}}); err != nil {
							t.Error(err)
						}
					}
					if _, err := f.Studies.CompleteTrial(t.Context(), servertest.Completion(trial, 0.1+0.01*float64(i))); err != nil {
						t.Error(err)
					}
				}
			})
		}
		workers.Wait()
	}
}

// A watch hears of changes by another server long before it looks by itself.
func TestReplicasWatch(t *testing.T) {
	servers := replicas(t)
	study := servers[0].Create("s", servertest.SVTSpec())
	watch := servers[1].Watch(&dparetov1.WatchStudyRequest{Name: study})
	watch.Want("study ")
	began := time.Now()
	const changes = 20
	for i := range changes {
		trial := servers[0].One(study, "worker")
		watch.Want(fmt.Sprint(i+1, " TRIAL_STATE_ACTIVE"))
		servers[0].Tell(trial, 0.5)
		watch.Want(fmt.Sprint(i+1, " TRIAL_STATE_SUCCEEDED"))
	}
	// 40 times 50 ms at most; without announcements the watch looks every five seconds.
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("%d changes took %v to get to another server", 2*changes, took)
	}
	require.NoError(t, require.ErrOf(servers[0].Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: study})))
	_, err := watch.Stream.Recv()
	servertest.WantCode(t, err, codes.NotFound, study)
}

// What one server has in memory of a study never outlives a change by another: of its trials, its spec, or
// all of it.
func TestReplicasForget(t *testing.T) {
	servers := replicas(t)
	a, b := servers[0], servers[1]
	points := func(f *servertest.Fixture, study string, want int) *dparetov1.Front {
		t.Helper()
		front := f.Front(study, dparetov1.FrontKind_FRONT_KIND_OBSERVED)
		if got := len(front.GetPoints()); got != want {
			t.Errorf("the front has %d points, want %d: %v", got, want, front)
		}
		return front
	}
	spec := servertest.SVTSpec()
	study := a.Create("s", spec)
	first := a.ImportTrial(study, 1, 0.5)
	points(a, study, 1)
	points(b, study, 1)
	exported := a.Export(study)
	b.ImportTrial(study, 4, 0.6)
	points(a, study, 2)
	require.NoError(t, require.ErrOf(a.Studies.DeleteTrial(t.Context(), &dparetov1.DeleteTrialRequest{Name: first.GetName()})))
	points(b, study, 1)

	require.NoError(t, b.Respec(study, func(s *dparetov1.StudySpec) { s.GetParameters()[1].GetDoubleDomain().Max = 1000 }))
	wide, err := b.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{
		Parameters: servertest.Sparse(3, 500),
	}})
	require.NoError(t, err)
	if trial := b.One(study, "worker"); trial.GetName() != wide.GetTrial().GetName() {
		t.Fatalf("handed out %v, not the trial that was requested", trial)
	} else {
		a.Tell(trial, 0.7) // its space lacked this configuration when it last read the study
	}
	points(b, study, 2)

	changed := b.Study(study)
	changed.Spec.Budget = &dparetov1.Budget{MaxTrials: 3}
	require.NoError(t, require.ErrOf(b.Update(changed, "spec")))
	if resp := a.Ask(study, "worker", 1); resp.GetEndReason() != dparetov1.EndReason_END_REASON_BUDGET_SPENT {
		t.Errorf("a server does not know the budget that another was given: %v", resp)
	}

	// The earlier state comes back, with the same uid, and goes on with other trials to the same revision.
	revision := a.Revision(study)
	require.NoError(t, require.ErrOf(a.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: study})))
	require.NoError(t, require.ErrOf(a.ImportRecords(exported)))
	for n := 0; a.Revision(study) < revision; n++ {
		a.ImportTrial(study, 1/float64(n+2), 0.1)
	}
	if got, want := points(b, study, len(a.Front(study, dparetov1.FrontKind_FRONT_KIND_OBSERVED).GetPoints())), a.Front(study, dparetov1.FrontKind_FRONT_KIND_OBSERVED); !proto.Equal(got, want) {
		t.Errorf("one server says %v, the other %v", want, got)
	}
}

// A repeated request gets the same answer from another server, also if it draws noise.
func TestReplicasAnswerAlike(t *testing.T) {
	servers := replicas(t)
	a, b := servers[0], servers[1]
	study := a.Create("s", servertest.SVTSpec())
	ledger := a.NewLedger("l", 100)
	suggest := &dparetov1.SuggestTrialsRequest{Parent: study, WorkerId: "worker", Count: 3, RequestId: "suggest"}
	release := &dparetov1.SelectPrivatelyRequest{Utilities: make([]float64, 1000), Sensitivity: 1, Epsilon: 1, Ledger: ledger, RequestId: "release"}
	for _, req := range []proto.Message{suggest, release} {
		var answers [2]proto.Message
		var calls sync.WaitGroup
		for i, f := range servers {
			calls.Go(func() {
				var err error
				if answers[i], err = callAny(t.Context(), f, req); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		if !proto.Equal(answers[0], answers[1]) {
			t.Errorf("one server answers %v, the other %v", answers[0], answers[1])
		}
	}
	if n := len(b.Charges(ledger)); n != 1 {
		t.Errorf("%d charges for one release", n)
	}
}

// callAny makes a call of TestReplicasAnswerAlike.
func callAny(ctx context.Context, f *servertest.Fixture, req proto.Message) (proto.Message, error) {
	if release, ok := req.(*dparetov1.SelectPrivatelyRequest); ok {
		return f.Releases().SelectPrivately(ctx, release)
	}
	return f.Studies.SuggestTrials(ctx, req.(*dparetov1.SuggestTrialsRequest))
}

// A lease that one server granted holds on the others, whatever their own clocks say, and ends there.
func TestReplicasLeases(t *testing.T) {
	servers := replicas(t)
	a, b := servers[0], servers[1]
	spec := servertest.SVTSpec()
	const lease = time.Second
	spec.Lease = &dparetov1.LeasePolicy{Duration: durationpb.New(lease)}
	study := a.Create("s", spec)
	asked := time.Now()
	trial := a.One(study, "first")
	for {
		next := b.One(study, "second")
		if next.GetName() == trial.GetName() {
			break
		}
		b.Tell(next, 0.5)
	}
	if held := time.Since(asked); held < lease-10*time.Millisecond {
		t.Errorf("the lease of %v ended on another server after %v", lease, held)
	}
	_, err := a.Studies.CompleteTrial(t.Context(), servertest.Completion(trial, 0.5)) // late, but nobody was faster
	if err != nil {
		t.Error(err)
	}
}

// A budget of duration goes by the clock of the database, whatever the clocks of the servers say.
func TestReplicasDuration(t *testing.T) {
	servers := replicas(t)
	spec := servertest.SVTSpec()
	spec.Budget = &dparetov1.Budget{MaxDuration: durationpb.New(time.Hour)}
	study := servers[0].Create("s", spec)
	for i, f := range servers {
		resp, err := f.Studies.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: study, WorkerId: fmt.Sprint("w", i)})
		if err != nil || len(resp.GetTrials()) != 1 {
			t.Errorf("server %d answered %v, %v, want a trial", i, resp, err)
		}
	}
}

// A study whose preparation a server began is prepared by another one when that server has gone, and paid
// once.
func TestReplicasTakeOver(t *testing.T) {
	servers := replicas(t)
	a, b := servers[0], servers[1]
	a.Hold("search")
	s := servertest.SearchSpec(4, 1)
	a.OpenLedgers(t.Context(), s)
	created, err := a.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "search", Study: &dparetov1.Study{Spec: s}})
	require.NoError(t, err)
	if state := created.GetStudy().GetState(); state != dparetov1.StudyState_STUDY_STATE_PREPARING {
		t.Fatalf("the study is %v already", state)
	}
	<-a.Gate.Reached // its lock is taken, and its list priced
	if state := b.Study(created.GetStudy().GetName()).GetState(); state != dparetov1.StudyState_STUDY_STATE_PREPARING {
		t.Errorf("the study is %v on another server", state)
	}
	a.Stop()
	prepared := b.Settled(created.GetStudy().GetName())
	if n := len(b.Charges(s.GetTrainLedger())); n != 1 || prepared.GetState() != dparetov1.StudyState_STUDY_STATE_ACTIVE {
		t.Errorf("%v, %d charges", prepared.GetState(), n)
	}
}

// A server leaves alone what another imports, and refuses to import it, too.
func TestReplicasImport(t *testing.T) {
	servers := replicas(t)
	a, b := servers[0], servers[1]
	records := a.ManyTrials("parts", 1200)
	stream, err := a.Admin.ImportStudy(t.Context())
	require.NoError(t, err)
	for _, record := range records[:1001] {
		require.NoError(t, stream.Send(&dparetov1.ImportStudyRequest{Record: record}))
	}
	for marked := false; !marked; {
		require.NoError(t, a.Records.View(t.Context(), func(tx *store.ReadTx) (err error) { marked, err = tx.Importing("parts"); return err }))
	}
	b.Restart() // it removes what imports left behind that were interrupted
	_, err = b.ImportRecords(records)
	servertest.WantCode(t, err, codes.Aborted, "is being imported")
	for _, record := range records[1001:] {
		require.NoError(t, stream.Send(&dparetov1.ImportStudyRequest{Record: record}))
	}
	resp, err := stream.CloseAndRecv()
	if err != nil || resp.GetTrials() != 1200 || b.Study("studies/parts").GetTrialCounts().GetSucceeded() != 1200 {
		t.Errorf("%v, %v", resp, err)
	}
	// A server that goes away in the middle of an import leaves remains, which the next one removes.
	require.NoError(t, require.ErrOf(b.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: "studies/parts"})))
	if _, err := b.ImportRecords(records); err != nil {
		t.Error(err)
	}
}
