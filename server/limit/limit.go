package limit

import (
	"fmt"
	"maps"
	"net"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Limits bounds what callers can use. 0 means the default.
type Limits struct {
	// RequestBytes is the largest size of a request, in bytes. Default 4 MiB.
	RequestBytes int
	// Studies is the largest number of studies in a store. Default 100,000.
	Studies int64
	// TrialsPerStudy is the largest number of trials that a study creates in its life.
	// Default 1,000,000.
	TrialsPerStudy int64
	// Calls is the largest number of calls at a time. Default 10,000.
	Calls int
	// CallsPerPrincipal is that of one principal. Default 2,000.
	CallsPerPrincipal int
	// Streams is the largest number of streams at a time. Default 1,000.
	Streams int
	// StreamsPerPrincipal is that of one principal. Default 100.
	StreamsPerPrincipal int
	// CallTime is the longest time that a call may take; a later deadline of the caller
	// is brought forward. Streams have no such bound. Default 10 minutes.
	CallTime time.Duration
	// Connections is the largest number of connections of a listener. Default 10,000.
	Connections int
}

// Default returns the limits that hold where nothing else is said.
func Default() Limits {
	return Limits{
		RequestBytes:        4 << 20,
		Studies:             100_000,
		TrialsPerStudy:      1_000_000,
		Calls:               10_000,
		CallsPerPrincipal:   2_000,
		Streams:             1_000,
		StreamsPerPrincipal: 100,
		CallTime:            10 * time.Minute,
		Connections:         10_000,
	}
}

// OrDefault returns the limits with those that are 0 replaced by their default.
func (l Limits) OrDefault() Limits {
	d := Default()
	return Limits{
		RequestBytes:        orDefault(l.RequestBytes, d.RequestBytes),
		Studies:             orDefault(l.Studies, d.Studies),
		TrialsPerStudy:      orDefault(l.TrialsPerStudy, d.TrialsPerStudy),
		Calls:               orDefault(l.Calls, d.Calls),
		CallsPerPrincipal:   orDefault(l.CallsPerPrincipal, d.CallsPerPrincipal),
		Streams:             orDefault(l.Streams, d.Streams),
		StreamsPerPrincipal: orDefault(l.StreamsPerPrincipal, d.StreamsPerPrincipal),
		CallTime:            orDefault(l.CallTime, d.CallTime),
		Connections:         orDefault(l.Connections, d.Connections),
	}
}

func orDefault[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

// Validate returns an error if a limit is negative.
func (l Limits) Validate() error {
	for name, value := range map[string]int64{
		"request bytes": int64(l.RequestBytes), "studies": l.Studies, "trials per study": l.TrialsPerStudy,
		"calls": int64(l.Calls), "calls per principal": int64(l.CallsPerPrincipal),
		"streams": int64(l.Streams), "streams per principal": int64(l.StreamsPerPrincipal),
		"call time": int64(l.CallTime), "connections": int64(l.Connections),
	} {
		if value < 0 {
			return fmt.Errorf("limit: %s is negative", name)
		}
	}
	return nil
}

// CheckStudies returns an error if a store that holds n studies can take no more.
func (l Limits) CheckStudies(n int64) error {
	if most := l.OrDefault().Studies; n >= most {
		return status.Errorf(codes.ResourceExhausted, "the store holds as many studies as it may: %d", most)
	}
	return nil
}

// CheckTrials returns an error if a study that has created n trials can create no more.
func (l Limits) CheckTrials(n int64) error {
	if most := l.OrDefault().TrialsPerStudy; n >= most {
		return status.Errorf(codes.ResourceExhausted, "the study has created as many trials as a study may: %d", most)
	}
	return nil
}

// retryAfter is when a caller that was too quick may come again.
const retryAfter = time.Second

// Busy returns the error of a caller that should come again in a second.
func Busy(format string, args ...any) error {
	s := status.Newf(codes.ResourceExhausted, format, args...)
	if detailed, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(retryAfter)}); err == nil {
		s = detailed
	}
	return s.Err()
}

// Gate counts what is going on, in total and for each principal. It is safe for
// concurrent use.
type Gate struct {
	what            string
	total, perNamed int

	mu    sync.Mutex
	all   int
	named map[string]int
}

// NewGate returns a gate that lets total in at a time, and perPrincipal of each
// principal. What they are ("calls") is for errors.
func NewGate(what string, total, perPrincipal int) *Gate {
	return &Gate{what: what, total: total, perNamed: perPrincipal, named: make(map[string]int)}
}

// Enter lets one in, until leave is called, or returns the error for the caller. For the
// principal "" only the total counts.
func (g *Gate) Enter(principal string) (leave func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all >= g.total {
		return nil, Busy("the server has %d %s at a time already", g.total, g.what)
	}
	if principal != "" && g.named[principal] >= g.perNamed {
		return nil, Busy("%.100q has %d %s at a time already", principal, g.perNamed, g.what)
	}
	g.all++
	g.named[principal]++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.all--
		if g.named[principal]--; g.named[principal] == 0 {
			delete(g.named, principal)
		}
	}, nil
}

const (
	// failures is how many failed authentications of one address are answered and logged
	// at once, and failureEvery how soon another is.
	failures     = 20
	failureEvery = time.Second
	// maxAddresses bounds the memory of Failures.
	maxAddresses = 10_000
)

// Failures bounds the rate of failed authentications of an address. It bounds the noise,
// not the guessing, against which tokens are long enough: a valid token is never refused
// for the failures of others behind the same address. It is safe for concurrent use.
type Failures struct {
	mu      sync.Mutex
	buckets map[string]bucket
	swept   time.Time // when the addresses that are quiet again were dropped last
}

// bucket is a token bucket: full is when it will be full again.
type bucket struct{ full time.Time }

// Allow counts a failure of an address and reports whether it is within the rate: 20 at
// once and one each second.
func (f *Failures) Allow(address string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.buckets == nil {
		f.buckets = make(map[string]bucket)
	}
	b, known := f.buckets[address]
	if !known && len(f.buckets) >= maxAddresses {
		if now.Sub(f.swept) >= failureEvery { // a flood of addresses must not buy a sweep each
			f.swept = now
			maps.DeleteFunc(f.buckets, func(_ string, other bucket) bool { return !now.Before(other.full) })
		}
		if len(f.buckets) >= maxAddresses {
			return false
		}
	}
	if b.full.Before(now) {
		b.full = now
	}
	b.full = b.full.Add(failureEvery)
	if b.full.Sub(now) > failures*failureEvery {
		return false
	}
	f.buckets[address] = b
	return true
}

// Listener returns a listener that has at most n connections open. Further ones are
// closed at once, so that clients try another server or wait, as they do for one that is
// down.
func Listener(l net.Listener, n int) net.Listener {
	return &listener{Listener: l, free: make(chan struct{}, n)}
}

type listener struct {
	net.Listener

	free chan struct{} // holds a value for every open connection
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.free <- struct{}{}:
			return &conn{Conn: c, release: sync.OnceFunc(func() { <-l.free })}, nil
		default:
			_ = c.Close() // the caller sees that it is closed
		}
	}
}

type conn struct {
	net.Conn

	release func()
}

// Close implements net.Conn.
func (c *conn) Close() error {
	defer c.release()
	return c.Conn.Close()
}
