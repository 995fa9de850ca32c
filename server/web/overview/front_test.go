package overview_test

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/clock/clocktest"
	"github.com/dpareto/dpareto/server/servertest"
	"github.com/dpareto/dpareto/server/web/webtest"
)

// hostile is text that would become markup or a script wherever a page forgets to escape it.
const hostile = `<script>alert(1)</script>"'><img src=x onerror=alert(1)>`

// privacySpec is a question about ε and an error, with steps.
func privacySpec() *dparetov1.StudySpec {
	reference := func(x float64) *float64 { return &x }
	return &dparetov1.StudySpec{
		Parameters: []*dparetov1.ParameterSpec{
			{Id: "sigma", Scale: dparetov1.Scale_SCALE_LOG, Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Min: 1, Max: 32}}},
			{Id: "epochs", Scale: dparetov1.Scale_SCALE_LINEAR, Domain: &dparetov1.ParameterSpec_IntegerDomain{IntegerDomain: &dparetov1.IntegerDomain{Min: 1, Max: 8}}},
			{Id: "kind", Domain: &dparetov1.ParameterSpec_CategoricalDomain{CategoricalDomain: &dparetov1.CategoricalDomain{Categories: []string{"plain", hostile}}}},
		},
		Metrics: []*dparetov1.MetricSpec{
			{
				Id: "epsilon", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE,
				Transform: dparetov1.Transform_TRANSFORM_LOG, ReferenceValue: reference(20),
				Source: &dparetov1.MetricSpec_Computed{Computed: &dparetov1.ComputedSource{Function: &dparetov1.ComputedSource_Privacy{Privacy: &dparetov1.PrivacySpec{
					Delta: 1e-6, Adjacency: dparetov1.Adjacency_ADJACENCY_ADD_REMOVE,
					Mechanism: &dparetov1.PrivacySpec_Gaussian{Gaussian: &dparetov1.GaussianMechanism{Sensitivity: "1", StandardDeviation: "sigma / math.sqrt(double(epochs))"}},
				}}}},
			},
			{
				Id: "error", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE, Unit: "ratio",
				Transform: dparetov1.Transform_TRANSFORM_LOGIT, ReferenceValue: reference(0.9),
				Source: &dparetov1.MetricSpec_Reported{Reported: new(dparetov1.ReportedSource)},
			},
		},
		CheckpointParameter: "epochs",
		Algorithm:           &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_RANDOM},
		Budget:              &dparetov1.Budget{MaxTrials: 1000},
	}
}

// measured returns a measurement.
func measured(step int64, values map[string]float64) *dparetov1.Measurement {
	m := &dparetov1.Measurement{Step: step, Metrics: make(map[string]*dparetov1.MetricValue)}
	for metric, v := range values {
		m.Metrics[metric] = &dparetov1.MetricValue{Value: &v}
	}
	return m
}

// add adds a trial with its measurement.
func add(t testing.TB, s *webtest.Site, study string, parameters map[string]*dparetov1.Value, values map[string]float64) {
	t.Helper()
	_, err := dparetov1.NewStudyServiceClient(s.Conn).CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{
		Parent: "studies/" + study,
		Trial:  &dparetov1.Trial{Parameters: parameters, FinalMeasurement: measured(0, values)},
	})
	require.NoError(t, err)
}

// fill adds trials to a study of privacySpec.
func fill(t testing.TB, s *webtest.Site, study string, trials int) {
	t.Helper()
	for i := range trials {
		share := float64(i) / float64(trials)
		sigma := math.Pow(32, share)
		err := 0.05 + 0.5*share*share + 0.03*math.Sin(7*float64(i))
		kind := []string{"plain", hostile}[i%2]
		add(t, s, study, map[string]*dparetov1.Value{"sigma": webtest.Number(sigma), "epochs": webtest.Whole(int64(1 + i%8)), "kind": webtest.Word(kind)}, map[string]float64{"error": err})
	}
}

// noMarkup fails if a page has markup from hostile text.
func noMarkup(t testing.TB, body string) {
	t.Helper()
	for _, bad := range []string{"<script>alert", "<img src=x", `"'><`} {
		if at := strings.Index(body, bad); at >= 0 {
			t.Errorf("unescaped %q: %s", bad, body[max(0, at-200):min(len(body), at+100)])
		}
	}
}

// A study shows its fronts, what runs, its progress and what it spent, with what ε means; hostile
// text stays text.
func TestStudy(t *testing.T) {
	s := webtest.New(t, server.Options{})
	s.Create(t.Context(), t, "first", &dparetov1.Study{
		DisplayName: hostile, Description: hostile, Labels: map[string]string{"la<bel": hostile}, Spec: privacySpec(),
	})
	fill(t, s, "first", 24)
	studies := dparetov1.NewStudyServiceClient(s.Conn)
	resp, err := studies.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/first", WorkerId: hostile})
	require.NoError(t, err)
	trial := resp.GetTrials()[0]
	require.NoError(t, require.ErrOf(studies.AddMeasurement(t.Context(), &dparetov1.AddMeasurementRequest{
		Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: measured(1, map[string]float64{"error": 0.625}),
	})))
	frame := s.Get(t, "/studies/first", http.StatusOK)
	noMarkup(t, frame)
	webtest.Contains(t, frame, "The front is being read", "/studies/first/live?lead=front&amp;part=state&amp;part=tiles", "?wait=1", "δ = 1e-6", "add-remove adjacency", "tightest accountant", "upper bound", "24 of 1000 trials succeeded")
	webtest.Contains(t, frame, `!class="mark`)

	for _, settings := range []string{"", "&front=observed", "&front=both&x=linear&y=logit&others=0&final=1", "&x_min=0.5&x_max=10&y_max=0.3"} {
		body := s.Get(t, "/studies/first?wait=1"+settings, http.StatusOK)
		noMarkup(t, body)
		webtest.Contains(t, body, `<a class="mark`, "step 1", "0.6250", "&lt;script&gt;", `id="series-runs-title"`, "Hypervolume of the observed front over runs", "over epochs",
			"results of all 25 runs", "upper bound", "Posterior"[1:], "of epochs"[3:])
		if isPosterior := strings.Contains(body, "90 % interval"); isPosterior != (settings != "&front=observed") {
			t.Errorf("%s: intervals %t", settings, isPosterior)
		}
	}
	webtest.Contains(t, s.Get(t, "/studies/first?wait=1", http.StatusOK), `href="/studies/first/choose?bound=epsilon&amp;measured=1&amp;value=`)
	for _, bad := range []string{"front=x", "x=logit", "x_min=0", "y_min=a", "x_min=3&x_max=2", "x_min=Inf"} {
		s.Get(t, "/studies/first?"+bad, http.StatusUnprocessableEntity)
		s.Get(t, "/studies/first/parts/front?"+bad, http.StatusUnprocessableEntity)
	}
}

// stream reads server-sent events.
type stream struct {
	events chan [2]string // name and data
	seen   [][2]string
}

func listen(t testing.TB, s *webtest.Site, path string) *stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, http.NoBody)
	require.NoError(t, err)
	resp, err := s.Client().Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s", path, resp.Status)
	}
	events := &stream{events: make(chan [2]string, 100)}
	go func() {
		defer close(events.events)
		var name string
		var data strings.Builder
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<24)
		for lines.Scan() {
			switch line := lines.Text(); {
			case strings.HasPrefix(line, "event: "):
				name = line[len("event: "):]
			case strings.HasPrefix(line, "data: "):
				data.WriteString(line[len("data: "):] + "\n")
			case line == "" && name != "":
				events.events <- [2]string{name, data.String()}
				name = ""
				data.Reset()
			}
		}
	}()
	return events
}

// until returns the first event with some text of a part.
func (s *stream) until(t testing.TB, part, text string) string {
	t.Helper()
	for _, event := range s.seen {
		if event[0] == part && strings.Contains(event[1], text) {
			return event[1]
		}
	}
	for event := range s.events {
		s.seen = append(s.seen, event)
		if event[0] == part && strings.Contains(event[1], text) {
			return event[1]
		}
	}
	t.Fatalf("the stream ended without %q in %s", text, part)
	return ""
}

// Points appear on the stream after a trial is completed, the posterior front without a request, and
// the stream ends with the server.
func TestStudyLive(t *testing.T) {
	s := webtest.New(t, server.Options{})
	s.Create(t.Context(), t, "first", &dparetov1.Study{Spec: privacySpec()})
	stream := listen(t, s, "/studies/first/live?part=front&part=state&part=running&part=hypervolume&part=spent")
	stream.until(t, "front", "No configuration has been measured yet")
	add(t, s, "first", map[string]*dparetov1.Value{"sigma": webtest.Number(4), "epochs": webtest.Whole(2), "kind": webtest.Word("plain")}, map[string]float64{"error": 0.25})
	body := stream.until(t, "front", "1 configurations")
	webtest.Contains(t, body, `<a class="mark`, "trial 1")
	stream.until(t, "state", "1 of 1000 trials succeeded")
	s.Stop()
	for event := range stream.events { // until the end
		stream.seen = append(stream.seen, event)
	}
}

// What readers came for comes first, however long the other parts take; the ledger is asked for once, for its
// panel and its tile.
func TestStudyLead(t *testing.T) {
	s := webtest.New(t, server.Options{})
	s.Create(t.Context(), t, "first", &dparetov1.Study{Spec: privacySpec()})
	fill(t, s, "first", 24)
	webtest.Contains(t, s.Get(t, "/studies/first", http.StatusOK), "&amp;lead=front", "!part=tile-spent")
	stream := listen(t, s, "/studies/first/live?part=spent&part=front&part=hypervolume&part=state&part=tiles&lead=front")
	body := stream.until(t, "spent", "All runs of this search")
	webtest.Contains(t, body, `<div id="tile-spent" hx-swap-oob="true">`, "Publishing all 24 runs")
	if first := stream.seen[0][0]; first != "front" {
		t.Errorf("%s came first", first)
	}
	webtest.Contains(t, s.Get(t, "/studies/first/parts/spent", http.StatusOK), "!tile-spent")
}

// The workers that hold trials are said to train, or not to be heard from once their lease is over.
func TestWorkers(t *testing.T) {
	for name, tt := range map[string]struct {
		taken time.Time // when the worker took its trials
		want  []string
	}{
		"training": {time.Now(), []string{"<caption>1 worker at work.", "!idle</span>", "training</span>", "!not heard from"}},
		"silent":   {time.Now().Add(-24 * time.Hour), []string{"<caption>1 worker at work, 1 not heard from.", "!idle</span>", "not heard from</span>", "its lease ended", "!training</span>"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := webtest.New(t, server.Options{Clock: clocktest.NewManual(tt.taken)})
			s.Create(t.Context(), t, "first", &dparetov1.Study{Spec: privacySpec()})
			running := func() string { return s.Get(t, "/studies/first/parts/running", http.StatusOK) }
			webtest.Contains(t, running(), "No worker is at work")
			resp, err := dparetov1.NewStudyServiceClient(s.Conn).SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/first", WorkerId: "gpu-1", Count: 2})
			require.NoError(t, err)
			if len(resp.GetTrials()) != 2 {
				t.Fatalf("%d trials", len(resp.GetTrials()))
			}
			webtest.Contains(t, running(), tt.want...)
		})
	}
}

// A worker that holds no trial is idle, since its last one ended.
func TestIdleWorkers(t *testing.T) {
	s := webtest.New(t, server.Options{})
	s.Create(t.Context(), t, "first", &dparetov1.Study{Spec: privacySpec()})
	studies := dparetov1.NewStudyServiceClient(s.Conn)
	take := func(worker string) *dparetov1.Trial {
		t.Helper()
		resp, err := studies.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/first", WorkerId: worker})
		require.NoError(t, err)
		return resp.GetTrials()[0]
	}
	end := func(trial *dparetov1.Trial) {
		t.Helper()
		_, err := studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(),
			Outcome: &dparetov1.CompleteTrialRequest_Infeasible{Infeasible: &dparetov1.Infeasible{Reason: "it diverged"}},
		})
		require.NoError(t, err)
	}
	const idle = `<td><span class="pill">idle</span><br><small class="quiet">since `
	running := func() string { return s.Get(t, "/studies/first/parts/running", http.StatusOK) }
	first, second := take("gpu-1"), take("gpu-2")
	end(second)
	end(first)
	webtest.Contains(t, running(), "No worker is at work", `<th scope="row">gpu-1</th>`+idle, `<th scope="row">gpu-2</th>`+idle, "<td>infeasible</td>")
	take("gpu-2")
	webtest.Contains(t, running(), "1 worker at work", "training</span>", `<th scope="row">gpu-1</th>`+idle, `!<th scope="row">gpu-2</th>`+idle)
}

// Studies with three objectives, one, or none that is about privacy, have a view without ε.
func TestStudyKinds(t *testing.T) {
	s := webtest.New(t, server.Options{})
	objective := func(id string, goal dparetov1.Goal, reference float64) *dparetov1.MetricSpec {
		m := webtest.SimpleSpec().GetMetrics()[0]
		m.Id, m.Goal, m.ReferenceValue = id, goal, &reference
		return m
	}
	for id, metrics := range map[string][]*dparetov1.MetricSpec{
		"one":   {objective("a", dparetov1.Goal_GOAL_MAXIMIZE, 0)},
		"two":   {objective("a", dparetov1.Goal_GOAL_MAXIMIZE, 0), objective("b", dparetov1.Goal_GOAL_MINIMIZE, 1)},
		"three": {objective("a", dparetov1.Goal_GOAL_MAXIMIZE, 0), objective("b", dparetov1.Goal_GOAL_MINIMIZE, 1), objective("c", dparetov1.Goal_GOAL_MINIMIZE, 1)},
	} {
		spec := webtest.SimpleSpec()
		spec.Metrics = metrics
		s.Create(t.Context(), t, id, &dparetov1.Study{Spec: spec})
		empty := s.Get(t, "/studies/"+id+"?wait=1", http.StatusOK)
		webtest.Contains(t, empty, "No configuration has been measured yet", "No trial has succeeded yet", "nothing is accounted for", "No worker is at work")
		for i := range 6 {
			x := float64(i) / 6
			values := make(map[string]float64)
			for _, m := range metrics {
				values[m.GetId()] = map[string]float64{"a": 0.25 + x/2, "b": 0.125 + x/2, "c": (x - 0.5) * (x - 0.5)}[m.GetId()]
			}
			add(t, s, id, map[string]*dparetov1.Value{"x": webtest.Number(x)}, values)
		}
		body := s.Get(t, "/studies/"+id+"?wait=1&front=observed", http.StatusOK)
		webtest.Contains(t, body, "!ε ≤", "!upper bound", "!choose?epsilon")
		switch id {
		case "one":
			webtest.Contains(t, body, "Best measured mean of a so far over runs", "0.6667")
			webtest.Contains(t, body, `!class="mark`)
		case "two":
			webtest.Contains(t, body, `id="front-observed-1-0"`, `href="/studies/two/trials/1"`)
		case "three":
			webtest.Contains(t, body, `id="front-0-1-observed-1-0"`, `id="front-0-2-observed-1-0"`, `id="front-1-2-observed-1-0"`, "Parallel coordinates", `id="parallel-1-0"`)
		}
	}
}

// A private study shows what publishing guarantees and what is spent; one with random stopping shows
// nothing that its calls refuse.
func TestPrivateStudy(t *testing.T) {
	s := webtest.New(t, server.Options{})
	releases := dparetov1.NewReleaseServiceClient(s.Conn)
	for id, adjacency := range map[string]dparetov1.Adjacency{"train": dparetov1.Adjacency_ADJACENCY_ADD_REMOVE, "test": dparetov1.Adjacency_ADJACENCY_REPLACE_ONE} {
		require.NoError(t, require.ErrOf(releases.CreateLedger(t.Context(), &dparetov1.CreateLedgerRequest{LedgerId: id, Ledger: &dparetov1.Ledger{Records: 10_000, Epsilon: 100, Delta: 0.01, Adjacency: adjacency}})))
	}
	spec := privacySpec()
	spec.TestLedger, spec.TrainLedger = "ledgers/test", "ledgers/train"
	spec.PrivateMode = &dparetov1.PrivateModeSpec{TestSetSize: 10_000, TestEpsilon: 1, TrainEpsilon: 30, Delta: 1e-6, MaxValues: 5000}
	s.Create(t.Context(), t, "private", &dparetov1.Study{Spec: spec})
	body := s.Get(t, "/studies/private?wait=1", http.StatusOK)
	webtest.Contains(t, body, "What publishing guarantees", "0 of 5000 noisy values", "all studies that it pays for have spent, in ", "; it allows ε ≤ 100.0, δ = 0.01, under the same adjacency", "ledger <code>train</code>", "ledger <code>test</code>", "are the declared ones")

	for _, path := range []string{"/studies/private", "/studies"} {
		webtest.Contains(t, s.Get(t, path, http.StatusOK), "for training records ε ≤ 30.00, δ = 1e-6, add-remove adjacency, ", "for test records ε ≤ 1.000, δ = 1e-6, replace-one adjacency, ", "accountant, an upper bound")
	}

	spec = privacySpec()
	spec.CheckpointParameter, spec.Budget = "", nil
	spec.TrainLedger = "ledgers/train"
	spec.RandomStopping = &dparetov1.RandomStoppingSpec{MeanTrials: 5, Distribution: &dparetov1.RandomStoppingSpec_Eta{Eta: 1}, Metric: "error"}
	s.Create(t.Context(), t, "hidden", &dparetov1.Study{Spec: spec})
	body = s.Get(t, "/studies/hidden", http.StatusOK)
	webtest.Contains(t, body, "shows only its best trial")
	webtest.Contains(t, body, "!sse-connect", "!succeeded")
	webtest.Contains(t, s.Get(t, "/studies/hidden/parts/front", http.StatusConflict), `role="alert"`)
	webtest.Contains(t, s.Get(t, "/studies", http.StatusOK), `href="/studies/hidden"`, `href="/studies/private"`, "a secret number of trials")
	webtest.Contains(t, s.Get(t, "/compare/fronts?study=hidden&study=private", http.StatusOK), "shows only its best trial")
}

// The list of studies searches, filters by state and labels, and has pages.
func TestStudiesList(t *testing.T) {
	s := webtest.New(t, server.Options{})
	for i := range 60 {
		s.Create(t.Context(), t, fmt.Sprintf("s%02d", i), &dparetov1.Study{
			DisplayName: fmt.Sprintf("Number %d", i), Spec: webtest.SimpleSpec(), Labels: map[string]string{"team": fmt.Sprint(i % 3), "a=b&c": hostile},
		})
	}
	body := s.Get(t, "/studies?order=name", http.StatusOK)
	noMarkup(t, body)
	webtest.Contains(t, body, ">Number 0<", ">Number 49<", "Next page")
	webtest.Contains(t, body, "!>Number 50<")
	next, _, _ := strings.Cut(body, `" rel="next"`)
	next = strings.ReplaceAll(next[strings.LastIndex(next, `"`)+1:], "&amp;", "&")
	webtest.Contains(t, s.Get(t, next, http.StatusOK), ">Number 50<", ">Number 59<")
	webtest.Contains(t, s.Get(t, "/studies", http.StatusOK), ">Number 59<") // newest first

	body = s.Get(t, "/studies?q=ber+7&order=name", http.StatusOK)
	webtest.Contains(t, body, ">Number 7<")
	webtest.Contains(t, body, "!>Number 17<", "!>Number 8<")
	body = s.Get(t, "/studies?label="+url.QueryEscape("team=1")+"&label="+url.QueryEscape(url.QueryEscape("a=b&c")+"="+url.QueryEscape(hostile)), http.StatusOK)
	noMarkup(t, body)
	webtest.Contains(t, body, ">Number 1<", ">Number 58<"[:8], "Without the label team: 1")
	webtest.Contains(t, body, "!>Number 2<", "!>Number 3<")
	webtest.Contains(t, s.Get(t, "/studies?state=paused", http.StatusOK), "No study fits")
	webtest.Contains(t, s.Get(t, "/studies?q="+url.QueryEscape(hostile+`\" OR state = ACTIVE`), http.StatusOK), "No study fits")
	for _, bad := range []string{"state=x", "label=x%25zz%3D1", "label=%3D", "order=x", "page=x"} {
		s.Get(t, "/studies?"+bad, http.StatusUnprocessableEntity)
	}
}

// The front in miniature has a line and no text but its title.
func TestMiniature(t *testing.T) {
	s := webtest.New(t, server.Options{})
	s.Create(t.Context(), t, "first", &dparetov1.Study{Spec: privacySpec()})
	fill(t, s, "first", 8)
	webtest.Contains(t, s.Get(t, "/studies", http.StatusOK), `hx-get="/studies/first/parts/miniature"`)
	body := s.Get(t, "/studies/first/parts/miniature", http.StatusOK)
	webtest.Contains(t, body, "miniature", `class="line `, `class="dots front"`)
	webtest.Contains(t, body, "!<text")
}

// Fronts of the same two objectives are drawn together; what is not comparable is said.
func TestCompare(t *testing.T) {
	s := webtest.New(t, server.Options{})
	webtest.Contains(t, s.Get(t, "/compare", http.StatusOK), "Choose the studies")
	for _, id := range []string{"first", "second", "third"} {
		spec := privacySpec()
		if id == "third" {
			spec.GetMetrics()[0].GetComputed().GetPrivacy().Delta = 1e-5
			*spec.GetMetrics()[1].ReferenceValue = 0.8
		}
		s.Create(t.Context(), t, id, &dparetov1.Study{Spec: spec})
		fill(t, s, id, 8)
	}
	s.Create(t.Context(), t, "other", &dparetov1.Study{Spec: webtest.SimpleSpec()})
	s.Create(t.Context(), t, "empty", &dparetov1.Study{Spec: privacySpec()})
	webtest.Contains(t, s.Get(t, "/compare/fronts?study=empty", http.StatusOK), "There is nothing to draw", "No trial has succeeded yet.", "!<svg class=\"chart")
	webtest.Contains(t, s.Get(t, "/compare/fronts?study=empty&study=first", http.StatusOK), `id="compare-first-`, "No trial has succeeded yet.")
	frame := s.Get(t, "/compare?study=first&study=second", http.StatusOK)
	webtest.Contains(t, frame, `hx-get="/compare/fronts?study=first&amp;study=second"`, `value="third">`, `value="first" checked`)
	webtest.Contains(t, frame, `!class="mark`)
	body := s.Get(t, "/compare?wait=1&study=first&study=second&study=first", http.StatusOK)
	noMarkup(t, body)
	webtest.Contains(t, body, `id="compare-first-`, `id="compare-second-`, `class="line "`, `class="line second"`, "90 % intervals", "first: ε",
		`id="parallel-first-`, `id="parallel-second-`, `class="line thin second"`, `data-axis="4"`, `!data-axis="5"`)
	webtest.Contains(t, body, "!not comparable", "Best error at ε ≤ ", "No study is clearly better: the 90 % intervals overlap.")
	body = s.Get(t, "/compare/fronts?study=first&study=third&study=other&study=absent&front=observed&x=linear", http.StatusOK)
	webtest.Contains(t, body, "ε of third and of first are not comparable", "hypervolumes of third and of first are not comparable", "It has other objectives than first", "absent")
	webtest.Contains(t, body, `!id="compare-other`, "!90 %")
	s.Get(t, "/compare?study=a&study=b&study=c&study=d&study=e&study=f&study=g&study=h&study=i", http.StatusUnprocessableEntity)
	s.Get(t, "/compare/fronts?study=first&front=best", http.StatusUnprocessableEntity)
	noMarkup(t, s.Get(t, "/compare?wait=1&study="+url.QueryEscape(hostile), http.StatusOK))
}

// What a search has cost is said with all that it depends on; of one run not as of several.
func TestSpent(t *testing.T) {
	s := webtest.New(t, server.Options{})
	s.Create(t.Context(), t, "first", &dparetov1.Study{Spec: privacySpec()})
	webtest.Contains(t, s.Get(t, "/studies/first/parts/spent", http.StatusOK), "No run has touched the data yet", "!ε ≤ ")
	fill(t, s, "first", 1)
	body := s.Get(t, "/studies/first?wait=1", http.StatusOK)
	webtest.Contains(t, body, "<p class=\"quiet\">The only run</p><p class=\"big\">ε ≤ ", "All runs together: ε ≤ ", "δ = 1e-6, add-remove adjacency",
		"the largest ε is an upper bound, ε of one run, δ = 1e-6", "<dt>Runs per trial</dt><dd>1</dd>", "!All 1 runs")
	fill(t, s, "first", 3)
	webtest.Contains(t, s.Get(t, "/studies/first/parts/spent", http.StatusOK), "the results of all 4 runs", "The costliest single run: ε ≤ ", "!upper bound, an upper bound")
}

// Of seeded runs no ε is shown, and every other one says that it is of runs whose randomness is secret.
func TestSeededStudy(t *testing.T) {
	s := webtest.New(t, server.Options{})
	const seeded = "Runs of this study were seeded, so that no ε holds for them"
	for id, isSeeded := range map[string]bool{"seeded": true, "secret": false} {
		s.Create(t.Context(), t, id, &dparetov1.Study{Spec: webtest.TrainedSpec()})
		s.Train(t.Context(), t, id, 3, isSeeded)
	}
	body := s.Get(t, "/studies/seeded?wait=1", http.StatusOK)
	webtest.Contains(t, body, "Runs of the search were seeded", "<b>"+seeded, "ε is an upper bound for a run whose randomness is secret, not for the seeded ones, δ = 1e-5",
		"!costliest single run", "!Largest ε", "!no bound", "!+Inf", "!ε is an upper bound for one run")
	_, caption, _ := strings.Cut(body, "<caption>The posterior front")
	caption, _, _ = strings.Cut(caption, "</caption>")
	webtest.Contains(t, caption, seeded)
	webtest.Contains(t, s.Get(t, "/studies/secret?wait=1", http.StatusOK), "!"+seeded, "The costliest single run", "ε is an upper bound for one run, δ = 1e-5")
	body = s.Get(t, "/compare/fronts?study=seeded&study=secret", http.StatusOK)
	webtest.Contains(t, body, "<b>seeded:</b> "+seeded, "<b>seeded: Seeded runs.</b> Not for release", "!<b>secret:</b>", "secret: ε")
}

// The newest trials are looked at first for running ones: a list without an order ends after 10,000.
func TestWorkerOfBigStudy(t *testing.T) {
	const ended = 10_000
	records := servertest.Start(t).ManyTrials("big", ended)
	s := webtest.New(t, server.Options{})
	stream, err := dparetov1.NewAdminServiceClient(s.Conn).ImportStudy(t.Context())
	require.NoError(t, err)
	for _, record := range records {
		require.NoError(t, stream.Send(&dparetov1.ImportStudyRequest{Record: record}))
	}
	_, err = stream.CloseAndRecv()
	require.NoError(t, err)
	_, err = dparetov1.NewStudyServiceClient(s.Conn).SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/big", WorkerId: "gpu-1"})
	require.NoError(t, err)
	webtest.Contains(t, s.Get(t, "/studies/big/parts/running", http.StatusOK), "1 worker at work", "<td><a href=\"/studies/big/trials/10001\">")
}
