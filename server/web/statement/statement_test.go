package statement_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/web/statement"
	"github.com/dpareto/dpareto/server/web/webtest"
)

// now is when the statements of tests are made.
var now = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func clients(site *webtest.Site) *statement.Clients {
	return &statement.Clients{
		Studies: dparetov1.NewStudyServiceClient(site.Conn), Fronts: dparetov1.NewFrontServiceClient(site.Conn), Privacy: dparetov1.NewPrivacyServiceClient(site.Conn),
		Releases: dparetov1.NewReleaseServiceClient(site.Conn), Admin: dparetov1.NewAdminServiceClient(site.Conn),
	}
}

// spec is a study of DP-SGD by a trainer that nobody knows, for which n records would be many or few.
func spec(delta float64) *dparetov1.StudySpec {
	s := webtest.TrainedSpec()
	p := s.GetMetrics()[0].GetComputed().GetPrivacy()
	p.Delta = delta
	m := p.GetDpSgd()
	m.SamplingProbability, m.DatasetSize, m.BatchSize, m.Convention = "", "10000", "1000", dparetov1.Convention_CONVENTION_OPACUS
	m.Length = &dparetov1.DpSgdMechanism_Epochs{Epochs: "epochs"}
	return s
}

// A statement of an ordinary study names the trial, the price of the search, and everything that the registry
// and NIST SP 800-226 ask for, in every form.
func TestOrdinary(t *testing.T) {
	site := webtest.New(t, server.Options{})
	site.Create(t.Context(), t, "s", &dparetov1.Study{DisplayName: "A study", Spec: spec(1e-5)})
	site.Train(t.Context(), t, "s", 3, false)
	s, err := statement.New(t.Context(), clients(site), "studies/s", statement.Options{Trial: 2, Sampler: "poisson", Now: now})
	require.NoError(t, err)
	trial, err := clients(site).Studies.GetTrial(t.Context(), &dparetov1.GetTrialRequest{Name: "studies/s/trials/2"})
	require.NoError(t, err)
	if want := trial.GetTrial().GetFinalMeasurement().GetMetrics()["epsilon"].GetValue(); s.Guarantee.Epsilon != want || s.Guarantee.Delta != 1e-5 || s.IncludesTuning || s.Seeded {
		t.Errorf("ε %g, want %g; %+v", s.Guarantee.Epsilon, want, s)
	}
	if !(s.Guarantee.Attack > 0.01 && s.Guarantee.Attack < 1) {
		t.Errorf("attack %g", s.Guarantee.Attack)
	}
	if len(s.Assumptions) == 0 {
		t.Error("no premises")
	}
	within, err := statement.New(t.Context(), clients(site), "studies/s", statement.Options{Epsilon: 1e6, Sampler: "poisson", Now: now})
	if err != nil || !(within.Guarantee.Epsilon < 1e6) {
		t.Errorf("at most an ε that all trials have: %+v, %v", within, err)
	}

	var text, html, encoded bytes.Buffer
	for _, err := range []error{s.Text(&text), s.HTML(&html), s.JSON(&encoded)} {
		require.NoError(t, err)
	}
	webtest.Contains(t, strings.Join(strings.Fields(text.String()), " "), "model of trial 2 of studies/s at epochs", "NOT included", "3 runs: ε at most", "dpareto privacy search --runs 3",
		"accounted: poisson; executed: poisson (as the person who asked for this statement attests; nobody has checked it)", "there are n = 10000 training records", "zero-out",
		"dpareto privacy epsilon --mechanism dp-sgd --sampling poisson --dataset-size 10000", "FILL IN: Was anything chosen by looking at the data")
	webtest.Contains(t, html.String(), "<!doctype html>", "@media print", "Appendix A", "Appendix B", "!<script", "!src=", "!<link", "!@import", "!url(")

	var back struct {
		Registry struct {
			Schema string         `json:"schema"`
			Record map[string]any `json:"record"`
			FillIn []string       `json:"fill_in"`
		} `json:"registry"`
		Questions []statement.Question `json:"nist_sp_800_226"`
	}
	require.NoError(t, json.Unmarshal(encoded.Bytes(), &back))
	checkRecord(t, back.Registry.Record, back.Registry.FillIn)
	if back.Registry.Schema != statement.RegistrySchema {
		t.Errorf("schema %q", back.Registry.Schema)
	}
	for _, q := range back.Questions {
		if q.Answer == "" || q.FillIn != strings.Contains(q.Answer, "FILL IN: ") {
			t.Errorf("question %+v", q)
		}
	}
}

// A state within a run is one of its states that results chose: the claim says so, and the whole run is stated.
func TestStateWithinRun(t *testing.T) {
	site := webtest.New(t, server.Options{})
	site.Create(t.Context(), t, "s", &dparetov1.Study{Spec: spec(1e-5)})
	site.Train(t.Context(), t, "s", 3, false)
	c := clients(site)
	listed, err := c.Studies.ListTrials(t.Context(), &dparetov1.ListTrialsRequest{Parent: "studies/s", OrderBy: "metrics.epsilon"})
	require.NoError(t, err)
	epsilonOf := func(trial *dparetov1.Trial) float64 {
		return trial.GetFinalMeasurement().GetMetrics()["epsilon"].GetValue()
	}
	s, err := statement.New(t.Context(), c, "studies/s", statement.Options{Epsilon: 0.999 * epsilonOf(listed.GetTrials()[0]), Sampler: "poisson", Now: now})
	require.NoError(t, err)
	resp, err := c.Studies.GetTrial(t.Context(), &dparetov1.GetTrialRequest{Name: s.Trial})
	require.NoError(t, err)
	whole := epsilonOf(resp.GetTrial())
	var text bytes.Buffer
	require.NoError(t, s.Text(&text))
	webtest.Contains(t, strings.Join(strings.Fields(text.String()), " "), "among the runs of the study, nor of this state within its run.",
		"Choice of the state: NOT included", "all of its states together: ε at most "+show.NumberUp(whole))
	if !(s.Guarantee.Epsilon < whole) {
		t.Errorf("ε %g of the state, %g of the run", s.Guarantee.Epsilon, whole)
	}
}

// fields are the fields of the registry's schema at the commit of [statement.RegistrySchema], with the values
// of those that take some only.
var fields = map[string][]string{
	"url_slug":         nil,
	"deployment.basic": {"name", "data_curators", "description", "intended_use", "data_product_type", "data_product_region", "data_product_sector", "publication_date"},
	"deployment.basic.data_product_type": {
		"Summary statistics", "Machine learning model", "Dataset", "Synthetic data", "Interactive API", "SQL queries",
	},
	"deployment.dp_variant":              {"variant_name", "data_domain", "unprotected_quantities"},
	"deployment.dp_variant.variant_name": {"Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"},
	"deployment.privacy_loss": {
		"privacy_unit", "privacy_unit_details", "number_of_privacy_units", "privacy_parameters", "privacy_parameters_details",
	},
	"deployment.privacy_loss.privacy_parameters": {"epsilon", "delta", "rho"},
	"deployment.deployment_model": {
		"model_name", "model_name_details", "trust_assumptions", "actors", "release_type", "release_type_details", "data_source_type", "data_source_type_details", "access_type", "access_type_details",
	},
	"deployment.deployment_model.model_name":       {"Local", "Central", "Shuffle", "Federated", "Varies"},
	"deployment.deployment_model.release_type":     {"One release", "Many releases"},
	"deployment.deployment_model.data_source_type": {"Static", "Dynamic"},
	"deployment.deployment_model.access_type":      {"Interactive", "Non-interactive"},
	"deployment.implementation": {
		"preprocessing_and_hyperparameter_tuning", "mechanisms", "composition", "post_processing", "justification", "utility", "additional_information",
	},
	"deployment.administrative":        {"evidence_sources", "status", "registry_authors", "tier"},
	"deployment.administrative.status": {"Converted", "Draft", "Pending", "Changes Required", "Approved", "Approved (Update Requested)", "Approved (Pending)"},
	"deployment":                       {"basic", "dp_variant", "privacy_loss", "deployment_model", "implementation", "administrative"},
	"":                                 {"url_slug", "deployment"},
}

// checkRecord compares a record with the schema: known fields alone, required ones, and listed values.
func checkRecord(t *testing.T, record map[string]any, fillIn []string) {
	t.Helper()
	var visit func(path string, value any)
	seen := make(map[string]bool)
	visit = func(path string, value any) {
		seen[path] = true
		switch value := value.(type) {
		case map[string]any:
			for name, below := range value {
				if !slices.Contains(fields[path], name) {
					t.Errorf("%s: field %s is not in the schema", path, name)
				}
				visit(strings.TrimPrefix(path+"."+name, "."), below)
			}
		case string:
			if allowed := fields[path]; len(allowed) > 0 && !slices.Contains(allowed, value) {
				t.Errorf("%s: %q is not one of %q", path, value, allowed)
			}
			if value == "" || strings.HasPrefix(value, "FILL IN: ") != slices.Contains(fillIn, path) {
				t.Errorf("%s: %q, of the fields to fill in %q", path, value, fillIn)
			}
		}
	}
	visit("", record)
	for _, path := range []string{
		"url_slug", "deployment.basic.name", "deployment.basic.data_curators", "deployment.basic.description", "deployment.basic.intended_use", "deployment.basic.data_product_type",
		"deployment.basic.data_product_region", "deployment.basic.publication_date", "deployment.administrative.status", "deployment.administrative.registry_authors",
		"deployment.administrative.tier", "deployment.privacy_loss.privacy_parameters.epsilon",
	} {
		if !seen[path] {
			t.Errorf("%s is missing", path)
		}
	}
}

// A statement that the study does not support is refused with the reason.
func TestRefusals(t *testing.T) {
	site := webtest.New(t, server.Options{})
	site.Create(t.Context(), t, "plain", &dparetov1.Study{Spec: webtest.SimpleSpec()})
	site.Create(t.Context(), t, "s", &dparetov1.Study{Spec: spec(1e-5)})
	site.Train(t.Context(), t, "s", 2, false)
	site.Create(t.Context(), t, "delta", &dparetov1.Study{Spec: spec(1e-3)})
	site.Train(t.Context(), t, "delta", 1, false)
	bundled := spec(1e-5)
	bundled.Trainer = &dparetov1.TrainerSpec{Name: "dp-sgd", Settings: map[string]string{"sampling": "fixed-size"}}
	site.Create(t.Context(), t, "bundled", &dparetov1.Study{Spec: bundled})
	for id, change := range map[string]func(s *dparetov1.StudySpec, m *dparetov1.DpSgdMechanism){
		"adjacency": func(s *dparetov1.StudySpec, _ *dparetov1.DpSgdMechanism) {
			s.Trainer = &dparetov1.TrainerSpec{Name: "dp-sgd", Settings: map[string]string{"sampling": "poisson", "adjacency": "replace-one"}}
		},
		"mechanism": func(s *dparetov1.StudySpec, _ *dparetov1.DpSgdMechanism) {
			s.Trainer = &dparetov1.TrainerSpec{Name: "output-perturbation"}
		},
		"correlated": func(s *dparetov1.StudySpec, _ *dparetov1.DpSgdMechanism) {
			s.Trainer = &dparetov1.TrainerSpec{Name: "dp-mf", Settings: map[string]string{"matrix": "blt"}}
		},
		"order": func(s *dparetov1.StudySpec, _ *dparetov1.DpSgdMechanism) {
			s.Trainer = &dparetov1.TrainerSpec{Name: "dp-mf", Settings: map[string]string{"matrix": "tree"}}
			p := s.GetMetrics()[0].GetComputed().GetPrivacy()
			p.Mechanism, p.Adjacency = ftrl, dparetov1.Adjacency_ADJACENCY_REPLACE_ONE
		},
		"truncated": func(s *dparetov1.StudySpec, m *dparetov1.DpSgdMechanism) {
			s.Trainer = &dparetov1.TrainerSpec{Name: "dp-adam", Settings: map[string]string{"sampling": "poisson"}}
			m.PhysicalBatchSize = "2000"
		},
		"units": func(s *dparetov1.StudySpec, m *dparetov1.DpSgdMechanism) {
			ofUsers := proto.CloneOf(m)
			ofUsers.RecordsPerUser = "3"
			part := func(m *dparetov1.DpSgdMechanism) *dparetov1.CompositionMechanism_Part {
				return &dparetov1.CompositionMechanism_Part{Mechanism: &dparetov1.PrivacySpec{Mechanism: &dparetov1.PrivacySpec_DpSgd{DpSgd: m}}}
			}
			s.GetMetrics()[0].GetComputed().GetPrivacy().Mechanism = &dparetov1.PrivacySpec_Composition{
				Composition: &dparetov1.CompositionMechanism{Parts: []*dparetov1.CompositionMechanism_Part{part(ofUsers), part(m)}},
			}
		},
	} {
		s := spec(1e-5)
		change(s, s.GetMetrics()[0].GetComputed().GetPrivacy().GetDpSgd())
		site.Create(t.Context(), t, id, &dparetov1.Study{Spec: s})
		site.Train(t.Context(), t, id, 1, false)
	}
	private := privateStudy(t, site)
	require.NoError(t, require.ErrOf(dparetov1.NewStudyServiceClient(site.Conn).CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{
		Parent: "studies/s", Trial: &dparetov1.Trial{Parameters: map[string]*dparetov1.Value{"epochs": webtest.Whole(3), "noise": webtest.Number(2), "optimizer": webtest.Word("sgd")}},
	})))
	for _, tt := range []struct {
		study string
		o     statement.Options
		want  string
	}{
		{"plain", statement.Options{Epsilon: 1}, "no metric that is the ε of a mechanism"},
		{"s", statement.Options{Epsilon: 1}, "the sampler of the trainer is unknown"},
		{"s", statement.Options{Epsilon: 1, Sampler: "shuffled"}, "ε is accounted for poisson lots, but the trainer draws shuffled lots"},
		{"bundled", statement.Options{Epsilon: 1}, "ε is accounted for poisson lots, but the trainer draws fixed-size lots"},
		{"bundled", statement.Options{Epsilon: 1, Sampler: "poisson"}, "the stated sampler is poisson, but the trainer dp-sgd uses fixed-size"},
		{"adjacency", statement.Options{Trial: 1}, "ε is accounted under add-remove adjacency, but the trainer dp-sgd adds noise for replace-one"},
		{"mechanism", statement.Options{Trial: 1}, "ε is accounted for the mechanism dp-sgd, but the trainer output-perturbation executes another one"},
		{"correlated", statement.Options{Trial: 1}, "ε is accounted for the mechanism dp-sgd, but the trainer dp-mf executes another one"},
		{"order", statement.Options{Trial: 1}, "ε is accounted under replace-one adjacency, but the trainer dp-mf adds noise for add-remove"},
		{"truncated", statement.Options{Trial: 1}, "ε is accounted for truncated-poisson lots, but the trainer draws poisson lots"},
		{"units", statement.Options{Trial: 1, Sampler: "poisson"}, "the parts of the mechanism protect different units"},
		{"s", statement.Options{Sampler: "poisson"}, "say which ε or which trial"},
		{"s", statement.Options{Epsilon: 1e-3, Sampler: "poisson"}, "no measured trial has ε of at most 0.001"},
		{"s", statement.Options{Trial: 3, Sampler: "poisson"}, "trial 3 is queued"},
		{"s", statement.Options{Trial: 1, Epsilon: 1e-3, Sampler: "poisson"}, ", above 0.001"},
		{"delta", statement.Options{Trial: 1, Sampler: "poisson"}, "delta 0.001 is not below 1/n"},
		{private, statement.Options{}, "nothing of this study was released yet"},
		{private, statement.Options{Trial: 1}, "the guarantee of this study covers everything that it publishes"},
	} {
		tt.o.Now = now
		s, err := statement.New(t.Context(), clients(site), "studies/"+tt.study, tt.o)
		if refusal, ok := errors.AsType[statement.RefusalError](err); !ok || !strings.Contains(refusal.Error(), tt.want) {
			t.Errorf("%s, %+v: %v, %v, want %q", tt.study, tt.o, s, err, tt.want)
		}
	}
}

// privateStudy creates a study with private_mode and measures two trials.
func privateStudy(t *testing.T, site *webtest.Site) (id string) {
	t.Helper()
	releases := dparetov1.NewReleaseServiceClient(site.Conn)
	for id, l := range map[string]*dparetov1.Ledger{
		"test":  {Records: 10_000, Epsilon: 100, Delta: 1e-4, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE},
		"train": {Records: 10_000, Epsilon: 1000, Delta: 1e-4, Adjacency: dparetov1.Adjacency_ADJACENCY_ADD_REMOVE},
	} {
		require.NoError(t, require.ErrOf(releases.CreateLedger(t.Context(), &dparetov1.CreateLedgerRequest{LedgerId: id, Ledger: l})))
	}
	s := webtest.TrainedSpec()
	s.CheckpointParameter = ""
	p := s.GetMetrics()[0].GetComputed().GetPrivacy()
	p.Mechanism = &dparetov1.PrivacySpec_Gaussian{Gaussian: &dparetov1.GaussianMechanism{Sensitivity: "1.0", StandardDeviation: "noise"}}
	p.Accountant, p.Conversion = dparetov1.Accountant_ACCOUNTANT_UNSPECIFIED, dparetov1.Conversion_CONVERSION_UNSPECIFIED
	s.Parameters = s.GetParameters()[1:] // without epochs a run has one measurement
	s.GetMetrics()[1].GetReported().SampleSize = 0
	s.Budget.MaxTrials = 2
	s.PrivateMode = &dparetov1.PrivateModeSpec{TestSetSize: 10_000, TestEpsilon: 1, TrainEpsilon: 50, Delta: 1e-6}
	s.TestLedger, s.TrainLedger = "ledgers/test", "ledgers/train"
	site.Create(t.Context(), t, "private", &dparetov1.Study{Spec: s})
	site.Train(t.Context(), t, "private", 2, false)
	return "private"
}

// ftrl is DP-FTRL with ten steps an epoch.
var ftrl = &dparetov1.PrivacySpec_DpFtrl{DpFtrl: &dparetov1.DpFtrlMechanism{
	Steps: "10 * epochs", Separation: "10", NoiseMultiplier: "noise", Matrix: dparetov1.NoiseMatrix_NOISE_MATRIX_TREE,
}}

// A statement of a run without sampling asks who ensures the distance of steps, unless a bundled trainer does.
func TestWithoutSampling(t *testing.T) {
	site := webtest.New(t, server.Options{})
	for id, want := range map[string]string{
		"own":   "Nothing is sampled. Who ensures",
		"dp-mf": "Sampler: none: every epoch takes the records in the same lots and order (the bundled trainer dp-mf",
	} {
		s := spec(1e-5)
		s.GetMetrics()[0].GetComputed().GetPrivacy().Mechanism = ftrl
		s.Trainer = &dparetov1.TrainerSpec{Name: id, Settings: map[string]string{"matrix": "tree"}}
		site.Create(t.Context(), t, id, &dparetov1.Study{Spec: s})
		site.Train(t.Context(), t, id, 1, false)
		made, err := statement.New(t.Context(), clients(site), "studies/"+id, statement.Options{Trial: 1, Now: now})
		require.NoError(t, err)
		var text bytes.Buffer
		require.NoError(t, made.Text(&text))
		webtest.Contains(t, strings.Join(strings.Fields(text.String()), " "), want)
	}
}

// A statement for users says so everywhere, and one of a study on somebody's own data names its schema.
func TestUsersAndOwnData(t *testing.T) {
	site := webtest.New(t, server.Options{})
	users := spec(1e-5)
	users.GetMetrics()[0].GetComputed().GetPrivacy().GetDpSgd().RecordsPerUser = "2 + 1"
	users.Trainer = &dparetov1.TrainerSpec{Name: "dp-sgd", Settings: map[string]string{
		"sampling": "poisson", "dataset": "my.csv", "schema": "my.yaml", "schema_digest": "sha256:abc", "data_digest": "sha256:def",
	}}
	site.Create(t.Context(), t, "users", &dparetov1.Study{Spec: users})
	site.Train(t.Context(), t, "users", 1, false)
	s, err := statement.New(t.Context(), clients(site), "studies/users", statement.Options{Trial: 1, Now: now})
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, s.Text(&text))
	webtest.Contains(t, strings.Join(strings.Fields(text.String()), " "), "is differentially private for users with at most 3 records each with ε at most",
		"Unit of privacy: one user: all of at most 3 training records", "the data sets differ in all records of one user", "deployment.privacy_loss.privacy_unit: user",
		"--records-per-user 3", "accounted: poisson; executed: poisson (the bundled trainer dp-sgd", "by the schema my.yaml, of digest sha256:abc", "data: sha256:def",
		"every step draws each record", "(sampler, checked by the client)")
	if first := s.Assumptions[0]; first.Premise != "sampler" || first.CheckedBy != "client" {
		t.Errorf("the first assumption is %+v", first)
	}
}

// A statement of a study with private_mode covers the search, and both sets of records.
func TestPrivate(t *testing.T) {
	site := webtest.New(t, server.Options{})
	study := "studies/" + privateStudy(t, site)
	const link = `href="/studies/private/statement"`
	webtest.Contains(t, site.Get(t, "/studies/private?wait=1", http.StatusOK), "!"+link)
	require.NoError(t, require.ErrOf(clients(site).Releases.ReleaseFront(t.Context(), &dparetov1.ReleaseFrontRequest{Name: study})))
	s, err := statement.New(t.Context(), clients(site), study, statement.Options{Now: now})
	require.NoError(t, err)
	if !s.IncludesTuning || s.Guarantee.Epsilon != 50 || s.Test == nil || s.Test.Epsilon != 1 || s.Trial != "" || s.Recompute != "" || len(s.Assumptions) == 0 {
		t.Errorf("%+v", s)
	}
	var text bytes.Buffer
	require.NoError(t, s.Text(&text))
	webtest.Contains(t, strings.Join(strings.Fields(text.String()), " "), "The search is included", "Tuning: included", "release 1", "dpareto ledger charges train", "the server refuses runs that report a seed")
	if _, err := statement.New(t.Context(), clients(site), study, statement.Options{Epsilon: 10, Now: now}); err == nil || !strings.Contains(err.Error(), "ε is 50.00, above 10") {
		t.Errorf("ε 10 of 50: %v", err)
	}
	webtest.Contains(t, site.Get(t, "/studies/private?wait=1", http.StatusOK), link)
}

// A statement of a study with random_stopping states the ε of the best of a random number of runs, as the mechanism for
// it computes it again at the released configuration, which is the only one of the list.
func TestRandomStopping(t *testing.T) {
	site := webtest.New(t, server.Options{})
	c := clients(site)
	require.NoError(t, require.ErrOf(c.Releases.CreateLedger(t.Context(), &dparetov1.CreateLedgerRequest{LedgerId: "train", Ledger: &dparetov1.Ledger{
		Records: 10_000, Epsilon: 1000, Delta: 1e-4, Adjacency: dparetov1.Adjacency_ADJACENCY_ADD_REMOVE,
	}})))
	s := webtest.TrainedSpec()
	base := s.GetMetrics()[0].GetComputed().GetPrivacy()
	base.Accountant, base.Conversion = dparetov1.Accountant_ACCOUNTANT_UNSPECIFIED, dparetov1.Conversion_CONVERSION_UNSPECIFIED
	base.GetDpSgd().Length = &dparetov1.DpSgdMechanism_Steps{Steps: "100"}
	base.GetDpSgd().RecordsPerUser = "1 + 1"
	s.Parameters, s.CheckpointParameter, s.Budget, s.Seed, s.TrainLedger = s.GetParameters()[1:2], "", nil, nil, "ledgers/train"
	s.GetParameters()[0].GetDoubleDomain().Min, s.GetParameters()[0].GetDoubleDomain().Max = 3, 5
	s.RandomStopping = &dparetov1.RandomStoppingSpec{
		MeanTrials: 3, MaxTrials: 8, Distribution: &dparetov1.RandomStoppingSpec_Eta{Eta: 0.5}, Metric: "error", Listed: 1,
	}
	site.Create(t.Context(), t, "hidden", &dparetov1.Study{Spec: s})
	const link = `href="/studies/hidden/statement"`
	webtest.Contains(t, site.Get(t, "/studies/hidden", http.StatusOK), "!"+link)
	refused := site.Get(t, "/studies/hidden/statement?sampler=poisson", http.StatusUnprocessableEntity)
	webtest.Contains(t, refused, "nothing of this study was released yet")
	for state := dparetov1.StudyState_STUDY_STATE_ACTIVE; state == dparetov1.StudyState_STUDY_STATE_ACTIVE; {
		site.Train(t.Context(), t, "hidden", 1, false)
		got, err := c.Studies.GetStudy(t.Context(), &dparetov1.GetStudyRequest{Name: "studies/hidden"})
		require.NoError(t, err)
		state = got.GetStudy().GetState()
	}
	released, err := c.Releases.ReleaseBest(t.Context(), &dparetov1.ReleaseBestRequest{Name: "studies/hidden", Metric: "error"})
	require.NoError(t, err)
	webtest.Contains(t, site.Get(t, "/studies/hidden", http.StatusOK), link)
	webtest.Contains(t, site.Get(t, "/studies/hidden/statement?sampler=poisson", http.StatusOK), "The search is included", "random_stopping")

	made, err := statement.New(t.Context(), c, "studies/hidden", statement.Options{Sampler: "poisson", Now: now})
	require.NoError(t, err)
	if want := " for the training records of users with at most 2 records each with ε"; !strings.Contains(made.Claim, want) {
		t.Errorf("the claim %q lacks %q", made.Claim, want)
	}
	whole := proto.CloneOf(base)
	inner := proto.CloneOf(base)
	inner.Delta, inner.Adjacency = 0, dparetov1.Adjacency_ADJACENCY_UNSPECIFIED
	whole.Mechanism = &dparetov1.PrivacySpec_RepeatedSelection{RepeatedSelection: &dparetov1.RepeatedSelectionMechanism{
		Base: inner, MeanRuns: "3.0", MaxRuns: "8", Distribution: &dparetov1.RepeatedSelectionMechanism_Eta{Eta: "0.5"},
	}}
	computed, err := c.Privacy.ComputeEpsilon(t.Context(), &dparetov1.ComputeEpsilonRequest{Privacy: whole, Parameters: released.GetRelease().GetPoints()[0].GetParameters()})
	require.NoError(t, err)
	want := computed.GetGuarantees()[0].GetEpsilon()
	// The accountant of the list rounds the profile of a run up.
	if got := made.Guarantee.Epsilon; !made.IncludesTuning || got < want*(1-1e-6) || got > want*(1+2e-3) || made.Guarantee.Delta != 1e-5 {
		t.Errorf("stated %+v, computed again ε = %g", made.Guarantee, want)
	}
}
