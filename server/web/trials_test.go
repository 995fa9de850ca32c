package web_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/auth"
)

// stringValue, intValue and doubleValue are values of parameters.
func stringValue(s string) *dparetov1.Value {
	return &dparetov1.Value{Kind: &dparetov1.Value_StringValue{StringValue: s}}
}

func intValue(n int64) *dparetov1.Value {
	return &dparetov1.Value{Kind: &dparetov1.Value_IntValue{IntValue: n}}
}

func doubleValue(x float64) *dparetov1.Value {
	return &dparetov1.Value{Kind: &dparetov1.Value_DoubleValue{DoubleValue: x}}
}

// trainedSpec is a study of DP-SGD with epochs as checkpoints, a category and a parameter that depends on
// it.
func trainedSpec() *dparetov1.StudySpec {
	reference, errorReference := 20.0, 1.0
	seed := uint64(7)
	return &dparetov1.StudySpec{
		Parameters: []*dparetov1.ParameterSpec{
			{Id: "epochs", Scale: dparetov1.Scale_SCALE_LINEAR, Domain: &dparetov1.ParameterSpec_IntegerDomain{IntegerDomain: &dparetov1.IntegerDomain{Min: 1, Max: 20}}},
			{Id: "noise", Scale: dparetov1.Scale_SCALE_LOG, Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Min: 0.5, Max: 8}}},
			{Id: "optimizer", Domain: &dparetov1.ParameterSpec_CategoricalDomain{CategoricalDomain: &dparetov1.CategoricalDomain{Categories: []string{"sgd", "adam"}}}},
			{
				Id: "beta", Scale: dparetov1.Scale_SCALE_LINEAR, Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Min: 0.5, Max: 1}},
				Condition: &dparetov1.Condition{Parent: "optimizer", Values: []*dparetov1.Value{stringValue("adam")}},
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

// studyAs creates a study on behalf of a caller.
func (s *site) studyAs(ctx context.Context, t testing.TB, id string, study *dparetov1.Study) {
	t.Helper()
	_, err := dparetov1.NewStudyServiceClient(s.conn).CreateStudy(ctx, &dparetov1.CreateStudyRequest{StudyId: id, Study: study})
	if err != nil {
		t.Fatal(err)
	}
}

// train runs trials of a study of trainedSpec.
func (s *site) train(ctx context.Context, t testing.TB, id string, trials int, seeded bool) {
	t.Helper()
	studies := dparetov1.NewStudyServiceClient(s.conn)
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

// send makes a request with a form, nil for none, and a token, "" for none. It follows no redirect.
func (s *site) send(t testing.TB, method, path, token string, form url.Values) (code int, body string, header http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := s.Client().Transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(content), resp.Header
}

// wants fails the test unless a text has all of some parts, and none of those that begin with "!".
func wants(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		absent := strings.HasPrefix(part, "!")
		if strings.Contains(text, strings.TrimPrefix(part, "!")) == absent {
			t.Errorf("%s: %q (wanted absent: %v) in\n%s", what, strings.TrimPrefix(part, "!"), absent, text)
		}
	}
}

// numbers returns the numbers of the trials in a table, in its order.
func numbers(body string) []string {
	var all []string
	for _, m := range regexp.MustCompile(`id="trial-(\d+)"`).FindAllStringSubmatch(body, -1) {
		all = append(all, m[1])
	}
	return all
}

// link returns the target of the link with a relation.
func link(t *testing.T, body, rel string) string {
	t.Helper()
	m := regexp.MustCompile(`<a rel="` + rel + `" href="([^"]+)"`).FindStringSubmatch(body)
	if m == nil {
		t.Fatalf("no link %s in\n%s", rel, body)
	}
	return strings.ReplaceAll(m[1], "&amp;", "&")
}

func TestTrialsTable(t *testing.T) {
	s := newSite(t, server.Options{})
	s.studyAs(t.Context(), t, "first", &dparetov1.Study{Spec: trainedSpec()})
	s.train(t.Context(), t, "first", 120, false)
	first := s.get(t, "/studies/first/trials", http.StatusOK)
	if got := numbers(first); len(got) != 50 || got[0] != "120" || got[49] != "71" {
		t.Errorf("the first page has %v", got)
	}
	wants(t, "first page", first, "δ = 1e-5", "add-remove", "upper bound", `sse-swap="trials-table"`, "part=state&amp;part=trials-table\"", `aria-sort="descending"`, "!Previous")
	second := s.get(t, link(t, first, "next"), http.StatusOK)
	third := s.get(t, link(t, second, "next"), http.StatusOK)
	if got := numbers(third); len(got) != 20 || got[0] != "20" || got[19] != "1" {
		t.Errorf("the third page has %v", got)
	}
	wants(t, "third page", third, `sse-swap="trials-news"`, "!>Next<", ">First<")
	if back := s.get(t, link(t, third, "prev"), http.StatusOK); !slices.Equal(numbers(back), numbers(second)) {
		t.Errorf("the page before the third has %v", numbers(back))
	}

	sorted := s.get(t, "/studies/first/trials?order_by="+url.QueryEscape("metrics.error"), http.StatusOK)
	wants(t, "sorted", sorted, `aria-sort="ascending"`, "order_by=metrics.error&#43;desc")
	resp, err := dparetov1.NewStudyServiceClient(s.conn).ListTrials(t.Context(), &dparetov1.ListTrialsRequest{Parent: "studies/first", OrderBy: "metrics.error", PageSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got := numbers(sorted); got[0] != fmt.Sprint(resp.GetTrials()[0].GetNumber()) {
		t.Errorf("the trial with the smallest error is %s, the contract says %d", got[0], resp.GetTrials()[0].GetNumber())
	}
	if got := numbers(s.get(t, "/studies/first/trials?filter="+url.QueryEscape("number <= 3 OR number = 9"), http.StatusOK)); !slices.Equal(got, []string{"9", "3", "2", "1"}) {
		t.Errorf("filtered: %v", got)
	}
	if got := numbers(s.get(t, "/studies/first/trials?state=failed&filter="+url.QueryEscape("number <= 3 OR number = 9"), http.StatusOK)); got != nil {
		t.Errorf("filtered by state too: %v", got)
	}
	bad := s.get(t, "/studies/first/trials?filter="+url.QueryEscape(`number <=<b> "x`), http.StatusUnprocessableEntity)
	wants(t, "invalid filter", bad, `aria-invalid="true"`, `role="alert"`, `value="number &lt;=&lt;b&gt; &#34;x"`, "!<b> ")
	s.get(t, "/studies/first/trials?page_token=nonsense", http.StatusUnprocessableEntity)
}

// A table that does not follow the study says what has changed since.
func TestTrialsNews(t *testing.T) {
	s := newSite(t, server.Options{})
	s.studyAs(t.Context(), t, "first", &dparetov1.Study{Spec: trainedSpec()})
	s.train(t.Context(), t, "first", 3, false)
	body := s.get(t, "/studies/first/trials?order_by=number", http.StatusOK)
	since := regexp.MustCompile(`since=(\d+)`).FindStringSubmatch(body)
	if since == nil {
		t.Fatalf("no revision in %s", body)
	}
	path := "/studies/first/parts/trials-news?order_by=number&since=" + since[1]
	wants(t, "nothing new", s.get(t, path, http.StatusOK), "!changed")
	s.train(t.Context(), t, "first", 2, false)
	wants(t, "two new", s.get(t, path, http.StatusOK), "2 trials have changed", `href="/studies/first/trials?order_by=number"`)
	s.get(t, "/studies/first/parts/trials-news?since=x", http.StatusUnprocessableEntity)
}

// New trials appear in the table without a reload.
func TestTrialsLive(t *testing.T) {
	s := newSite(t, server.Options{})
	s.studyAs(t.Context(), t, "first", &dparetov1.Study{Spec: trainedSpec()})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/studies/first/live?part=trials-table", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	trained := false
	for lines.Scan() {
		switch {
		case strings.Contains(lines.Text(), "No trial."):
			s.train(t.Context(), t, "first", 1, false)
			trained = true
		case strings.Contains(lines.Text(), `id="trial-1"`):
			if !trained {
				t.Error("a trial before there is one")
			}
			return
		}
	}
	t.Fatal("the trial did not appear")
}

func TestTrial(t *testing.T) {
	s := newSite(t, server.Options{})
	spec := trainedSpec()
	spec.Algorithm = &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_EHVI, InitialTrials: 3}
	spec.DisableEarlyStopping = true
	s.studyAs(t.Context(), t, "first", &dparetov1.Study{Spec: spec})
	s.train(t.Context(), t, "first", 5, false)
	studies := dparetov1.NewStudyServiceClient(s.conn)
	resp, err := studies.GetTrial(t.Context(), &dparetov1.GetTrialRequest{Name: "studies/first/trials/5"})
	if err != nil {
		t.Fatal(err)
	}
	trial := resp.GetTrial()
	body := s.get(t, "/studies/first/trials/5", http.StatusOK)
	wants(t, "trial", body, "What the model expected", "data-series=", "ehvi", "at most ", "δ = 1e-5", "!sse-connect", "!Stop the trial", "Queue this configuration")
	if n := strings.Count(body, "data-series="); trial.GetParameters()["epochs"].GetIntValue() > 1 && n != 2 {
		t.Errorf("%d curves, want one of the error and one of ε", n)
	}
	// One that runs, after an attempt that was given back.
	suggested, err := studies.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/first", WorkerId: "gpu-2"})
	if err != nil {
		t.Fatal(err)
	}
	running := suggested.GetTrials()[0]
	if _, err := studies.ReleaseTrial(t.Context(), &dparetov1.ReleaseTrialRequest{Name: running.GetName(), LeaseToken: running.GetLease().GetToken(), Reason: "out of memory"}); err != nil {
		t.Fatal(err)
	}
	if _, err := studies.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/first", WorkerId: "gpu-3"}); err != nil {
		t.Fatal(err)
	}
	body = s.get(t, "/studies/first/trials/6", http.StatusOK)
	wants(t, "running trial", body, "released: out of memory", "gpu-2", "held by gpu-3", "sse-connect", "Stop the trial", `sse-swap="trial-detail"`)
	wants(t, "its part", s.get(t, "/studies/first/parts/trial-detail?trial=6", http.StatusOK), "held by gpu-3")
	s.get(t, "/studies/first/trials/99", http.StatusNotFound)
	s.get(t, "/studies/first/trials/x", http.StatusUnprocessableEntity)

	compared := s.get(t, "/studies/first/trials/compare?trial=1&trial=2&trial=5", http.StatusOK)
	wants(t, "comparison", compared, "Trial 1", "Trial 5", `class="differs"`, "≠", "δ = 1e-5", "data-series=", "trial 2: error")
	s.get(t, "/studies/first/trials/compare?trial=1", http.StatusUnprocessableEntity)
	s.get(t, "/studies/first/trials/compare?trial=1&trial=99", http.StatusNotFound)
	s.get(t, "/studies/first/trials/compare?trial=1&trial=x", http.StatusUnprocessableEntity)
}

// A seeded run has no ε, and every view says so.
func TestSeededTrials(t *testing.T) {
	s := newSite(t, server.Options{})
	s.studyAs(t.Context(), t, "first", &dparetov1.Study{Spec: trainedSpec()})
	s.train(t.Context(), t, "first", 4, true)
	wants(t, "table", s.get(t, "/studies/first/trials", http.StatusOK), "no ε holds", "seeded")
	wants(t, "trial", s.get(t, "/studies/first/trials/1", http.StatusOK), "No ε holds for this run", "SEEDED")
	wants(t, "comparison", s.get(t, "/studies/first/trials/compare?trial=1&trial=2", http.StatusOK), "no ε holds")
	wants(t, "report", s.get(t, "/studies/first/report", http.StatusOK), "no ε holds", "have no ε, since runs were seeded", "None: runs were seeded", "!ε at most 0", "!Largest ε of one run", "SEEDED")
}

// hostileText is text that would run as a script, end an attribute or an element, or start an event.
const hostileText = `"'></textarea></title></script><script>alert(1)</script><img src=x onerror=alert(2)>{{.}}`

// Text that users write stays text in every view.
func TestHostileText(t *testing.T) {
	s := newSite(t, server.Options{})
	ctx := t.Context()
	spec := trainedSpec()
	category := hostileText + "-category"
	spec.Parameters[2].GetCategoricalDomain().Categories = []string{category, "adam"}
	spec.Metrics[1].Unit = `"><script>alert(1)</script>`
	spec.Trainer = &dparetov1.TrainerSpec{Name: `"><script>alert(1)</script>`, Settings: map[string]string{`<script>k</script>`: hostileText}}
	s.studyAs(ctx, t, "first", &dparetov1.Study{DisplayName: hostileText, Description: hostileText, Labels: map[string]string{"<script>a</script>": hostileText}, Spec: spec})
	studies := dparetov1.NewStudyServiceClient(s.conn)
	value := 0.5
	for range 4 {
		created, err := studies.CreateTrial(ctx, &dparetov1.CreateTrialRequest{Parent: "studies/first", Trial: &dparetov1.Trial{
			Parameters: map[string]*dparetov1.Value{"epochs": intValue(3), "noise": doubleValue(1), "optimizer": stringValue(category)},
			Note:       hostileText, Labels: map[string]string{"<script>b</script>": hostileText},
			Attributes: map[string]*structpb.Value{"<script>c</script>": structpb.NewStringValue(hostileText)},
			Artifacts: []*dparetov1.Artifact{
				{Id: "<script>d</script>", Uri: "javascript:alert(1)"},
				{Id: "data", Uri: "data:text/html,<script>alert(1)</script>"},
				{Id: "upper", Uri: "JaVaScRiPt:alert(1)//https://example.org"},
				{Id: "good", Uri: "https://example.org/model.pt"},
			},
		}})
		if err != nil {
			t.Fatal(err)
		}
		resp, err := studies.SuggestTrials(ctx, &dparetov1.SuggestTrialsRequest{Parent: "studies/first", WorkerId: hostileText})
		if err != nil {
			t.Fatal(err)
		}
		trial := resp.GetTrials()[0]
		request := &dparetov1.CompleteTrialRequest{Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken()}
		switch created.GetTrial().GetNumber() {
		case 1:
			request.Outcome = &dparetov1.CompleteTrialRequest_Measurement{Measurement: &dparetov1.Measurement{Metrics: map[string]*dparetov1.MetricValue{"error": {Value: &value}}}}
		case 2:
			request.Outcome = &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: hostileText}}
		case 3:
			request.Outcome = &dparetov1.CompleteTrialRequest_Infeasible{Infeasible: &dparetov1.Infeasible{Reason: hostileText}}
		default:
			if _, err := studies.ReleaseTrial(ctx, &dparetov1.ReleaseTrialRequest{Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Reason: hostileText}); err != nil {
				t.Fatal(err)
			}
			if _, err := studies.SuggestTrials(ctx, &dparetov1.SuggestTrialsRequest{Parent: "studies/first", WorkerId: hostileText}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if _, err := studies.CompleteTrial(ctx, request); err != nil {
			t.Fatal(err)
		}
	}
	query := url.QueryEscape(hostileText)
	for path, code := range map[string]int{
		"/studies/first": 200, "/studies/first/trials": 200, "/studies/first/trials?order_by=number&filter=" + url.QueryEscape(`note:"script"`): 200,
		"/studies/first/trials?filter=" + query: 422, "/studies/first/trials?state=" + query: 422, "/studies/first/trials?order_by=" + query: 422, "/studies/first/trials?page_token=" + query: 422,
		"/studies/first/trials?trail=" + query: 200, "/studies/first/trials/1": 200, "/studies/first/trials/2": 200, "/studies/first/trials/3": 200, "/studies/first/trials/4": 200,
		"/studies/first/trials/compare?trial=1&trial=2": 200, "/studies/first/trials/compare?trial=1&trial=" + query: 422,
		"/studies/first/queue?parameters.optimizer=" + query + "&note=" + query: 200, "/studies/first/edit": 200, "/studies/first/report": 200, "/studies/first/report?download=1": 200,
		"/studies/first/report?epsilon=" + query: 422, "/studies/first/parts/trial-detail?trial=4": 200, "/studies/first/parts/trials-table": 200, "/studies/first/parts/trial-detail?trial=" + query: 422,
		"/studies/first/trials/%3Cscript%3E": 422, "/about": 200,
	} {
		body := s.get(t, path, code)
		for _, evil := range []string{"<script>alert", "<script>a<", "<script>b<", "<script>c<", "<script>d<", "<script>k<", "<img", "</textarea></title>", `href="javascript`, `href="JaVa`, `href="data:`, `style=`} {
			if strings.Contains(strings.ReplaceAll(body, "<style>", ""), evil) {
				t.Errorf("%s: %q in\n%s", path, evil, body)
			}
		}
	}
	wants(t, "artifacts", s.get(t, "/studies/first/trials/1", http.StatusOK),
		`<a href="https://example.org/model.pt" rel="noopener noreferrer nofollow">`, "<code>javascript:alert(1)</code>", "<code>JaVaScRiPt:alert(1)//https://example.org</code>")
}

// as returns a context for calls with a token.
func as(t testing.TB, token string) context.Context {
	return metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
}

// guardedSite starts a server that knows a viewer, a worker and an administrator, with their tokens.
func guardedSite(t *testing.T) (s *site, tokens map[string]string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "auth.yaml")
	tokens = make(map[string]string)
	for name, role := range map[string]auth.Role{"viewer": auth.Viewer, "worker": auth.Worker, "admin": auth.Admin} {
		made, token, err := auth.NewToken(auth.Credential{Name: name, Role: role})
		if err != nil {
			t.Fatal(err)
		}
		tokens[name] = token
		if err := auth.Change(file, func(all []*auth.Credential) ([]*auth.Credential, error) { return append(all, made), nil }); err != nil {
			t.Fatal(err)
		}
	}
	known, err := auth.Open(file, auth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return newSite(t, server.Options{Auth: known}), tokens
}

// A reader sees the buttons of the role, and the server refuses what a role may not do.
func TestRoles(t *testing.T) {
	s, tokens := guardedSite(t)
	s.studyAs(as(t, tokens["admin"]), t, "first", &dparetov1.Study{Spec: trainedSpec()})
	s.train(as(t, tokens["worker"]), t, "first", 1, false)
	if _, err := dparetov1.NewStudyServiceClient(s.conn).SuggestTrials(as(t, tokens["worker"]), &dparetov1.SuggestTrialsRequest{Parent: "studies/first", WorkerId: "w"}); err != nil {
		t.Fatal(err)
	}
	administer := []string{"/studies/first/pause", "/studies/first/resume", "/studies/first/edit", "/studies/first/budget"}
	work := []string{"/studies/first/queue", "/studies/first/trials/1/labels", "/studies/first/trials/2/stop"}
	form := url.Values{
		"max_trials": {"9"}, "parameters.epochs": {"2"}, "parameters.noise": {"1"}, "parameters.optimizer": {"sgd"}, "request_id": {"r"}, "labels": {"a=b"},
	}
	for _, role := range []string{"viewer", "worker", "admin"} {
		var pages strings.Builder
		for _, path := range []string{"/studies/first", "/studies/first/trials", "/studies/first/trials/1", "/studies/first/trials/2", "/studies/first/queue", "/studies/first/edit", "/studies/first/report", "/about"} {
			code, body, _ := s.send(t, http.MethodGet, path, tokens[role], nil)
			if code != http.StatusOK {
				t.Errorf("%s: GET %s: %d", role, path, code)
			}
			pages.WriteString(body)
		}
		for _, path := range slices.Concat(administer, work) {
			may := role == "admin" || role == "worker" && slices.Contains(work, path)
			shown := strings.Contains(pages.String(), `action="`+path+`"`)
			if shown != may && path != "/studies/first/resume" { // shown where the study is paused
				t.Errorf("%s: a form for %s is shown: %v", role, path, shown)
			}
			form.Set("request_id", role+path)
			if code, body, _ := s.send(t, http.MethodPost, path, tokens[role], form); (code == http.StatusSeeOther) != may || !may && code != http.StatusForbidden {
				t.Errorf("%s: POST %s: %d %s", role, path, code, body)
			}
		}
		wants(t, role, pages.String(), role+", role on the whole server: "+role)
	}
	if code, _, header := s.send(t, http.MethodGet, "/about", "", nil); code != http.StatusSeeOther || header.Get("Location") != "/sign-in?next=%2Fabout" {
		t.Errorf("without a token: %d %v", code, header)
	}
	if code, _, _ := s.send(t, http.MethodPost, "/studies/first/pause", "", url.Values{}); code != http.StatusUnauthorized {
		t.Errorf("pause without a token: %d", code)
	}
}

func TestQueue(t *testing.T) {
	s := newSite(t, server.Options{})
	s.studyAs(t.Context(), t, "first", &dparetov1.Study{Spec: trainedSpec()})
	wants(t, "form", s.get(t, "/studies/first/queue?parameters.noise=1.25&parameters.optimizer=adam", http.StatusOK),
		`value="1.25"`, `<option selected>adam</option>`, "used only where optimizer is adam", `min="0.5"`, `max="8"`, `step="1"`)

	form := url.Values{"parameters.epochs": {"99"}, "parameters.noise": {"much"}, "parameters.optimizer": {"adam"}, "note": {"try\r\nit"}}
	code, body, _ := s.send(t, http.MethodPost, "/studies/first/queue", "", form)
	if code != http.StatusUnprocessableEntity {
		t.Errorf("a word as a number: %d", code)
	}
	wants(t, "a word as a number", body, "must be a number", `value="99"`, `<option selected>adam</option>`, "try\nit")
	form.Set("parameters.noise", "1.5")
	code, body, _ = s.send(t, http.MethodPost, "/studies/first/queue", "", form)
	if code != http.StatusUnprocessableEntity {
		t.Errorf("out of the domain: %d", code)
	}
	if n := strings.Count(body, `<span class="error">`); n != 2 { // epochs, and beta, which adam needs
		t.Errorf("%d fields are wrong, want 2:\n%s", n, body)
	}
	wants(t, "out of the domain", body, "must be set where", `value="1.5"`)

	form.Set("parameters.epochs", "5")
	form.Set("parameters.beta", "0.9")
	form.Set("request_id", "once")
	for range 2 { // sent twice, it acts once
		again, _, header := s.send(t, http.MethodPost, "/studies/first/queue", "", form)
		if again != http.StatusSeeOther || header.Get("Location") != "/studies/first/trials/1" {
			t.Fatalf("queue: %d %v", again, header)
		}
	}
	form.Set("parameters.optimizer", "sgd") // beta stays in the form, and is not used
	form.Set("request_id", "twice")
	if code, body, _ = s.send(t, http.MethodPost, "/studies/first/queue", "", form); code != http.StatusSeeOther {
		t.Fatalf("without the condition: %d %s", code, body)
	}
	resp, err := dparetov1.NewStudyServiceClient(s.conn).ListTrials(t.Context(), &dparetov1.ListTrialsRequest{Parent: "studies/first"})
	if err != nil {
		t.Fatal(err)
	}
	trials := resp.GetTrials()
	if len(trials) != 2 || trials[0].GetParameters()["beta"].GetDoubleValue() != 0.9 || trials[0].GetNote() != "try\nit" || trials[1].GetParameters()["beta"] != nil {
		t.Errorf("trials %v", trials)
	}
}

func TestEditStudy(t *testing.T) {
	s := newSite(t, server.Options{})
	s.studyAs(t.Context(), t, "first", &dparetov1.Study{Spec: trainedSpec()})
	s.train(t.Context(), t, "first", 1, false)
	studies := dparetov1.NewStudyServiceClient(s.conn)
	get := func() *dparetov1.Study {
		resp, err := studies.GetStudy(t.Context(), &dparetov1.GetStudyRequest{Name: "studies/first"})
		if err != nil {
			t.Fatal(err)
		}
		return resp.GetStudy()
	}
	wants(t, "form", s.get(t, "/studies/first/edit", http.StatusOK), "another budget may depend on results", `value="200"`, get().GetEtag())
	form := url.Values{"display_name": {"A <name>"}, "description": {"why"}, "labels": {"team=vision\nnonsense"}, "etag": {get().GetEtag()}}
	code, body, _ := s.send(t, http.MethodPost, "/studies/first/edit", "", form)
	if code != http.StatusUnprocessableEntity {
		t.Errorf("a label without a value: %d", code)
	}
	wants(t, "a label without a value", body, "key=value in its own line", "A &lt;name&gt;", "team=vision\nnonsense")
	form.Set("labels", "team=vision\n\n a = b ")
	form.Set("display_name", strings.Repeat("x", 201))
	code, body, _ = s.send(t, http.MethodPost, "/studies/first/edit", "", form)
	if code != http.StatusUnprocessableEntity {
		t.Errorf("a long name: %d", code)
	}
	wants(t, "a long name", body, "must have at most 200 characters", `aria-invalid="true"`)
	form.Set("display_name", "A <name>")
	form.Set("request_id", "one")
	for range 2 {
		if code, body, _ = s.send(t, http.MethodPost, "/studies/first/edit", "", form); code != http.StatusSeeOther {
			t.Fatalf("%d %s", code, body)
		}
	}
	if study := get(); study.GetDisplayName() != "A <name>" || study.GetDescription() != "why" || len(study.GetLabels()) != 2 || study.GetLabels()["a"] != "b" {
		t.Errorf("study %v", study)
	}
	// Another reader has changed it since.
	form.Set("request_id", "two")
	code, body, _ = s.send(t, http.MethodPost, "/studies/first/edit", "", form)
	if code != http.StatusConflict {
		t.Errorf("an old etag: %d", code)
	}
	wants(t, "an old etag", body, "has changed", `role="alert"`, get().GetEtag())

	budget := url.Values{"max_trials": {"-1"}, "request_id": {"three"}}
	if code, body, _ = s.send(t, http.MethodPost, "/studies/first/budget", "", budget); code != http.StatusUnprocessableEntity || !strings.Contains(body, `value="-1"`) {
		t.Errorf("a negative budget: %d %s", code, body)
	}
	budget.Set("max_trials", "many")
	if code, body, _ = s.send(t, http.MethodPost, "/studies/first/budget", "", budget); code != http.StatusUnprocessableEntity || !strings.Contains(body, "must be a whole number") {
		t.Errorf("a word as a budget: %d %s", code, body)
	}
	budget.Set("max_trials", "300")
	if code, body, _ = s.send(t, http.MethodPost, "/studies/first/budget", "", budget); code != http.StatusSeeOther {
		t.Fatalf("budget: %d %s", code, body)
	}
	if study := get(); study.GetSpec().GetBudget().GetMaxTrials() != 300 || study.GetDesignChange() == nil {
		t.Errorf("study %v", study)
	}
	wants(t, "form", s.get(t, "/studies/first/edit", http.StatusOK), "was changed already (budget.max_trials)")

	for _, action := range []struct {
		path string
		want dparetov1.StudyState
	}{{"pause", dparetov1.StudyState_STUDY_STATE_PAUSED}, {"resume", dparetov1.StudyState_STUDY_STATE_ACTIVE}} {
		wants(t, action.path, s.get(t, "/studies/first", http.StatusOK), `action="/studies/first/`+action.path+`"`)
		if code, body, _ := s.send(t, http.MethodPost, "/studies/first/"+action.path, "", url.Values{"request_id": {action.path}}); code != http.StatusSeeOther {
			t.Errorf("%s: %d %s", action.path, code, body)
		}
		if got := get().GetState(); got != action.want {
			t.Errorf("after %s: %v", action.path, got)
		}
	}
}

func TestLabelAndStopTrial(t *testing.T) {
	s := newSite(t, server.Options{})
	s.studyAs(t.Context(), t, "first", &dparetov1.Study{Spec: trainedSpec()})
	studies := dparetov1.NewStudyServiceClient(s.conn)
	if _, err := studies.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/first", WorkerId: "w"}); err != nil {
		t.Fatal(err)
	}
	get := func() *dparetov1.Trial {
		resp, err := studies.GetTrial(t.Context(), &dparetov1.GetTrialRequest{Name: "studies/first/trials/1"})
		if err != nil {
			t.Fatal(err)
		}
		return resp.GetTrial()
	}
	form := url.Values{"note": {"odd"}, "labels": {"odd=yes"}, "etag": {get().GetEtag()}, "request_id": {"a"}}
	for range 2 {
		if code, body, _ := s.send(t, http.MethodPost, "/studies/first/trials/1/labels", "", form); code != http.StatusSeeOther {
			t.Fatalf("label: %d %s", code, body)
		}
	}
	if trial := get(); trial.GetNote() != "odd" || trial.GetLabels()["odd"] != "yes" {
		t.Errorf("trial %v", trial)
	}
	form.Set("request_id", "b")
	code, body, _ := s.send(t, http.MethodPost, "/studies/first/trials/1/labels", "", form)
	if code != http.StatusConflict {
		t.Errorf("an old etag: %d", code)
	}
	wants(t, "an old etag", body, "has changed", "odd=yes")
	form.Set("etag", "")
	form.Set("request_id", "c")
	form.Set("labels", strings.Repeat("k", 64)+"=1")
	if code, body, _ = s.send(t, http.MethodPost, "/studies/first/trials/1/labels", "", form); code != http.StatusUnprocessableEntity || !strings.Contains(body, "must have 1 to 63 bytes") {
		t.Errorf("a long key: %d %s", code, body)
	}
	form.Set("labels", "a=\xff")
	if code, body, _ = s.send(t, http.MethodPost, "/studies/first/trials/1/labels", "", form); code != http.StatusSeeOther {
		t.Errorf("another encoding: %d %s", code, body)
	}
	if code, body, _ = s.send(t, http.MethodPost, "/studies/first/trials/1/stop", "", url.Values{"reason": {"enough"}, "request_id": {"d"}}); code != http.StatusSeeOther {
		t.Errorf("stop: %d %s", code, body)
	}
	if trial := get(); trial.GetState() != dparetov1.TrialState_TRIAL_STATE_STOPPING || !strings.Contains(trial.GetStateReason(), "enough") {
		t.Errorf("after stop: %v", trial)
	}
	if _, err := studies.UpdateTrial(t.Context(), &dparetov1.UpdateTrialRequest{Trial: &dparetov1.Trial{Name: get().GetName(), Note: "x"}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"note"}}}); err != nil {
		t.Fatal(err)
	}
}

// secret are studies whose results are protected: with private_mode, and with random stopping.
func (s *site) secret(t *testing.T) {
	t.Helper()
	releases := dparetov1.NewReleaseServiceClient(s.conn)
	for name, ledger := range map[string]*dparetov1.Ledger{
		"test":  {Records: 10_000, Epsilon: 1e6, Delta: 0.1, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE},
		"train": {Records: 1, Epsilon: 1e6, Delta: 0.1, Adjacency: dparetov1.Adjacency_ADJACENCY_ADD_REMOVE},
	} {
		if _, err := releases.CreateLedger(t.Context(), &dparetov1.CreateLedgerRequest{LedgerId: name, Ledger: ledger}); err != nil {
			t.Fatal(err)
		}
	}
	private := trainedSpec()
	private.Metrics[1].GetReported().SampleSize = 0
	private.Budget = &dparetov1.Budget{MaxTrials: 10}
	private.PrivateMode = &dparetov1.PrivateModeSpec{TestSetSize: 10_000, TestEpsilon: 1, TrainEpsilon: 50, Delta: 1e-6, MaxValues: 400}
	private.TestLedger, private.TrainLedger = "ledgers/test", "ledgers/train"
	s.studyAs(t.Context(), t, "private", &dparetov1.Study{Spec: private})
	s.train(t.Context(), t, "private", 3, false)

	stopping := trainedSpec()
	stopping.Parameters = stopping.GetParameters()[:2]
	stopping.Seed, stopping.CheckpointParameter, stopping.Budget, stopping.TrainLedger = nil, "", nil, "ledgers/train"
	stopping.RandomStopping = &dparetov1.RandomStoppingSpec{MeanTrials: 10, Distribution: &dparetov1.RandomStoppingSpec_Eta{Eta: 1}, Metric: "error"}
	s.studyAs(t.Context(), t, "stopping", &dparetov1.Study{Spec: stopping})
}

// The page shows of protected studies what the contract shows, and no broken view.
func TestProtectedStudies(t *testing.T) {
	s := newSite(t, server.Options{})
	s.secret(t)
	wants(t, "trials", s.get(t, "/studies/private/trials", http.StatusOK), `id="trial-3"`)
	wants(t, "trial", s.get(t, "/studies/private/trials/1", http.StatusOK), "Configuration")
	wants(t, "report", s.get(t, "/studies/private/report", http.StatusOK), "For the test records, all results together: ε at most 1", "For the training records, all results together: ε at most 50", "δ = 1e-6", "Provided that", "The ledger test must exist")
	wants(t, "budget", s.get(t, "/studies/private/edit", http.StatusOK), "!another budget may depend on results")

	wants(t, "trials", s.get(t, "/studies/stopping/trials", http.StatusOK), "shows only its best trial", "!sse-connect", "!<tbody>")
	wants(t, "trial", s.get(t, "/studies/stopping/trials/1", http.StatusConflict), "shows only its best trial")
	report := s.get(t, "/studies/stopping/report", http.StatusOK)
	wants(t, "report", report, "shows only its best trial", "a secret number, 10.00 on average", "For the training records, all results together: ε at most", "!Seed of the server", "&#34;random_stopping&#34;", "!&#34;seed&#34;")
}

// A report states its guarantee in full, shows what the contract says, and is the same on the page and as a
// file.
func TestReport(t *testing.T) {
	s := newSite(t, server.Options{Version: "1.2.3"})
	s.studyAs(t.Context(), t, "first", &dparetov1.Study{DisplayName: "A question", Description: "Why?", Spec: trainedSpec()})
	s.train(t.Context(), t, "first", 8, false)
	body := s.get(t, "/studies/first/report?epsilon=1.5,3", http.StatusOK)
	ledger, err := dparetov1.NewPrivacyServiceClient(s.conn).GetPrivacyLedger(t.Context(), &dparetov1.GetPrivacyLedgerRequest{Name: "studies/first"})
	if err != nil {
		t.Fatal(err)
	}
	wants(t, "report", body, "A question", "Why?", "ε of one run, δ = 1e-5, add-remove adjacency, RDP accountant, improved conversion. It is an upper bound, and covers one run",
		"ε at most "+show.NumberUp(ledger.GetComposed().GetEpsilon())+", δ = 1e-5, add-remove adjacency", "8 succeeded", "1.2.3", `<th scope="row" class="n">1.5</th>`, `<th scope="row" class="n">3</th>`,
		"<svg", "epochs", "dataset", "adult", "where optimizer is adam", "!no ε holds")
	front, err := dparetov1.NewFrontServiceClient(s.conn).GetFront(t.Context(), &dparetov1.GetFrontRequest{Name: "studies/first", Kind: dparetov1.FrontKind_FRONT_KIND_POSTERIOR})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range front.GetFront().GetPoints() {
		wants(t, "front", body, "<td class=\"n\">"+show.NumberUp(p.GetValues()["epsilon"].GetValue())+"</td>")
	}
	// Every ε of the front is spanned or its ends are.
	for e, want := range map[string]int{"": http.StatusOK, "-1": http.StatusUnprocessableEntity, "x": http.StatusUnprocessableEntity, "inf": http.StatusUnprocessableEntity, strings.Repeat("1,", 21): http.StatusUnprocessableEntity} {
		s.get(t, "/studies/first/report?epsilon="+url.QueryEscape(e), want)
	}
	code, file, header := s.send(t, http.MethodGet, "/studies/first/report?epsilon=1.5,3&download=1", "", nil)
	if code != http.StatusOK || header.Get("Content-Disposition") != `attachment; filename="first.html"` {
		t.Errorf("download: %d %v", code, header)
	}
	content := func(text, from string) string {
		at := strings.Index(text, from)
		text = regexp.MustCompile(`as of [^,]*`).ReplaceAllString(text[at:], "")
		return text[strings.Index(text, "<h2>Question"):strings.Index(text, "</pre>\n\n")]
	}
	if page, alone := content(body, "<article"), content(file, "<h1>"); page != alone {
		t.Errorf("the page shows\n%s\nand the file\n%s", page, alone)
	}
}
