package invalid

import (
	"strings"
	"testing"
)

func TestCheckID(t *testing.T) {
	for id, want := range map[string]bool{
		"w":                     true,
		"host-1.example:4/g0":   true,
		"Jörgs Rechner":         true,
		"機械 7":                  true,
		"e\u0301":               true, // with a combining accent
		strings.Repeat("x", 20): true,
		"":                      false,
		strings.Repeat("x", 21): false,
		" w":                    false,
		"w ":                    false,
		"w\n":                   false,
		"a\tb":                  false,
		"a\x1b[2J":              false,
		"a\x7f":                 false,
		"a\u009b2J":             false,
		"a\u200b":               false, // zero-width space
		"a\u200db":              false,
		"\ufeffw":               false,
		"a\u2060":               false,
		"a\u202eb":              false, // right to left
		"a\u00adb":              false, // soft hyphen
		"a\u00a0b":              false,
		"a\u2028b":              false,
		"a\u034fb":              false, // grapheme joiner
		"a\ufe0f":               false, // variation selector
		"a\U000e0041":           false, // tag
		"\u3164":                false, // Hangul filler
		"\u2800":                false,
		"a\ue000":               false, // private use
		"a\xff":                 false,
	} {
		var fields Fields
		fields.CheckID("worker_id", id, 20)
		if fields.Empty() != want {
			t.Errorf("%+q: %v", id, fields.Err())
		}
	}
}
