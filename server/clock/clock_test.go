package clock_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/dpareto/dpareto/server/clock"
	"github.com/dpareto/dpareto/server/clock/clocktest"
)

// Steady time passes as time does, whatever the wall clock is set to.
func TestSteady(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := clocktest.NewManual(start)
	m.Advance(time.Minute)
	now := clock.Steady(m)
	m.Step(-time.Hour)
	m.Advance(time.Second)
	if want := start.Add(time.Minute + time.Second); !now().Equal(want) {
		t.Errorf("%v, want %v", now(), want)
	}
	if want := start.Add(time.Minute + time.Second - time.Hour); !m.Now().Equal(want) {
		t.Errorf("wall clock %v, want %v", m.Now(), want)
	}
}

// Every step is logged once, with its size.
func TestLogged(t *testing.T) {
	var log bytes.Buffer
	m := clocktest.NewManual(time.Now())
	c := clock.Logged(m, slog.New(slog.NewTextHandler(&log, nil)))
	for _, tt := range []struct {
		step time.Duration
		want string
	}{{0, ""}, {3700 * time.Second, "by=1h1m40s"}, {0, ""}, {-2 * time.Hour, "by=-2h0m0s"}, {0, ""}, {time.Second, ""}} {
		log.Reset()
		m.Advance(time.Hour)
		m.Step(tt.step)
		if got := c.Now(); !got.Equal(m.Now()) {
			t.Errorf("%v, want %v", got, m.Now())
		}
		c.Now()
		switch got := log.String(); {
		case tt.want == "" && got != "", strings.Count(got, "\n") > 1, !strings.Contains(got, tt.want):
			t.Errorf("step by %v: log %q, want %q", tt.step, got, tt.want)
		}
	}
}

// The system's two times agree while nobody sets the clock.
func TestSystem(t *testing.T) {
	var log bytes.Buffer
	c := clock.Logged(clock.System(), slog.New(slog.NewTextHandler(&log, nil)))
	for range 1000 {
		c.Now()
	}
	if log.Len() > 0 {
		t.Error(log.String())
	}
}
