package web_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/rest"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/bolt"
	"github.com/dpareto/dpareto/server/web"
)

// site is a server with its page.
type site struct {
	*httptest.Server

	conn *rest.Local
	stop func() // the server, not its page
}

// newSite starts a server with a page and an empty store.
func newSite(t testing.TB, o server.Options) *site {
	t.Helper()
	db, err := bolt.Open(t.TempDir() + "/test.db")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if o.Store, err = store.New(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	srv := server.New(o)
	t.Cleanup(srv.Close)
	g := srv.GRPC()
	conn, err := rest.Connect(g)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		srv.Drain()
		g.Stop()
		_ = conn.Close()
	})
	handler, err := web.Handler(conn, web.Options{SignIn: o.Auth != nil})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{httptest.NewServer(handler), conn, srv.Drain}
	t.Cleanup(s.Close)
	return s
}

// get returns the body of a page, which must have a status.
func (s *site) get(t testing.TB, path string, want int) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != want {
		t.Fatalf("GET %s: %s\n%s", path, resp.Status, body)
	}
	return string(body)
}

// create creates a study with two objectives and a random designer.
func (s *site) create(t testing.TB, id string) {
	t.Helper()
	studies := dparetov1.NewStudyServiceClient(s.conn)
	_, err := studies.CreateStudy(context.Background(), &dparetov1.CreateStudyRequest{StudyId: id, Study: &dparetov1.Study{Spec: simpleSpec()}})
	if err != nil {
		t.Fatal(err)
	}
}

func simpleSpec() *dparetov1.StudySpec {
	reference := 1.0
	objective := func(id string) *dparetov1.MetricSpec {
		return &dparetov1.MetricSpec{
			Id: id, Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE, ReferenceValue: &reference,
			Transform: dparetov1.Transform_TRANSFORM_IDENTITY, Source: &dparetov1.MetricSpec_Reported{Reported: new(dparetov1.ReportedSource)},
		}
	}
	return &dparetov1.StudySpec{
		Parameters: []*dparetov1.ParameterSpec{{Id: "x", Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Max: 1}}, Scale: dparetov1.Scale_SCALE_LINEAR}},
		Metrics:    []*dparetov1.MetricSpec{objective("a"), objective("b")},
		Algorithm:  &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_RANDOM},
		Budget:     &dparetov1.Budget{MaxTrials: 10},
	}
}

func TestStudies(t *testing.T) {
	s := newSite(t, server.Options{})
	if body := s.get(t, "/", http.StatusOK); !strings.Contains(body, "There is none yet") {
		t.Errorf("no studies: %s", body)
	}
	s.create(t, "first")
	if body := s.get(t, "/studies", http.StatusOK); !strings.Contains(body, `href="/studies/first"`) {
		t.Errorf("one study: %s", body)
	}
	if body := s.get(t, "/studies/first", http.StatusOK); !strings.Contains(body, "0 succeeded") {
		t.Errorf("study: %s", body)
	}
	s.get(t, "/studies/other", http.StatusNotFound)
	s.get(t, "/elsewhere", http.StatusNotFound)
}
