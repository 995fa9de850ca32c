package intercept

import (
	"net"
	"testing"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// bufferAddr is the address of the gateway in this process.
type bufferAddr struct{}

func (bufferAddr) Network() string { return "bufconn" }
func (bufferAddr) String() string  { return "bufconn" }

// A network of IPv6 is one stranger, since all of its 2⁶⁴ addresses can belong to one machine.
func TestPeerNetwork(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1":            "192.0.2.1",
		"::ffff:192.0.2.1":     "192.0.2.1",
		"2001:db8:0:1::1":      "2001:db8:0:1::",
		"2001:db8:0:1:8000::2": "2001:db8:0:1::",
		"2001:db8:0:2::1":      "2001:db8:0:2::",
	} {
		remote := &net.TCPAddr{IP: net.ParseIP(address), Port: 1234}
		if got := peerNetwork(peer.NewContext(t.Context(), &peer.Peer{Addr: remote})); got != want {
			t.Errorf("%s counts as %s, want %s", address, got, want)
		}
		ctx := peer.NewContext(t.Context(), &peer.Peer{Addr: bufferAddr{}})
		ctx = metadata.NewIncomingContext(ctx, metadata.Pairs("x-forwarded-for", "198.51.100.1, "+address))
		if got := peerNetwork(ctx); got != want {
			t.Errorf("%s through the gateway counts as %s, want %s", address, got, want)
		}
	}
	remote := &net.TCPAddr{IP: net.ParseIP("fe80::1"), Port: 1234, Zone: "eth0"}
	if got := peerNetwork(peer.NewContext(t.Context(), &peer.Peer{Addr: remote})); got != "fe80::" {
		t.Errorf("a link-local address counts as %s", got)
	}
}
