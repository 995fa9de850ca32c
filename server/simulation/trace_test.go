package simulation

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/status"
)

// trace is what an actor saw and did, for people and for comparing histories.
type trace struct {
	mu    sync.Mutex
	lines []line
	began time.Time
	off   bool // nothing is written down
}

// line is what happened at a time since the beginning.
type line struct {
	at   time.Duration
	text string
}

// addf adds a line with the true time.
func (t *trace) addf(format string, args ...any) {
	if t.off {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line{time.Since(t.began), fmt.Sprintf(format, args...)})
}

// call adds a call with its answer.
func (t *trace) call(c *call) {
	if t.off {
		return
	}
	result := fmt.Sprint(c.resp)
	if c.err != nil {
		result = status.Convert(c.err).String()
	}
	t.addf("%s %s {%v} %v -> %s", c.principal, c.method[strings.LastIndex(c.method, "/")+1:], c.req, c.end.Sub(c.start), result)
}

// drawn matches what the server draws from the system's entropy: tokens, uids and what begins with
// one.
var drawn = regexp.MustCompile(`\b[0-9a-f]{32}\b|\b[0-9a-f]{8}-[0-9a-f]+(-[0-9a-f]{8})?\b`)

// tell returns what actors saw, in order, with the names that the server drew replaced.
func tell(actors []*connection) string {
	var lines []line
	for _, c := range actors {
		lines = append(lines, c.trace.lines...)
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	var all strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&all, "%12v  %s\n", l.at, l.text)
	}
	return rename(all.String())
}

// rename replaces what the server draws by numbers, in order of appearance.
func rename(text string) string {
	names := make(map[string]string)
	return drawn.ReplaceAllStringFunc(text, func(found string) string {
		start, revision, isEtag := strings.Cut(found, "-")
		if names[start[:8]] == "" {
			names[start[:8]] = fmt.Sprintf("#%d", len(names)+1)
		}
		if isEtag {
			revision, _, _ = strings.Cut(revision, "-") // a hash follows
			return names[start[:8]] + "-" + revision
		}
		return names[start[:8]]
	})
}
