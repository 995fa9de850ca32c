package dataset

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dpareto/dpareto/internal/require"
)

// loans are options for a small table.
func loans() CSVOptions {
	return CSVOptions{
		Header: true,
		Label:  "default",
		Labels: []string{"no", "yes"},
		Numeric: []NumericColumn{
			{Column: "age", Min: 0, Max: 100},
			{Column: "score"},
		},
		Categorical: []CategoricalColumn{{Column: "home", Values: []string{"rent", "own, free"}}},
		Missing:     []string{"?", ""},
	}
}

const loansTable = "\ufeffage, id,home,score,default\n" +
	"25,1,rent,-1.5,no\n" +
	"\n" +
	"250, 2,\"own, free\",0,yes\n" +
	"?,3,,1e1,yes\n"

func TestReadCSV(t *testing.T) {
	got, err := ReadCSV(strings.NewReader(loansTable), "loans", loans())
	require.NoError(t, err)
	want := &Dataset{
		Name: "loans", Rows: 3, Dim: 4, Classes: 2,
		RowStart: []int{0, 3, 5, 6},
		Indices:  []int32{0, 1, 2, 0, 3, 1},
		Values:   []float32{0.25, -1.5, 1, 1, 1, 10},
		Labels:   []float32{-1, 1, 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sparse (-want +got):\n%s", diff)
	}

	options := loans()
	options.Dense = true
	options.Labels = append(options.Labels, "unclear")
	got, err = ReadCSV(strings.NewReader(loansTable), "loans", options)
	require.NoError(t, err)
	want = &Dataset{
		Name: "loans", Rows: 3, Dim: 4, Classes: 3,
		Dense: []float32{
			0.25, -1.5, 1, 0,
			1, 0, 0, 1,
			0, 10, 0, 0,
		},
		Labels: []float32{0, 1, 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("dense (-want +got):\n%s", diff)
	}
}

// Without a header columns have numbers.
func TestReadCSVNumbers(t *testing.T) {
	options := CSVOptions{
		Comma: ';', Label: "3", Labels: []string{"a", "b"},
		Numeric: []NumericColumn{{Column: "1", Min: 1.6e9, Max: 1.6e9 + 10}},
	}
	got, err := ReadCSV(strings.NewReader("1600000005;x;b\n1;y;a\n"), "f", options)
	require.NoError(t, err)
	if diff := cmp.Diff([]float32{0.5}, got.Values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float32{1, -1}, got.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	empty, err := ReadCSV(strings.NewReader(""), "f", options)
	if err != nil || empty.Rows != 0 || empty.Dim != 1 {
		t.Errorf("empty file: %+v, error %v", empty, err)
	}
}

// Tables of spreadsheets and of old programs are read as they are.
func TestReadCSVHabits(t *testing.T) {
	want, err := ReadCSV(strings.NewReader(loansTable), "loans", loans())
	require.NoError(t, err)
	plain := strings.TrimPrefix(loansTable, "\ufeff")
	quoted := strings.Replace(plain, "age, id", "\"age\", id", 1)
	for name, text := range map[string]string{
		"no mark": plain, "quoted header": quoted, "mark and quoted header": "\ufeff" + quoted,
		"CR LF": strings.ReplaceAll(loansTable, "\n", "\r\n"), "CR": strings.ReplaceAll(loansTable, "\n", "\r"),
		"repeated names that nobody uses": strings.NewReplacer("default\n", "default,x,x,\n", "no\n", "no,,,\n", "yes\n", "yes,,,\n").Replace(loansTable),
	} {
		got, err := ReadCSV(strings.NewReader(text), "loans", loans())
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	for _, name := range []string{"age", "home", "default"} {
		text := strings.Replace(plain, " id", name, 1)
		if _, err := ReadCSV(strings.NewReader(text), "f", loans()); err == nil || err.Error() != fmt.Sprintf("f: column %q occurs twice in the header", name) {
			t.Errorf("%s twice: %v", name, err)
		}
	}
}

func TestReadCSVErrors(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", `f:1:1: no header`},
		{"age,home,score,default\n1,rent,1,maybe\n", `f:2:10: label "maybe" is unknown`},
		{"age,home,score,default\nold,rent,1,no\n", `f:2:1: number "old" is not a finite number`},
		{"age,home,score,default\n1,rent,NaN,no\n", `f:2:8: number "NaN" is not a finite number`},
		{"age,home,score,default\n1,rent,1e60,no\n", `f:2:8: number "1e60" is not a finite number`},
		{"age,home,score,default\n\n1,\"tent\",1,no\n", `f:3:3: category "tent" of column home is unknown`},
		{"age,home,score,default\n1,rent,1\n", `f:2:1: 3 fields, want 4`},
		{"age,home,score,default\n0x1p-1,rent,1,no\n", `f:2:1: number "0x1p-1" is not a finite number`},
		{"age,home,score,default\n1,rent,0_1,no\n", `f:2:8: number "0_1" is not a finite number`},
		{"age,home,score,default\n0_1,rent,1,no\n", `f:2:1: number "0_1" is not a finite number`},
		{"age,home,score,default\n\"1,000\",rent,1,no\n", `f:2:1: number "1,000" is not a finite number`},
		{"age,home,score,default\n1,re\"nt,1,no\n", `f:2:5: bare " in non-quoted-field`},
	} {
		_, err := ReadCSV(strings.NewReader(tt.text), "f", loans())
		if _, ok := errors.AsType[*SyntaxError](err); !ok || err.Error() != tt.want {
			t.Errorf("error %v\nwant  %s", err, tt.want)
		}
	}
	broken := errors.New("broken")
	r := io.MultiReader(strings.NewReader(loansTable), brokenReader{broken})
	if _, err := ReadCSV(r, "f", loans()); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}

// brokenReader fails.
type brokenReader struct{ err error }

// Read implements io.Reader.
func (r brokenReader) Read([]byte) (int, error) { return 0, r.err }

func TestCSVOptions(t *testing.T) {
	for _, tt := range []struct {
		change func(o *CSVOptions)
		want   string
	}{
		{func(o *CSVOptions) { o.Labels = []string{"no"} }, "1 labels, want at least 2"},
		{func(o *CSVOptions) { o.Labels = []string{"no", "no"} }, `label "no" is named twice`},
		{func(o *CSVOptions) { o.Numeric, o.Categorical = nil, nil }, "no columns of features"},
		{func(o *CSVOptions) { o.Numeric[0].Max = -1 }, "range from 0 to -1 of column age"},
		{func(o *CSVOptions) { o.Categorical[0].Values = nil }, "no categories of column home"},
		{func(o *CSVOptions) { o.Categorical[0].Values = []string{"a", "b", "a"} }, `category "a" of column home is named twice`},
		{func(o *CSVOptions) { o.Label = "paid" }, `no column "paid" among the 5 of the file`},
		{func(o *CSVOptions) { o.Numeric[0].Column = "6" }, `no column "6" among the 5 of the file`},
		{func(o *CSVOptions) { o.Numeric[0].Column = "5" }, `column "5" is used twice, also as "default"`},
	} {
		options := loans()
		tt.change(&options)
		if _, err := ReadCSV(strings.NewReader(loansTable), "f", options); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want one with %q", err, tt.want)
		}
	}
}

// A table of numbers and categories gives the examples that it was made of, quoted or not.
func TestReadCSVRoundTrip(t *testing.T) {
	categories := []string{"plain", "two words", "a,b", `a "quoted" one`}
	rapid.Check(t, func(t *rapid.T) {
		options := CSVOptions{
			Header: true, Label: "class", Labels: []string{"a", "b", "c"}, Dense: true,
			Numeric:     []NumericColumn{{Column: "x"}},
			Categorical: []CategoricalColumn{{Column: "kind", Values: categories}},
		}
		var text strings.Builder
		w := csv.NewWriter(&text)
		_ = w.Write([]string{"kind", "x", "class"})
		b := newBuilder(0, 0, true)
		for range rapid.IntRange(0, 5).Draw(t, "rows") {
			x := rapid.Float32Range(-1e6, 1e6).Draw(t, "x")
			kind := rapid.IntRange(0, len(categories)-1).Draw(t, "kind")
			class := rapid.IntRange(0, 2).Draw(t, "class")
			_ = w.Write([]string{categories[kind], fmt.Sprint(x), options.Labels[class]})
			row := make([]float32, 1+len(categories))
			row[0], row[1+kind] = x, 1
			b.add(float32(class), nil, row)
		}
		w.Flush()
		want := b.dataset("f", 1+len(categories))
		want.Classes = 3
		got, err := ReadCSV(strings.NewReader(text.String()), "f", options)
		require.NoError(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text.String(), diff)
		}
	})
}

func FuzzReadCSV(f *testing.F) {
	f.Add(loansTable)
	f.Add("age,home,score,default\n1,\"rent\",2,no")
	f.Fuzz(func(t *testing.T, text string) {
		for _, dense := range []bool{false, true} {
			options := loans()
			options.Dense = dense
			d, err := ReadCSV(strings.NewReader(text), "f", options)
			if err == nil {
				checkShape(t, d)
			}
		}
	})
}
