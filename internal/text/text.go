// Package text reads text files as other programs write them: with a byte order mark, in UTF-16, with
// the line ends of any system.
package text

import (
	"bytes"
	"io"
	"regexp"
	"unicode/utf8"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// NewReader returns the text of r in UTF-8, without the byte order mark that spreadsheets put first.
// Text that begins with the mark of UTF-16 is converted. Other encodings are passed on as they are.
func NewReader(r io.Reader) io.Reader {
	return transform.NewReader(r, unicode.BOMOverride(transform.Nop))
}

// Decode is NewReader for a whole file.
func Decode(content []byte) ([]byte, error) {
	decoded, _, err := transform.Bytes(unicode.BOMOverride(transform.Nop), content)
	return decoded, err
}

// declared is a first line of a table that names its separator, as spreadsheets write it.
var declared = regexp.MustCompile(`^(?i:sep)=([^\r\n])[ ,;\t]*(\r\n|\r|\n)`)

// Separator returns what separates the cells of a table: what its first line declares, such as sep=;, or else a
// comma, semicolon or tab, whichever most often stands outside of quotes in the first line. The first skip bytes, a
// line, are the declaration and not part of the table.
func Separator(content []byte) (separator rune, skip int) {
	if found := declared.FindSubmatch(content); found != nil {
		separator, _ = utf8.DecodeRune(found[1])
		return separator, len(found[0])
	}
	counts := make(map[rune]int)
	quoted := false
	for _, r := range string(bytes.TrimLeft(content, "\r\n")) {
		if r == '"' {
			quoted = !quoted
		}
		if !quoted && (r == '\n' || r == '\r') {
			break
		}
		if !quoted {
			counts[r]++
		}
	}
	best := ','
	for _, r := range ";\t" {
		if counts[r] > counts[best] {
			best = r
		}
	}
	return best, 0
}

// NewLineReader returns r with a line feed in place of each carriage return that no line feed follows:
// old programs end lines so. If csv is set, a carriage return in double quotes belongs to a field and
// stays.
func NewLineReader(r io.Reader, csv bool) io.Reader {
	return transform.NewReader(r, &lineEnds{csv: csv})
}

// lineEnds implements transform.Transformer.
type lineEnds struct{ csv, quoted bool }

// Reset implements transform.Transformer.
func (l *lineEnds) Reset() { l.quoted = false }

// Transform implements transform.Transformer.
func (l *lineEnds) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	n := min(len(dst), len(src))
	if n < len(src) {
		err = transform.ErrShortDst
	}
	for i, c := range src[:n] {
		switch c {
		case '"':
			l.quoted = l.csv && !l.quoted
		case '\r':
			if i+1 == len(src) && !atEOF {
				return i, i, transform.ErrShortSrc
			}
			if !l.quoted && (i+1 == len(src) || src[i+1] != '\n') {
				c = '\n'
			}
		}
		dst[i] = c
	}
	return n, n, err
}
