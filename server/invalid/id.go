package invalid

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// CheckID adds a violation unless an identifier that callers choose has 1 to most bytes and is visible
// (see [Hidden]).
func (f *Fields) CheckID(field, id string, most int) {
	if n := len(id); n < 1 || n > most {
		f.Addf(field, "must have 1 to %d bytes, has %d", most, n)
	} else if reason := Hidden(id); reason != "" {
		f.Addf(field, "%s, is %.100q", reason, id)
	}
}

// Hidden returns why an identifier could be taken for another, or control a terminal, or "". It may hold
// letters, digits, marks, punctuation and symbols of any language, and spaces within. Control and format
// characters, other spaces, and characters without an appearance are refused. Letters that look like those
// of another language are not.
func Hidden(id string) string {
	switch {
	case !utf8.ValidString(id):
		return "must be valid UTF-8"
	case strings.HasPrefix(id, " ") || strings.HasSuffix(id, " "):
		return "must not begin or end with a space"
	case strings.ContainsFunc(id, isHidden):
		return "must hold visible characters and spaces only"
	default:
		return ""
	}
}

// isHidden reports whether a character has no appearance of its own. Some letters and marks have none:
// fillers, joiners, variation selectors, the blank of Braille.
func isHidden(r rune) bool {
	return !unicode.IsPrint(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) || r == '\u2800'
}
