package console

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

const (
	// refreshEvery is the time between two looks at what the bars show.
	refreshEvery = 200 * time.Millisecond
	// defaultWidth and defaultHeight are assumed for a terminal that does not report its size.
	defaultWidth, defaultHeight = 80, 24
)

// Control sequences of ECMA-48 terminals and, for the wrapping of lines, of the VT100.
const (
	upRows     = "\x1b[%dA"
	eraseBelow = "\r\x1b[J" // from the beginning of the row to the end of the screen
	noWrap     = "\x1b[?7l"
	wrap       = "\x1b[?7h"
)

// Console is an error stream that several goroutines write to while bars move below. It
// is safe for concurrent use.
type Console struct {
	mu      sync.Mutex
	out     io.Writer
	size    func() (width, height int) // of the terminal; nil where there is none
	bars    []*Progress                // from top to bottom
	drawn   []string                   // lines of bars that are on the screen now
	width   int                        // of the terminal when they were drawn
	held    []byte                     // the beginning of a line of the log
	refresh chan struct{}              // closed to end the refreshing; nil while there are no bars
}

// New returns a console on a stream, which is a terminal if the operating system says
// so.
func New(out io.Writer) *Console {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return &Console{out: out}
	}
	return NewTerminal(out, func() (width, height int) {
		width, height, err := term.GetSize(int(file.Fd()))
		if err != nil || width < 1 || height < 1 {
			return defaultWidth, defaultHeight
		}
		return width, height
	})
}

// NewTerminal returns a console on a terminal whose size, in characters and at least 1
// each way, is asked for whenever it is drawn on.
func NewTerminal(out io.Writer, size func() (width, height int)) *Console {
	return &Console{out: out, size: size}
}

// IsTerminal reports whether bars are shown.
func (c *Console) IsTerminal() bool { return c.size != nil }

// Write writes lines above the bars, if there are any. An incomplete line then waits for its
// end.
func (c *Console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.bars) == 0 {
		return c.out.Write(p)
	}
	end := bytes.LastIndexByte(p, '\n') + 1
	if end == 0 {
		c.held = append(c.held, p...)
		return len(p), nil
	}
	text := slices.Concat(c.held, p[:end])
	c.held = slices.Clone(p[end:])
	if err := c.draw(text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// draw brings the screen up to date, with text above the bars. It writes everything at once,
// so that the screen is never half drawn.
func (c *Console) draw(text []byte) error {
	width, height := c.size()
	lines := c.lines(width, height)
	if len(text) == 0 && width == c.width && slices.Equal(lines, c.drawn) {
		return nil
	}
	var b bytes.Buffer
	c.erase(&b, width)
	b.Write(text)
	if len(lines) > 0 {
		// A terminal that counts a character as wider than we do may cut a line off, but
		// must not break it into two rows, as we would erase only one.
		b.WriteString(noWrap)
		for i, line := range lines {
			if i > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(line)
		}
		b.WriteString(wrap)
	}
	c.drawn, c.width = lines, width
	_, err := c.out.Write(b.Bytes())
	return err
}

// erase removes the bars that are drawn. The cursor is at the end of the last one. If the
// terminal has become narrower each bar may take several rows.
func (c *Console) erase(b *bytes.Buffer, width int) {
	if len(c.drawn) == 0 {
		return
	}
	rows := 0
	for _, line := range c.drawn {
		rows += max(1, (utf8.RuneCountInString(line)+width-1)/width)
	}
	if rows > 1 {
		fmt.Fprintf(b, upRows, rows-1)
	}
	b.WriteString(eraseBelow)
}

// lines returns what the bars show now, as far as the terminal has room. The last column
// stays free: terminals differ in where they put the cursor after it.
func (c *Console) lines(width, height int) []string {
	labels := 0
	for _, p := range c.bars {
		labels = max(labels, utf8.RuneCountInString(p.label))
	}
	room := max(1, height-1) // a row is for the log
	var out []string
	for i, p := range c.bars {
		if len(c.bars) > room && i == room-1 {
			out = append(out, cut(fmt.Sprintf("and %d more", len(c.bars)-i), width-1))
			break
		}
		out = append(out, p.line(labels, width-1, time.Now()))
	}
	return out
}

// add shows one more bar below the others.
func (c *Console) add(p *Progress) {
	c.bars = append(c.bars, p)
	if c.refresh == nil {
		c.refresh = make(chan struct{})
		go c.keepFresh(c.refresh)
	}
	_ = c.draw(nil) // what cannot be drawn is not worth an error, here and below
}

// remove removes a bar.
func (c *Console) remove(p *Progress) {
	i := slices.Index(c.bars, p)
	if i < 0 {
		return
	}
	c.bars = slices.Delete(c.bars, i, i+1)
	if len(c.bars) > 0 {
		_ = c.draw(nil)
		return
	}
	close(c.refresh)
	c.refresh = nil
	_ = c.draw(c.held)
	c.held = nil
}

// keepFresh draws what has changed, the time above all, until end is closed.
func (c *Console) keepFresh(end <-chan struct{}) {
	ticker := time.NewTicker(refreshEvery)
	defer ticker.Stop()
	for {
		select {
		case <-end:
			return
		case <-ticker.C:
			c.mu.Lock()
			_ = c.draw(nil)
			c.mu.Unlock()
		}
	}
}
