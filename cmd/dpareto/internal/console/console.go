package console

import (
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Console is an error stream that several goroutines write to while a bar moves. It is
// safe for concurrent use.
type Console struct {
	mu       sync.Mutex
	out      io.Writer
	terminal bool
	bar      *progressbar.ProgressBar // that is shown now, or nil
}

// New returns a console on a stream, which is a terminal if the operating system says
// so.
func New(out io.Writer) *Console {
	file, ok := out.(*os.File)
	return &Console{out: out, terminal: ok && term.IsTerminal(int(file.Fd()))}
}

// IsTerminal reports whether bars are shown.
func (c *Console) IsTerminal() bool { return c.terminal }

// Write writes whole lines, above the bar if there is one.
func (c *Console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bar == nil {
		return c.out.Write(p)
	}
	// What cannot be drawn is not worth an error.
	_ = c.bar.Clear()
	n, err := c.out.Write(p)
	_ = c.bar.RenderBlank()
	return n, err
}

// Progress is the progress of one piece of work. It is safe for concurrent use. The nil
// Progress shows nothing.
type Progress struct {
	console *Console
	label   string
	total   int64
	unit    string
	bar     *progressbar.ProgressBar // nil where there is no terminal
	next    int64                    // the amount at which the next plain line is due
}

// Start shows progress from 0 to the total, in units such as "trials". A total of 0 means
// that it is not known. Another Progress must have been finished before.
func (c *Console) Start(label string, total int64, unit string) *Progress {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &Progress{console: c, label: label, total: total, unit: unit}
	p.next = p.stride()
	if !c.terminal {
		return p
	}
	size := total
	if size <= 0 {
		size = -1
	}
	p.bar = progressbar.NewOptions64(size,
		progressbar.OptionSetWriter(c.out),
		progressbar.OptionSetDescription(label),
		progressbar.OptionShowCount(),
		progressbar.OptionSetItsString(unit),
		progressbar.OptionSetElapsedTime(true),
		progressbar.OptionSetPredictTime(total > 0),
		progressbar.OptionSetWidth(30),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSpinnerType(14),
	)
	c.bar = p.bar
	_ = p.bar.RenderBlank()
	return p
}

// stride is the amount between two plain lines.
func (p *Progress) stride() int64 {
	const lines = 10
	return max(1, p.total/lines)
}

// Set shows how much is done, and a short note after it.
func (p *Progress) Set(done int64, note string) {
	if p == nil {
		return
	}
	p.console.mu.Lock()
	defer p.console.mu.Unlock()
	if p.bar != nil {
		label := p.label
		if note != "" {
			label += ", " + note
		}
		p.bar.Describe(label)
		_ = p.bar.Set64(done)
		return
	}
	if done < p.next {
		return
	}
	p.next = (done/p.stride() + 1) * p.stride()
	if done < p.total {
		p.next = min(p.next, p.total)
	}
	line := fmt.Sprintf("%s: %d %s", p.label, done, p.unit)
	if p.total > 0 {
		line = fmt.Sprintf("%s: %d of %d %s", p.label, done, p.total, p.unit)
	}
	if note != "" {
		line += ", " + note
	}
	_, _ = fmt.Fprintln(p.console.out, line)
}

// Finish takes the bar away. It can be called again.
func (p *Progress) Finish() {
	if p == nil || p.bar == nil {
		return
	}
	p.console.mu.Lock()
	defer p.console.mu.Unlock()
	if p.console.bar == p.bar {
		_ = p.bar.Clear()
		p.console.bar = nil
	}
}
