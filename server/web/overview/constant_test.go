package overview_test

import (
	"net/http"
	"strings"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/web/webtest"
)

// A constant point is a level at the edge of the picture, a row without a trial, and an answer of Choose.
func TestConstantPoint(t *testing.T) {
	s := webtest.New(t, server.Options{})
	spec := privacySpec()
	spec.ConstantPoints = []*dparetov1.ConstantPoint{{
		Id: "majority", DisplayName: "always predict <no>", Values: map[string]float64{"epsilon": 0, "error": 0.125},
	}}
	s.Create(t.Context(), t, "first", &dparetov1.Study{Spec: spec})
	webtest.Contains(t, s.Get(t, "/studies/first?wait=1", http.StatusOK), "always predict &lt;no&gt;", "costs no run", "no run: majority")
	add(t, s, "first", map[string]*dparetov1.Value{"sigma": webtest.Number(4), "epochs": webtest.Whole(2), "kind": webtest.Word("plain")}, map[string]float64{"error": 0.0625})
	for _, settings := range []string{"", "&front=observed", "&front=both", "&x=linear"} {
		body := s.Get(t, "/studies/first?wait=1"+settings, http.StatusOK)
		webtest.Contains(t, body, "-constant-majority", "always predict &lt;no&gt;", ">none</th>", "no run: majority", `!href="/"`, `!href=""`, "!NaN")
		_, row, _ := strings.Cut(body, ">none</th>")
		if row, _, _ = strings.Cut(row, "</tr>"); strings.Contains(row, "choose") {
			t.Errorf("%s: the constant point leads to a trial", settings)
		}
	}
	webtest.Contains(t, s.Get(t, "/", http.StatusOK), "!NaN")
	webtest.Contains(t, s.Get(t, "/studies/first/choose?wait=1&bound=epsilon&value=0.01", http.StatusOK),
		"do nothing", "always predict &lt;no&gt;", "It needs no run", "0.1250", `id="chosen-point"`, "!Queue this configuration", "!NaN")
	webtest.Contains(t, s.Get(t, "/studies/first/choose?wait=1&bound=error&value=0.01", http.StatusOK), "!NaN")
	report := s.Get(t, "/studies/first/report", http.StatusOK)
	webtest.Contains(t, report, "no run: always predict &lt;no&gt;", "!NaN")
}
