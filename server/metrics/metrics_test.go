package metrics_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc/codes"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/metrics"
)

// full returns metrics with a sample of everything.
func full() *metrics.Metrics {
	m := metrics.New("v1.2.3")
	method := m.Method("/dpareto.v1.StudyService/GetStudy")
	method.Begin()
	method.End(codes.OK, time.Millisecond)
	method.Begin()
	method.End(codes.Code(99), time.Millisecond) // of a newer gRPC
	m.TrialMoved(dparetov1.TrialState_TRIAL_STATE_QUEUED, dparetov1.TrialState_TRIAL_STATE_ACTIVE)
	m.LeasesExpired(2)
	m.Suggested("default", false)
	m.Suggested("quasi_random", true)
	m.Prepared(true)
	m.Prepared(false)
	for _, phase := range []string{metrics.PhaseHistory, metrics.PhaseFit, metrics.PhaseSearch, metrics.PhaseCommit} {
		m.Phase(phase, time.Second)
	}
	m.Fitted(32)
	m.PoolWaiting(metrics.PoolAnalysis, 3)
	m.PoolWaiting(metrics.PoolAnalysis, -1)
	m.PoolWaited(metrics.PoolSuggestion, time.Second)
	m.Updated(time.Millisecond, false)
	m.Updated(time.Millisecond, true)
	m.Writable(true)
	m.CountStudies(func(context.Context) (*metrics.Totals, error) {
		return &metrics.Totals{Studies: map[string]int64{"active": 3}, Trials: dparetov1.TrialCounts{Active: 4}, Hypervolumes: map[string]float64{"svt": 8.5}}, nil
	})
	m.CountStore(func() metrics.StoreStats {
		return metrics.StoreStats{
			Commits: 10, Updates: 40, Syncs: 20, Failures: 1, Bytes: 1 << 20,
			Database: &metrics.DatabaseStats{Conflicts: 6, Retries: 7, Waits: 8, WaitTime: 1500 * time.Millisecond, Connections: 9},
		}
	})
	m.CountConnections(func() []metrics.ConnectionStats {
		return []metrics.ConnectionStats{{Listener: "grpc", Open: 5, Refused: 2, ByClient: 3, ByServer: 1}}
	})
	return m
}

// The names follow the conventions of Prometheus.
func TestNames(t *testing.T) {
	problems, err := testutil.GatherAndLint(full().Gatherer())
	require.NoError(t, err)
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestScrape(t *testing.T) {
	answer := httptest.NewRecorder()
	full().Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if answer.Code != http.StatusOK {
		t.Fatalf("HTTP status %d", answer.Code)
	}
	lines := strings.Split(answer.Body.String(), "\n")
	for _, want := range []string{
		`dpareto_requests_total{code="OK",method="GetStudy",service="StudyService"} 1`,
		`dpareto_requests_total{code="Unknown",method="GetStudy",service="StudyService"} 1`,
		`dpareto_trial_transitions_total{from="queued",to="active"} 1`,
		`dpareto_lease_expiries_total 2`,
		`dpareto_suggestions_total{designer="quasi_random"} 1`,
		`dpareto_suggestion_fallbacks_total 1`,
		`dpareto_prepared_suggestions_total{result="hit"} 1`,
		`dpareto_prepared_suggestions_total{result="miss"} 1`,
		`dpareto_suggestion_phase_duration_seconds_sum{phase="fit"} 1`,
		`dpareto_surrogate_observations_bucket{le="32"} 1`,
		`dpareto_surrogate_observations_bucket{le="16"} 0`,
		`dpareto_pool_waiting_computations{kind="analysis"} 2`,
		`dpareto_pool_wait_seconds_sum{kind="suggestion"} 1`,
		`dpareto_store_update_duration_seconds_count 2`,
		`dpareto_store_update_failures_total 1`,
		`dpareto_store_writable 1`,
		`dpareto_store_commits_total 10`,
		`dpareto_store_committed_updates_total 40`,
		`dpareto_store_commit_failures_total 1`,
		`dpareto_store_syncs_total 20`,
		`dpareto_store_size_bytes 1.048576e+06`,
		`dpareto_store_conflicts_total 6`,
		`dpareto_store_retries_total 7`,
		`dpareto_store_connection_waits_total 8`,
		`dpareto_store_connection_wait_seconds_total 1.5`,
		`dpareto_store_connections 9`,
		`dpareto_studies{state="active"} 3`,
		`dpareto_trials{state="active"} 4`,
		`dpareto_study_hypervolume{study="svt"} 8.5`,
	} {
		found := false
		for _, line := range lines {
			found = found || line == want
		}
		if !found {
			t.Errorf("no line %s", want)
		}
	}
	for _, prefix := range []string{"go_goroutines ", "process_open_fds ", `dpareto_build_info{goversion="go1.`} {
		if !strings.Contains(answer.Body.String(), "\n"+prefix) {
			t.Errorf("no line that begins with %s", prefix)
		}
	}
}

// A store that cannot be read leaves the other metrics readable.
func TestScrapeWithoutStore(t *testing.T) {
	m := full()
	m.CountStudies(func(context.Context) (*metrics.Totals, error) { return nil, errors.New("closed") })
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), "dpareto_lease_expiries_total 2") ||
		strings.Contains(answer.Body.String(), "dpareto_trials{") {
		t.Errorf("HTTP status %d\n%s", answer.Code, answer.Body)
	}
}
