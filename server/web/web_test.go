package web_test

import (
	"context"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/structpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/auth"
	"github.com/dpareto/dpareto/server/web/webtest"
)

func TestStudies(t *testing.T) {
	s := webtest.New(t, server.Options{})
	if body := s.Get(t, "/", http.StatusOK); !strings.Contains(body, "There is none yet") {
		t.Errorf("no studies: %s", body)
	}
	s.Create(t.Context(), t, "first", &dparetov1.Study{Spec: webtest.SimpleSpec()})
	if body := s.Get(t, "/studies", http.StatusOK); !strings.Contains(body, `href="/studies/first"`) {
		t.Errorf("one study: %s", body)
	}
	if body := s.Get(t, "/studies/first", http.StatusOK); !strings.Contains(body, "0 of 10 trials succeeded") {
		t.Errorf("study: %s", body)
	}
	s.Get(t, "/studies/other", http.StatusNotFound)
	s.Get(t, "/elsewhere", http.StatusNotFound)
}

// A seeded run has no ε, and every view says so.
func TestSeededTrials(t *testing.T) {
	s := webtest.New(t, server.Options{})
	s.Create(t.Context(), t, "first", &dparetov1.Study{Spec: webtest.TrainedSpec()})
	s.Train(t.Context(), t, "first", 4, true)
	webtest.Contains(t, s.Get(t, "/studies/first/trials", http.StatusOK), "no ε holds", "seeded")
	webtest.Contains(t, s.Get(t, "/studies/first/trials/1", http.StatusOK), "No ε holds for this run", "Seeded runs.")
	webtest.Contains(t, s.Get(t, "/studies/first/trials/compare?trial=1&trial=2", http.StatusOK), "no ε holds")
	webtest.Contains(t, s.Get(t, "/studies/first/report", http.StatusOK), "no ε holds", "have no ε, since runs were seeded", "None: runs were seeded", "!ε at most 0", "!Largest ε of one run", "Seeded runs.")
}

// hostileText is text that would run as a script, end an attribute or an element, or start an event.
const hostileText = `"'></textarea></title></script><script>alert(1)</script><img src=x onerror=alert(2)>{{.}}`

// Text that users write stays text in every view.
func TestHostileText(t *testing.T) {
	s := webtest.New(t, server.Options{})
	ctx := t.Context()
	spec := webtest.TrainedSpec()
	category := hostileText + "-category"
	spec.Parameters[2].GetCategoricalDomain().Categories = []string{category, "adam"}
	spec.Metrics[1].Unit = `"><script>alert(1)</script>`
	spec.Trainer = &dparetov1.TrainerSpec{Name: `"><script>alert(1)</script>`, Settings: map[string]string{`<script>k</script>`: hostileText}}
	s.Create(ctx, t, "first", &dparetov1.Study{DisplayName: hostileText, Description: hostileText, Labels: map[string]string{"<script>a</script>": hostileText}, Spec: spec})
	studies := dparetov1.NewStudyServiceClient(s.Conn)
	value := 0.5
	for range 4 {
		created, err := studies.CreateTrial(ctx, &dparetov1.CreateTrialRequest{Parent: "studies/first", Trial: &dparetov1.Trial{
			Parameters: map[string]*dparetov1.Value{"epochs": webtest.Whole(3), "noise": webtest.Number(1), "optimizer": webtest.Word(category)},
			Note:       hostileText, Labels: map[string]string{"<script>b</script>": hostileText},
			Attributes: map[string]*structpb.Value{"<script>c</script>": structpb.NewStringValue(hostileText)},
			Artifacts: []*dparetov1.Artifact{
				{Id: "<script>d</script>", Uri: "x-javascript:alert(1)"},
				{Id: "data", Uri: "s3:<script>alert(1)</script>"},
				{Id: "upper", Uri: "View-Source:alert(1)//https://example.org"},
				{Id: "good", Uri: "https://example.org/model.pt"},
			},
		}})
		require.NoError(t, err)
		resp, err := studies.SuggestTrials(ctx, &dparetov1.SuggestTrialsRequest{Parent: "studies/first", WorkerId: hostileText})
		require.NoError(t, err)
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
			require.NoError(t, require.ErrOf(studies.ReleaseTrial(ctx, &dparetov1.ReleaseTrialRequest{Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Reason: hostileText})))
			require.NoError(t, require.ErrOf(studies.SuggestTrials(ctx, &dparetov1.SuggestTrialsRequest{Parent: "studies/first", WorkerId: hostileText})))
			continue
		}
		require.NoError(t, require.ErrOf(studies.CompleteTrial(ctx, request)))
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
		body := s.Get(t, path, code)
		for _, evil := range []string{"<script>alert", "<script>a<", "<script>b<", "<script>c<", "<script>d<", "<script>k<", "<img", "</textarea></title>", `href="x-java`, `href="View`, `href="s3:`, `style=`} {
			if strings.Contains(strings.ReplaceAll(body, "<style>", ""), evil) {
				t.Errorf("%s: %q in\n%s", path, evil, body)
			}
		}
	}
	webtest.Contains(t, s.Get(t, "/studies/first/trials/1", http.StatusOK),
		`<a href="https://example.org/model.pt" rel="noopener noreferrer nofollow">`, "<code>x-javascript:alert(1)</code>", "<code>View-Source:alert(1)//https://example.org</code>")
}

// as returns a context for calls with a token.
func as(t testing.TB, token string) context.Context {
	return metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
}

// guardedSite starts a server that knows a viewer, a worker and an administrator, with their tokens.
func guardedSite(t *testing.T) (s *webtest.Site, tokens map[string]string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "auth.yaml")
	tokens = make(map[string]string)
	for name, role := range map[string]auth.Role{"viewer": auth.Viewer, "worker": auth.Worker, "admin": auth.Admin} {
		made, token, err := auth.NewToken(auth.Credential{Name: name, Role: role})
		require.NoError(t, err)
		tokens[name] = token
		require.NoError(t, auth.Change(file, func(all []*auth.Credential) ([]*auth.Credential, error) { return append(all, made), nil }))
	}
	known, err := auth.Open(file, auth.Options{})
	require.NoError(t, err)
	return webtest.New(t, server.Options{Auth: known}), tokens
}

// A reader sees the buttons of the role, and the server refuses what a role may not do.
func TestRoles(t *testing.T) {
	s, tokens := guardedSite(t)
	s.Create(as(t, tokens["admin"]), t, "first", &dparetov1.Study{Spec: webtest.TrainedSpec()})
	s.Train(as(t, tokens["worker"]), t, "first", 1, false)
	require.NoError(t, require.ErrOf(dparetov1.NewStudyServiceClient(s.Conn).SuggestTrials(as(t, tokens["worker"]), &dparetov1.SuggestTrialsRequest{Parent: "studies/first", WorkerId: "w"})))
	administer := []string{"/studies/first/pause", "/studies/first/resume", "/studies/first/edit", "/studies/first/budget"}
	work := []string{"/studies/first/queue", "/studies/first/trials/1/labels", "/studies/first/trials/2/stop"}
	form := url.Values{
		"max_trials": {"9"}, "parameters.epochs": {"2"}, "parameters.noise": {"1"}, "parameters.optimizer": {"sgd"}, "request_id": {"r"}, "labels": {"a=b"},
	}
	for _, role := range []string{"viewer", "worker", "admin"} {
		var pages strings.Builder
		for _, path := range []string{"/studies/first", "/studies/first/trials", "/studies/first/trials/1", "/studies/first/trials/2", "/studies/first/queue", "/studies/first/edit", "/studies/first/report", "/about"} {
			code, body, _ := s.Send(t, http.MethodGet, path, tokens[role], nil)
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
			if code, body, _ := s.Send(t, http.MethodPost, path, tokens[role], form); (code == http.StatusSeeOther) != may || !may && code != http.StatusForbidden {
				t.Errorf("%s: POST %s: %d %s", role, path, code, body)
			}
		}
		webtest.Contains(t, pages.String(), role+", role on the whole server: "+role)
	}
	if code, _, header := s.Send(t, http.MethodGet, "/about", "", nil); code != http.StatusSeeOther || header.Get("Location") != "/sign-in?next=%2Fabout" {
		t.Errorf("without a token: %d %v", code, header)
	}
	if code, _, _ := s.Send(t, http.MethodPost, "/studies/first/pause", "", url.Values{}); code != http.StatusUnauthorized {
		t.Errorf("pause without a token: %d", code)
	}
}

// secret are studies whose results are protected: with private_mode, and with random stopping.
func secret(t *testing.T, s *webtest.Site) {
	t.Helper()
	releases := dparetov1.NewReleaseServiceClient(s.Conn)
	for name, ledger := range map[string]*dparetov1.Ledger{
		"test":  {Records: 10_000, Epsilon: 1e6, Delta: 0.1, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE},
		"train": {Records: 1, Epsilon: 1e6, Delta: 0.1, Adjacency: dparetov1.Adjacency_ADJACENCY_ADD_REMOVE},
	} {
		require.NoError(t, require.ErrOf(releases.CreateLedger(t.Context(), &dparetov1.CreateLedgerRequest{LedgerId: name, Ledger: ledger})))
	}
	private := webtest.TrainedSpec()
	private.Metrics[1].GetReported().SampleSize = 0
	private.Budget = &dparetov1.Budget{MaxTrials: 10}
	private.PrivateMode = &dparetov1.PrivateModeSpec{TestSetSize: 10_000, TestEpsilon: 1, TrainEpsilon: 50, Delta: 1e-6, MaxValues: 400}
	private.TestLedger, private.TrainLedger = "ledgers/test", "ledgers/train"
	s.Create(t.Context(), t, "private", &dparetov1.Study{Spec: private})
	s.Train(t.Context(), t, "private", 3, false)

	stopping := webtest.TrainedSpec()
	stopping.Parameters = stopping.GetParameters()[:2]
	stopping.Seed, stopping.CheckpointParameter, stopping.Budget, stopping.TrainLedger = nil, "", nil, "ledgers/train"
	stopping.RandomStopping = &dparetov1.RandomStoppingSpec{MeanTrials: 10, Distribution: &dparetov1.RandomStoppingSpec_Eta{Eta: 1}, Metric: "error", Listed: 20}
	s.Create(t.Context(), t, "stopping", &dparetov1.Study{Spec: stopping})
}

// The page shows of protected studies what the contract shows, and no broken view.
func TestProtectedStudies(t *testing.T) {
	s := webtest.New(t, server.Options{})
	secret(t, s)
	webtest.Contains(t, s.Get(t, "/studies/private/trials", http.StatusOK), `id="trial-3"`)
	webtest.Contains(t, s.Get(t, "/studies/private/trials/1", http.StatusOK), "Configuration")
	webtest.Contains(t, s.Get(t, "/studies/private/report", http.StatusOK), "For the test records, all results together: ε at most 1", "For the training records, all results together: ε at most 50", "δ = 1e-6", "Provided that", "The ledger test must exist")
	webtest.Contains(t, s.Get(t, "/studies/private/edit", http.StatusOK), "!another budget may depend on results")

	webtest.Contains(t, s.Get(t, "/studies/stopping/trials", http.StatusOK), "shows only its best trial", "!sse-connect", "!<tbody>")
	webtest.Contains(t, s.Get(t, "/studies/stopping/trials/1", http.StatusConflict), "shows only its best trial")
	report := s.Get(t, "/studies/stopping/report", http.StatusOK)
	webtest.Contains(t, report, "shows only its best trial", "a secret number of trials, 10 on average", "For the training records, all results together: ε at most", "!Seed of the server", "&#34;random_stopping&#34;", "!&#34;seed&#34;")
}

// A model of one trial has nothing to be compared with, and is drawn all the same.
func TestWhyOfOneTrial(t *testing.T) {
	s := webtest.New(t, server.Options{})
	s.Create(t.Context(), t, "one", &dparetov1.Study{Spec: webtest.TrainedSpec()})
	s.Train(t.Context(), t, "one", 1, false)
	webtest.Contains(t, s.Get(t, "/studies/one/why?wait=1", http.StatusOK), "Can the model be trusted?", "Is it worth going on?")
	s.Get(t, "/studies/one/parts/fit", http.StatusOK)
}
