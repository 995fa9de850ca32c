package limit

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Default limits of connections.
const (
	DefaultConnections           = 10_000
	DefaultConnectionsPerAddress = 1_000
)

const (
	// refusalsEvery is the minimum time between two log records about refused connections.
	refusalsEvery = time.Minute
	// networkBits is the length of the IPv6 prefix that counts as one address. Every customer of a
	// provider gets at least a /64 (RFC 6177).
	networkBits = 64
)

// Door is the connection limit: it bounds the open connections of a server's listeners before callers
// have said who they are, in all and from one address. An IPv6 address stands for its /64. Further
// connections are closed at once, so that clients wait, or try another server, as if this one were
// down. A Door is safe for concurrent use.
type Door struct {
	total, perAddress int
	logger            *slog.Logger
	now               func() time.Time

	mu        sync.Mutex
	open      int
	addresses map[netip.Addr]int // open connections
	listeners []*listener
	refused   int       // since the last log record
	logged    time.Time // when it was written
}

// NewDoor returns a connection limit of total open connections, and perAddress of each address; 0 for
// no limit per address. It logs refusals at most once a minute.
func NewDoor(total, perAddress int, logger *slog.Logger) *Door {
	return &Door{total: total, perAddress: perAddress, logger: logger, now: time.Now, addresses: make(map[netip.Addr]int)}
}

// DoorStats are the connections of a listener.
type DoorStats struct {
	// Listener is the listener's name.
	Listener string
	// Open is the number of open connections.
	Open int64
	// Refused counts connections beyond the limits.
	Refused int64
	// ByClient counts connections that the client closed or that broke; ByServer the others, which
	// were idle, late or silent, or open when the server stopped.
	ByClient, ByServer int64
}

// Stats returns the connections of each listener, in the order of Listen.
func (d *Door) Stats() []DoorStats {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]DoorStats, len(d.listeners))
	for i, l := range d.listeners {
		all[i] = l.stats
	}
	return all
}

// Listen returns a listener whose connections count for the limit, under a name for Stats.
func (d *Door) Listen(name string, inner net.Listener) net.Listener {
	l := &listener{Listener: inner, door: d, stats: DoorStats{Listener: name}}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.listeners = append(d.listeners, l)
	return l
}

// listener is a listener of a door, which guards its stats.
type listener struct {
	net.Listener

	door  *Door
	stats DoorStats
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := origin(c.RemoteAddr())
		if l.door.enter(l, from) {
			return &conn{Conn: c, listener: l, from: from}, nil
		}
		_ = c.Close() // the client notices
	}
}

// origin returns the address that a connection counts for.
func origin(remote net.Addr) netip.Addr {
	tcp, ok := remote.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return Network(tcp.AddrPort().Addr())
}

// Network returns the address that a client's address counts for: the first of its /64 for IPv6, and
// itself for IPv4, also where that is written as IPv6. It has no zone.
func Network(address netip.Addr) netip.Addr {
	address = address.Unmap().WithZone("")
	if prefix, err := address.Prefix(networkBits); address.Is6() && err == nil {
		return prefix.Addr()
	}
	return address
}

// enter counts a connection, and reports whether it may stay.
func (d *Door) enter(l *listener, from netip.Addr) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	isFull := d.open >= d.total
	if isFull || d.perAddress > 0 && d.addresses[from] >= d.perAddress {
		l.stats.Refused++
		d.refused++
		if now := d.now(); now.Sub(d.logged) >= refusalsEvery {
			d.logger.Warn("refused connections beyond the connection limit", "listener", l.stats.Listener, "latest_address", from,
				"its_connections", d.addresses[from], "all_connections", d.open, "server_is_full", isFull, "refused", d.refused)
			d.logged, d.refused = now, 0
		}
		return false
	}
	d.open++
	d.addresses[from]++
	l.stats.Open++
	return true
}

// leave forgets a connection.
func (d *Door) leave(l *listener, from netip.Addr, byClient bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open--
	if d.addresses[from]--; d.addresses[from] == 0 {
		delete(d.addresses, from)
	}
	l.stats.Open--
	if byClient {
		l.stats.ByClient++
	} else {
		l.stats.ByServer++
	}
}

// conn is a connection of a door.
type conn struct {
	net.Conn

	listener *listener
	from     netip.Addr
	gone     atomic.Bool // the client has closed it, or it broke
	left     sync.Once
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, net.ErrClosed) {
		c.gone.Store(true)
	}
	return n, err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	defer c.left.Do(func() { c.listener.door.leave(c.listener, c.from, c.gone.Load()) })
	return c.Conn.Close()
}
