package limit

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dpareto/dpareto/internal/require"
)

func TestDefaults(t *testing.T) {
	if got := (Limits{}).OrDefault(); got != Default() {
		t.Errorf("defaults %+v, want %+v", got, Default())
	}
	if got := (Limits{Calls: 7}).OrDefault(); got.Calls != 7 || got.Streams != Default().Streams {
		t.Errorf("%+v", got)
	}
}

func TestStored(t *testing.T) {
	l := Limits{Studies: 2, TrialsPerStudy: 3, OpenTrialsPerStudy: 2, StudyBytes: 100}
	for n, want := range []codes.Code{codes.OK, codes.OK, codes.ResourceExhausted, codes.ResourceExhausted} {
		if got := status.Code(l.CheckStudies(int64(n))); got != want {
			t.Errorf("%d studies: %v, want %v", n, got, want)
		}
	}
	for _, test := range []struct {
		created, open int64
		want          codes.Code
	}{{2, 1, codes.OK}, {3, 0, codes.ResourceExhausted}, {2, 2, codes.ResourceExhausted}} {
		if err := l.CheckTrials(test.created, test.open); status.Code(err) != test.want {
			t.Errorf("%d trials, %d open: %v", test.created, test.open, err)
		}
	}
	if status.Code(l.CheckBytes(99)) != codes.OK || status.Code(l.CheckBytes(100)) != codes.ResourceExhausted {
		t.Errorf("bytes: %v, %v", l.CheckBytes(99), l.CheckBytes(100))
	}
}

func wantBusy(t *testing.T, err error, text string) {
	t.Helper()
	s := status.Convert(err)
	if s.Code() != codes.ResourceExhausted || !strings.Contains(s.Message(), text) {
		t.Errorf("error %v, want %q", err, text)
	}
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok && info.GetRetryDelay().AsDuration() > 0 {
			return
		}
	}
	t.Errorf("%v does not say when to try again", err)
}

func TestGate(t *testing.T) {
	g := NewGate("calls", 3, 2)
	enter := func(who string) func() {
		t.Helper()
		leave, err := g.Enter(who)
		require.NoError(t, err)
		return leave
	}
	leave := enter("ann")
	enter("ann")
	_, err := g.Enter("ann")
	wantBusy(t, err, `"ann" already has 2 concurrent calls`)
	leaveBob := enter("bob")
	_, err = g.Enter("col")
	wantBusy(t, err, "the server already has 3 concurrent calls")
	leave()
	enter("ann")
	leaveBob()
	enter("bob")
	if len(g.named) != 2 {
		t.Errorf("%d names are kept", len(g.named))
	}
}

// However calls come and go, no more than the limit are within, and none is left.
func TestGateConcurrently(t *testing.T) {
	const total, each = 5, 3
	g := NewGate("calls", total, each)
	var mu sync.Mutex
	within := make(map[string]int)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			who := strconv.Itoa(i % 4)
			for range 1000 {
				leave, err := g.Enter(who)
				if err != nil {
					continue
				}
				mu.Lock()
				within[who]++
				sum := 0
				for _, n := range within {
					sum += n
				}
				if within[who] > each || sum > total {
					t.Errorf("%d of %s, %d of all", within[who], who, sum)
				}
				within[who]--
				mu.Unlock()
				leave()
			}
		})
	}
	wg.Wait()
	if g.all != 0 || len(g.named) != 0 {
		t.Errorf("%d left, of %v", g.all, g.named)
	}
}

func TestFailures(t *testing.T) {
	var f Failures
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	allowed := func(address string, n int) (count int) {
		for range n {
			if f.Allow(address, now) {
				count++
			}
		}
		return count
	}
	if n := allowed("a", 100); n != failures {
		t.Errorf("%d at once, want %d", n, failures)
	}
	if n := allowed("b", 5); n != 5 {
		t.Errorf("another address: %d", n)
	}
	now = now.Add(3 * failureEvery)
	if n := allowed("a", 100); n != 3 {
		t.Errorf("%d after three seconds, want 3", n)
	}
	// Its memory is bounded, and comes back.
	for i := range 2 * maxAddresses {
		f.Allow(strconv.Itoa(i), now)
	}
	if len(f.buckets) > maxAddresses {
		t.Errorf("%d addresses are kept", len(f.buckets))
	}
	now = now.Add(time.Hour)
	if !f.Allow("new", now) || len(f.buckets) != 1 {
		t.Errorf("%d addresses are kept after an hour", len(f.buckets))
	}
}
