package limit

import (
	"cmp"
	"maps"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Limits bounds what callers may use. Zero fields mean the defaults.
type Limits struct {
	// RequestBytes is the maximum size of a request, in bytes. Default 4 MiB.
	RequestBytes int
	// Studies is the maximum number of studies in a store. Default 100,000.
	Studies int64
	// TrialsPerStudy is the maximum number of trials that a study ever creates. Default 1,000,000.
	TrialsPerStudy int64
	// OpenTrialsPerStudy is the maximum number of trials of a study that are not complete. Default
	// 10,000.
	OpenTrialsPerStudy int64
	// StudyBytes is the size of a study from which on it takes no more trials and measurements, in
	// bytes. Default 1 GiB.
	StudyBytes int64
	// Calls is the maximum number of concurrent calls. Default 10,000.
	Calls int
	// CallsPerPrincipal is the maximum number of concurrent calls by one principal. Default 2,000.
	CallsPerPrincipal int
	// Streams is the maximum number of concurrent streams. Default 1,000.
	Streams int
	// StreamsPerPrincipal is the maximum number of concurrent streams of one principal. Default 100.
	StreamsPerPrincipal int
	// CallTime is the maximum time of a call, even if the caller's deadline is later. It does not
	// apply to streams. Default 10 minutes.
	CallTime time.Duration
	// IdleTime is how long a connection may be without a call. Default 2 minutes.
	IdleTime time.Duration
}

// Default returns the default limits.
func Default() Limits {
	return Limits{
		RequestBytes:        4 << 20,
		Studies:             100_000,
		TrialsPerStudy:      1_000_000,
		OpenTrialsPerStudy:  10_000,
		StudyBytes:          1 << 30,
		Calls:               10_000,
		CallsPerPrincipal:   2_000,
		Streams:             1_000,
		StreamsPerPrincipal: 100,
		CallTime:            10 * time.Minute,
		IdleTime:            2 * time.Minute,
	}
}

// OrDefault returns the limits with zero fields replaced by their defaults.
func (l Limits) OrDefault() Limits {
	d := Default()
	return Limits{
		RequestBytes:        cmp.Or(l.RequestBytes, d.RequestBytes),
		Studies:             cmp.Or(l.Studies, d.Studies),
		TrialsPerStudy:      cmp.Or(l.TrialsPerStudy, d.TrialsPerStudy),
		OpenTrialsPerStudy:  cmp.Or(l.OpenTrialsPerStudy, d.OpenTrialsPerStudy),
		StudyBytes:          cmp.Or(l.StudyBytes, d.StudyBytes),
		Calls:               cmp.Or(l.Calls, d.Calls),
		CallsPerPrincipal:   cmp.Or(l.CallsPerPrincipal, d.CallsPerPrincipal),
		Streams:             cmp.Or(l.Streams, d.Streams),
		StreamsPerPrincipal: cmp.Or(l.StreamsPerPrincipal, d.StreamsPerPrincipal),
		CallTime:            cmp.Or(l.CallTime, d.CallTime),
		IdleTime:            cmp.Or(l.IdleTime, d.IdleTime),
	}
}

// CheckStudies returns RESOURCE_EXHAUSTED if a store with n studies is full.
func (l Limits) CheckStudies(n int64) error {
	if most := l.OrDefault().Studies; n >= most {
		return status.Errorf(codes.ResourceExhausted, "the store has %d studies, the maximum (max-studies)", most)
	}
	return nil
}

// CheckTrials returns RESOURCE_EXHAUSTED if a study that has created some trials, of which some are
// open, may create no more.
func (l Limits) CheckTrials(created, open int64) error {
	l = l.OrDefault()
	if created >= l.TrialsPerStudy {
		return status.Errorf(codes.ResourceExhausted, "the study has created %d trials, the maximum (max-trials-per-study)", l.TrialsPerStudy)
	}
	if open >= l.OpenTrialsPerStudy {
		return status.Errorf(codes.ResourceExhausted,
			"%d trials of the study are queued or with workers, the maximum (max-open-trials-per-study): complete or stop some", open)
	}
	return nil
}

// CheckBytes returns RESOURCE_EXHAUSTED if a study of n bytes may take no more trials and
// measurements.
func (l Limits) CheckBytes(n int64) error {
	if most := l.OrDefault().StudyBytes; n >= most {
		return status.Errorf(codes.ResourceExhausted,
			"the study takes %d of %d bytes (max-study-bytes): its trials can be completed, but nothing can be added", n, most)
	}
	return nil
}

// retryAfter is when a caller that was too quick may retry.
const retryAfter = time.Second

// Busy returns RESOURCE_EXHAUSTED with the advice to retry in a second.
func Busy(format string, args ...any) error {
	s := status.Newf(codes.ResourceExhausted, format, args...)
	if detailed, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(retryAfter)}); err == nil {
		s = detailed
	}
	return s.Err()
}

// Gate limits concurrent calls, in total and for each principal. It is safe for concurrent use.
type Gate struct {
	what            string
	total, perNamed int

	mu    sync.Mutex
	all   int
	named map[string]int
}

// NewGate returns a gate for total concurrent calls, and perPrincipal of each principal. what names
// them in errors: "calls".
func NewGate(what string, total, perPrincipal int) *Gate {
	return &Gate{what: what, total: total, perNamed: perPrincipal, named: make(map[string]int)}
}

// Enter admits a call until leave is called, or returns the error for the caller. The principal ""
// has no limit but the total.
func (g *Gate) Enter(principal string) (leave func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all >= g.total {
		return nil, Busy("the server already has %d concurrent %s", g.total, g.what)
	}
	if principal != "" && g.named[principal] >= g.perNamed {
		return nil, Busy("%.100q already has %d concurrent %s", principal, g.perNamed, g.what)
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
	// failures is how many failed authentications from an address are answered and logged in a
	// burst; failureEvery is the time until the next.
	failures     = 20
	failureEvery = time.Second
	// maxAddresses bounds the addresses that Failures remembers.
	maxAddresses = 10_000
)

// Failures limits the rate of failed authentications from an address. It limits noise, not guessing,
// which long tokens already defeat. So it never refuses a valid token because of failures from the
// same address. It is safe for concurrent use.
type Failures struct {
	mu      sync.Mutex
	buckets map[string]bucket
	swept   time.Time // when quiet addresses were last dropped
}

// bucket is a token bucket; full is when it will be full again.
type bucket struct{ full time.Time }

// Allow counts a failure from an address, and reports whether it is within the rate: a burst of 20,
// then one a second.
func (f *Failures) Allow(address string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.buckets == nil {
		f.buckets = make(map[string]bucket)
	}
	b, known := f.buckets[address]
	if !known && len(f.buckets) >= maxAddresses {
		if now.Sub(f.swept) >= failureEvery { // sweep rarely, even under a flood of addresses
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
