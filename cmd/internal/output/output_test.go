package output_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/internal/show"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) {
	time.Local = time.UTC // tables show local time
	os.Exit(m.Run())
}

// golden compares text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", 1: "1.000", 0.15342: "0.1534", 0.00012346: "0.0001235", 0.00001: "1.000e-05", 32561: "32561",
		12345678: "1.235e+07", -2.5: "-2.500", 999.96: "1000.0", math.Inf(1): "+Inf",
	} {
		if got := show.Number(x); got != want {
			t.Errorf("Number(%v) = %q, want %q", x, got, want)
		}
	}
}

func TestPlain(t *testing.T) {
	for x, want := range map[float64]string{1e-5: "1e-5", 10: "10", 1e25: "1e25", 1e-10: "1e-10", 0.1: "0.1"} {
		if got := show.Plain(x); got != want {
			t.Errorf("Plain(%v) = %q, want %q", x, got, want)
		}
	}
}

func TestFormat(t *testing.T) {
	var f output.Format
	if err := f.Set("json"); err != nil || f != output.JSON {
		t.Errorf("Set(json): %v, %q", err, f)
	}
	if err := f.Set("xml"); err == nil || !strings.Contains(err.Error(), "table, json, csv") {
		t.Errorf("Set(xml): %v", err)
	}
}

// Texts of others neither steer the terminal nor, for people, look like rows.
func TestTableShowsControlCharacters(t *testing.T) {
	table := &output.Table{Columns: []string{"note"}, Rows: [][]any{{"a\x1b[2J\nb\u202e ε"}}}
	var text, data bytes.Buffer
	require.NoError(t, errors.Join(table.WriteText(&text), table.WriteCSV(&data)))
	if want := "note\na\\x1b[2J\\nb\\u202e ε\n"; text.String() != want {
		t.Errorf("text %q, want %q", &text, want)
	}
	if want := "note\n\"a\\x1b[2J\nb\u202e ε\"\n"; data.String() != want {
		t.Errorf("CSV %q, want %q", &data, want)
	}
}

func TestFullDelta(t *testing.T) {
	if got := output.Full(output.Delta(3.0711587e-5)); got != "3.0711587e-5" {
		t.Errorf("in full: %s", got)
	}
}

// Nothing that terminals obey is printed as it is, in any format, and JSON loses nothing.
func TestHiddenText(t *testing.T) {
	const hostile = "a\x1b[2J\u009b2J\x7f\r\u202eb\U000e0041"
	table := &output.Table{Columns: []string{"name"}, Rows: [][]any{{hostile}, {"two\r\nlines\tof \"text\", 😀"}}}
	for format, want := range map[output.Format]string{
		output.CSV:  "name\na\\x1b[2J\\u009b2J\\x7f\\r\u202eb\U000e0041\n\"two\nlines\tof \"\"text\"\", 😀\"\n",
		output.JSON: "[\n  {\n    \"name\": \"a\\u001b[2J\\u009b2J\\u007f\\r\\u202eb\\udb40\\udc41\"\n  },\n  {\n    \"name\": \"two\\r\\nlines\\tof \\\"text\\\", 😀\"\n  }\n]\n",
	} {
		var out strings.Builder
		if err := table.Write(&out, format); err != nil || out.String() != want {
			t.Errorf("%v: %+q, %v", format, out.String(), err)
		}
	}
	var back string
	encoded, err := output.Encode(hostile)
	if err == nil {
		err = json.Unmarshal(encoded, &back)
	}
	if err != nil || back != hostile {
		t.Errorf("%s is read as %+q, %v", encoded, back, err)
	}
}

// sized is a terminal of a width.
type sized struct {
	strings.Builder
	width int
}

// Width returns the width.
func (s *sized) Width() int { return s.width }

// A table that is wider than the terminal is divided, and every part has the first column.
func TestTablesFitIntoTheTerminal(t *testing.T) {
	table := &output.Table{Columns: []string{"trial", "error", "epsilon", "rate"}, Rows: [][]any{{int64(1), 0.5, 2.25, 0.125}, {int64(12), 0.25, 4.5, 0.5}}}
	for width, want := range map[int]string{
		0:  "trial   error  epsilon    rate\n    1  0.5000    2.250  0.1250\n   12  0.2500    4.500  0.5000\n",
		80: "trial   error  epsilon    rate\n    1  0.5000    2.250  0.1250\n   12  0.2500    4.500  0.5000\n",
		23: "trial   error  epsilon\n    1  0.5000    2.250\n   12  0.2500    4.500\n\ntrial    rate\n    1  0.1250\n   12  0.5000\n",
		3:  "trial   error\n    1  0.5000\n   12  0.2500\n\ntrial  epsilon\n    1    2.250\n   12    4.500\n\ntrial    rate\n    1  0.1250\n   12  0.5000\n",
	} {
		out := &sized{width: width}
		if err := table.WriteText(out); err != nil || out.String() != want {
			t.Errorf("width %d: %v\n%s", width, err, out)
		}
	}
}
