package text_test

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/dpareto/dpareto/internal/text"
)

func TestNewReader(t *testing.T) {
	for _, tt := range []struct{ name, content, want string }{
		{"plain", "a,ä", "a,ä"},
		{"empty", "", ""},
		{"mark of UTF-8", "\ufeffa,ä", "a,ä"},
		{"mark alone", "\ufeff", ""},
		{"a later mark is text", "a\ufeff", "a\ufeff"},
		{"UTF-16, little end first", "\xff\xfea\x00\xe4\x00\n\x00", "aä\n"},
		{"UTF-16, big end first", "\xfe\xff\x00a\x00\xe4\x00\n", "aä\n"},
		{"Latin-1 is passed on", "a\xe4", "a\xe4"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := io.ReadAll(text.NewReader(iotest.OneByteReader(strings.NewReader(tt.content))))
			if err != nil || string(got) != tt.want {
				t.Errorf("read %q, %v, want %q", got, err, tt.want)
			}
			if got, err := text.Decode([]byte(tt.content)); err != nil || string(got) != tt.want {
				t.Errorf("decoded %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestNewLineReader(t *testing.T) {
	long := strings.Repeat("x", 10_000) // more than a buffer
	for _, tt := range []struct {
		content, want string
		csv           bool
	}{
		{"a\nb\n", "a\nb\n", true},
		{"a\r\nb\r\n", "a\r\nb\r\n", true},
		{"a\rb\r", "a\nb\n", true},
		{"a\r\rb", "a\n\nb", true},
		{"a\r\"b\rc\"\rd", "a\n\"b\rc\"\nd", true},
		{"a\r\"b\"\"\rc\"\rd", "a\n\"b\"\"\rc\"\nd", true},
		{"a\" # it\rb", "a\" # it\nb", false},
		{long + "\r\n" + long + "\r" + long, long + "\r\n" + long + "\n" + long, true},
	} {
		for _, r := range []io.Reader{strings.NewReader(tt.content), iotest.OneByteReader(strings.NewReader(tt.content))} {
			if got, err := io.ReadAll(text.NewLineReader(r, tt.csv)); err != nil || string(got) != tt.want {
				t.Errorf("%.40q: %.40q, %v", tt.content, got, err)
			}
		}
	}
}

func TestNumber(t *testing.T) {
	for content, want := range map[string]float64{"1": 1, "-.5": -.5, "1e-3": 1e-3, "+2.": 2, "007": 7, "1E5": 1e5} {
		if x, ok := text.Number(content, 64); !ok || x != want {
			t.Errorf("%s is %v, %v", content, x, ok)
		}
	}
	for _, content := range []string{"", " 1", "0x1p-1", "0X10", "0_1", "1_000", "1,000", "1,5", "1 000", "1'000", "inf", "-Infinity", "NaN", "1e400", "½", "١"} {
		if x, ok := text.Number(content, 64); ok {
			t.Errorf("%q is %v", content, x)
		}
	}
	if _, ok := text.Number("1e39", 32); ok {
		t.Error("1e39 has 32 bits")
	}
}
