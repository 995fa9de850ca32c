package trials_test

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/web/webtest"
)

// Exported trials are those of the filter, with exact values; the table shows the columns that were chosen.
func TestTrialsExportAndColumns(t *testing.T) {
	s := webtest.New(t, server.Options{})
	s.Create(t.Context(), t, "first", &dparetov1.Study{Spec: webtest.TrainedSpec()})
	s.Train(t.Context(), t, "first", 6, true)
	query := "?order_by=number&filter=" + url.QueryEscape("number <= 4")
	rows, err := csv.NewReader(strings.NewReader(s.Get(t, "/studies/first/trials/export/trials.csv"+query, http.StatusOK))).ReadAll()
	require.NoError(t, err)
	if len(rows) != 5 || rows[0][0] != "trial" || rows[1][0] != "1" || rows[4][0] != "4" || rows[1][2] != "true" {
		t.Errorf("rows %v", rows)
	}
	var trials []map[string]any
	require.NoError(t, json.Unmarshal([]byte(s.Get(t, "/studies/first/trials/export/trials.json"+query, http.StatusOK)), &trials))
	if len(trials) != 4 || trials[3]["name"] != "studies/first/trials/4" {
		t.Errorf("trials %v", trials)
	}
	if text := s.Get(t, "/studies/first/trials/export/trials.json?filter="+url.QueryEscape("number > 99"), http.StatusOK); strings.TrimSpace(text) != "[]" {
		t.Errorf("no trials are %q", text)
	}
	s.Get(t, "/studies/first/trials/export/other", http.StatusUnprocessableEntity)
	s.Get(t, "/studies/first/trials/export/trials.csv?filter=nonsense+%3C", http.StatusUnprocessableEntity)

	body := s.Get(t, "/studies/first/trials?column=metrics.error&column=curve", http.StatusOK)
	webtest.Contains(t, body, ">error<", "error over epochs", `class="chart spark"`, "column=metrics.error", `value="worker"> `, "!order_by=worker")
	webtest.Contains(t, s.Get(t, "/studies/first/trials?filter="+url.QueryEscape("error < 1"), http.StatusUnprocessableEntity), "Did you mean", "<code>metrics.error &lt; 1</code>")
	webtest.Contains(t, s.Get(t, "/studies/first/trials?filter="+url.QueryEscape("number < 5 AND number > 1"), http.StatusOK), `aria-label="Without the condition number &lt; 5"`, `href="/studies/first/trials?filter=number&#43;%3E&#43;1"`)
}
