package console

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// screen is a terminal that understands what a Console writes. Its rows include those
// that have scrolled out at the top. Like most terminals today it breaks lines anew when
// its width changes.
type screen struct {
	mu            sync.Mutex
	width, height int
	rows          []row
	y, x          int // of the cursor; x is width after a character in the last column
	noWrap        bool
	writes        int
}

// row is a row of a screen.
type row struct {
	text    []rune
	wrapped bool // the line goes on in the next row
}

func newScreen(width, height int) *screen {
	return &screen{width: width, height: height, rows: make([]row, 1)}
}

func (s *screen) size() (width, height int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.width, s.height
}

// Write implements io.Writer. It panics at a control sequence that it does not know.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	for text := string(p); text != ""; {
		if rest, ok := strings.CutPrefix(text, "\x1b["); ok {
			end := strings.IndexAny(rest, "AJhl")
			s.control(rest[:end], rest[end])
			text = rest[end+1:]
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		s.put(r)
	}
	return len(p), nil
}

func (s *screen) control(argument string, command byte) {
	switch {
	case command == 'A':
		n := 0
		for _, digit := range argument {
			n = 10*n + int(digit-'0')
		}
		top := max(0, len(s.rows)-s.height)
		s.y = max(top, s.y-n)
		s.x = min(s.x, s.width-1)
	case command == 'J' && argument == "":
		s.rows = s.rows[:s.y+1]
		s.rows[s.y] = row{text: slices.Clone(s.rows[s.y].text[:min(s.x, len(s.rows[s.y].text))])}
	case argument == "?7":
		s.noWrap = command == 'l'
	default:
		panic("screen: unknown control sequence " + argument + string(command))
	}
}

func (s *screen) put(r rune) {
	switch r {
	case '\r':
		s.x = 0
		return
	case '\n': // as a terminal's driver passes it on: with a carriage return
		s.down(false)
		return
	}
	if s.x == s.width {
		if s.noWrap {
			s.x--
		} else {
			s.down(true)
		}
	}
	line := &s.rows[s.y]
	for len(line.text) <= s.x {
		line.text = append(line.text, ' ')
	}
	line.text[s.x] = r
	s.x++
}

func (s *screen) down(wrapped bool) {
	s.rows[s.y].wrapped = wrapped
	if s.y++; s.y == len(s.rows) {
		s.rows = append(s.rows, row{})
	}
	s.x = 0
}

// resize changes the size and breaks all lines anew. The cursor stays at the end.
func (s *screen) resize(width, height int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := strings.Split(s.join(), "\n")
	s.width, s.height = width, height
	s.rows, s.y, s.x = make([]row, 1), 0, 0
	wrapping := s.noWrap
	s.noWrap = false
	for i, line := range lines {
		if i > 0 {
			s.put('\n')
		}
		for _, r := range line {
			s.put(r)
		}
	}
	s.noWrap = wrapping
}

func (s *screen) join() string {
	var b strings.Builder
	for i, r := range s.rows {
		b.WriteString(string(r.text))
		if i < len(s.rows)-1 && !r.wrapped {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// text returns the lines of the screen.
func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.join()
}

func (s *screen) want(t *testing.T, want string) {
	t.Helper()
	if got := s.text(); got != want {
		t.Errorf("screen\n%s\nwant\n%s", got, want)
	}
}
