package limit

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/dpareto/dpareto/internal/require"
)

// dials is a listener whose clients come from chosen addresses.
type dials struct {
	net.Listener

	accepted chan net.Conn
}

func (d dials) Accept() (net.Conn, error) {
	c, ok := <-d.accepted
	if !ok {
		return nil, io.EOF
	}
	return c, nil
}

// fromAddress is a connection from an address.
type fromAddress struct {
	net.Conn

	address net.Addr
}

func (c fromAddress) RemoteAddr() net.Addr { return c.address }

// client is both ends of a connection; server is nil if it was refused.
type client struct{ server, client net.Conn }

// doorOf returns a door, a function that connects from an address to its only listener, and its log.
func doorOf(t *testing.T, total, perAddress int) (*Door, func(address string) client, *bytes.Buffer) {
	t.Helper()
	log := new(bytes.Buffer)
	d := NewDoor(total, perAddress, slog.New(slog.NewTextHandler(log, nil)))
	inner := dials{accepted: make(chan net.Conn)}
	l := d.Listen("grpc", inner)
	taken := make(chan net.Conn)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			taken <- c
		}
	}()
	t.Cleanup(func() { close(inner.accepted) })
	connect := func(address string) client {
		t.Helper()
		theirs, ours := net.Pipe()
		t.Cleanup(func() { theirs.Close() })
		inner.accepted <- fromAddress{ours, &net.TCPAddr{IP: net.ParseIP(address), Port: 1}}
		closed := make(chan bool, 1)
		go func() {
			_, err := theirs.Read(make([]byte, 1))
			closed <- err != nil
		}()
		select {
		case c := <-taken:
			return client{c, theirs}
		case <-closed: // without a byte
			return client{nil, theirs}
		}
	}
	return d, connect, log
}

func TestDoorPerAddress(t *testing.T) {
	d, connect, _ := doorOf(t, 100, 2)
	for _, test := range []struct {
		address string
		taken   bool
	}{
		{"192.0.2.1", true},
		{"192.0.2.1", true},
		{"192.0.2.1", false},
		{"::ffff:192.0.2.1", false},
		{"192.0.2.2", true},
		{"2001:db8:0:1::1", true},
		{"2001:db8:0:1:8000::2", true},
		{"2001:db8:0:1:ffff::3", false}, // the same /64
		{"2001:db8:0:2::1", true},
	} {
		if c := connect(test.address); (c.server != nil) != test.taken {
			t.Errorf("%s: taken %t, want %t", test.address, c.server != nil, test.taken)
		}
	}
	if got, want := d.Stats()[0], (DoorStats{Listener: "grpc", Open: 6, Refused: 3}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	d, connect, _ = doorOf(t, 3, 0) // no limit per address
	for i := range 5 {
		if c := connect("192.0.2.1"); (c.server != nil) != (i < 3) {
			t.Errorf("connection %d: taken %t", i, c.server != nil)
		}
	}
	_ = d
}

// A place is free again when its connection is closed, once.
func TestDoorInAll(t *testing.T) {
	d, connect, _ := doorOf(t, 2, 2)
	first, second := connect("192.0.2.1"), connect("192.0.2.2")
	if connect("192.0.2.3").server != nil {
		t.Error("a third connection was taken")
	}
	first.server.Close()
	first.server.Close()
	third := connect("192.0.2.3")
	if third.server == nil || connect("192.0.2.4").server != nil {
		t.Errorf("after one was closed: %+v", d.Stats())
	}
	second.client.Close()
	if _, err := second.server.Read(make([]byte, 1)); err == nil {
		t.Error("read from a closed connection")
	}
	second.server.Close()
	require.NoError(t, third.server.SetReadDeadline(time.Unix(1, 0)))
	if _, err := third.server.Read(make([]byte, 1)); err == nil {
		t.Error("read after the deadline")
	}
	third.server.Close()
	if got, want := d.Stats()[0], (DoorStats{Listener: "grpc", Refused: 2, ByClient: 1, ByServer: 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if len(d.addresses) != 0 {
		t.Errorf("%d addresses are kept", len(d.addresses))
	}
}

// A flood writes a line a minute, not one for each connection.
func TestDoorLog(t *testing.T) {
	d, connect, log := doorOf(t, 1, 0)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	d.now = func() time.Time { return now }
	for range 100 {
		connect("192.0.2.1")
	}
	now = now.Add(refusalsEvery)
	connect("192.0.2.1")
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "refused=1") || !strings.Contains(lines[1], "refused=99") || !strings.Contains(lines[1], "latest_address=192.0.2.1") {
		t.Errorf("log:\n%s", log)
	}
}
