// Package webtest starts a server with its page for tests, and fills it with studies.
package webtest

import (
	"context"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/rest"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/bolt"
	"github.com/dpareto/dpareto/server/web"
)

// Site is a server with its page.
type Site struct {
	*httptest.Server

	Conn *rest.Local
	Stop func() // the server, not its page
}

// New starts a server with a page and an empty store.
func New(t testing.TB, o server.Options) *Site {
	t.Helper()
	db, err := bolt.Open(t.TempDir() + "/test.db")
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	if o.Store, err = store.New(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	srv := server.New(o)
	t.Cleanup(srv.Close)
	g := srv.GRPC()
	conn, err := rest.Connect(g)
	require.NoError(t, err)
	t.Cleanup(func() {
		srv.Drain()
		g.Stop()
		_ = conn.Close()
	})
	handler, err := web.Handler(conn, web.Options{SignIn: o.Auth != nil})
	require.NoError(t, err)
	s := &Site{httptest.NewServer(handler), conn, srv.Drain}
	t.Cleanup(s.Close)
	return s
}

// Get returns the body of a page, which must have a status.
func (s *Site) Get(t testing.TB, path string, want int) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, http.NoBody)
	require.NoError(t, err)
	resp, err := s.Client().Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	if resp.StatusCode != want {
		t.Fatalf("GET %s: %s\n%s", path, resp.Status, body)
	}
	return string(body)
}

// SimpleSpec is a question with two objectives and a random designer.
func SimpleSpec() *dparetov1.StudySpec {
	reference := 1.0
	objective := func(id string) *dparetov1.MetricSpec {
		return &dparetov1.MetricSpec{
			Id: id, Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE, ReferenceValue: &reference,
			Transform: dparetov1.Transform_TRANSFORM_IDENTITY, Source: &dparetov1.MetricSpec_Reported{Reported: new(dparetov1.ReportedSource)},
		}
	}
	return &dparetov1.StudySpec{
		Parameters: []*dparetov1.ParameterSpec{{Id: "x", Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Max: 1}}, Scale: dparetov1.Scale_SCALE_LINEAR}},
		Metrics:    []*dparetov1.MetricSpec{objective("a"), objective("b")},
		Algorithm:  &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_RANDOM},
		Budget:     &dparetov1.Budget{MaxTrials: 10},
	}
}

// Send makes a request with a form, nil for none, and a token, "" for none. It follows no redirect.
func (s *Site) Send(t testing.TB, method, path, token string, form url.Values) (code int, body string, header http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(form.Encode()))
	require.NoError(t, err)
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := s.Client().Transport.RoundTrip(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	content, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(content), resp.Header
}

// Create creates a study on behalf of a caller.
func (s *Site) Create(ctx context.Context, t testing.TB, id string, study *dparetov1.Study) {
	t.Helper()
	studies := dparetov1.NewStudyServiceClient(s.Conn)
	resp, err := studies.CreateStudy(ctx, &dparetov1.CreateStudyRequest{StudyId: id, Study: study})
	require.NoError(t, err)
	for state := resp.GetStudy().GetState(); state == dparetov1.StudyState_STUDY_STATE_PREPARING; time.Sleep(time.Millisecond) {
		got, err := studies.GetStudy(ctx, &dparetov1.GetStudyRequest{Name: resp.GetStudy().GetName()})
		require.NoError(t, err)
		state = got.GetStudy().GetState()
	}
}

// Train runs trials of a study of TrainedSpec.
func (s *Site) Train(ctx context.Context, t testing.TB, id string, trials int, seeded bool) {
	t.Helper()
	studies := dparetov1.NewStudyServiceClient(s.Conn)
	for range trials {
		resp, err := studies.SuggestTrials(ctx, &dparetov1.SuggestTrialsRequest{Parent: "studies/" + id, WorkerId: "gpu-1"})
		if err != nil || len(resp.GetTrials()) != 1 {
			t.Fatalf("suggest: %v %v", resp, err)
		}
		trial := resp.GetTrials()[0]
		epochs := trial.GetParameters()["epochs"].GetIntValue()
		at := func(epoch int64) *dparetov1.Measurement {
			value := errorOf(trial.GetParameters()["noise"].GetDoubleValue(), epoch)
			return &dparetov1.Measurement{Step: epoch, Seeded: seeded, Metrics: map[string]*dparetov1.MetricValue{"error": {Value: &value}}}
		}
		for epoch := int64(1); epoch < epochs; epoch++ {
			if _, err := studies.AddMeasurement(ctx, &dparetov1.AddMeasurementRequest{Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: at(epoch)}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := studies.CompleteTrial(ctx, &dparetov1.CompleteTrialRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: at(epochs)},
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// TrainedSpec is a study of DP-SGD with epochs as checkpoints, a category and a parameter that depends on
// it.
func TrainedSpec() *dparetov1.StudySpec {
	reference, errorReference := 20.0, 1.0
	seed := uint64(7)
	return &dparetov1.StudySpec{
		Parameters: []*dparetov1.ParameterSpec{
			{Id: "epochs", Scale: dparetov1.Scale_SCALE_LINEAR, Domain: &dparetov1.ParameterSpec_IntegerDomain{IntegerDomain: &dparetov1.IntegerDomain{Min: 1, Max: 20}}},
			{Id: "noise", Scale: dparetov1.Scale_SCALE_LOG, Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Min: 0.5, Max: 8}}},
			{Id: "optimizer", Domain: &dparetov1.ParameterSpec_CategoricalDomain{CategoricalDomain: &dparetov1.CategoricalDomain{Categories: []string{"sgd", "adam"}}}},
			{
				Id: "beta", Scale: dparetov1.Scale_SCALE_LINEAR, Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Min: 0.5, Max: 1}},
				Condition: &dparetov1.Condition{Parent: "optimizer", Values: []*dparetov1.Value{Word("adam")}},
			},
		},
		Metrics: []*dparetov1.MetricSpec{
			{
				Id: "epsilon", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE, Transform: dparetov1.Transform_TRANSFORM_LOG, ReferenceValue: &reference,
				Source: &dparetov1.MetricSpec_Computed{Computed: &dparetov1.ComputedSource{Function: &dparetov1.ComputedSource_Privacy{Privacy: &dparetov1.PrivacySpec{
					Mechanism: &dparetov1.PrivacySpec_DpSgd{DpSgd: &dparetov1.DpSgdMechanism{
						Sampling: dparetov1.Sampling_SAMPLING_POISSON, NoiseMultiplier: "noise", SamplingProbability: "0.1", Length: &dparetov1.DpSgdMechanism_Steps{Steps: "10 * epochs"},
					}},
					Delta: 1e-5, Adjacency: dparetov1.Adjacency_ADJACENCY_ADD_REMOVE, Accountant: dparetov1.Accountant_ACCOUNTANT_RDP, Conversion: dparetov1.Conversion_CONVERSION_IMPROVED,
				}}}},
			},
			{
				Id: "error", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE, Transform: dparetov1.Transform_TRANSFORM_LOGIT, ReferenceValue: &errorReference,
				Source: &dparetov1.MetricSpec_Reported{Reported: &dparetov1.ReportedSource{SampleSize: 1000}},
			},
		},
		CheckpointParameter: "epochs",
		Algorithm:           &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_RANDOM},
		Budget:              &dparetov1.Budget{MaxTrials: 200},
		Trainer:             &dparetov1.TrainerSpec{Name: "logistic", Settings: map[string]string{"dataset": "adult"}},
		Seed:                &seed,
	}
}

// errorOf is the error of a training that follows a simple law.
func errorOf(noise float64, epoch int64) float64 {
	return 0.1 + 0.05*math.Log2(1+noise) + 0.4/float64(1+epoch)
}

// Number is a value of a double parameter.
func Number(x float64) *dparetov1.Value {
	return &dparetov1.Value{Kind: &dparetov1.Value_DoubleValue{DoubleValue: x}}
}

// Whole is a value of an integer parameter.
func Whole(x int64) *dparetov1.Value {
	return &dparetov1.Value{Kind: &dparetov1.Value_IntValue{IntValue: x}}
}

// Word is a value of a categorical parameter.
func Word(x string) *dparetov1.Value {
	return &dparetov1.Value{Kind: &dparetov1.Value_StringValue{StringValue: x}}
}

// Contains fails the test unless a text has all of some parts, and none of those that begin with "!".
func Contains(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		absent := strings.HasPrefix(part, "!")
		if strings.Contains(text, strings.TrimPrefix(part, "!")) == absent {
			t.Errorf("%q (wanted absent: %v) in\n%s", strings.TrimPrefix(part, "!"), absent, text)
		}
	}
}
