package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/gen/openapi"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/auth"
	"github.com/dpareto/dpareto/server/rest"
	"github.com/dpareto/dpareto/server/servertest"
	"github.com/dpareto/dpareto/server/web"
)

// worlds are two servers whose public histories are the same and whose secrets differ. The tests ask both
// the same questions on behalf of every caller that a guarantee does not trust, and compare the answers
// byte for byte: docs/reference/publishing.md, "Who may see what", has the table.
type worlds struct {
	t     *testing.T
	study string
	both  [2]*servertest.Guarded
	http  [2]http.Handler
	asked map[string]int  // answers that were compared, by method, REST path or page
	told  map[string]bool // of them, those that hold more than an error
}

// untrusted are callers by name, "nobody" without a token. Stranger administers other studies, reader and
// limited have roles on this one.
var untrusted = []string{"nobody", "stranger", "reader", "viewer", "limited", "owner", "worker"}

// newWorlds starts two servers with a copy of a study, which differ returns with the secrets of a world, and
// with two studies that are no secret.
func newWorlds(t *testing.T, spec *dparetov1.StudySpec, seeds [2]uint64, differ func(world int, study *dparetov1.ExportedStudy)) *worlds {
	t.Helper()
	open := func(ctx context.Context, f *servertest.Fixture) {
		f.OpenLedgers(ctx, spec)
		require.NoError(t, require.ErrOf(f.Releases().CreateLedger(ctx, &dparetov1.CreateLedgerRequest{LedgerId: "people", Ledger: &dparetov1.Ledger{
			Records: servertest.TestRecords, Epsilon: 100, Delta: 1e-5, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
		}})))
	}
	first := servertest.Start(t)
	open(t.Context(), first)
	records := first.Export(first.Prepared("a-search", spec).GetName())
	var public [][]*dparetov1.ExportedRecord
	for _, id := range []string{"b-other", "c-own"} {
		other := first.Create(id, servertest.GaussianSpec())
		first.Tell(first.One(other, "w"), 0.5)
		public = append(public, first.Export(other))
	}
	w := &worlds{t: t, study: "studies/a-search", asked: make(map[string]int), told: make(map[string]bool)}
	for i := range w.both {
		g := servertest.GuardAs(t, func(o *server.Options) { o.Entropy, o.PageURL = noise.Seeded(seeds[i]), "http://127.0.0.1:1/" })
		w.both[i] = g
		for _, c := range []auth.Credential{
			{Name: "reader", Grants: []auth.Grant{{Studies: "a-*", Role: auth.Viewer}}},
			{Name: "stranger", Grants: []auth.Grant{{Studies: "c-*", Role: auth.Admin}}},
		} {
			made, token, err := auth.NewToken(c)
			require.NoError(t, err)
			g.Tokens[c.Name] = token
			g.Change(func(all []*auth.Credential) []*auth.Credential { return append(all, made) })
		}
		mine := proto.CloneOf(records[0])
		differ(i, mine.GetStudy())
		open(g.As("admin"), g.Fixture)
		for _, all := range public {
			importAs(g, "admin", all)
		}
		g.Place([]*dparetov1.ExportedRecord{mine})
		w.http[i] = handler(g)
	}
	return w
}

// importAs imports a study.
func importAs(g *servertest.Guarded, name string, records []*dparetov1.ExportedRecord) {
	g.T.Helper()
	stream, err := g.Admin.ImportStudy(g.As(name))
	require.NoError(g.T, err)
	for _, record := range records {
		if err := stream.Send(&dparetov1.ImportStudyRequest{Record: record}); err != nil {
			break // the answer says why
		}
	}
	require.NoError(g.T, require.ErrOf(stream.CloseAndRecv()))
}

// handler returns REST and the page, as the HTTP port serves them.
func handler(g *servertest.Guarded) http.Handler {
	g.T.Helper()
	served := g.Server.GRPC()
	local, err := rest.Connect(served)
	require.NoError(g.T, err)
	g.T.Cleanup(func() {
		served.Stop()
		local.Close()
	})
	api, err := rest.Handler(g.T.Context(), local, rest.Options{})
	require.NoError(g.T, err)
	page, err := web.Handler(local, web.Options{SignIn: true})
	require.NoError(g.T, err)
	mux := http.NewServeMux()
	mux.Handle("/v1/", api)
	mux.Handle("/", page)
	return mux
}

// asCaller returns the context of a caller.
func asCaller(g *servertest.Guarded, name string) context.Context {
	if name == "nobody" {
		return g.T.Context()
	}
	return g.As(name)
}

// same fails the test if the answers of the worlds do.
func (w *worlds) same(what, caller, question string, answers [2]string) {
	w.t.Helper()
	w.asked[what]++
	if diff := cmp.Diff(answers[0], answers[1]); diff != "" {
		w.t.Errorf("%s of %s, asked %s (-first +second world):\n%s", what, caller, question, diff)
	}
}

// compare asks everything on behalf of callers, but for the methods that skips names for a caller.
func (w *worlds) compare(callers []string, skips func(caller, method string, rules auth.Method) bool) {
	w.t.Helper()
	var methods []string
	w.both[0].Methods(func(full string, _ protoreflect.MethodDescriptor) {
		if strings.HasPrefix(full, "/dpareto.v1.") { // health and reflection know no studies
			methods = append(methods, full)
		}
	})
	slices.Sort(methods) // so that a study is resumed after it is paused
	for _, full := range methods {
		rules, _ := auth.Lookup(full)
		for _, caller := range callers {
			if skips(caller, full, rules) {
				continue
			}
			for _, req := range questions(w.t, full, w.study) {
				var answers [2]string
				for i, g := range w.both {
					answers[i] = tokens.ReplaceAllString(answer(asCaller(g, caller), w.t, g.Conn, full, req), "TOKEN")
				}
				w.same(full, caller, fmt.Sprint(req), answers)
				if !isRefusal.MatchString(answers[0]) {
					w.told[full] = true
				}
			}
		}
	}
	for _, caller := range callers {
		w.compareREST(caller)
		if caller != "admin" { // who gets the pages of a reader, with more buttons, which take long to draw
			w.comparePage(caller)
		}
	}
}

var (
	// isRefusal matches answers that consist of an error.
	isRefusal = regexp.MustCompile(`^[A-Z][A-Za-z]+: `)
	// tokens match lease tokens, in exports and in the answers that workers get, and the digests of requests
	// that hold them (TestPrivateModeLeaksNothing shows that these hold no value).
	tokens = regexp.MustCompile(`\b[0-9a-f]{32}\b|completion_?[dD]igest"?: ?"(?:\\.|[^"\\])*"`)
	// readings match when a report or a statement was made, by the machine's clock.
	readings = regexp.MustCompile(`as of <time datetime="[0-9TZ:-]+">[0-9-]+ [0-9:]+ UTC</time>|<dt>Made</dt><dd>[0-9-]+ [0-9:]+ UTC</dd>`)
	// requestIDs match the random identifiers of forms, and links those that a document leads to.
	requestIDs = regexp.MustCompile(`\b[A-Z2-7]{26}\b`)
	links      = regexp.MustCompile(`(?:href|src|data-[a-z-]+)="(/[^"]*)"`)
)

// get returns the answer to a GET, with its headers, but for what is random or of no study.
func (w *worlds) get(world int, caller, path string) string {
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1"+path, nil)
	if caller != "nobody" {
		r.Header.Set("Authorization", "Bearer "+w.both[world].Tokens[caller])
	}
	recorder := httptest.NewRecorder()
	w.http[world].ServeHTTP(recorder, r)
	answer := recorder.Result()
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(w.t, err)
	answer.Header.Del("X-Request-ID")
	text := fmt.Sprintf("%d %v\n%s", answer.StatusCode, answer.Header, body)
	for _, random := range []*regexp.Regexp{tokens, readings, requestIDs, jsonEtags} {
		text = random.ReplaceAllString(text, "RANDOM")
	}
	return text
}

// jsonEtags match etags of changed studies.
var jsonEtags = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]+-[0-9a-f]{8}\b`)

// compareREST compares the answers to all GETs of the API's description.
func (w *worlds) compareREST(caller string) {
	w.t.Helper()
	var described struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	require.NoError(w.t, json.Unmarshal(openapi.Document(), &described))
	for _, pattern := range slices.Sorted(maps.Keys(described.Paths)) {
		if described.Paths[pattern]["get"] == nil || strings.HasSuffix(pattern, ":watch") || strings.HasSuffix(pattern, ":backup") || caller == "admin" && strings.HasSuffix(pattern, ":export") {
			continue // endless or of the whole store; gRPC compares what it can
		}
		for _, trial := range []string{"1", "4", "9"} {
			values := map[string]string{
				"{study}": "a-search", "{trial}": trial, "{release}": "1", "{ledger}": strings.TrimPrefix(trainLedger, "ledgers/"),
			}
			path := variables.ReplaceAllStringFunc(pattern, func(variable string) string {
				if values[variable] == "" {
					w.t.Errorf("%s: no value for %s", pattern, variable)
				}
				return values[variable]
			})
			w.same("REST "+pattern, caller, path, [2]string{w.get(0, caller, path), w.get(1, caller, path)})
			if !strings.Contains(pattern, "{trial}") {
				break
			}
		}
	}
}

// variables match those of a path in the API's description.
var variables = regexp.MustCompile(`\{[^}]*\}`)

// pages are the views of the page about a study; links lead to others.
var pages = []string{"", "/report", "/choose", "/why", "/trials", "/trials/compare", "/trials/1", "/trials/9", "/edit", "/queue"}

// comparePage follows all links of the page.
func (w *worlds) comparePage(caller string) {
	w.t.Helper()
	queue := []string{"/", "/studies", "/about", "/compare", "/sign-in"}
	for _, view := range pages {
		queue = append(queue, "/"+w.study+view)
	}
	seen := make(map[string]bool)
	for ; len(queue) > 0; queue = queue[1:] {
		path := queue[0]
		isOther := strings.HasPrefix(path, "/studies/") && !strings.HasPrefix(path, "/"+w.study) // whose fronts take long to draw
		if seen[path] || isOther || strings.HasPrefix(path, "/static/") || strings.HasPrefix(path, "//") || strings.HasSuffix(path, "/live") {
			continue
		}
		if seen[path] = true; len(seen) > 500 {
			w.t.Fatal("the page has too many links")
		}
		answers := [2]string{w.get(0, caller, path), w.get(1, caller, path)}
		w.same("page", caller, path, answers)
		for _, link := range links.FindAllStringSubmatch(answers[0], -1) {
			next, _, _ := strings.Cut(html.UnescapeString(link[1]), "#")
			queue = append(queue, next)
		}
	}
}

// candidates runs some trials of a study with random stopping, with other times, workers and outcomes in each
// world. The first trial, which is the same in both, is the best.
func candidates(g *servertest.Guarded, world int, study string, from, to int) {
	g.T.Helper()
	for n := from; n <= to; n++ {
		held := run(g, study, 1, 0)
		if held.GetNumber() != int64(n) {
			g.T.Fatalf("trial %d, want %d", held.GetNumber(), n)
		}
		g.Clock.Advance(time.Duration(1+world) * time.Second)
		score := 0.9 - 0.1*float64(world)
		if n == 1 {
			score = 0.05
		}
		if n == 4 && world == 1 {
			require.NoError(g.T, require.ErrOf(g.Studies.CompleteTrial(g.As("worker"), &dparetov1.CompleteTrialRequest{
				Name: held.GetName(), LeaseToken: held.GetLease().GetToken(),
				Outcome: &dparetov1.CompleteTrialRequest_Infeasible{Infeasible: &dparetov1.Infeasible{Reason: "diverged"}},
			})))
			continue
		}
		for step := int64(1); step < held.GetParameters()["epochs"].GetIntValue(); step++ {
			require.NoError(g.T, require.ErrOf(g.Studies.AddMeasurement(g.As("worker"), &dparetov1.AddMeasurementRequest{
				Name: held.GetName(), LeaseToken: held.GetLease().GetToken(), Measurement: servertest.Measurement(step, score), RequestId: fmt.Sprint(n, " ", step, " ", world),
			})))
		}
		finish(g, held, score)
	}
}

// until sets the clocks of both worlds to a time after the start.
func (w *worlds) until(elapsed time.Duration) {
	for _, g := range w.both {
		begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		g.Clock.Advance(begin.Add(elapsed).Sub(g.Clock.Now()))
	}
}

// Whoever the guarantee of random stopping does not trust gets no answer, by whichever way, that depends on the
// number of trials, on what they measured, when and by whom, or on which records are in the subset. The release
// at the end, of the same best trial, is the same.
func TestSecretsOfRandomStopping(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]*dparetov1.StudySpec{
		"value": servertest.SearchSpec(10, 1), "curve": servertest.CurveSpec(0), "subset": servertest.SubsetSpec(32561, 0.1, 26, 1250),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			counts := [2]int{2, 6}
			w := newWorlds(t, spec, [2]uint64{1, 1}, func(world int, s *dparetov1.ExportedStudy) {
				s.GetRandomStopping().Trials = int64(counts[world])
				if key := s.GetRandomStopping().GetSubsetKey(); key != nil {
					key[0] += byte(world)
				}
			})
			// Who takes trials is a worker, and trusted.
			skips := func(caller, method string, _ auth.Method) bool {
				return method == dparetov1.StudyService_SuggestTrials_FullMethodName && slices.Contains([]string{"limited", "owner", "worker"}, caller)
			}
			w.until(time.Hour)
			w.compare(untrusted, skips)
			for i, g := range w.both {
				candidates(g, i, w.study, 1, counts[i]-1)
			}
			w.until(2 * time.Hour)
			w.compare(untrusted, skips)
			for _, g := range w.both {
				require.NoError(t, require.ErrOf(g.Studies.PauseStudy(g.As("owner"), &dparetov1.PauseStudyRequest{Name: w.study})))
				require.NoError(t, require.ErrOf(g.Studies.ResumeStudy(g.As("owner"), &dparetov1.ResumeStudyRequest{Name: w.study})))
			}
			for i, g := range w.both {
				candidates(g, i, w.study, counts[i], counts[i])
				if spec.GetRandomStopping().GetFinalRun() != nil {
					finish(g, run(g, w.study, 1, 0), 0.25)
				}
			}
			w.until(3 * time.Hour)
			w.compare(untrusted, skips)
			for _, full := range []string{
				dparetov1.StudyService_GetStudy_FullMethodName, dparetov1.StudyService_ListStudies_FullMethodName,
				dparetov1.ReleaseService_ReleaseBest_FullMethodName, dparetov1.ReleaseService_GetLedger_FullMethodName,
			} {
				if !w.told[full] {
					t.Errorf("%s told nobody anything", full)
				}
			}
			rest := 0
			for what := range w.asked {
				if strings.HasPrefix(what, "REST ") {
					rest++
				}
			}
			if w.asked["page"] < 200 || rest < 15 {
				t.Errorf("compared %d pages and %d paths of REST", w.asked["page"], rest)
			}
			if number := [2]string{w.trials(0), w.trials(1)}; number[0] == number[1] {
				t.Error("the worlds do not differ")
			}
		})
	}
}

// trials returns what an administrator of the whole server sees of the trials in an export.
func (w *worlds) trials(world int) string {
	g := w.both[world]
	return answer(g.As("admin"), w.t, g.Conn, dparetov1.AdminService_ExportStudy_FullMethodName, &dparetov1.ExportStudyRequest{Name: w.study})
}

// Whoever sees a study with private_mode, administrators of the whole server included, gets answers that depend on
// noisy values alone. The worlds have other values and other noise, which add up to the same; other reasons, times
// that runs took, and values of computed metrics.
func TestSecretsOfPrivateMode(t *testing.T) {
	t.Parallel()
	spec := servertest.PrivateSpec(7, 20)
	spec.PrivateMode.TestSetSize = 500 // and so much noise
	servertest.WithLedgers(spec)
	seeds := [2]uint64{1, 2}
	w := newWorlds(t, spec, seeds, func(int, *dparetov1.ExportedStudy) {})
	sources := [2]*noise.Source{noise.Seeded(seeds[0]), noise.Seeded(seeds[1])} // as the servers', in step
	w.until(time.Hour)
	largest := 0.0
	for n := range 7 {
		var held [2]*dparetov1.Trial
		for i, g := range w.both {
			held[i] = run(g, w.study, 1, 0)
		}
		if n == 3 || n == 4 {
			for i, g := range w.both {
				done := servertest.Completion(held[i])
				done.Outcome = &dparetov1.CompleteTrialRequest_Infeasible{Infeasible: &dparetov1.Infeasible{Reason: fmt.Sprint("diverged at ", i)}}
				if n == 4 {
					done.Outcome = &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: fmt.Sprint("diverged at ", i)}}
				}
				require.NoError(t, require.ErrOf(g.Studies.CompleteTrial(g.As("worker"), done)))
			}
			continue
		}
		sigma := present(w.both[0], w.study).GetPublication().GetNoiseStandardDeviation()
		values := [2]float64{0.5, 0.5}
		values[1] += sources[0].Gaussian(values[0], sigma) - sources[1].Gaussian(values[1], sigma)
		largest = max(largest, math.Abs(values[0]-values[1]))
		for i, g := range w.both {
			done := servertest.Completion(held[i], values[i])
			m := done.GetMeasurement()
			m.Elapsed = durationpb.New(time.Duration(1+i) * time.Minute)
			m.Metrics["epsilon"] = &dparetov1.MetricValue{Value: new(float64(1 + i))}
			require.NoError(t, require.ErrOf(g.Studies.CompleteTrial(g.As("worker"), done)))
		}
	}
	if largest < 0.01 {
		t.Fatalf("the worlds differ by %g at most", largest)
	}
	w.compare([]string{"nobody", "stranger", "reader", "admin"}, func(caller, method string, rules auth.Method) bool {
		// The bytes of a backup are those of the store: see TestPrivateModeLeaksNothing.
		return method == dparetov1.AdminService_BackupStore_FullMethodName ||
			caller == "admin" && rules.Audited && method != dparetov1.AdminService_ExportStudy_FullMethodName && method != dparetov1.ReleaseService_ReleaseFront_FullMethodName
	})
	for _, full := range []string{
		dparetov1.StudyService_ListTrials_FullMethodName, dparetov1.StudyService_WatchStudy_FullMethodName, dparetov1.FrontService_GetFront_FullMethodName,
		dparetov1.AdminService_ExportStudy_FullMethodName, dparetov1.PrivacyService_GetPrivacyLedger_FullMethodName,
	} {
		if !w.told[full] {
			t.Errorf("%s told nobody anything", full)
		}
	}
}

// present returns a study as the administrator of the whole server sees it.
func present(g *servertest.Guarded, study string) *dparetov1.Study {
	g.T.Helper()
	resp, err := g.Studies.GetStudy(g.As("admin"), &dparetov1.GetStudyRequest{Name: study})
	require.NoError(g.T, err)
	return resp.GetStudy()
}

// A release by a fixed design trusts whoever has a role on the study, or on the whole server. Nobody else gets an
// answer that depends on its results.
func TestSecretsOfReleases(t *testing.T) {
	t.Parallel()
	spec := servertest.FixedSpec(6, "ledgers/people")
	w := newWorlds(t, spec, [2]uint64{1, 2}, func(int, *dparetov1.ExportedStudy) {})
	callers := []string{"nobody", "stranger"}
	nothing := func(string, string, auth.Method) bool { return false }
	for i, g := range w.both {
		finish(g, run(g, w.study, 6, 0.2+0.3*float64(i)), 0.1)
	}
	w.until(time.Hour)
	w.compare(callers, nothing)
	for _, g := range w.both {
		require.NoError(t, require.ErrOf(g.Releases().ReleaseBest(g.As("admin"), &dparetov1.ReleaseBestRequest{Name: w.study, Metric: "error", Epsilon: 1})))
	}
	w.compare(callers, nothing)
	if w.trials(0) == w.trials(1) {
		t.Error("the worlds do not differ")
	}
}
