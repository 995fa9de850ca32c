package trials_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/fieldmaskpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/web/webtest"
)

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
	s := webtest.New(t, server.Options{})
	s.Create(t.Context(), t, "first", &dparetov1.Study{Spec: webtest.TrainedSpec()})
	s.Train(t.Context(), t, "first", 120, false)
	first := s.Get(t, "/studies/first/trials", http.StatusOK)
	if got := numbers(first); len(got) != 50 || got[0] != "120" || got[49] != "71" {
		t.Errorf("the first page has %v", got)
	}
	webtest.Contains(t, first, "δ = 1e-5", "add-remove", "upper bound", `sse-swap="trials-table"`, "part=state&amp;part=trials-table\"", `aria-sort="descending"`, "!Previous")
	second := s.Get(t, link(t, first, "next"), http.StatusOK)
	third := s.Get(t, link(t, second, "next"), http.StatusOK)
	if got := numbers(third); len(got) != 20 || got[0] != "20" || got[19] != "1" {
		t.Errorf("the third page has %v", got)
	}
	webtest.Contains(t, third, `sse-swap="trials-news"`, "!>Next<", ">First<")
	if back := s.Get(t, link(t, third, "prev"), http.StatusOK); !slices.Equal(numbers(back), numbers(second)) {
		t.Errorf("the page before the third has %v", numbers(back))
	}

	sorted := s.Get(t, "/studies/first/trials?order_by="+url.QueryEscape("metrics.error"), http.StatusOK)
	webtest.Contains(t, sorted, `aria-sort="ascending"`, "order_by=metrics.error&#43;desc")
	resp, err := dparetov1.NewStudyServiceClient(s.Conn).ListTrials(t.Context(), &dparetov1.ListTrialsRequest{Parent: "studies/first", OrderBy: "metrics.error", PageSize: 1})
	require.NoError(t, err)
	if got := numbers(sorted); got[0] != fmt.Sprint(resp.GetTrials()[0].GetNumber()) {
		t.Errorf("the trial with the smallest error is %s, the contract says %d", got[0], resp.GetTrials()[0].GetNumber())
	}
	if got := numbers(s.Get(t, "/studies/first/trials?filter="+url.QueryEscape("number <= 3 OR number = 9"), http.StatusOK)); !slices.Equal(got, []string{"9", "3", "2", "1"}) {
		t.Errorf("filtered: %v", got)
	}
	if got := numbers(s.Get(t, "/studies/first/trials?state=failed&filter="+url.QueryEscape("number <= 3 OR number = 9"), http.StatusOK)); got != nil {
		t.Errorf("filtered by state too: %v", got)
	}
	bad := s.Get(t, "/studies/first/trials?filter="+url.QueryEscape(`number <=<b> "x`), http.StatusUnprocessableEntity)
	webtest.Contains(t, bad, `aria-invalid="true"`, `role="alert"`, `value="number &lt;=&lt;b&gt; &#34;x"`, "!<b> ")
	s.Get(t, "/studies/first/trials?page_token=nonsense", http.StatusUnprocessableEntity)
}

// A table that does not follow the study says what has changed since.
func TestTrialsNews(t *testing.T) {
	s := webtest.New(t, server.Options{})
	s.Create(t.Context(), t, "first", &dparetov1.Study{Spec: webtest.TrainedSpec()})
	s.Train(t.Context(), t, "first", 3, false)
	body := s.Get(t, "/studies/first/trials?order_by=number", http.StatusOK)
	since := regexp.MustCompile(`since=(\d+)`).FindStringSubmatch(body)
	if since == nil {
		t.Fatalf("no revision in %s", body)
	}
	path := "/studies/first/parts/trials-news?order_by=number&since=" + since[1]
	webtest.Contains(t, s.Get(t, path, http.StatusOK), "!changed")
	s.Train(t.Context(), t, "first", 2, false)
	webtest.Contains(t, s.Get(t, path, http.StatusOK), "2 trials have changed", `href="/studies/first/trials?order_by=number"`)
	s.Get(t, "/studies/first/parts/trials-news?since=x", http.StatusUnprocessableEntity)
}

// New trials appear in the table without a reload.
func TestTrialsLive(t *testing.T) {
	s := webtest.New(t, server.Options{})
	s.Create(t.Context(), t, "first", &dparetov1.Study{Spec: webtest.TrainedSpec()})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/studies/first/live?part=trials-table", http.NoBody)
	require.NoError(t, err)
	resp, err := s.Client().Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	trained := false
	for lines.Scan() {
		switch {
		case strings.Contains(lines.Text(), "No trial."):
			s.Train(t.Context(), t, "first", 1, false)
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
	s := webtest.New(t, server.Options{})
	spec := webtest.TrainedSpec()
	spec.Algorithm = &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_EHVI, InitialTrials: 3}
	spec.DisableEarlyStopping = true
	s.Create(t.Context(), t, "first", &dparetov1.Study{Spec: spec})
	s.Train(t.Context(), t, "first", 5, false)
	studies := dparetov1.NewStudyServiceClient(s.Conn)
	resp, err := studies.GetTrial(t.Context(), &dparetov1.GetTrialRequest{Name: "studies/first/trials/5"})
	require.NoError(t, err)
	trial := resp.GetTrial()
	body := s.Get(t, "/studies/first/trials/5", http.StatusOK)
	webtest.Contains(t, body, "What the model expected", "ehvi", "at most ", "δ = 1e-5", "!sse-connect", "!Stop the run", "Queue this configuration")
	if n := strings.Count(body, `<title id="curve-`); trial.GetParameters()["epochs"].GetIntValue() > 1 && n != 2 {
		t.Errorf("%d curves, want one of the error and one of ε", n)
	}
	// One that runs, after an attempt that was given back.
	suggested, err := studies.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/first", WorkerId: "gpu-2"})
	require.NoError(t, err)
	running := suggested.GetTrials()[0]
	require.NoError(t, require.ErrOf(studies.ReleaseTrial(t.Context(), &dparetov1.ReleaseTrialRequest{Name: running.GetName(), LeaseToken: running.GetLease().GetToken(), Reason: "out of memory"})))
	require.NoError(t, require.ErrOf(studies.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/first", WorkerId: "gpu-3"})))
	body = s.Get(t, "/studies/first/trials/6", http.StatusOK)
	webtest.Contains(t, body, "released: out of memory", "gpu-2", "held by gpu-3", "sse-connect", "Stop the run", `sse-swap="trial-detail"`)
	webtest.Contains(t, s.Get(t, "/studies/first/parts/trial-detail?trial=6", http.StatusOK), "held by gpu-3")
	s.Get(t, "/studies/first/trials/99", http.StatusNotFound)
	s.Get(t, "/studies/first/trials/x", http.StatusUnprocessableEntity)

	compared := s.Get(t, "/studies/first/trials/compare?trial=1&trial=2&trial=5", http.StatusOK)
	webtest.Contains(t, compared, "Trial 1", "Trial 5", `class="differs"`, "≠", "δ = 1e-5", `<title id="curve-`, "trial 2: error")
	s.Get(t, "/studies/first/trials/compare?trial=1", http.StatusUnprocessableEntity)
	s.Get(t, "/studies/first/trials/compare?trial=1&trial=99", http.StatusNotFound)
	s.Get(t, "/studies/first/trials/compare?trial=1&trial=x", http.StatusUnprocessableEntity)
}

// A study whose budget is spent queues nothing, and the form says so before it is filled in. Its trials show
// rounded values, and keep the exact ones.
func TestQueueWithoutBudget(t *testing.T) {
	s := webtest.New(t, server.Options{})
	spec := webtest.TrainedSpec()
	spec.Budget.MaxTrials = 10
	s.Create(t.Context(), t, "first", &dparetov1.Study{Spec: spec})
	s.Train(t.Context(), t, "first", 10, false)
	const reason = "The budget of 10 trials is spent"
	webtest.Contains(t, s.Get(t, "/studies/first/queue?parameters.noise=1.25", http.StatusOK), reason, "/studies/first/edit#budget-title", "<dd>1.25</dd>", "!Queue it", "!next worker")
	webtest.Contains(t, s.Get(t, "/studies/first/parts/running", http.StatusOK), "the budget of 10 trials is spent", "Extend the search")
	code, body, _ := s.Send(t, http.MethodPost, "/studies/first/queue", "", url.Values{"parameters.epochs": {"5"}, "parameters.noise": {"1.5"}, "parameters.optimizer": {"sgd"}, "request_id": {"late"}})
	if code < 400 || !strings.Contains(body, "budget of 10 trials is spent") {
		t.Errorf("queued without a budget: %d %s", code, body)
	}
	trial := s.Get(t, "/studies/first/trials/1", http.StatusOK)
	values := regexp.MustCompile(`<data value="([0-9.e-]+)" title="([0-9.e-]+)">([0-9.e-]+)</data>`).FindAllStringSubmatch(trial, -1)
	for _, v := range values {
		if v[1] != v[2] || len(v[3]) > len("-1.234e-10") || len(v[3]) >= len(v[1]) {
			t.Errorf("%s is shown as %s", v[1], v[3])
		}
	}
	if len(values) == 0 {
		t.Errorf("no value of trial 1 is rounded:\n%s", trial)
	}
}

func TestQueue(t *testing.T) {
	s := webtest.New(t, server.Options{})
	s.Create(t.Context(), t, "first", &dparetov1.Study{Spec: webtest.TrainedSpec()})
	webtest.Contains(t, s.Get(t, "/studies/first/queue?parameters.noise=1.25&parameters.optimizer=adam", http.StatusOK),
		`value="1.25"`, `<option selected>adam</option>`, "used only where optimizer is adam", `min="0.5"`, `max="8"`, `step="1"`)

	form := url.Values{"parameters.epochs": {"99"}, "parameters.noise": {"much"}, "parameters.optimizer": {"adam"}, "note": {"try\r\nit"}}
	code, body, _ := s.Send(t, http.MethodPost, "/studies/first/queue", "", form)
	if code != http.StatusUnprocessableEntity {
		t.Errorf("a word as a number: %d", code)
	}
	webtest.Contains(t, body, "must be a number", `value="99"`, `<option selected>adam</option>`, "try\nit")
	form.Set("parameters.noise", "1.5")
	code, body, _ = s.Send(t, http.MethodPost, "/studies/first/queue", "", form)
	if code != http.StatusUnprocessableEntity {
		t.Errorf("out of the domain: %d", code)
	}
	if n := strings.Count(body, `<span class="error">`); n != 2 { // epochs, and beta, which adam needs
		t.Errorf("%d fields are wrong, want 2:\n%s", n, body)
	}
	webtest.Contains(t, body, "must be set where", `value="1.5"`)

	form.Set("parameters.epochs", "5")
	form.Set("parameters.beta", "0.9")
	form.Set("request_id", "once")
	for range 2 { // sent twice, it acts once
		again, _, header := s.Send(t, http.MethodPost, "/studies/first/queue", "", form)
		if again != http.StatusSeeOther || header.Get("Location") != "/studies/first/trials/1" {
			t.Fatalf("queue: %d %v", again, header)
		}
	}
	form.Set("parameters.optimizer", "sgd") // beta stays in the form, and is not used
	form.Set("request_id", "twice")
	if code, body, _ = s.Send(t, http.MethodPost, "/studies/first/queue", "", form); code != http.StatusSeeOther {
		t.Fatalf("without the condition: %d %s", code, body)
	}
	resp, err := dparetov1.NewStudyServiceClient(s.Conn).ListTrials(t.Context(), &dparetov1.ListTrialsRequest{Parent: "studies/first"})
	require.NoError(t, err)
	trials := resp.GetTrials()
	if len(trials) != 2 || trials[0].GetParameters()["beta"].GetDoubleValue() != 0.9 || trials[0].GetNote() != "try\nit" || trials[1].GetParameters()["beta"] != nil {
		t.Errorf("trials %v", trials)
	}
}

func TestEditStudy(t *testing.T) {
	s := webtest.New(t, server.Options{})
	s.Create(t.Context(), t, "first", &dparetov1.Study{Spec: webtest.TrainedSpec()})
	s.Train(t.Context(), t, "first", 1, false)
	studies := dparetov1.NewStudyServiceClient(s.Conn)
	get := func() *dparetov1.Study {
		resp, err := studies.GetStudy(t.Context(), &dparetov1.GetStudyRequest{Name: "studies/first"})
		require.NoError(t, err)
		return resp.GetStudy()
	}
	webtest.Contains(t, s.Get(t, "/studies/first/edit", http.StatusOK), "another budget may depend on results", `value="200"`, get().GetEtag())
	form := url.Values{"display_name": {"A <name>"}, "description": {"why"}, "labels": {"team=vision\nnonsense"}, "etag": {get().GetEtag()}}
	code, body, _ := s.Send(t, http.MethodPost, "/studies/first/edit", "", form)
	if code != http.StatusUnprocessableEntity {
		t.Errorf("a label without a value: %d", code)
	}
	webtest.Contains(t, body, "key=value in its own line", "A &lt;name&gt;", "team=vision\nnonsense")
	form.Set("labels", "team=vision\n\n a = b ")
	form.Set("display_name", strings.Repeat("x", 201))
	code, body, _ = s.Send(t, http.MethodPost, "/studies/first/edit", "", form)
	if code != http.StatusUnprocessableEntity {
		t.Errorf("a long name: %d", code)
	}
	webtest.Contains(t, body, "must have at most 200 characters", `aria-invalid="true"`)
	form.Set("display_name", "A <name>")
	form.Set("request_id", "one")
	for range 2 {
		if code, body, _ = s.Send(t, http.MethodPost, "/studies/first/edit", "", form); code != http.StatusSeeOther {
			t.Fatalf("%d %s", code, body)
		}
	}
	if study := get(); study.GetDisplayName() != "A <name>" || study.GetDescription() != "why" || len(study.GetLabels()) != 2 || study.GetLabels()["a"] != "b" {
		t.Errorf("study %v", study)
	}
	// Another reader has changed it since.
	form.Set("request_id", "two")
	code, body, _ = s.Send(t, http.MethodPost, "/studies/first/edit", "", form)
	if code != http.StatusConflict {
		t.Errorf("an old etag: %d", code)
	}
	webtest.Contains(t, body, "has changed", `role="alert"`, get().GetEtag())

	budget := url.Values{"max_trials": {"-1"}, "request_id": {"three"}}
	if code, body, _ = s.Send(t, http.MethodPost, "/studies/first/budget", "", budget); code != http.StatusUnprocessableEntity || !strings.Contains(body, `value="-1"`) {
		t.Errorf("a negative budget: %d %s", code, body)
	}
	budget.Set("max_trials", "many")
	if code, body, _ = s.Send(t, http.MethodPost, "/studies/first/budget", "", budget); code != http.StatusUnprocessableEntity || !strings.Contains(body, "must be a whole number") {
		t.Errorf("a word as a budget: %d %s", code, body)
	}
	budget.Set("max_trials", "300")
	if code, body, _ = s.Send(t, http.MethodPost, "/studies/first/budget", "", budget); code != http.StatusSeeOther {
		t.Fatalf("budget: %d %s", code, body)
	}
	if study := get(); study.GetSpec().GetBudget().GetMaxTrials() != 300 || study.GetDesignChange() == nil {
		t.Errorf("study %v", study)
	}
	webtest.Contains(t, s.Get(t, "/studies/first/edit", http.StatusOK), "was changed already (budget.max_trials)")

	for _, action := range []struct {
		path string
		want dparetov1.StudyState
	}{{"pause", dparetov1.StudyState_STUDY_STATE_PAUSED}, {"resume", dparetov1.StudyState_STUDY_STATE_ACTIVE}} {
		webtest.Contains(t, s.Get(t, "/studies/first", http.StatusOK), `action="/studies/first/`+action.path+`"`)
		if code, body, _ := s.Send(t, http.MethodPost, "/studies/first/"+action.path, "", url.Values{"request_id": {action.path}}); code != http.StatusSeeOther {
			t.Errorf("%s: %d %s", action.path, code, body)
		}
		if got := get().GetState(); got != action.want {
			t.Errorf("after %s: %v", action.path, got)
		}
	}
}

func TestLabelAndStopTrial(t *testing.T) {
	s := webtest.New(t, server.Options{})
	s.Create(t.Context(), t, "first", &dparetov1.Study{Spec: webtest.TrainedSpec()})
	studies := dparetov1.NewStudyServiceClient(s.Conn)
	require.NoError(t, require.ErrOf(studies.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/first", WorkerId: "w"})))
	get := func() *dparetov1.Trial {
		resp, err := studies.GetTrial(t.Context(), &dparetov1.GetTrialRequest{Name: "studies/first/trials/1"})
		require.NoError(t, err)
		return resp.GetTrial()
	}
	form := url.Values{"note": {"odd"}, "labels": {"odd=yes"}, "etag": {get().GetEtag()}, "request_id": {"a"}}
	for range 2 {
		if code, body, _ := s.Send(t, http.MethodPost, "/studies/first/trials/1/labels", "", form); code != http.StatusSeeOther {
			t.Fatalf("label: %d %s", code, body)
		}
	}
	if trial := get(); trial.GetNote() != "odd" || trial.GetLabels()["odd"] != "yes" {
		t.Errorf("trial %v", trial)
	}
	form.Set("request_id", "b")
	code, body, _ := s.Send(t, http.MethodPost, "/studies/first/trials/1/labels", "", form)
	if code != http.StatusConflict {
		t.Errorf("an old etag: %d", code)
	}
	webtest.Contains(t, body, "has changed", "odd=yes")
	form.Set("etag", "")
	form.Set("request_id", "c")
	form.Set("labels", strings.Repeat("k", 64)+"=1")
	if code, body, _ = s.Send(t, http.MethodPost, "/studies/first/trials/1/labels", "", form); code != http.StatusUnprocessableEntity || !strings.Contains(body, "must have 1 to 63 bytes") {
		t.Errorf("a long key: %d %s", code, body)
	}
	form.Set("labels", "a=\xff")
	if code, body, _ = s.Send(t, http.MethodPost, "/studies/first/trials/1/labels", "", form); code != http.StatusSeeOther {
		t.Errorf("another encoding: %d %s", code, body)
	}
	if code, body, _ = s.Send(t, http.MethodPost, "/studies/first/trials/1/stop", "", url.Values{"reason": {"enough"}, "request_id": {"d"}}); code != http.StatusSeeOther {
		t.Errorf("stop: %d %s", code, body)
	}
	if trial := get(); trial.GetState() != dparetov1.TrialState_TRIAL_STATE_STOPPING || !strings.Contains(trial.GetStateReason(), "enough") {
		t.Errorf("after stop: %v", trial)
	}
	require.NoError(t, require.ErrOf(studies.UpdateTrial(t.Context(), &dparetov1.UpdateTrialRequest{Trial: &dparetov1.Trial{Name: get().GetName(), Note: "x"}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"note"}}})))
}

// The table says after which epoch a run stopped that was to be longer.
func TestStoppedRun(t *testing.T) {
	s := webtest.New(t, server.Options{})
	s.Create(t.Context(), t, "first", &dparetov1.Study{Spec: webtest.TrainedSpec()})
	studies := dparetov1.NewStudyServiceClient(s.Conn)
	queued, err := studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{
		Parent: "studies/first", Trial: &dparetov1.Trial{Parameters: map[string]*dparetov1.Value{"epochs": webtest.Whole(3), "noise": webtest.Number(2), "optimizer": webtest.Word("sgd")}},
	})
	require.NoError(t, err)
	resp, err := studies.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/first", WorkerId: "gpu-1"})
	require.NoError(t, err)
	trial, value := resp.GetTrials()[0], 0.3
	if trial.GetNumber() != queued.GetTrial().GetNumber() {
		t.Fatalf("got trial %d", trial.GetNumber())
	}
	_, err = studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
		Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(),
		Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: &dparetov1.Measurement{Step: 2, Metrics: map[string]*dparetov1.MetricValue{"error": {Value: &value}}}},
	})
	require.NoError(t, err)
	s.Train(t.Context(), t, "first", 1, false)
	body := s.Get(t, "/studies/first/trials", http.StatusOK)
	webtest.Contains(t, body, `<span class="tag">stopped after 2</span>`)
	if n := strings.Count(body, "stopped after"); n != 1 {
		t.Errorf("%d stopped runs, want 1", n)
	}
}
