package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"google.golang.org/protobuf/types/known/structpb"

	dpareto "github.com/dpareto/dpareto/clients/go"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

// attacks are texts that would run as a script, end an attribute, an element, a script or a template, or
// lead elsewhere, if a view took them for more than text.
var attacks = []string{
	`<script>window.__x = 1</script>`,
	`"><img src=x onerror="window.__x = 1">`,
	`' onfocus='window.__x = 1' autofocus='`,
	`</title></textarea></style></script><svg onload="window.__x = 1">`,
	`javascript:window.__x=1`,
	`{{printf "%s" .}}${window.__x = 1}`,
	"\u2028window.__x = 1\u2029`\\\"'",
	`<a href="https://elsewhere.example/" ping="https://elsewhere.example/"><link rel=stylesheet href=https://elsewhere.example/x.css>`,
	`<div hx-get="/studies/attacked/pause" hx-post="/studies/attacked/pause" hx-trigger="load" sse-connect="https://elsewhere.example/" hx-on:load="window.__x = 1">`,
}

// attack creates the study "attacked", with attacks in every field that users write.
func attack(t *testing.T, client *dpareto.Client) {
	t.Helper()
	all := strings.Join(attacks, " ")
	spec := privateSpec()
	spec.PrivateMode, spec.TestLedger, spec.TrainLedger = nil, "", ""
	spec.Metrics[1].Unit = attacks[1]
	spec.Metrics[0].Unit = attacks[0][:20]
	spec.Parameters = append(spec.Parameters, &dparetov1.ParameterSpec{
		Id: "kind", Domain: &dparetov1.ParameterSpec_CategoricalDomain{CategoricalDomain: &dparetov1.CategoricalDomain{Categories: attacks}},
	})
	spec.Trainer = &dparetov1.TrainerSpec{Name: attacks[0], Settings: map[string]string{attacks[0]: all, "url": attacks[4]}}
	_, err := client.CreateStudy(t.Context(), "attacked", &dparetov1.Study{
		DisplayName: attacks[3] + attacks[1], Description: all, Labels: map[string]string{attacks[0]: attacks[1], "{{.}}": attacks[3]}, Spec: spec,
	})
	require.NoError(t, err)
	for i, text := range attacks {
		_, err := client.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: "studies/attacked", Trial: &dparetov1.Trial{
			Parameters: map[string]*dparetov1.Value{
				"sigma": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: float64(i + 1)}}, "kind": {Kind: &dparetov1.Value_StringValue{StringValue: text}},
			},
			Note: all, Labels: map[string]string{attacks[0]: text}, Attributes: map[string]*structpb.Value{attacks[0]: structpb.NewStringValue(all)},
			Artifacts: []*dparetov1.Artifact{
				{Id: attacks[0], Uri: "view-source:" + attacks[4]}, {Id: attacks[1], Uri: "s3:" + attacks[0]}, {Id: "good", Uri: "https://elsewhere.example/"},
			},
		}})
		require.NoError(t, err)
		asked, err := client.Studies.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/attacked", WorkerId: attacks[1] + strconv.Itoa(i)})
		require.NoError(t, err)
		trial := asked.GetTrials()[0]
		done := &dparetov1.CompleteTrialRequest{Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken()}
		switch i {
		case 0:
			done.Outcome = &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: all}}
		case 1:
			done.Outcome = &dparetov1.CompleteTrialRequest_Infeasible{Infeasible: &dparetov1.Infeasible{Reason: all}}
		case 2: // still running
			continue
		default:
			measured := dpareto.Metrics{"error": {0.1 + 0.05*float64(i)}}.Measurement(0, 0)
			done.Outcome = &dparetov1.CompleteTrialRequest_Measurement{Measurement: measured}
		}
		require.NoError(t, require.ErrOf(client.Studies.CompleteTrial(t.Context(), done)))
	}
	require.NoError(t, require.ErrOf(client.Studies.StopTrial(t.Context(), &dparetov1.StopTrialRequest{Name: "studies/attacked/trials/3", Reason: all})))
}

// Text that users write does nothing in any view: no script runs, no dialog opens, nothing is asked of
// another host, and no form is sent.
func TestPageScriptInjection(t *testing.T) {
	srv := servePage(t, filepath.Join(t.TempDir(), "page.db"))
	client, err := dpareto.Dial(srv.address)
	require.NoError(t, err)
	defer client.Close()
	attack(t, client)
	query := url.QueryEscape(strings.Join(attacks, " "))
	paths := []string{
		"/studies", "/studies?q=" + query, "/studies?label=" + query, "/studies?state=" + query, "/compare?study=attacked&study=" + query, "/compare?study=attacked",
		"/about", "/sign-in?next=" + query, "/studies/" + url.PathEscape(attacks[0]),
	}
	for _, view := range []string{
		"", "?front=both", "?front=" + query, "?x=" + query, "?wait=1", "/choose", "/choose?wait=1", "/choose?value=" + query, "/choose?bound=" + query, "/why", "/why?wait=1", "/why?metric=" + query,
		"/trials", "/trials?filter=" + query, "/trials?order_by=" + query, "/trials/1", "/trials/2", "/trials/3", "/trials/5", "/trials/compare?trial=5&trial=6",
		"/queue", "/queue?parameters.kind=" + query + "&note=" + query, "/edit", "/report", "/parts/front", "/parts/choice?value=" + query,
	} {
		paths = append(paths, "/studies/attacked"+view)
	}
	b := openTab(t, srv.url)
	for _, path := range paths {
		b.openWhole(path)
		eval[bool](b, `[...document.querySelectorAll("details")].forEach((d) => d.open = true), true`)
		if eval[bool](b, `window.__x !== undefined`) {
			t.Errorf("%s: a script has run", path)
		}
		for _, evil := range []string{
			`img`, `main script`, `svg[onload]`, `[onfocus]`, `[onerror]`, `a[href^="javascript:" i]`, `a[href^="data:"]`, `link[href*="elsewhere"]`, `a[ping]`, `[hx-on\\:load]`, `main [hx-post]`,
			`[sse-connect*="elsewhere"]`,
		} {
			if eval[bool](b, fmt.Sprintf(`!!document.querySelector(%q)`, strings.ReplaceAll(evil, `\\`, `\`))) {
				t.Errorf("%s has %s", path, evil)
			}
		}
	}
	b.open("/studies/attacked/trials/5")
	if text := eval[string](b, "document.body.innerText"); !slices.ContainsFunc(attacks, func(attack string) bool { return strings.Contains(text, attack) }) {
		t.Error("a view does not show what a user has written")
	}
	resp, err := client.Studies.GetStudy(t.Context(), &dparetov1.GetStudyRequest{Name: "studies/attacked"})
	if err != nil || resp.GetStudy().GetState() != dparetov1.StudyState_STUDY_STATE_ACTIVE {
		t.Errorf("the study is %v, %v", resp.GetStudy().GetState(), err)
	}
}

// A page of another site cannot pause a study in the name of a reader who has signed in, nor on a server
// without a sign-in.
func TestPageForgedRequest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "auth.yaml")
	token := strings.TrimSpace(must(t, "token", "create", "--auth-file", file, "--name", "ada", "--role", "admin"))
	for name, tc := range map[string]struct {
		flags []string
		host  string // of the other site
	}{
		"open":               {nil, "127.0.0.1"}, // the same host with another port
		"open, another host": {nil, "localhost"},
		"signed in":          {[]string{"--auth-file", file}, "127.0.0.1"},
		"signed in, another": {[]string{"--auth-file", file}, "localhost"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := servePage(t, filepath.Join(t.TempDir(), "page.db"), tc.flags...)
			create := program(t, "study", "create", "--server", srv.address, "--id", "victim", svtStudy(t, 8, 5))
			get := program(t, "study", "get", "victim", "--server", srv.address, "-o", "json")
			if tc.flags != nil {
				create.Env, get.Env = append(create.Env, "DPARETO_TOKEN="+token), append(get.Env, "DPARETO_TOKEN="+token)
			}
			if r := finish(t, create, ""); r.code != 0 {
				t.Fatal(r.stderr)
			}
			b := openTab(t, srv.url)
			if tc.flags != nil {
				b.open("/sign-in?next=/studies/victim")
				eval[bool](b, fmt.Sprintf(`document.querySelector("input[name=token]").value = %q, document.querySelector("main form").submit(), true`, token))
			} else {
				b.open("/studies/victim")
			}
			b.await(`location.pathname == "/studies/victim" && document.querySelector("form[action$='/pause']")`)
			evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				fmt.Fprintf(w, `<form method="post" action="%s/studies/victim/pause"><input name="request_id" value="forged"></form><script>document.forms[0].submit()</script>`, b.url)
			}))
			defer evil.Close()
			b.abroad(func() {
				other := page.NavigateParams{URL: strings.Replace(evil.URL, "127.0.0.1", tc.host, 1)}
				if _, err := chromedp.Call(b.ctx, page.Navigate, other); err != nil { // it does not wait until the page has loaded, which this one never has
					t.Fatal(err)
				}
				b.await(`location.pathname == "/studies/victim/pause" && document.readyState == "complete"`) // the server has answered, and leads nowhere
			})
			if r := finish(t, get, ""); r.code != 0 || !strings.Contains(r.stdout, `"state": "active"`) {
				t.Errorf("the study is not active: %s%s", r.stdout, r.stderr)
			}
			// The same form of the page itself is accepted.
			b.open("/studies/victim")
			b.await(`document.querySelector("form[action$='/pause']") || location.pathname == "/sign-in"`)
			eval[bool](b, `document.querySelector("form[action$='/pause']").submit(), true`)
			b.await(`document.querySelector("form[action$='/resume']")`)
		})
	}
}
