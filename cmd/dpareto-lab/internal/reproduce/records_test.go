package reproduce

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
)

// Tables of the notes between <!-- record: FILE... --> and <!-- end of record --> quote numbers of the files, outputs
// of commands as JSON. Each is in a record, rounded to the digits that are quoted, bounds on ε upwards. Where a record
// stops fitting, the command that it names makes it again.
func TestNotesQuoteRecords(t *testing.T) {
	notes, err := filepath.Glob("../../notes/*.md")
	require.NoError(t, err)
	quoted := 0
	for _, note := range notes {
		text, err := os.ReadFile(note)
		require.NoError(t, err)
		for _, after := range strings.Split(string(text), "<!-- record: ")[1:] {
			names, rest, _ := strings.Cut(after, " -->")
			block, _, ended := strings.Cut(rest, "<!-- end of record -->")
			if !ended {
				t.Errorf("%s: the block of %s has no end", note, names)
			}
			var numbers []float64
			for name := range strings.FieldsSeq(names) {
				numbers = append(numbers, recorded(t, filepath.Join("../../notes", name))...)
			}
			for _, q := range quotes(block) {
				quoted++
				if !q.isAmong(numbers) {
					t.Errorf("%s quotes %s, which %s does not have", note, q.text, names)
				}
			}
		}
	}
	if quoted < 100 {
		t.Errorf("only %d numbers are quoted from records", quoted)
	}
}

// recorded returns the numbers of a record, which names the version and the command that made it.
func recorded(t *testing.T, file string) []float64 {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var record struct {
		Version  string `json:"version"`
		Command  string `json:"command"`
		Sections []struct {
			Notes []string         `json:"notes"`
			Rows  []map[string]any `json:"rows"`
		} `json:"sections"`
	}
	require.NoError(t, json.Unmarshal(text, &record))
	if !strings.Contains(record.Version, "+") || strings.Contains(record.Version, "dirty") || !strings.HasPrefix(record.Command, "dpareto-lab reproduce ") {
		t.Errorf("%s is of version %q and command %q, want a commit and a command", file, record.Version, record.Command)
	}
	var numbers []float64
	for _, section := range record.Sections {
		for _, text := range numberPattern.FindAllString(strings.Join(section.Notes, " "), -1) {
			numbers = append(numbers, newQuote(text).value)
		}
		for _, row := range section.Rows {
			for _, cell := range row {
				if x, ok := cell.(float64); ok {
					numbers = append(numbers, x)
				}
			}
		}
	}
	return numbers
}

// quote is a number as it stands in a table.
type quote struct {
	text  string
	value float64
	unit  float64 // of its last digit
}

var (
	numberPattern = regexp.MustCompile(`(?:\d[\d,]*)?\.?\d+(?:e-?\d+)?`)
	codePattern   = regexp.MustCompile("`[^`]*`")
)

// quotes returns the numbers in the rows of tables, but for their heads and first columns, which are names.
func quotes(block string) []quote {
	var all []quote
	isBody := false
	for line := range strings.Lines(block) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		switch {
		case len(cells) < 3:
			isBody = false
		case strings.HasPrefix(cells[1], "-"), strings.HasPrefix(cells[1], " -"):
			isBody = true
		case isBody:
			for _, text := range numberPattern.FindAllString(codePattern.ReplaceAllString(strings.Join(cells[2:], "|"), ""), -1) {
				all = append(all, newQuote(text))
			}
		}
	}
	return all
}

func newQuote(text string) quote {
	plain := strings.ReplaceAll(text, ",", "")
	value, _ := strconv.ParseFloat(plain, 64)
	mantissa, exponent, _ := strings.Cut(plain, "e")
	_, decimals, _ := strings.Cut(mantissa, ".")
	power, _ := strconv.Atoi(exponent)
	return quote{text, value, math.Pow10(power - len(decimals))}
}

// isAmong reports whether a number rounds to the quote, up or to the nearest, with either sign.
func (q quote) isAmong(numbers []float64) bool {
	for _, x := range numbers {
		if above := q.value - math.Abs(x); -0.5001*q.unit <= above && above < q.unit {
			return true
		}
	}
	return false
}

func TestQuotes(t *testing.T) {
	block := "7.1\n\n| a 1 | b 2 |\n|---|---|\n| 3 | 1,234 and −.041 |\n| `x` | 2.5e-3 (0.5) |\n\ntext 9\n"
	var texts []string
	for _, q := range quotes(block) {
		texts = append(texts, q.text)
	}
	if got := strings.Join(texts, " "); got != "1,234 .041 2.5e-3 0.5" {
		t.Errorf("quotes %q", got)
	}
	for text, isIn := range map[string]bool{"1,234": true, "0.04": true, ".042": true, ".041": true, ".043": false, ".040": false, "2.5e-3": true, "2.4e-3": false} {
		if newQuote(text).isAmong([]float64{1234.4, -0.0412, 0.00251}) != isIn {
			t.Errorf("%s is among the numbers: %t", text, !isIn)
		}
	}
}
