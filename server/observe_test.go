package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/metrics"
	"github.com/dpareto/dpareto/server/servertest"
)

// What is scraped is what was done.
func TestMetrics(t *testing.T) {
	m := metrics.New("test")
	f := servertest.StartWith(t, func(o *server.Options) { o.Metrics = m })
	spec := servertest.SVTSpec()
	*spec.GetMetrics()[0].ReferenceValue = 1e6 // so that every trial counts
	study := f.Create("a", spec)
	trials := f.Ask(study, "first", 3).GetTrials()
	f.Tell(trials[0], 0.25)
	failed := servertest.Completion(trials[1])
	failed.Outcome = &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: "the disk is full"}}
	require.NoError(t, require.ErrOf(f.Studies.CompleteTrial(t.Context(), failed)))
	f.Clock.Advance(24 * 3600 * 1e9)
	if again := f.One(study, "second"); again.GetNumber() != trials[2].GetNumber() {
		t.Fatalf("trial %d was handed out again", again.GetNumber())
	}
	_, err := f.Studies.GetStudy(t.Context(), &dparetov1.GetStudyRequest{Name: "studies/b"})
	servertest.WantCode(t, err, codes.NotFound, "studies/b")
	front, err := f.Fronts.GetFront(t.Context(), &dparetov1.GetFrontRequest{Name: study, Kind: dparetov1.FrontKind_FRONT_KIND_OBSERVED})
	require.NoError(t, err)
	want := fmt.Sprintf(`# HELP dpareto_lease_expiries_total Expired leases, counted when their trials are handed out again, settled or given up.
# TYPE dpareto_lease_expiries_total counter
dpareto_lease_expiries_total 1
# HELP dpareto_requests_in_flight Calls in progress, including streams.
# TYPE dpareto_requests_in_flight gauge
dpareto_requests_in_flight{method="CompleteTrial",service="StudyService"} 0
dpareto_requests_in_flight{method="CreateStudy",service="StudyService"} 0
dpareto_requests_in_flight{method="GetFront",service="FrontService"} 0
dpareto_requests_in_flight{method="GetStudy",service="StudyService"} 0
dpareto_requests_in_flight{method="SuggestTrials",service="StudyService"} 0
# HELP dpareto_requests_total Completed calls, by method and code.
# TYPE dpareto_requests_total counter
dpareto_requests_total{code="NotFound",method="GetStudy",service="StudyService"} 1
dpareto_requests_total{code="OK",method="CompleteTrial",service="StudyService"} 2
dpareto_requests_total{code="OK",method="CreateStudy",service="StudyService"} 1
dpareto_requests_total{code="OK",method="GetFront",service="FrontService"} 1
dpareto_requests_total{code="OK",method="SuggestTrials",service="StudyService"} 2
# HELP dpareto_studies Studies in the store, by state.
# TYPE dpareto_studies gauge
dpareto_studies{state="active"} 1
dpareto_studies{state="completed"} 0
dpareto_studies{state="paused"} 0
dpareto_studies{state="preparing"} 0
# HELP dpareto_study_hypervolume Hypervolume within the reference values that the measured results of a study dominate, for the studies with the latest results.
# TYPE dpareto_study_hypervolume gauge
dpareto_study_hypervolume{study="a"} %v
# HELP dpareto_suggestion_fallbacks_total Trials created from suggestions of another designer because the study's designer failed.
# TYPE dpareto_suggestion_fallbacks_total counter
dpareto_suggestion_fallbacks_total 0
# HELP dpareto_suggestions_total Trials created from suggestions, by the designer that made the suggestion.
# TYPE dpareto_suggestions_total counter
dpareto_suggestions_total{designer="random"} 3
# HELP dpareto_trial_transitions_total State transitions of trials; from none at creation, to none at deletion.
# TYPE dpareto_trial_transitions_total counter
dpareto_trial_transitions_total{from="active",to="failed"} 1
dpareto_trial_transitions_total{from="active",to="succeeded"} 1
dpareto_trial_transitions_total{from="none",to="active"} 3
# HELP dpareto_trials Trials in the store, by state.
# TYPE dpareto_trials gauge
dpareto_trials{state="active"} 1
dpareto_trials{state="failed"} 1
dpareto_trials{state="infeasible"} 0
dpareto_trials{state="queued"} 0
dpareto_trials{state="stopping"} 0
dpareto_trials{state="succeeded"} 1
`, front.GetFront().GetHypervolume())
	if front.GetFront().GetHypervolume() == 0 {
		t.Error("the front has no hypervolume to compare with")
	}
	names := []string{
		"dpareto_lease_expiries_total", "dpareto_requests_in_flight", "dpareto_requests_total", "dpareto_studies",
		"dpareto_study_hypervolume", "dpareto_suggestion_fallbacks_total", "dpareto_suggestions_total",
		"dpareto_trial_transitions_total", "dpareto_trials",
	}
	if err := testutil.GatherAndCompare(m.Gatherer(), strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
	counts := histogramCounts(t, m)
	for name, want := range map[string]uint64{
		"dpareto_request_duration_seconds SuggestTrials": 2, "dpareto_request_duration_seconds CompleteTrial": 2,
		"dpareto_store_update_duration_seconds": 5, // of the five changes
	} {
		if counts[name] != want {
			t.Errorf("%s: %d observations, want %d", name, counts[name], want)
		}
	}
}

// The gauge of the hypervolume is that of GetFront, also after changes that leave the number of
// measurements as it was.
func TestHypervolumeGauge(t *testing.T) {
	m := metrics.New("test")
	f := servertest.StartWith(t, func(o *server.Options) { o.Metrics = m })
	spec := servertest.SGDSpec()
	study := f.Create("sgd", spec)
	want := func(after string) float64 {
		t.Helper()
		front := f.Front(study, dparetov1.FrontKind_FRONT_KIND_OBSERVED).GetHypervolume()
		if got := gauge(t, m, "dpareto_study_hypervolume"); got != front || got == 0 {
			t.Errorf("after %s: the gauge is %v, the front has %v", after, got, front)
		}
		return front
	}
	var last *dparetov1.Trial
	for i := range 3 {
		last = f.Tell(f.One(study, "w"), 0.4-0.1*float64(i))
	}
	before := want("three trials")
	tight := proto.CloneOf(spec.GetMetrics()[0].GetComputed().GetPrivacy())
	tight.Accountant, tight.Conversion = dparetov1.Accountant_ACCOUNTANT_EXACT, dparetov1.Conversion_CONVERSION_UNSPECIFIED
	f.Reaccount(study, tight, false)
	if after := want("ReaccountStudy"); after <= before {
		t.Errorf("the hypervolume is %v after, and was %v before", after, before)
	}
	require.NoError(t, require.ErrOf(f.Studies.DeleteTrial(t.Context(), &dparetov1.DeleteTrialRequest{Name: last.GetName()})))
	f.Tell(f.One(study, "w"), 0.5)
	want("one trial in place of another")
}

// gauge returns the value of a gauge with one series.
func gauge(t *testing.T, m *metrics.Metrics, name string) float64 {
	t.Helper()
	families, err := m.Gatherer().Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == name && len(family.GetMetric()) == 1 {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("%s does not have one series", name)
	return 0
}

// histogramCounts returns the number of observations by name, and method or phase.
func histogramCounts(t *testing.T, m *metrics.Metrics) map[string]uint64 {
	t.Helper()
	families, err := m.Gatherer().Gather()
	require.NoError(t, err)
	counts := make(map[string]uint64)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				if label.GetName() == "method" || label.GetName() == "phase" {
					name += " " + label.GetValue()
				}
			}
			if metric.GetHistogram() != nil {
				counts[name] = metric.GetHistogram().GetSampleCount()
			}
		}
	}
	return counts
}

// modelled is a study whose third trial needs a model.
func modelled() *dparetov1.StudySpec {
	spec := servertest.SVTSpec()
	spec.Algorithm = &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_DPARETO, InitialTrials: 2}
	return spec
}

// A trace goes from the client through the server to the phases of the suggestion and
// the store.
func TestTraces(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	m := metrics.New("test")
	f := servertest.StartWith(t, func(o *server.Options) { o.TracerProvider, o.Metrics = provider, m },
		grpc.WithStatsHandler(otelgrpc.NewClientHandler(otelgrpc.WithTracerProvider(provider), otelgrpc.WithPropagators(propagation.TraceContext{}))))
	study := f.Create("a", modelled())
	for _, trial := range f.Ask(study, "w", 2).GetTrials() {
		f.Tell(trial, 0.3)
	}
	before := histogramCounts(t, m)
	spans.Reset()
	ctx, root := provider.Tracer("test").Start(t.Context(), "worker")
	require.NoError(t, require.ErrOf(f.Studies.SuggestTrials(ctx, &dparetov1.SuggestTrialsRequest{Parent: study, WorkerId: "w", Count: 2})))
	root.End()
	after := histogramCounts(t, m)
	parents := make(map[string]string)
	var names []string
	byID := make(map[string]string)
	f.Stop() // all spans have ended
	for _, span := range spans.GetSpans() {
		byID[span.SpanContext.SpanID().String()] = span.Name + " " + span.SpanKind.String()
	}
	for _, span := range spans.GetSpans() {
		if span.SpanContext.TraceID() != root.SpanContext().TraceID() {
			continue // of a suggestion that was prepared in the background
		}
		parents[span.Name+" "+span.SpanKind.String()] = byID[span.Parent.SpanID().String()]
		names = append(names, span.Name)
		for _, attribute := range span.Attributes {
			if attribute.Key == "dpareto.study" && attribute.Value.AsString() != "a" {
				t.Errorf("%s: study %v", span.Name, attribute.Value)
			}
		}
	}
	const call = "dpareto.v1.StudyService/SuggestTrials"
	for child, parent := range map[string]string{
		call + " client":              "worker internal",
		call + " server":              call + " client",
		"suggestion history internal": call + " server",
		"suggestion fit internal":     call + " server",
		"suggestion search internal":  call + " server",
		"suggestion commit internal":  call + " server",
		"store update internal":       call + " server",
	} {
		if got, ok := parents[child]; !ok || got != parent {
			t.Errorf("span %q has the parent %q, want %q; spans: %q", child, got, parent, names)
		}
	}
	if n := len(slices.DeleteFunc(names, func(name string) bool { return name != "suggestion search" })); n != 2 {
		t.Errorf("%d searches for two trials", n)
	}
	for phase, want := range map[string]uint64{"history": 1, "fit": 1, "search": 2, "commit": 1} {
		name := "dpareto_suggestion_phase_duration_seconds " + phase
		if n := after[name] - before[name]; n < want {
			t.Errorf("%s: %d observations, want %d", name, n, want)
		}
	}
	if after["dpareto_surrogate_observations"] == 0 {
		t.Error("the size of the model was not noted")
	}
}

// Records of the log name the request, the study and the trial, and no secret.
func TestLog(t *testing.T) {
	var log bytes.Buffer
	f := servertest.StartWith(t, func(o *server.Options) {
		o.Logger = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	study := f.Create("a", servertest.SVTSpec())
	trial := f.One(study, "w")
	f.Tell(trial, 0.5)
	var header metadata.MD
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-request-id", "mine", "authorization", "Bearer secret-token")
	_, err := f.Studies.CompleteTrial(ctx, servertest.Completion(trial, 0.25), grpc.Header(&header))
	servertest.WantCode(t, err, codes.FailedPrecondition, "already")
	if got := header.Get("x-request-id"); len(got) != 1 || got[0] != "mine" {
		t.Errorf("request id %q in the answer", got)
	}
	_, err = f.Studies.GetTrial(metadata.AppendToOutgoingContext(t.Context(), "x-request-id", "a b"),
		&dparetov1.GetTrialRequest{Name: "studies/a/trials/9"}, grpc.Header(&header))
	servertest.WantCode(t, err, codes.NotFound, "trials/9")
	if got := header.Get("x-request-id"); len(got) != 1 || len(got[0]) != 16 {
		t.Errorf("request id %q in the answer to one that is not printable", got)
	}
	f.Stop()
	refused := 0
	for line := range strings.Lines(log.String()) {
		var record map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &record))
		if record["request_id"] == nil {
			t.Errorf("no request id: %s", line)
		}
		if record["msg"] != "call refused" {
			continue
		}
		refused++
		for key, want := range map[string]string{
			"level": "INFO", "request_id": "mine", "method": "dpareto.v1.StudyService/CompleteTrial",
			"study": "a", "trial": "1", "code": "FailedPrecondition",
		} {
			if record[key] != want {
				t.Errorf("%s is %v, want %s: %s", key, record[key], want, line)
			}
		}
	}
	if refused != 1 {
		t.Errorf("%d records of one refused change:\n%s", refused, log.String())
	}
	for _, secret := range []string{trial.GetLease().GetToken(), "secret-token"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log has %q:\n%s", secret, log.String())
		}
	}
}

// A server that is about to stop says so, and goes on serving.
func TestDraining(t *testing.T) {
	f := servertest.Start(t)
	check := func(service string) healthv1.HealthCheckResponse_ServingStatus {
		t.Helper()
		resp, err := healthv1.NewHealthClient(f.Conn).Check(context.Background(), &healthv1.HealthCheckRequest{Service: service})
		require.NoError(t, err)
		return resp.GetStatus()
	}
	services := []string{"", "dpareto.v1.StudyService", "dpareto.v1.FrontService", "dpareto.v1.PrivacyService", "dpareto.v1.ReleaseService", "dpareto.v1.AdminService"}
	for _, service := range services {
		if got := check(service); got != healthv1.HealthCheckResponse_SERVING {
			t.Errorf("%q is %v", service, got)
		}
	}
	if err := f.Server.Ready(); err != nil {
		t.Error(err)
	}
	f.Server.Drain()
	for _, service := range services {
		if got := check(service); got != healthv1.HealthCheckResponse_NOT_SERVING {
			t.Errorf("%q is %v while draining", service, got)
		}
	}
	if err := f.Server.Ready(); err == nil || !strings.Contains(err.Error(), "shutting down") {
		t.Errorf("ready: %v", err)
	}
	f.Create("a", servertest.SVTSpec())
}
