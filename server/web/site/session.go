package site

import (
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"unicode"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// cookieName returns the name of the cookie that holds a reader's token. Cookies of all ports of a host
// are one set, so the port is part of it: two servers do not sign each other's readers out. With TLS its
// prefix makes browsers refuse one that another host or a page without TLS has set.
func (s *Site) cookieName(r *http.Request) string {
	name := "dpareto-token"
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err == nil {
			name += "-" + port
		}
	}
	if s.options.Secure {
		name = "__Host-" + name
	}
	return name
}

// cookie returns the cookie for a token. It ends with the browser's session, no script can read it,
// and no other site can make a browser send it.
func (s *Site) cookie(r *http.Request, token string) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // Secure wherever there is TLS
		Name: s.cookieName(r), Value: token, Path: "/",
		HttpOnly: true, Secure: s.options.Secure, SameSite: http.SameSiteStrictMode,
	}
}

// withToken passes a reader's token on as the header that programs send.
func (s *Site) withToken(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if cookie, err := r.Cookie(s.cookieName(r)); err == nil && s.options.SignIn && r.Header.Get("Authorization") == "" {
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", "Bearer "+cookie.Value)
		}
		if !isPrintable(r.Header.Get("Authorization")) { // which calls cannot carry
			r = r.Clone(r.Context())
			r.Header.Del("Authorization")
		}
		next.ServeHTTP(w, r)
	})
}

// isPrintable reports whether text is of printable ASCII alone.
func isPrintable(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' })
}

// signInPage is what sign-in.html shows.
type signInPage struct {
	Page

	Next  string // path to go to
	Error string
}

// signInForm asks for a token.
func (s *Site) signInForm(w http.ResponseWriter, r *http.Request) {
	s.askForToken(w, r, http.StatusOK, "")
}

func (s *Site) askForToken(w http.ResponseWriter, r *http.Request, code int, problem string) {
	s.Render(w, code, "sign-in", &signInPage{Page: Page{Title: "Sign in", SignIn: s.options.SignIn}, Next: localPath(r.FormValue("next")), Error: problem})
}

// signIn keeps a token that the server accepts.
func (s *Site) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxFormBytes)
	token := strings.TrimSpace(r.PostFormValue("token"))
	if token == "" || strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' || c == '"' || c == ',' || c == ';' || c == '\\' }) {
		s.askForToken(w, r, http.StatusUnprocessableEntity, "Enter a token: a line of letters and digits.")
		return
	}
	ctx := metadata.AppendToOutgoingContext(r.Context(), "authorization", "Bearer "+token)
	if _, err := s.Admin.GetServerInfo(ctx, &dparetov1.GetServerInfoRequest{}); err != nil {
		if status.Code(err) != codes.Unauthenticated && status.Code(err) != codes.PermissionDenied {
			s.fail(w, r, err)
			return
		}
		s.askForToken(w, r, http.StatusUnauthorized, "The server does not accept this token.")
		return
	}
	http.SetCookie(w, s.cookie(r, token))
	http.Redirect(w, r, localPath(r.PostFormValue("next")), http.StatusSeeOther) //nolint:gosec // localPath leads nowhere else
}

// signOut forgets the token.
func (s *Site) signOut(w http.ResponseWriter, r *http.Request) {
	cookie := s.cookie(r, "") //nolint:gosec // as above
	cookie.MaxAge = -1
	http.SetCookie(w, cookie)
	http.Redirect(w, r, "/sign-in", http.StatusSeeOther)
}

// localPath returns the path of a view of this site, the path of the studies for anything else: a link to the
// sign-in must not lead to another site afterwards.
func localPath(target string) string {
	u, err := url.Parse(target)
	isView := err == nil && u.Scheme == "" && u.Host == "" && u.Opaque == "" && u.User == nil && path.Clean(u.Path) == u.Path &&
		!strings.ContainsFunc(target, func(c rune) bool { return c == '\\' || unicode.IsControl(c) })
	for _, view := range []string{"/studies", "/compare", "/about"} {
		if isView && (u.Path == view || strings.HasPrefix(u.Path, view+"/")) && !strings.Contains(u.Path, "\\") {
			return u.RequestURI()
		}
	}
	return "/studies"
}
