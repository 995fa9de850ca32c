package console

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestPlainLines(t *testing.T) {
	var out bytes.Buffer
	p := New(&out).Start("adult", 64, "trials")
	for done := range int64(65) {
		p.Set(done, fmt.Sprintf("hypervolume %d", done/10))
	}
	p.Finish()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if got, want := lines[0], "adult: 6 of 64 trials, hypervolume 0"; got != want {
		t.Errorf("first line %q, want %q", got, want)
	}
	if got, want := lines[len(lines)-1], "adult: 64 of 64 trials, hypervolume 6"; got != want {
		t.Errorf("last line %q, want %q", got, want)
	}
	if len(lines) != 11 {
		t.Errorf("%d lines, want 11:\n%s", len(lines), out.String())
	}
}

// A jump over several marks is one line.
func TestPlainJump(t *testing.T) {
	var out bytes.Buffer
	p := New(&out).Start("svt", 64, "trials")
	p.Set(0, "")
	p.Set(50, "")
	p.Set(50, "")
	p.Set(64, "")
	if got, want := out.String(), "svt: 50 of 64 trials\nsvt: 64 of 64 trials\n"; got != want {
		t.Errorf("output %q, want %q", got, want)
	}
}

func TestUnknownTotal(t *testing.T) {
	var out bytes.Buffer
	p := New(&out).Start("study", 0, "trials")
	p.Set(1, "")
	if got, want := out.String(), "study: 1 trials\n"; got != want {
		t.Errorf("output %q, want %q", got, want)
	}
}

func TestNilProgress(*testing.T) {
	var p *Progress
	p.Restart("label", 1, "trials")
	p.Set(1, "")
	p.Finish()
}

// on returns a console on a screen.
func on(s *screen) *Console {
	return NewTerminal(s, s.size)
}

// pass lets time pass on the clock of a bubble, and what is due happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// bars starts a bar for each label, of 40 epochs.
func bars(c *Console, labels ...string) []*Progress {
	out := make([]*Progress, len(labels))
	for i, label := range labels {
		out[i] = c.Start(label, 40, "epochs")
	}
	return out
}

// Bars stay below the log, in their order, and show the latest state once a tick has
// passed; nothing of them is left at the end.
func TestBars(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScreen(80, 10)
		c := on(s)
		fmt.Fprintln(c, "before")
		p := bars(c, "trial 9", "trial 10")
		pass(10 * time.Second)
		p[0].Set(10, "error 0.25")
		p[1].Set(20, "error 0.125")
		pass(refreshEvery)
		fmt.Fprintln(c, "between")
		s.want(t, `before
between
trial 9   [=====                  ]  10 of 40 epochs, error 0.25, 10s, 31s left
trial 10  [===========           ]  20 of 40 epochs, error 0.125, 10s, 10s left`)

		p[0].Restart("trial 11", 0, "")
		pass(2 * time.Second)
		s.want(t, `before
between
trial 11  2s
trial 10  [===========           ]  20 of 40 epochs, error 0.125, 12s, 12s left`)

		p[1].Finish()
		p[1].Finish()
		s.want(t, "before\nbetween\ntrial 11  2s")
		p[0].Finish()
		fmt.Fprintln(c, "after")
		s.want(t, "before\nbetween\nafter\n")
	})
}

// What does not change is not drawn again.
func TestQuietBars(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScreen(80, 10)
		p := bars(on(s), "trial 1")
		defer p[0].Finish()
		pass(100 * refreshEvery)
		seconds := int(100 * refreshEvery / time.Second)
		if s.writes > 1+seconds {
			t.Errorf("%d writes in %d s", s.writes, seconds)
		}
	})
}

// A line of the log that comes in pieces stays whole.
func TestPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScreen(80, 10)
		c := on(s)
		p := bars(c, "trial 1")
		fmt.Fprint(c, "one\ntw")
		s.want(t, "one\ntrial 1  [                              ]  0 of 40 epochs, 0s")
		fmt.Fprint(c, "o, in ")
		fmt.Fprint(c, "pieces\nthree")
		s.want(t, "one\ntwo, in pieces\ntrial 1  [                              ]  0 of 40 epochs, 0s")
		p[0].Finish()
		s.want(t, "one\ntwo, in pieces\nthree")
	})
}

// On a narrow terminal the bar goes first, then the end of the line; on a low one the
// last bars go.
func TestSmallTerminals(t *testing.T) {
	for _, tt := range []struct {
		width, height int
		want          string
	}{
		{
			44, 10, `trial 1  20 of 40 epochs, 1s, 1s left
trial 2  [            ]  0 of 40 epochs, 1s
trial 3  [            ]  0 of 40 epochs, 1s`,
		},
		{20, 10, "trial 1  20 of 40 …\ntrial 2  0 of 40 e…\ntrial 3  0 of 40 e…"},
		{2, 10, "…\n…\n…"},
		{1, 10, "\n\n"},
		{20, 3, "trial 1  20 of 40 …\nand 2 more"},
		{20, 1, "and 3 more"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newScreen(tt.width, tt.height)
			p := bars(on(s), "trial 1", "trial 2", "trial 3")
			p[0].Set(20, "")
			pass(time.Second)
			s.want(t, tt.want)
			for _, p := range p {
				p.Finish()
			}
			s.want(t, "")
		})
	}
}

// Bars follow the terminal when it is made narrower, wider, lower and higher.
func TestResize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScreen(100, 10)
		c := on(s)
		p := bars(c, "trial 1", "trial 2")
		fmt.Fprintln(c, "a line of the log")
		for _, size := range [][2]int{{60, 10}, {24, 10}, {100, 3}, {31, 24}, {80, 24}} {
			s.resize(size[0], size[1])
			pass(refreshEvery)
			lines := strings.Split(s.text(), "\n")
			if len(lines) != 3 || lines[0] != "a line of the log" || !strings.HasPrefix(lines[1], "trial 1 ") || !strings.HasPrefix(lines[2], "trial 2 ") {
				t.Errorf("%v: screen\n%s", size, s.text())
			}
		}
		s.resize(24, 10)
		p[0].Finish()
		p[1].Finish()
		s.want(t, "a line of the log\n")
	})
}

// Labels and notes cannot move the cursor.
func TestControlCharacters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScreen(80, 10)
		p := on(s).Start("two\nlines", 0, "")
		p.Set(0, "and \x1b[2J more")
		pass(refreshEvery)
		s.want(t, "two lines  and  [2J more, 0s")
		p.Finish()
		s.want(t, "")
	})
}

// Bars that come, move and go while lines are logged leave exactly the lines.
func TestConcurrentBars(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers, rounds = 8, 25
		s := newScreen(72, 6)
		c := on(s)
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				p := c.Start(fmt.Sprintf("worker %d", w), rounds, "trials")
				for i := range rounds {
					p.Set(int64(i), strings.Repeat("x", i))
					fmt.Fprintf(c, "%d/%d\n", w, i)
					time.Sleep(time.Duration(w+1) * 10 * time.Millisecond)
				}
				p.Finish()
			})
		}
		wg.Wait()
		lines := strings.Split(strings.TrimSuffix(s.text(), "\n"), "\n")
		got := make(map[string]bool)
		for _, line := range lines {
			got[line] = true
		}
		if len(lines) != workers*rounds || len(got) != workers*rounds || !got["7/24"] {
			t.Errorf("%d lines, %d different ones, want %d:\n%s", len(lines), len(got), workers*rounds, s.text())
		}
	})
}

func TestNoTerminal(t *testing.T) {
	if New(new(bytes.Buffer)).IsTerminal() {
		t.Error("a buffer is a terminal")
	}
}
