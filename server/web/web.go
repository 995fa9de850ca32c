package web

import (
	"context"
	"crypto/rand"
	"errors"
	"html/template"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// maxFormBytes bounds the body of a form.
const maxFormBytes = 1 << 20

// Options configures a Handler. The zero value is ready to use.
type Options struct {
	// SignIn says that calls need a token, which the page asks for.
	SignIn bool
	// Secure says that browsers reach the page over TLS, so that cookies must never go elsewhere.
	Secure bool
	// Authenticate wraps the handler of everything behind the sign-in, for callers that are known
	// by something else than a token, such as a client certificate. Default: nothing.
	Authenticate func(http.Handler) http.Handler
}

// site is the page.
type site struct {
	options   Options
	templates *templates
	assets    *assets

	studies  dparetov1.StudyServiceClient
	fronts   dparetov1.FrontServiceClient
	analyses dparetov1.AnalysisServiceClient
	privacy  dparetov1.PrivacyServiceClient
	releases dparetov1.ReleaseServiceClient
	admin    dparetov1.AdminServiceClient

	now func() time.Time
}

// Handler returns the handler of the page, for all paths. It makes calls over conn, which must
// outlive it. Whoever mounts it checks the Host header and refuses requests that other sites forge.
func Handler(conn grpc.ClientConnInterface, o Options) (http.Handler, error) {
	assets, err := loadAssets()
	if err != nil {
		return nil, err
	}
	templates, err := parseTemplates(assets)
	if err != nil {
		return nil, err
	}
	s := &site{
		options: o, templates: templates, assets: assets,
		studies: dparetov1.NewStudyServiceClient(conn), fronts: dparetov1.NewFrontServiceClient(conn),
		analyses: dparetov1.NewAnalysisServiceClient(conn), privacy: dparetov1.NewPrivacyServiceClient(conn),
		releases: dparetov1.NewReleaseServiceClient(conn), admin: dparetov1.NewAdminServiceClient(conn),
		now: time.Now,
	}
	views := http.Handler(s.views())
	if o.Authenticate != nil {
		views = o.Authenticate(views)
	}
	mux := http.NewServeMux()
	mux.Handle("GET "+staticPath, assets)
	mux.HandleFunc("GET /sign-in", s.signInForm)
	mux.HandleFunc("POST /sign-in", s.signIn)
	mux.HandleFunc("POST /sign-out", s.signOut)
	mux.Handle("/", s.withToken(views))
	return secured(mux), nil
}

// views returns the handler of everything behind the sign-in.
func (s *site) views() *http.ServeMux {
	mux := http.NewServeMux()
	for pattern, serve := range map[string]view{
		"GET /{$}":                          s.home,
		"GET /studies":                      s.showStudies,
		"GET /studies/{study}":              s.showStudy,
		"GET /studies/{study}/choose":       s.showChoose,
		"GET /studies/{study}/why":          s.showWhy,
		"GET /studies/{study}/live":         s.live,
		"GET /studies/{study}/parts/{part}": s.showPart,
		"GET /compare":                      s.showCompare,
		"GET /compare/fronts":               s.showComparison,

		"GET /studies/{study}/trials":                 s.showTrials,
		"GET /studies/{study}/trials/compare":         s.compareTrials,
		"GET /studies/{study}/trials/{trial}":         s.showTrial,
		"POST /studies/{study}/trials/{trial}/stop":   s.stopTrial,
		"POST /studies/{study}/trials/{trial}/labels": s.labelTrial,
		"POST /studies/{study}/pause":                 s.pause,
		"POST /studies/{study}/resume":                s.resume,
		"GET /studies/{study}/edit":                   s.editStudy,
		"POST /studies/{study}/edit":                  s.saveDetails,
		"POST /studies/{study}/budget":                s.saveBudget,
		"GET /studies/{study}/queue":                  s.queueForm,
		"POST /studies/{study}/queue":                 s.queue,
		"GET /studies/{study}/report":                 s.showReport,
		"GET /about":                                  s.about,

		"/": notFound,
	} {
		mux.Handle(pattern, s.serve(serve))
	}
	return mux
}

// view answers a request, or returns an error before it has written anything.
type view func(w http.ResponseWriter, r *http.Request) error

// errNotFound is the error of paths that do not exist.
var errNotFound = errors.New("this page does not exist")

func notFound(http.ResponseWriter, *http.Request) error { return errNotFound }

// home leads to the studies.
func (s *site) home(w http.ResponseWriter, r *http.Request) error {
	http.Redirect(w, r, "/studies", http.StatusSeeOther)
	return nil
}

// serve turns a view into a handler that shows its errors.
func (s *site) serve(v view) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			r.Body = http.MaxBytesReader(w, r.Body, maxFormBytes)
		}
		if err := v(w, r); err != nil {
			s.fail(w, r, err)
		}
	})
}

// outgoing returns the context for calls on behalf of a request's sender.
func outgoing(r *http.Request) context.Context {
	if authorization := r.Header.Get("Authorization"); authorization != "" {
		return metadata.AppendToOutgoingContext(r.Context(), "authorization", authorization)
	}
	return r.Context()
}

// studyName returns the name of the study in a request's path.
func studyName(r *http.Request) string { return "studies/" + r.PathValue("study") }

// id returns the last part of a resource's name.
func id(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// newRequestID returns an identifier for one submission of a form, so that sending it twice acts
// once.
func newRequestID() string { return rand.Text() }

// policy allows what the page needs, all from the server itself: no script or style in a document,
// nothing from elsewhere, no frame around it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// secured sets the headers that keep others out of the page.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// bare is the type of trusted markup made by this package.
type bare = template.HTML
