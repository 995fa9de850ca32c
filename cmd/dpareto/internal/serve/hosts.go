package serve

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
)

// localhost is the name under which every machine reaches itself.
const localhost = "localhost"

// checkHosts refuses strings that are neither a host name nor an IP address.
func checkHosts(hosts []string) error {
	for _, host := range hosts {
		if net.ParseIP(host) == nil && (host == "" || strings.ContainsAny(host, " /:@*[]")) {
			return fmt.Errorf("http-allow-host: must be a host name or an IP address, without a port, is %q", host)
		}
	}
	return nil
}

// allowHosts refuses requests for other names than the server's: a web page could make its own name
// lead here (DNS rebinding), and would then be of the same origin as the server for the browser.
//
// The names are localhost, those in allowed, and IP addresses, which cannot be rebound: for a loopback
// listener only loopback addresses. Where callers are authenticated, a listener that other machines can
// reach has all names unless some are given: such a page has no credentials.
func allowHosts(next http.Handler, listener net.Addr, authenticated bool, allowed []string) http.Handler {
	address, isTCP := listener.(*net.TCPAddr)
	isLoopback := isTCP && address.IP.IsLoopback()
	if authenticated && !isLoopback && len(allowed) == 0 {
		return next
	}
	names := []string{localhost}
	for _, host := range allowed {
		names = append(names, canonicalHost(host))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := canonicalHost(r.Host)
		ip := net.ParseIP(host)
		if !slices.Contains(names, host) && !ip.IsLoopback() && (ip == nil || isLoopback) {
			http.Error(w, fmt.Sprintf("not a name of this server: %.200q; http-allow-host adds names", host), http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// canonicalHost returns the host of a Host header: without the port, in small letters.
func canonicalHost(header string) string {
	host, _, err := net.SplitHostPort(header)
	if err != nil { // no port
		host = strings.TrimSuffix(strings.TrimPrefix(header, "["), "]")
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
