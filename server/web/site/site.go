package site

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// maxFormBytes bounds the body of a form.
const maxFormBytes = 1 << 20

// Options configures a Site. The zero value is ready to use.
type Options struct {
	// SignIn says that calls need a token, which the page asks for.
	SignIn bool
	// Secure says that browsers reach the page over TLS, so that cookies must never go elsewhere.
	Secure bool
	// Authenticate wraps the handler of everything behind the sign-in, for callers that are known
	// by something else than a token, such as a client certificate. Default: nothing.
	Authenticate func(http.Handler) http.Handler
}

// Site is the page without its views. The clients call the server; views pass them the context of
// Outgoing.
type Site struct {
	Studies  dparetov1.StudyServiceClient
	Fronts   dparetov1.FrontServiceClient
	Analyses dparetov1.AnalysisServiceClient
	Privacy  dparetov1.PrivacyServiceClient
	Releases dparetov1.ReleaseServiceClient
	Admin    dparetov1.AdminServiceClient

	options   Options
	templates *templates
	assets    *assets
	parts     map[string]Part
}

// New returns a site that makes calls over conn, which must outlive it.
func New(conn grpc.ClientConnInterface, o Options) (*Site, error) {
	assets, err := loadAssets()
	if err != nil {
		return nil, err
	}
	templates, err := parseTemplates(assets)
	if err != nil {
		return nil, err
	}
	return &Site{
		options: o, templates: templates, assets: assets,
		Studies: dparetov1.NewStudyServiceClient(conn), Fronts: dparetov1.NewFrontServiceClient(conn),
		Analyses: dparetov1.NewAnalysisServiceClient(conn), Privacy: dparetov1.NewPrivacyServiceClient(conn),
		Releases: dparetov1.NewReleaseServiceClient(conn), Admin: dparetov1.NewAdminServiceClient(conn),
	}, nil
}

// Handler returns the handler of the page: its views, by the patterns of [http.ServeMux], and the
// parts of views, by name, besides what the site adds itself. It is called once. Its caller checks
// the Host header and refuses requests that other sites forge.
func (s *Site) Handler(views map[string]View, parts map[string]Part) http.Handler {
	s.parts = parts
	inside := http.NewServeMux()
	for pattern, view := range views {
		inside.Handle(pattern, s.serve(view))
	}
	inside.Handle("GET /studies/{study}/live", s.serve(s.live))
	inside.Handle("GET /studies/{study}/parts/{part}", s.serve(s.showPart))
	inside.Handle("/", s.serve(notFound))
	behind := http.Handler(inside)
	if s.options.Authenticate != nil {
		behind = s.options.Authenticate(behind)
	}
	mux := http.NewServeMux()
	mux.Handle("GET "+staticPath, s.assets)
	mux.HandleFunc("GET /sign-in", s.signInForm)
	mux.HandleFunc("POST /sign-in", s.signIn)
	mux.HandleFunc("POST /sign-out", s.signOut)
	mux.Handle("/", s.withToken(behind))
	return secured(mux)
}

// View answers a request, or returns an error before it has written anything.
type View func(w http.ResponseWriter, r *http.Request) error

func notFound(http.ResponseWriter, *http.Request) error { return errNotFound }

// serve turns a view into a handler that shows its errors.
func (s *Site) serve(v View) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			r.Body = http.MaxBytesReader(w, r.Body, maxFormBytes)
		}
		if err := v(w, r); err != nil {
			s.fail(w, r, err)
		}
	})
}

// Outgoing returns the context for calls on behalf of a request's sender.
func Outgoing(r *http.Request) context.Context {
	if authorization := r.Header.Get("Authorization"); authorization != "" {
		return metadata.AppendToOutgoingContext(r.Context(), "authorization", authorization)
	}
	return r.Context()
}

// StudyName returns the name of the study in a request's path.
func StudyName(r *http.Request) string { return "studies/" + r.PathValue("study") }

// ID returns the last part of a resource's name.
func ID(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// NewRequestID returns an identifier for one submission of a form, so that sending it twice acts
// once.
func NewRequestID() string { return rand.Text() }

// policy allows what the page needs, all from the server itself: no script or style in a document,
// nothing from elsewhere, no frame around it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// limitWriting bounds the time that a reader may take to receive an answer, so that none holds a
// connection by not reading.
func limitWriting(w http.ResponseWriter) {
	// Not every ResponseWriter supports deadlines; net/http's does.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerPatience))
}

// answerPatience is how long a reader may take to receive an answer.
const answerPatience = 2 * time.Minute

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
		// Links lead here from other sites, but nothing that they load does.
		if r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate" {
			http.Error(w, "not for other sites", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
