//go:build !race

package release_test

import (
	"fmt"
	"slices"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/internal/testsize"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/privacy/privacytest"
	"github.com/dpareto/dpareto/privacy/transcript"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/servertest"
)

// The audits run the whole way from a request to a published answer on two neighbouring test
// sets, of auditRecords records: none tells them apart by more than its ε, and each would
// find out an answer that costs more than it says. The race detector would only make them slow.
const (
	auditRecords = 4
	auditRuns    = 1200 // on each test set
	// Releases from a ledger: to add up the charges of many takes longer than another ledger
	// alone, but not than another pair of studies with it.
	auditChoices, auditReleases = 10, 50
)

// startAudit starts a server with repeatable noise, so that an audit that passes always
// does, on a store in memory.
func startAudit(t *testing.T, seed uint64) *servertest.Fixture {
	t.Helper()
	return servertest.StartWith(t, func(o *server.Options) { o.Entropy, o.Store = noise.Seeded(seed), servertest.NewMemory(t) })
}

// auditLedger creates a ledger that does not end.
func auditLedger(f *servertest.Fixture, id string) string {
	f.T.Helper()
	resp, err := f.Releases().CreateLedger(f.T.Context(), &dparetov1.CreateLedgerRequest{LedgerId: id, Ledger: &dparetov1.Ledger{
		Records: auditRecords, Epsilon: 1e9, Delta: 0.99, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
	}})
	require.NoError(f.T, err)
	return resp.GetLedger().GetName()
}

// turns returns a function that returns what next does, called anew every so many calls.
func turns[T any](every int, next func(turn int) T) func() T {
	calls := 0
	var made T
	return func() T {
		if calls%every == 0 {
			made = next(calls / every)
		}
		calls++
		return made
	}
}

// pair is two studies on neighbouring test sets, and the ε of the configuration that is
// better on the first.
type pair struct {
	names     [2]string
	favourite float64
}

// neighbours creates two studies with the same two configurations, whose errors on the test
// set differ by one record: on the first the configuration with the larger ε is the better
// one, on the second the other.
func neighbours(f *servertest.Fixture, id string) (p pair) {
	f.T.Helper()
	ledger := auditLedger(f, id)
	for k := range p.names {
		spec := servertest.FixedSpec(2, ledger)
		spec.Metrics[1].GetReported().SampleSize = auditRecords
		p.names[k] = f.Create(fmt.Sprintf("%s-%d", id, k), spec)
		trials := f.Ask(p.names[k], "w", 2).GetTrials()
		slices.SortFunc(trials, func(a, b *dparetov1.Trial) int {
			if a.GetComputedMetrics()["epsilon"].GetValue() < b.GetComputedMetrics()["epsilon"].GetValue() {
				return 1
			}
			return -1
		})
		p.favourite = trials[0].GetComputedMetrics()["epsilon"].GetValue()
		f.Tell(trials[k], 0.5)
		f.Tell(trials[1-k], 0.5+1.0/auditRecords)
	}
	return p
}

// publishes reports whether a release holds the configuration with an ε.
func publishes(r *dparetov1.Release, epsilon float64) bool {
	return slices.ContainsFunc(r.GetPoints(), func(p *dparetov1.ReleasedPoint) bool { return p.GetValues()["epsilon"] == epsilon })
}

func TestAuditSelectPrivately(t *testing.T) {
	const epsilon = 1
	for method := dparetov1.SelectionMethod_SELECTION_METHOD_EXPONENTIAL; method <= dparetov1.SelectionMethod_SELECTION_METHOD_REPORT_NOISY_MAX; method++ {
		t.Run(method.String(), func(t *testing.T) {
			f := startAudit(t, uint64(method))
			event := func(id string, sensitivity float64) func(bool) bool {
				next := turns(auditChoices, func(turn int) string { return auditLedger(f, fmt.Sprintf("%s-%d", id, turn)) })
				return func(second bool) bool {
					ledger := next()
					utilities := []float64{0.25, 0, 0, 0, 0, 0, 0, 0} // one goes down, all others up
					if second {
						utilities = []float64{0, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25}
					}
					resp, err := f.Releases().SelectPrivately(t.Context(), &dparetov1.SelectPrivatelyRequest{
						Utilities: utilities, Sensitivity: sensitivity, Epsilon: epsilon, Ledger: ledger, Method: method,
					})
					require.NoError(t, err)
					return resp.GetIndex() == 0
				}
			}
			privacytest.Audit{
				Epsilon: epsilon, Runs: auditRuns, Power: 0.03,
				Event: event("right", 0.25), Broken: event("broken", 0.25/8),
			}.Check(t)
		})
	}
}

func TestAuditReleaseBest(t *testing.T) {
	const epsilon = 1
	runs := testsize.Pick(400, auditRuns) // 400 show ε of 0.25 at least, and find 8ε; 1,200 show 0.3
	f := startAudit(t, 11)
	event := func(id string, epsilon float64) func(bool) bool {
		next := turns(auditReleases, func(turn int) pair { return neighbours(f, fmt.Sprintf("%s-%d", id, turn)) })
		return func(second bool) bool {
			p := next()
			resp, err := f.Releases().ReleaseBest(t.Context(), &dparetov1.ReleaseBestRequest{Name: p.names[truth(second)], Metric: "error", Epsilon: epsilon})
			require.NoError(t, err)
			return publishes(resp.GetRelease(), p.favourite)
		}
	}
	privacytest.Audit{Epsilon: epsilon, Runs: runs, Power: 0.25, Event: event("right", epsilon), Broken: event("broken", 8*epsilon)}.Check(t)
}

// A front of two configurations shows the one with the larger ε where its noisy error is the
// smaller one: which of two values is smaller is the most that it tells of them here.
func TestAuditReleaseFront(t *testing.T) {
	const epsilon, delta = 3, 1e-4
	f := startAudit(t, 12)
	event := func(id string, epsilon float64) func(bool) bool {
		next := turns(auditReleases, func(turn int) pair { return neighbours(f, fmt.Sprintf("%s-%d", id, turn)) })
		return func(second bool) bool {
			p := next()
			resp, err := f.Releases().ReleaseFront(t.Context(), &dparetov1.ReleaseFrontRequest{Name: p.names[truth(second)], Epsilon: epsilon, Delta: delta})
			require.NoError(t, err)
			return publishes(resp.GetRelease(), p.favourite)
		}
	}
	privacytest.Audit{Epsilon: epsilon, Delta: delta, Runs: auditRuns / 2, Power: 0.05, Event: event("right", epsilon), Broken: event("broken", 12*epsilon)}.Check(t)
}

// truth returns 1 for true.
func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// From a worker's report to a published front: one value of a study tells two test sets
// apart that differ in a record by no more than it says; two records are found out.
func TestPrivateModeAudit(t *testing.T) {
	const records, runs, delta, trials = 4, 800, 0.01, 50
	f := startAudit(t, 3)
	spec := servertest.PrivateSpec(trials, 1e6)
	spec.PrivateMode.TestSetSize, spec.PrivateMode.TestEpsilon = records, 65 // of all values
	create := func(turn int) string { return f.Create(fmt.Sprintf("s%d", turn), spec) }
	sigma := f.Study(create(-1)).GetPublication().GetNoiseStandardDeviation()
	epsilon, err := transcript.TestEpsilon(records, 1, sigma, delta)
	require.NoError(t, err)
	study := turns(trials, create)
	value := func(wrong float64) float64 { // of so many records
		return f.Tell(f.One(study(), "w"), wrong/records).GetFinalMeasurement().GetMetrics()["error"].GetValue()
	}
	event := func(first, second, threshold float64) func(bool) bool { // the last in units of the noise
		return func(isSecond bool) bool {
			wrong := first
			if isSecond {
				wrong = second
			}
			return value(wrong) < first/records+threshold*sigma
		}
	}
	privacytest.Audit{Epsilon: epsilon, Delta: delta, Runs: runs, Power: 0.2, Event: event(1, 2, -0.5), Broken: event(1, 4, 1)}.Check(t)
}
