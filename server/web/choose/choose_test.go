package choose_test

import (
	"fmt"
	"html"
	"math"
	"net/http"
	"regexp"
	"strings"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/web/webtest"
)

// hostileCategory is the name of a category that several readers would take for their own.
const hostileCategory = "it's \"<script>alert(1)</script>$(id)\x1b\n"

// dpSpec is a study of DP-SGD with a parameter of each kind, one of them conditional.
func dpSpec() *dparetov1.StudySpec {
	spec := webtest.SimpleSpec()
	spec.Parameters = []*dparetov1.ParameterSpec{
		{Id: "epochs", Domain: &dparetov1.ParameterSpec_IntegerDomain{IntegerDomain: &dparetov1.IntegerDomain{Min: 1, Max: 20}}, Scale: dparetov1.Scale_SCALE_LOG},
		{Id: "noise", Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Min: 0.7, Max: 8}}, Scale: dparetov1.Scale_SCALE_LOG},
		{Id: "kind", Domain: &dparetov1.ParameterSpec_CategoricalDomain{CategoricalDomain: &dparetov1.CategoricalDomain{Categories: []string{hostileCategory, "plain"}}}},
		{Id: "momentum", Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Max: 1}}, Scale: dparetov1.Scale_SCALE_LINEAR,
			Condition: &dparetov1.Condition{Parent: "kind", Values: []*dparetov1.Value{webtest.Word("plain")}}},
	}
	reference := 50.0
	spec.Metrics[0] = &dparetov1.MetricSpec{
		Id: "epsilon", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE, ReferenceValue: &reference,
		Transform: dparetov1.Transform_TRANSFORM_LOG, Source: &dparetov1.MetricSpec_Computed{Computed: &dparetov1.ComputedSource{Function: &dparetov1.ComputedSource_Privacy{Privacy: &dparetov1.PrivacySpec{
			Mechanism: &dparetov1.PrivacySpec_DpSgd{DpSgd: &dparetov1.DpSgdMechanism{
				Sampling: dparetov1.Sampling_SAMPLING_POISSON, DatasetSize: "10000", BatchSize: "200", NoiseMultiplier: "noise",
				Length: &dparetov1.DpSgdMechanism_Epochs{Epochs: "epochs"}, Convention: dparetov1.Convention_CONVENTION_ROUNDED,
			}}, Delta: 1e-5, Adjacency: dparetov1.Adjacency_ADJACENCY_ADD_REMOVE,
		}}}},
	}
	spec.Metrics[1].Id = "error"
	spec.Budget.MaxTrials = 40
	return spec
}

// measured creates the study of dpSpec with the results of some trials.
func measured(t testing.TB, s *webtest.Site, id string, trials int) {
	t.Helper()
	studies := dparetov1.NewStudyServiceClient(s.Conn)
	require.NoError(t, require.ErrOf(studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: id, Study: &dparetov1.Study{Spec: dpSpec()}})))
	for i := range trials {
		epochs, noise := int64(1+i%7*3), 0.7*math.Exp(0.2*float64(i%12))
		parameters := map[string]*dparetov1.Value{"epochs": webtest.Whole(epochs), "noise": webtest.Number(noise), "kind": webtest.Word(hostileCategory)}
		err := 0.1 + 0.3*noise/(noise+math.Sqrt(float64(epochs)))
		if i%3 == 0 {
			parameters["kind"], parameters["momentum"] = webtest.Word("plain"), webtest.Number(float64(i%5)/4)
			err += 0.05
		}
		_, failed := studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: "studies/" + id, Trial: &dparetov1.Trial{
			Parameters:       parameters,
			FinalMeasurement: &dparetov1.Measurement{Metrics: map[string]*dparetov1.MetricValue{"error": {Value: &err}}},
		}})
		require.NoError(t, failed)
	}
}

// pre returns the text that a button copies.
func pre(t testing.TB, body, id string) string {
	t.Helper()
	found := regexp.MustCompile(`(?s)<pre id="` + id + `"[^>]*>(.*?)</pre>`).FindStringSubmatch(body)
	if found == nil {
		t.Fatalf("there is nothing to copy as %s", id)
	}
	return html.UnescapeString(found[1])
}

func TestChoose(t *testing.T) {
	s := webtest.New(t, server.Options{})
	measured(t, s, "first", 24)
	// The page does not wait for a fit of the model.
	webtest.Contains(t, s.Get(t, "/studies/first/choose?value=2", http.StatusOK), `hx-get="/studies/first/parts/chooser?value=2"`, "being fitted", `href="?value=2&amp;wait=1"`)
	body := s.Get(t, "/studies/first/choose?wait=1&value=3&confidence=0.9", http.StatusOK)
	webtest.Contains(t, body, "Recommended with ε ≤ 3", "!The best that was run within the bound gives", `data-twin="choose-value"`, "90 % interval", "ε ≤ ", "δ = 1e-5", "add-remove adjacency", "upper bound",
		"What twice the ε buys", "At ε ≤ 6.000, error goes from ", "with at least 80 %", "All 24 runs of the search together", "whether one record was in it, or was blank in its place, and guesses from what the run releases", "Guessing finds 1 %", "!released model", "!SEEDED",
		"One run of this configuration: ε ≤ ", "ε is an upper bound for one training run at δ = 1e-5 (one record added or removed).", "of the measurements of 24 trials lie within",
		`action="/studies/first/queue"`, `name="parameters.epochs"`, `name="request_id"`, `<option value="0.9" selected>`)
	// With even odds the answer need not have been run.
	webtest.Contains(t, s.Get(t, "/studies/first/choose?wait=1&value=3", http.StatusOK), "The best that was run within the bound gives", "measured=1")
	if strings.Contains(body, "<script>alert") || strings.Contains(body, "style=") {
		t.Error("the page holds what a user wrote, or a style")
	}
	for _, id := range []string{"copy-yaml", "copy-json", "copy-python", "copy-command"} {
		if text := pre(t, body, id); !strings.Contains(text, "epochs") {
			t.Errorf("%s: %s", id, text)
		}
	}
	if command := pre(t, body, "copy-command"); !strings.HasPrefix(command, "dpareto trial create first --parameters '{") {
		t.Errorf("command %s", command)
	}
	// The recommendation meets its bound, and its attack rates are between guessing and certainty.
	rates := regexp.MustCompile(`at most <b>([0-9.]+) %</b>`).FindAllStringSubmatch(body, -1)
	if len(rates) != 2 {
		t.Fatalf("rates %v", rates)
	}
	var low, high float64
	fmt.Sscan(rates[0][1], &low)
	fmt.Sscan(rates[1][1], &high)
	if !(1 < low && low < high && high < 100) {
		t.Errorf("rates %v %% and %v %%", low, high)
	}
}

// A bound on the error, and bounds that nothing meets.
func TestChooseAlongError(t *testing.T) {
	s := webtest.New(t, server.Options{})
	measured(t, s, "first", 24)
	webtest.Contains(t, s.Get(t, "/studies/first/parts/choice?bound=error&value=0.3&measured=1", http.StatusOK), "Recommended with error ≤ 0.3", `href="/studies/first/trials/`, "What twice the ε buys")
	webtest.Contains(t, s.Get(t, "/studies/first/parts/choice?bound=error&value=0.0001", http.StatusOK), "No configuration meets the bound")
	webtest.Contains(t, s.Get(t, "/studies/first/parts/choice?bound=what", http.StatusOK), "Recommended with ε ≤ ")
	webtest.Contains(t, s.Get(t, "/studies/first/parts/choice?value=much", http.StatusUnprocessableEntity), "value: must be a number")
	webtest.Contains(t, s.Get(t, "/studies/first/parts/choice?value=1&confidence=2", http.StatusUnprocessableEntity), "confidence")
	webtest.Contains(t, s.Get(t, "/studies/first/parts/choice?value=1&optimize=%3Cscript%3E", http.StatusUnprocessableEntity), "&lt;script&gt;")
}

// The address follows the settings of the part, so that it can be kept.
func TestChooseAddress(t *testing.T) {
	s := webtest.New(t, server.Options{})
	measured(t, s, "first", 12)
	resp, err := s.Client().Get(s.URL + "/studies/first/parts/choice?value=2.5&measured=1")
	require.NoError(t, err)
	_ = resp.Body.Close()
	if got := resp.Header.Get("Hx-Replace-Url"); got != "/studies/first/choose?bound=epsilon&confidence=0.5&measured=1&value=2.5" {
		t.Errorf("address %q", got)
	}
}

// Studies without measurements, and without privacy.
func TestChooseWithoutResults(t *testing.T) {
	s := webtest.New(t, server.Options{})
	s.Create(t.Context(), t, "plain", &dparetov1.Study{Spec: webtest.SimpleSpec()})
	measured(t, s, "empty", 0)
	for _, study := range []string{"plain", "empty"} {
		webtest.Contains(t, s.Get(t, "/studies/"+study+"/choose?wait=1", http.StatusOK), "othing has been measured yet")
	}
	studies := dparetov1.NewStudyServiceClient(s.Conn)
	for i := range 8 {
		x := float64(i) / 8
		y := 1 - x
		_, err := studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: "studies/plain", Trial: &dparetov1.Trial{
			Parameters:       map[string]*dparetov1.Value{"x": webtest.Number(x)},
			FinalMeasurement: &dparetov1.Measurement{Metrics: map[string]*dparetov1.MetricValue{"a": {Value: &x}, "b": {Value: &y}}},
		}})
		require.NoError(t, err)
	}
	body := s.Get(t, "/studies/plain/choose?wait=1&value=0.4", http.StatusOK)
	webtest.Contains(t, body, "Recommended with a ≤ 0.4", "x: ")
	for _, unwanted := range []string{"ε", "attack", "Somebody"} {
		if strings.Contains(body, unwanted) {
			t.Errorf("a study without privacy shows %q", unwanted)
		}
	}
}

// The ε of the chosen point is rounded up wherever it is written.
func TestChooseEpsilonUp(t *testing.T) {
	s := webtest.New(t, server.Options{})
	measured(t, s, "first", 24)
	fronts := dparetov1.NewFrontServiceClient(s.Conn)
	for _, bound := range []float64{1.5, 3} {
		resp, err := fronts.QueryFront(t.Context(), &dparetov1.QueryFrontRequest{Name: "studies/first", Bounds: map[string]float64{"epsilon": bound}, MeasuredOnly: true, Confidence: 0.5})
		require.NoError(t, err)
		epsilon := show.NumberUp(resp.GetComputedMetrics()["epsilon"].GetValue())
		body := s.Get(t, fmt.Sprintf("/studies/first/parts/choice?measured=1&value=%v", bound), http.StatusOK)
		webtest.Contains(t, body, "Chosen: ε "+epsilon+", error ", "error against ε; the chosen point at "+epsilon+" and ", "!epsilon<")
	}
}

// What twice the ε would buy is measured from a configuration that exists, and says if it is the same.
func TestDoubling(t *testing.T) {
	s := webtest.New(t, server.Options{})
	measured(t, s, "first", 24)
	resp, err := dparetov1.NewFrontServiceClient(s.Conn).QueryFront(t.Context(), &dparetov1.QueryFrontRequest{Name: "studies/first", Bounds: map[string]float64{"epsilon": 1e-4}, Confidence: 0.5})
	if err != nil || resp.GetReachable() {
		t.Fatalf("%v, %v", resp, err)
	}
	body := s.Get(t, "/studies/first/parts/choice?value=0.0001", http.StatusOK)
	webtest.Contains(t, body, "No configuration meets the bound", "At ε ≤ "+show.NumberUp(2*resp.GetComputedMetrics()["epsilon"].GetValue()))
	body = s.Get(t, "/studies/first/parts/choice?value=100000&measured=1", http.StatusOK)
	webtest.Contains(t, body, "the same configuration is recommended", "!a difference of 0")
}

// A seeded configuration has an ε only for new runs whose randomness is secret, and one run is not several.
func TestChooseSeeded(t *testing.T) {
	s := webtest.New(t, server.Options{})
	s.Create(t.Context(), t, "first", &dparetov1.Study{Spec: webtest.TrainedSpec()})
	s.Train(t.Context(), t, "first", 3, true)
	webtest.Contains(t, s.Get(t, "/studies/first/choose?wait=1&value=20&measured=1", http.StatusOK), "Measured in 1 run:", "A new run of this configuration whose randomness is secret: ε ≤ ",
		"Runs of this study were seeded, so that no ε holds for them", "Runs of the search were seeded", "whether one record was in it, and guesses", "!One run of this configuration:")
}
