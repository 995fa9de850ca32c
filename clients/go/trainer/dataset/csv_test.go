package dataset

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/internal/require"
)

// loans are options for a small table.
var loans = CSVOptions{Skip: 1, Features: 2, Max: 100, Missing: "?", Labels: []string{"no", "yes"}}

const loansTable = "\ufeff1,25, 50,no\n" +
	"\n" +
	"2,250,\"-3\",yes\n" +
	"3,?,1e1,yes\n"

// Tables of spreadsheets and of old programs are read as they are.
func TestReadCSV(t *testing.T) {
	want := &Dataset{
		Name: "loans", Rows: 3, Dim: 2, Classes: 2,
		Dense:  []float32{0.25, 0.5, 1, 0, 0, 0.1},
		Labels: []float32{-1, 1, 1},
	}
	for name, text := range map[string]string{
		"as it is": loansTable, "no mark": strings.TrimPrefix(loansTable, "\ufeff"),
		"CR LF": strings.ReplaceAll(loansTable, "\n", "\r\n"), "CR": strings.ReplaceAll(loansTable, "\n", "\r"),
	} {
		got, err := readCSV(strings.NewReader(text), "loans", loans)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	options := loans
	options.Labels = []string{"yes", "no", "unclear"}
	got, err := readCSV(strings.NewReader(loansTable), "loans", options)
	require.NoError(t, err)
	if diff := cmp.Diff([]float32{1, 0, 0}, got.Labels); diff != "" || got.Classes != 3 {
		t.Errorf("three classes (-want +got):\n%s", diff)
	}
	empty, err := readCSV(strings.NewReader(""), "f", loans)
	if err != nil || empty.Rows != 0 || empty.Dim != 2 {
		t.Errorf("empty file: %+v, error %v", empty, err)
	}
}

func TestReadCSVErrors(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"1,1,1,maybe\n", `f:1:7: label "maybe" is unknown`},
		{"1,old,1,no\n", `f:1:3: number "old" is not a finite number`},
		{"1,1,1,no\n\n2,1,NaN,no\n", `f:3:5: number "NaN" is not a finite number`},
		{"1,0x1p-1,1,no\n", `f:1:3: number "0x1p-1" is not a finite number`},
		{"1,1,0_1,no\n", `f:1:5: number "0_1" is not a finite number`},
		{"1,\"1,000\",1,no\n", `f:1:3: number "1,000" is not a finite number`},
		{"1,,1,no\n", `f:1:3: number "" is not a finite number`},
		{"1,1,no\n", `f:1:1: 3 fields, want 4`},
		{"1,1\"1,1,no\n", `f:1:4: bare " in non-quoted-field`},
	} {
		_, err := readCSV(strings.NewReader(tt.text), "f", loans)
		if _, ok := errors.AsType[*SyntaxError](err); !ok || err.Error() != tt.want {
			t.Errorf("error %v\nwant  %s", err, tt.want)
		}
	}
	broken := errors.New("broken")
	r := io.MultiReader(strings.NewReader(loansTable), brokenReader{broken})
	if _, err := readCSV(r, "f", loans); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}

// brokenReader fails.
type brokenReader struct{ err error }

// Read implements io.Reader.
func (r brokenReader) Read([]byte) (int, error) { return 0, r.err }

func FuzzReadCSV(f *testing.F) {
	f.Add(loansTable)
	f.Add("1,\"2\",3,no")
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := readCSV(strings.NewReader(text), "f", loans); err == nil {
			checkShape(t, d)
		}
	})
}
