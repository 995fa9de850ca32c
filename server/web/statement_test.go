package web_test

import (
	"net/http"
	"strings"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/web/webtest"
)

// The view that chooses a point leads to a statement of its trial, a document of its own, or to the reason why
// there is none.
func TestStatement(t *testing.T) {
	s := webtest.New(t, server.Options{})
	spec := webtest.TrainedSpec()
	spec.GetMetrics()[0].GetComputed().GetPrivacy().GetDpSgd().DatasetSize = ""
	s.Create(t.Context(), t, "first", &dparetov1.Study{Spec: spec})
	s.Train(t.Context(), t, "first", 3, false)
	webtest.Contains(t, s.Get(t, "/studies/first/choose?bound=epsilon&value=1000&measured=1&wait=1", http.StatusOK), `href="/studies/first/statement?trial=`)
	code, body, header := s.Send(t, http.MethodGet, "/studies/first/statement?trial=1&sampler=poisson", "", nil)
	if code != http.StatusOK || !strings.Contains(header.Get("Content-Security-Policy"), "style-src 'unsafe-inline'") {
		t.Errorf("status %d, %v", code, header)
	}
	webtest.Contains(t, body, "Privacy statement: first", "checked by the client", "Appendix A", "!<script")
	webtest.Contains(t, s.Get(t, "/studies/first/statement?trial=1", http.StatusUnprocessableEntity), "the sampler of the trainer is unknown")
	s.Get(t, "/studies/first/statement?trial=x", http.StatusUnprocessableEntity)
	s.Get(t, "/studies/first/statement?trial=99&sampler=poisson", http.StatusNotFound)
}
