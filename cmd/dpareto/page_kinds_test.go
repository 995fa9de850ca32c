package main

import (
	"path/filepath"
	"strings"
	"testing"

	dpareto "github.com/dpareto/dpareto/clients/go"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server/enginetest"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/bolt"
)

// A private study shows noisy values and its budgets, and no value that a worker has measured. One with
// random stopping shows why there is no front.
func TestPagePrivate(t *testing.T) {
	srv := servePage(t, filepath.Join(t.TempDir(), "page.db"))
	client, err := dpareto.Dial(srv.address)
	require.NoError(t, err)
	defer client.Close()
	for _, id := range []string{"l", "train"} {
		_, err = client.Releases.CreateLedger(t.Context(), &dparetov1.CreateLedgerRequest{LedgerId: id, Ledger: &dparetov1.Ledger{
			Records: privateRecords, Epsilon: 1e6, Delta: 1e-3, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
		}})
		require.NoError(t, err)
	}
	private, stopping := privateSpec(), privateSpec()
	private.Budget.MaxTrials, private.PrivateMode.TestEpsilon = 10, 1 // for much noise
	stopping.PrivateMode, stopping.TestLedger, stopping.Budget = nil, "", nil
	stopping.RandomStopping = &dparetov1.RandomStoppingSpec{MeanTrials: 10, Distribution: &dparetov1.RandomStoppingSpec_Eta{Eta: 1}, Metric: "error"}
	for id, spec := range map[string]*dparetov1.StudySpec{"private": private, "stopping": stopping} {
		require.NoError(t, require.ErrOf(client.CreateStudy(t.Context(), id, &dparetov1.Study{Spec: spec})))
	}
	const secret = 0.271828
	asked, err := client.Studies.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/private", WorkerId: "w"})
	require.NoError(t, err)
	done, err := client.Studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
		Name: asked.GetTrials()[0].GetName(), LeaseToken: asked.GetTrials()[0].GetLease().GetToken(),
		Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: dpareto.Metrics{"error": {secret}}.Measurement(0, 0)},
	})
	require.NoError(t, err)
	noisy := show.Number(done.GetTrial().GetFinalMeasurement().GetMetrics()["error"].GetValue())
	b := openTab(t, srv.url)
	for _, view := range []string{"", "?wait=1", "/choose", "/why", "/trials", "/trials/1", "/report", "/edit"} {
		b.openWhole("/studies/private" + view)
		html := eval[string](b, "document.documentElement.outerHTML")
		if exact := show.Number(secret); exact != noisy && strings.Contains(html, exact) {
			t.Errorf("/studies/private%s shows what the worker has measured", view)
		}
		if view == "/trials" && !strings.Contains(html, noisy) {
			t.Errorf("%s does not show the noisy value %s", view, noisy)
		}
	}
	b.openWhole("/studies/private")
	b.await(`document.getElementById("spent").innerText.includes("ledger l") && document.getElementById("spent").innerText.includes("Test records")`)
	b.openWhole("/studies/stopping")
	if !eval[bool](b, `document.body.innerText.includes("only its best trial") && !document.querySelector("#front .mark")`) {
		t.Error("a study with random stopping does not say why it has no front")
	}
	for _, view := range []string{"/choose", "/why", "/trials", "/report"} {
		b.openWhole("/studies/stopping" + view)
		if !eval[bool](b, `document.querySelectorAll("h1").length == 1`) {
			t.Errorf("/studies/stopping%s is broken", view)
		}
	}
}

// fillStudy writes a store with the study "big" of the sparse vector technique and so many trials.
func fillStudy(t *testing.T, storeFile string, trials int64) {
	t.Helper()
	srv := serve(t, storeFile, "127.0.0.1:0")
	must(t, "study", "create", "--server", srv.address, "--id", "big", svtStudy(t, 1_000_000, 1))
	client, err := dpareto.Dial(srv.address)
	require.NoError(t, err)
	created, err := client.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: "studies/big", Trial: &dparetov1.Trial{
		Parameters: map[string]*dparetov1.Value{
			"cutoff":      {Kind: &dparetov1.Value_IntValue{IntValue: 5}},
			"noise_scale": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: 1}},
		},
		FinalMeasurement: dpareto.Metrics{"error": {0.5}}.Measurement(0, 0),
	}})
	require.NoError(t, err)
	client.Close()
	srv.cmd.Process.Kill()
	<-srv.ended
	db, err := bolt.Open(storeFile)
	require.NoError(t, err)
	defer db.Close()
	records, err := store.New(t.Context(), db)
	require.NoError(t, err)
	enginetest.ReadRun(t, records, "big", created.GetTrial().GetNumber()).Fill(t, records, trials)
}

// Of a study of 100,000 trials, the first rows of the table are in the page that the server sends, and
// the front follows, of which the posterior one replaces the observed one.
func TestPageBigStudy(t *testing.T) {
	storeFile := filepath.Join(t.TempDir(), "page.db")
	fillStudy(t, storeFile, 100_000)
	srv := servePage(t, storeFile)
	b := openTab(t, srv.url)
	b.open("/studies/big/trials")
	if rows := eval[int](b, `document.querySelectorAll("main tbody tr").length`); rows != 50 {
		t.Errorf("%d rows when the page is loaded", rows)
	}
	b.open("/studies/big")
	b.await(points + " > 1")
	b.await(complete)
	b.await(`document.querySelector("#front-table summary").textContent.includes("of the model")`)
	if dots := eval[int](b, `(document.querySelector("#front svg").outerHTML.match(/[Mm]/g) ?? []).length`); dots > 12_000 {
		t.Errorf("about %d configurations are drawn", dots)
	}
}
