package auth

import (
	"crypto/x509"
	"net/http"
)

// AuthenticateRequest returns the principal of an HTTP request, by the token in its Authorization
// header or, without one, by the connection's client certificate.
func (a *Authenticator) AuthenticateRequest(r *http.Request) (Principal, error) {
	var peer *x509.Certificate
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 && len(r.TLS.VerifiedChains[0]) > 0 {
		peer = r.TLS.VerifiedChains[0][0]
	}
	switch headers := r.Header.Values("Authorization"); len(headers) {
	case 0:
		return a.Authenticate(r.Context(), "", peer)
	case 1:
		token, err := Bearer(headers[0])
		if err != nil {
			return Principal{}, err
		}
		return a.Authenticate(r.Context(), token, peer)
	default:
		return Principal{}, ErrMalformed
	}
}

// Permit returns nil if the sender of an HTTP request has a role on the whole server. It protects
// endpoints beside the API. An error of Authenticate means status 401, a *DeniedError 403.
func (a *Authenticator) Permit(r *http.Request, role Role) error {
	p, err := a.AuthenticateRequest(r)
	if err != nil {
		return err
	}
	if p.Role < role {
		return &DeniedError{Role: role}
	}
	return nil
}

// PermitMetrics returns nil if the sender of an HTTP request may read the server's metrics, otherwise
// the errors of Permit. Metrics count calls about all studies, and so tell how many trials a study with
// random stopping has: a role that reads studies does not suffice.
func (a *Authenticator) PermitMetrics(r *http.Request) error {
	p, err := a.AuthenticateRequest(r)
	if err != nil {
		return err
	}
	if !p.Metrics && p.Role < Admin {
		return &DeniedError{Role: Admin, OrMetrics: true}
	}
	return nil
}

// PassOnCertificates returns a handler for a gateway that calls a gRPC server in this process and
// forwards the Authorization header. A request authenticated by its client certificate gets a header
// with a ticket. An unauthenticated request loses its body, which the gateway would otherwise read
// before the server refuses the call. Other requests pass unchanged.
func (a *Authenticator) PassOnCertificates(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := a.AuthenticateRequest(r)
		switch {
		case err != nil:
			r = r.Clone(r.Context())
			r.Body, r.ContentLength = http.NoBody, 0
		case len(r.Header.Values("Authorization")) == 0:
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", "Bearer "+a.Ticket(p))
		}
		next.ServeHTTP(w, r)
	})
}
