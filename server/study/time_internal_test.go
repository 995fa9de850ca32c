package study

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
)

// A lease lasts its length, and again its length where nobody knows when it began.
func TestIsExpired(t *testing.T) {
	const length = 10 * time.Minute
	now := reading{clock: 1, elapsed: 5 * time.Hour, since: time.Hour}
	for name, tt := range map[string]struct {
		clock   uint64
		granted time.Duration
		now     reading
		want    bool
	}{
		"new":                            {1, now.elapsed, now, false},
		"old":                            {1, now.elapsed - length, now, true},
		"nearly old":                     {1, now.elapsed - length + 1, now, false},
		"new, by a clock a little later": {1, now.elapsed + 500*time.Millisecond, now, false},
		"by a clock that was set back":   {1, now.elapsed + time.Hour, now, true},
		"before a step":                  {1, 0, reading{clock: 1, elapsed: now.since + length - 1, since: now.since}, false},
		"long before a step":             {1, 0, reading{clock: 1, elapsed: now.since + length, since: now.since}, true},
		"of another process":             {2, now.elapsed, reading{clock: 1, elapsed: length - 1}, false},
		"of another process, old":        {2, 0, reading{clock: 1, elapsed: length}, true},
	} {
		end := &storev1.LeaseEnd{Clock: tt.clock, Elapsed: durationpb.New(tt.granted + length), Length: durationpb.New(length)}
		if got := tt.now.isExpired(end); got != tt.want {
			t.Errorf("%s: expired %t", name, got)
		}
	}
}
