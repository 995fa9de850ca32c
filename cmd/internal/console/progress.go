package console

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	// longestBar and shortestBar bound the width of a bar, in characters.
	longestBar, shortestBar = 30, 5
	// plainLines is the number of lines of a Progress where there is no terminal.
	plainLines = 10
)

// Progress is the progress of one piece of work. It is safe for concurrent use. The nil
// Progress shows nothing.
type Progress struct {
	console *Console
	label   string
	total   int64
	unit    string
	done    int64
	note    string
	start   time.Time
	next    int64 // the amount at which the next plain line is due
}

// Start shows progress from 0 to the total, in units such as "trials", below other bars. A
// total of 0 is unknown. Without a unit only the note and the time are shown.
func (c *Console) Start(label string, total int64, unit string) *Progress {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &Progress{console: c}
	p.begin(label, total, unit)
	if c.IsTerminal() {
		c.add(p)
	}
	return p
}

// Restart shows the progress of another piece of work in the same place.
func (p *Progress) Restart(label string, total int64, unit string) {
	if p == nil {
		return
	}
	p.console.mu.Lock()
	defer p.console.mu.Unlock()
	p.begin(label, total, unit)
}

func (p *Progress) begin(label string, total int64, unit string) {
	p.label, p.total, p.unit = printable(label), total, unit
	p.done, p.note, p.start = 0, "", time.Now()
	p.next = p.stride()
}

// stride is the amount between two plain lines.
func (p *Progress) stride() int64 { return max(1, p.total/plainLines) }

// Set shows how much is done, and a short note after it.
func (p *Progress) Set(done int64, note string) {
	if p == nil {
		return
	}
	p.console.mu.Lock()
	defer p.console.mu.Unlock()
	p.done, p.note = done, printable(note)
	if p.console.IsTerminal() || done < p.next {
		return // the console draws it, or it is not yet time for a line
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
		line += ", " + p.note
	}
	_, _ = fmt.Fprintln(p.console.out, line)
}

// Finish removes the bar. It can be called again.
func (p *Progress) Finish() {
	if p == nil {
		return
	}
	p.console.mu.Lock()
	defer p.console.mu.Unlock()
	p.console.remove(p)
}

// line returns the bar with everything beside it, in at most width characters, after a
// label that is padded. Where room is short the bar goes first.
func (p *Progress) line(labelWidth, width int, now time.Time) string {
	label := p.label + strings.Repeat(" ", labelWidth-utf8.RuneCountInString(p.label))
	status := p.status(now)
	bar := min(longestBar, width-utf8.RuneCountInString(label)-utf8.RuneCountInString(status)-len("  []  "))
	if p.total <= 0 || bar < shortestBar {
		return cut(label+"  "+status, width)
	}
	full := int(min(max(0, p.done), p.total) * int64(bar) / p.total)
	return fmt.Sprintf("%s  [%s%s]  %s", label, strings.Repeat("=", full), strings.Repeat(" ", bar-full), status)
}

// status returns the count, the note, the time so far, and about how much is left.
func (p *Progress) status(now time.Time) string {
	var parts []string
	switch {
	case p.unit == "":
	case p.total > 0:
		parts = append(parts, fmt.Sprintf("%d of %d %s", p.done, p.total, p.unit))
	default:
		parts = append(parts, fmt.Sprintf("%d %s", p.done, p.unit))
	}
	if p.note != "" {
		parts = append(parts, p.note)
	}
	elapsed := now.Sub(p.start)
	parts = append(parts, elapsed.Truncate(time.Second).String())
	if 0 < p.done && p.done < p.total {
		left := time.Duration(float64(elapsed) * float64(p.total-p.done) / float64(p.done))
		parts = append(parts, left.Round(time.Second).String()+" left")
	}
	return strings.Join(parts, ", ")
}

// printable returns text without control characters, which would move the cursor.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// cut returns text in at most width characters.
func cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	if width < 1 {
		return ""
	}
	return string([]rune(text)[:width-1]) + "…"
}
