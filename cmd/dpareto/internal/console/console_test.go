package console

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
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
	p.Set(1, "")
	p.Finish()
}

// Lines that are written while a bar is shown stay whole, and the bar goes at the end.
func TestBar(t *testing.T) {
	var out bytes.Buffer
	c := New(&out)
	if c.IsTerminal() {
		t.Fatal("a buffer is not a terminal")
	}
	c.terminal = true
	p := c.Start("adult", 64, "trials")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			p.Set(int64(8*i), "")
			fmt.Fprintf(c, "line %d\n", i)
		})
	}
	wg.Wait()
	for i := range 8 {
		if want := fmt.Sprintf("line %d\n", i); !strings.Contains(out.String(), want) {
			t.Errorf("no %q in the output", want)
		}
	}
	if !strings.Contains(out.String(), "/64") {
		t.Errorf("no bar in the output %q", out.String())
	}
	p.Finish()
	p.Finish()
	out.Reset()
	fmt.Fprintln(c, "after")
	if got := out.String(); got != "after\n" {
		t.Errorf("after the bar: %q", got)
	}
}
