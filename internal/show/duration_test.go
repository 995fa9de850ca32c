package show

import (
	"testing"
	"time"
)

func TestDuration(t *testing.T) {
	const day = 24 * time.Hour
	for d, want := range map[time.Duration]string{
		0:                         "0 seconds",
		1500 * time.Millisecond:   "2 seconds",
		time.Minute:               "1 minute",
		80 * time.Minute:          "1 hour 20 minutes",
		time.Hour - time.Second/4: "1 hour",
		719*time.Hour + 59*time.Minute + 53*time.Second: "30 days",
		720 * time.Hour:      "30 days",
		day + 90*time.Minute: "1 day 2 hours",
		365 * day:            "365 days",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
