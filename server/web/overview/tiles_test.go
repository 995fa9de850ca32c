package overview_test

import (
	"encoding/csv"
	"net/http"
	"strconv"
	"strings"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/web/webtest"
)

// Tiles say what the front says: the best error of its points with ε ≤ 1, or at its smallest ε. Files have
// the same points with exact values.
func TestTilesAndFiles(t *testing.T) {
	s := webtest.New(t, server.Options{})
	s.Create(t.Context(), t, "first", &dparetov1.Study{Spec: privacySpec()})
	webtest.Contains(t, s.Get(t, "/studies/first/parts/tiles", http.StatusOK), "No trial has finished yet", "!0.")
	fill(t, s, "first", 24)
	fronts := dparetov1.NewFrontServiceClient(s.Conn)
	for kind, settings := range map[dparetov1.FrontKind]string{dparetov1.FrontKind_FRONT_KIND_POSTERIOR: "", dparetov1.FrontKind_FRONT_KIND_OBSERVED: "&front=observed"} {
		resp, err := fronts.GetFront(t.Context(), &dparetov1.GetFrontRequest{Name: "studies/first", Kind: kind})
		require.NoError(t, err)
		best := 1.0
		for _, p := range resp.GetFront().GetPoints() {
			if v := p.GetValues(); v["epsilon"].GetValue() <= 1 {
				best = min(best, v["error"].GetValue())
			}
		}
		paths := []string{"/compare?study=first&wait=1" + settings}
		if settings == "" { // the one number that all views show
			paths = append(paths, "/studies/first/parts/tiles", "/studies/first/parts/miniature", "/studies/first/report")
		}
		value := strconv.FormatFloat(best, 'f', 3, 64)
		for _, path := range paths {
			body := s.Get(t, path, http.StatusOK)
			webtest.Contains(t, body, "Best error at ε ≤ 1")
			if best == 1 || !strings.Contains(body, `<p class="big">`+value+"</p>") && !strings.Contains(body, "<b>"+value+"</b>") {
				t.Errorf("%s does not show the best error at ε ≤ 1, %s:\n%s", path, value, body)
			}
			if settings == "" {
				webtest.Contains(t, body, " (90 %), trial ")
			}
		}
	}
	resp, err := fronts.GetFront(t.Context(), &dparetov1.GetFrontRequest{Name: "studies/first", Kind: dparetov1.FrontKind_FRONT_KIND_OBSERVED})
	require.NoError(t, err)

	rows, err := csv.NewReader(strings.NewReader(s.Get(t, "/studies/first/front/front.csv?front=observed", http.StatusOK))).ReadAll()
	require.NoError(t, err)
	if len(rows) != 1+len(resp.GetFront().GetPoints()) {
		t.Errorf("%d rows of %d points", len(rows), len(resp.GetFront().GetPoints()))
	}
	for i, p := range resp.GetFront().GetPoints() {
		if got, err := strconv.ParseFloat(rows[i+1][3], 64); err != nil || got != p.GetValues()["epsilon"].GetValue() {
			t.Errorf("ε of point %d is exported as %s", i, rows[i+1][3])
		}
	}
	picture := s.Get(t, "/studies/first/front/front.svg?front=observed&x_min=0.5&x_max=10", http.StatusOK)
	webtest.Contains(t, picture, `xmlns="http://www.w3.org/2000/svg"`, "<style>", "--accent", "!<script")
	webtest.Contains(t, s.Get(t, "/studies/first/front/front.json", http.StatusOK), `"points"`)
	s.Get(t, "/studies/first/front/other", http.StatusUnprocessableEntity)
}

// The view of ledgers shows what is allowed, who has spent, and what is left.
func TestLedgers(t *testing.T) {
	s := webtest.New(t, server.Options{})
	webtest.Contains(t, s.Get(t, "/ledgers", http.StatusOK), "There is no ledger yet")
	for id, adjacency := range map[string]dparetov1.Adjacency{"train": dparetov1.Adjacency_ADJACENCY_ADD_REMOVE, "test": dparetov1.Adjacency_ADJACENCY_REPLACE_ONE} {
		require.NoError(t, require.ErrOf(dparetov1.NewReleaseServiceClient(s.Conn).CreateLedger(t.Context(), &dparetov1.CreateLedgerRequest{LedgerId: id, Ledger: &dparetov1.Ledger{
			Records: 10_000, Epsilon: 100, Delta: 0.01, Adjacency: adjacency, Description: hostile,
		}})))
	}
	body := s.Get(t, "/ledgers", http.StatusOK)
	noMarkup(t, body)
	webtest.Contains(t, body, "10000 records", "ε ≤ 100.0", "Nothing was spent yet")
	spec := privacySpec()
	spec.TestLedger, spec.TrainLedger = "ledgers/test", "ledgers/train"
	spec.PrivateMode = &dparetov1.PrivateModeSpec{TestSetSize: 10_000, TestEpsilon: 1, TrainEpsilon: 30, Delta: 1e-6, MaxValues: 5000}
	s.Create(t.Context(), t, "private", &dparetov1.Study{Spec: spec})
	webtest.Contains(t, s.Get(t, "/ledgers", http.StatusOK), "studies/private", "ε ≤ 1.000", "replace-one adjacency")
}
