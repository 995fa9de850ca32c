package web_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/web/webtest"
)

// A report states its guarantee in full, shows what the contract says, and is the same on the page and as a
// file.
func TestReport(t *testing.T) {
	s := webtest.New(t, server.Options{Version: "1.2.3"})
	s.Create(t.Context(), t, "first", &dparetov1.Study{DisplayName: "A question", Description: "Why?", Spec: webtest.TrainedSpec()})
	s.Train(t.Context(), t, "first", 8, false)
	body := s.Get(t, "/studies/first/report?epsilon=1.5,3", http.StatusOK)
	ledger, err := dparetov1.NewPrivacyServiceClient(s.Conn).GetPrivacyLedger(t.Context(), &dparetov1.GetPrivacyLedgerRequest{Name: "studies/first"})
	require.NoError(t, err)
	webtest.Contains(t, body, "A question", "Why?", "ε of one run, δ = 1e-5, add-remove adjacency, RDP accountant, improved conversion. It is an upper bound, and covers one run",
		"ε at most "+show.NumberUp(ledger.GetComposed().GetEpsilon())+", δ = 1e-5, add-remove adjacency", "8 succeeded", "1.2.3", `<th scope="row" class="n">1.5</th>`, `<th scope="row" class="n">3</th>`,
		"<svg", "epochs", "dataset", "adult", "where optimizer is adam", "!no ε holds")
	front, err := dparetov1.NewFrontServiceClient(s.Conn).GetFront(t.Context(), &dparetov1.GetFrontRequest{Name: "studies/first", Kind: dparetov1.FrontKind_FRONT_KIND_POSTERIOR})
	require.NoError(t, err)
	for _, p := range front.GetFront().GetPoints() {
		webtest.Contains(t, body, "<td class=\"n\">"+show.NumberUp(p.GetValues()["epsilon"].GetValue())+"</td>")
	}
	// Every ε of the front is spanned or its ends are.
	for e, want := range map[string]int{"": http.StatusOK, "-1": http.StatusUnprocessableEntity, "x": http.StatusUnprocessableEntity, "inf": http.StatusUnprocessableEntity, strings.Repeat("1,", 21): http.StatusUnprocessableEntity} {
		s.Get(t, "/studies/first/report?epsilon="+url.QueryEscape(e), want)
	}
	code, file, header := s.Send(t, http.MethodGet, "/studies/first/report?epsilon=1.5,3&download=1", "", nil)
	if code != http.StatusOK || header.Get("Content-Disposition") != `attachment; filename="first.html"` {
		t.Errorf("download: %d %v", code, header)
	}
	content := func(text, from string) string {
		at := strings.Index(text, from)
		text = regexp.MustCompile(`as of [^,]*`).ReplaceAllString(text[at:], "")
		return text[strings.Index(text, "<h2>Answer"):strings.Index(text, "</pre></details>\n")]
	}
	if page, alone := content(body, "<article"), content(file, "<h1>"); page != alone {
		t.Errorf("the page shows\n%s\nand the file\n%s", page, alone)
	}
}
