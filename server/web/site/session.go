package site

import (
	"net/http"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// cookieName returns the name of the cookie that holds a reader's token. With TLS its prefix makes
// browsers refuse one that another host or a page without TLS has set.
func (s *Site) cookieName() string {
	if s.options.Secure {
		return "__Host-dpareto-token"
	}
	return "dpareto-token"
}

// cookie returns the cookie for a token. It ends with the browser's session, no script can read it,
// and no other site can make a browser send it.
func (s *Site) cookie(token string) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // Secure wherever there is TLS
		Name: s.cookieName(), Value: token, Path: "/",
		HttpOnly: true, Secure: s.options.Secure, SameSite: http.SameSiteStrictMode,
	}
}

// withToken passes a reader's token on as the header that programs send.
func (s *Site) withToken(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if cookie, err := r.Cookie(s.cookieName()); err == nil && s.options.SignIn && r.Header.Get("Authorization") == "" {
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", "Bearer "+cookie.Value)
		}
		next.ServeHTTP(w, r)
	})
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
	http.SetCookie(w, s.cookie(token))
	http.Redirect(w, r, localPath(r.PostFormValue("next")), http.StatusSeeOther) //nolint:gosec // localPath leads nowhere else
}

// signOut forgets the token.
func (s *Site) signOut(w http.ResponseWriter, r *http.Request) {
	cookie := s.cookie("") //nolint:gosec // as above
	cookie.MaxAge = -1
	http.SetCookie(w, cookie)
	http.Redirect(w, r, "/sign-in", http.StatusSeeOther)
}

// localPath returns a path of this site, the studies for anything else: a link to the sign-in must
// not lead to another site afterwards.
func localPath(path string) string {
	if !strings.HasPrefix(path, "/studies") && !strings.HasPrefix(path, "/compare") && path != "/about" {
		return "/studies"
	}
	return path
}
