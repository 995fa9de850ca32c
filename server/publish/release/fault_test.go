package release_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/servertest"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/fault"
	"github.com/dpareto/dpareto/server/store/opentest"
)

// faulty has the server of a fixture write to a store whose Updates fail as planned, from
// now on. The fixture's own store checks what is left when it is stopped.
func faulty(f *servertest.Fixture, plan fault.Plan) {
	f.T.Helper()
	f.Stop()
	f.Configure = func(o *server.Options) {
		db := opentest.Open(f.T, f.Path+".faulty")
		f.T.Cleanup(func() {
			if err := db.Close(); err != nil {
				f.T.Error(err)
			}
		})
		records, err := store.New(context.Background(), fault.New(db, plan))
		require.NoError(f.T, err)
		o.Store, f.Records = records, records
	}
	f.Serve()
}

// Updates fail in every way, before and after they are on disk. Whatever was handed out is
// charged; a repeated id gives the release that it gave, or would have given, at first; and
// what failed without having been written was neither handed out nor charged.
func TestReleasesOnAFailingStore(t *testing.T) {
	f := servertest.Start(t)
	var mu sync.Mutex
	random, broken := rand.New(rand.NewPCG(1, 2)), false
	counts := make(map[fault.Outcome]int)
	plan := func() (fault.Outcome, error) {
		mu.Lock()
		defer mu.Unlock()
		if !broken {
			return fault.Commit, nil
		}
		outcome := fault.Outcome(random.IntN(4))
		counts[outcome]++
		return outcome, &store.UnwritableError{Reason: "the disk is on fire", Err: syscall.EIO}
	}
	setBroken := func(b bool) {
		mu.Lock()
		defer mu.Unlock()
		broken = b
	}
	faulty(f, plan)
	ledger := f.NewLedger("l", 1000)
	study := f.Fixed(ledger, 0.4, 0.4, 0.4, 0.4)
	setBroken(true)

	const workers, ids = 4, 12
	var handedOut sync.Map // release by id
	var failures sync.Map
	call := func(ctx context.Context, id string, n int) (*dparetov1.Release, error) {
		if n%2 == 0 {
			resp, err := f.Releases().ReleaseBest(ctx, &dparetov1.ReleaseBestRequest{Name: study, Metric: "error", Epsilon: 0.5, RequestId: id})
			return resp.GetRelease(), err
		}
		resp, err := f.Releases().SelectPrivately(ctx, &dparetov1.SelectPrivatelyRequest{Utilities: []float64{1, 1, 1, 1}, Sensitivity: 1, Epsilon: 0.5, Ledger: ledger, RequestId: id})
		return resp.GetRelease(), err
	}
	var running sync.WaitGroup
	for w := range workers {
		running.Go(func() {
			for n := range ids {
				id := fmt.Sprintf("%d-%d", w, n)
				for range 3 {
					release, err := call(t.Context(), id, n)
					switch status.Code(err) {
					case codes.OK:
						if first, ok := handedOut.LoadOrStore(id, release); ok && !cmp.Equal(first, release, protocmp.Transform()) {
							t.Errorf("%s: %v after %v", id, release, first)
						}
					case codes.Unavailable:
						failures.Store(id, true)
					default:
						t.Errorf("%s: %v", id, err)
					}
				}
			}
		})
	}
	running.Wait()
	setBroken(false)
	if len(counts) != 4 {
		t.Fatalf("outcomes %v: the test shows little", counts)
	}

	charged := func() map[string]float64 {
		all := make(map[string]float64)
		for _, c := range f.Charges(ledger) {
			if _, twice := all[c.GetResource()]; twice {
				t.Errorf("%s was charged twice", c.GetResource())
			}
			all[c.GetResource()] = c.GetGuarantee().GetEpsilon()
		}
		return all
	}
	before := charged()
	for w := range workers {
		for n := range ids {
			id := fmt.Sprintf("%d-%d", w, n)
			release, err := call(t.Context(), id, n)
			require.NoError(t, err)
			if first, ok := handedOut.Load(id); ok {
				if diff := cmp.Diff(first, release, protocmp.Transform()); diff != "" {
					t.Errorf("%s (-handed out +now):\n%s", id, diff)
				}
				if before[release.GetName()] != 0.5 {
					t.Errorf("%s was handed out and not charged", release.GetName())
				}
			}
		}
	}
	if n := len(charged()); n != workers*ids {
		t.Errorf("%d charges, want one for each of %d ids", n, workers*ids)
	}
	for _, fault := range f.Records.Check(t.Context()) {
		t.Errorf("store: %v", fault)
	}
}

// A server that stops between the commit and the answer has charged, and repeats itself.
func TestReleaseWithoutAnswer(t *testing.T) {
	f := servertest.Start(t)
	outcome := fault.Commit
	var mu sync.Mutex
	set := func(o fault.Outcome) {
		mu.Lock()
		defer mu.Unlock()
		outcome = o
	}
	faulty(f, func() (fault.Outcome, error) {
		mu.Lock()
		defer mu.Unlock()
		return outcome, &store.UnwritableError{Reason: "the plug was pulled", Err: syscall.EIO}
	})
	ledger := f.NewLedger("l", 2)
	study := f.Fixed(ledger, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4)
	req := &dparetov1.ReleaseBestRequest{Name: study, Metric: "error", Epsilon: 1, RequestId: "one"}
	charges := func(want int) {
		t.Helper()
		if n := len(f.Charges(ledger)); n != want {
			t.Errorf("%d charges, want %d", n, want)
		}
	}
	for _, o := range []fault.Outcome{fault.Refuse, fault.Lose} {
		set(o)
		resp, err := f.Releases().ReleaseBest(t.Context(), req)
		if resp != nil || status.Code(err) != codes.Unavailable {
			t.Errorf("outcome %d: %v, %v", o, resp, err)
		}
		charges(0)
	}
	set(fault.Hide)
	resp, err := f.Releases().ReleaseBest(t.Context(), req)
	if resp != nil || status.Code(err) != codes.Unavailable {
		t.Errorf("hidden: %v, %v", resp, err)
	}
	charges(1)
	set(fault.Commit)
	kept, err := f.Releases().GetRelease(t.Context(), &dparetov1.GetReleaseRequest{Name: study + "/releases/1"})
	require.NoError(t, err)
	again, err := f.Releases().ReleaseBest(t.Context(), req)
	if diff := cmp.Diff(kept.GetRelease(), again.GetRelease(), protocmp.Transform()); diff != "" || err != nil {
		t.Errorf("repeated: %s, %v", diff, err)
	}
	charges(1)
}
