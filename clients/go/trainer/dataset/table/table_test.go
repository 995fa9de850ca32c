package table

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/internal/require"
)

// loans is a schema with every kind of column.
const loans = `
rows: public
label: {column: repaid, values: [no, yes]}
features:
- {column: age, range: [18, 90]}
- {column: income, range: [0, 200000], missing: indicator}
- {column: work, categories: [private, public, none], unknown: other, missing: indicator}
- {column: married, categories: [0, 1]}
group: person
`

// made returns a table for the schema of loans with an ignored column, of which some values are missing.
func made(rows int, seed uint64) string {
	rng := rand.New(rand.NewPCG(seed, 0))
	var b strings.Builder
	b.WriteString("person,age,income,work,married,notes,repaid\n")
	for i := range rows {
		age, income, married := 18+rng.IntN(70), "?", rng.IntN(2)
		if rng.IntN(10) > 0 {
			income = fmt.Sprint(rng.IntN(150000))
		}
		work := []string{"private", "public", "none", "", "secret-employer"}[rng.IntN(5)]
		label := "no"
		if age > 50 || rng.IntN(4) == 0 {
			label = "yes"
		}
		fmt.Fprintf(&b, "p%d,%d,%s,%s,%d,\"said \"\"hello\"\", then\nleft\",%s\n", i/2, age, income, work, married, label)
	}
	return b.String()
}

func parse(t *testing.T, text string) *Schema {
	t.Helper()
	s, err := ParseSchema([]byte(text))
	require.NoError(t, err)
	return s
}

func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestEncode(t *testing.T) {
	schema := parse(t, strings.Replace(loans, "group: person\n", "split: {test: 0.5, validation: 0.25}\n", 1))
	path := writeFile(t, "loans.csv", "\ufeffage,work, income ,married,repaid,person\n"+
		"54,public,50000,1,yes,a\n"+ // the middle of the range
		"17,\"none\",?,0,no,b\n"+
		"90,,200000,0,no,c\n"+
		"18,other firm,0,1,yes,d\n")
	e := newEncoder(schema)
	require.NoError(t, require.ErrOf(e.readFile(path)))
	d := e.finish("loans.csv")
	// age; income, missing; private, public, none, other, missing; 0, 1
	want := [][]float32{
		{0, -0.5, 0, 0, 1, 0, 0, 0, 0, 1},
		{-1, 0, 1, 0, 0, 1, 0, 0, 1, 0},
		{1, 1, 0, 0, 0, 0, 0, 1, 1, 0},
		{-1, -1, 0, 0, 0, 0, 1, 0, 0, 1},
	}
	if d.Rows != 4 || d.Dim != 10 || d.Classes != 2 || !slices.Equal(d.Labels, []float32{1, -1, -1, 1}) || d.FeatureNorm != 2 {
		t.Fatalf("%d rows, %d features, %d classes, labels %v, norm %v", d.Rows, d.Dim, d.Classes, d.Labels, d.FeatureNorm)
	}
	for i, row := range want {
		if got := dense(d, i); !slices.Equal(got, row) {
			t.Errorf("row %d is %v, want %v", i, got, row)
		}
	}
	if got := fmt.Sprint(e.found.list); got != `[column "age": numbers outside the range were moved to its ends (1 rows)]` {
		t.Errorf("findings %s", got)
	}
}

// dense returns all features of a row.
func dense(d *dataset.Dataset, i int) []float32 {
	row := make([]float32, d.Dim)
	indices, values := d.Row(i)
	if indices == nil && d.Dense != nil {
		return values
	}
	for k, index := range indices {
		row[index] = values[k]
	}
	return row
}

// The norm of every encoded row is within the bound of the schema, whatever the cells, and no more than half of
// the bound is lost by rounding.
func TestNormBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &Schema{Rows: Public, Label: Label{Column: "y", Values: []string{"a", "b", "c"}}, Split: Split{}}
		cells := []string{"a"}
		header := []string{"y"}
		for i := range rapid.IntRange(1, 12).Draw(t, "columns") {
			name := fmt.Sprintf("x%d", i)
			f := Feature{Column: name, Missing: rapid.SampledFrom([]string{"", Indicator}).Draw(t, "missing")}
			if rapid.Bool().Draw(t, "number") {
				least := rapid.Float64Range(-1e300, 1e300).Draw(t, "least")
				f.Range = []float64{least, least + math.Abs(least)*rapid.Float64Range(1e-12, 1).Draw(t, "width") + 1e-300}
			} else {
				f.Categories, f.Unknown = []string{"a", "b"}, rapid.SampledFrom([]string{"", Other}).Draw(t, "unknown")
			}
			s.Features = append(s.Features, f)
			header = append(header, name)
			cells = append(cells, rapid.OneOf(
				rapid.SampledFrom([]string{"", "a", "b", "NaN", "-Inf", "1e999", "?", "0x1p9", "-0"}),
				rapid.Map(rapid.Float64(), func(x float64) string { return fmt.Sprint(x) }),
				rapid.StringMatching(`[a-z0-9.]{0,6}`),
			).Draw(t, "cell"))
		}
		if rapid.Bool().Draw(t, "bounded") {
			s.Norm = rapid.Float64Range(1e-6, 4).Draw(t, "norm")
		}
		if err := s.Validate(); err != nil {
			t.Skip(err)
		}
		e := newEncoder(s)
		rows, err := newCSV(strings.NewReader(strings.Join(header, ",")+"\n"+strings.Join(cells, ",")+"\n"), ',')
		require.NoError(t, err)
		require.NoError(t, e.read(rows))
		d := e.finish("f")
		norm := math.Sqrt(d.SquaredNorm(0))
		if !(norm <= s.FeatureNorm()) {
			t.Fatalf("norm %v exceeds %v", norm, s.FeatureNorm())
		}
		scaled := slices.ContainsFunc(e.found.list, func(f Finding) bool { return f.Problem == noteNorm })
		if scaled && norm < 0.99*s.FeatureNorm() {
			t.Fatalf("a row was scaled to %v, the bound is %v", norm, s.FeatureNorm())
		}
	})
}

// A row is encoded by itself: other rows change neither it nor the part that it stands in.
func TestRowsAreIndependent(t *testing.T) {
	for _, split := range []string{"group: person\n", "split: {test: 0.3}\n", "split: {time: {column: age, test_from: 60}}\n"} {
		schema := parse(t, strings.Replace(loans, "group: person\n", split, 1))
		text := made(300, 1)
		load := func(text string) (*dataset.Parts, *encoder) {
			e := newEncoder(schema)
			table, err := e.load(t.Context(), Request{Path: writeFile(t, "t.csv", text), Schema: schema, Seed: 7})
			require.NoError(t, err)
			return table.Parts, e
		}
		parts, e := load(text)
		lines := strings.SplitAfter(text, "\n")
		// A row of two lines: another person of another age, work and label in the same place.
		lines[41], lines[42] = "p20,40,199999,unheard of,1,\"x\n", "y\",no\n"
		changed, other := load(strings.Join(lines, ""))
		differ := 0
		for i := range e.data.Rows {
			if !slices.Equal(dense(&e.data, i), dense(&other.data, i)) {
				differ++
			}
		}
		if differ != 1 {
			t.Errorf("%s: %d encoded rows differ, want 1", split, differ)
		}
		if d := parts.Train.Rows - changed.Train.Rows; d < -1 || d > 1 {
			t.Errorf("%s: %d and %d training rows", split, parts.Train.Rows, changed.Train.Rows)
		}
		if strings.HasPrefix(split, "split: {test") && parts.Split != changed.Split {
			t.Errorf("%s: %v, then %v", split, parts.Split, changed.Split)
		}
	}
}

// A row stays in its part when another becomes a test example by its time, and when the file grows.
func TestPartsStay(t *testing.T) {
	for _, split := range []string{"time: {column: day, test_from: 80}", "test: 0.2", "test_file: test.csv"} {
		schema := parse(t, "{rows: public, label: {column: y, values: [a, b]}, features: [{column: id, range: [0, 1023]}], split: {"+split+"}}")
		// partOf returns the part of every row, by its id.
		partOf := func(rows, late int) map[float32]string {
			text := "id,day,y\n"
			for i := range rows {
				day := i % 100
				if i == late {
					day = 99
				}
				text += fmt.Sprintf("%d,%d,%c\n", i, day, 'a'+rune(i%2))
			}
			path := writeFile(t, "t.csv", text)
			require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "test.csv"), []byte("id,day,y\n1023,0,a\n"), 0o600))
			table, err := Load(t.Context(), Request{Path: path, Schema: schema, Seed: 1})
			require.NoError(t, err)
			parts := make(map[float32]string)
			for name, d := range map[string]*dataset.Dataset{"train": table.Parts.Train, "validation": table.Parts.Validation, "test": table.Parts.Test} {
				for i := range d.Rows {
					parts[dense(d, i)[0]] = name
				}
			}
			return parts
		}
		const rows = 300
		before := partOf(rows, -1)
		for name, after := range map[string]map[float32]string{"a later row": partOf(rows, 20), "a longer file": partOf(2*rows, -1)} {
			moved := 0
			for id, part := range before {
				if after[id] != part {
					moved++
				}
			}
			if moved > 1 || moved == 1 && name == "a longer file" {
				t.Errorf("%s, %s: %d rows moved to another part", split, name, moved)
			}
		}
	}
}

func TestSplits(t *testing.T) {
	load := func(split, text string, files map[string]string) *Table {
		t.Helper()
		path := writeFile(t, "t.csv", text)
		for name, content := range files {
			require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), name), []byte(content), 0o600))
		}
		table, err := Load(t.Context(), Request{Path: path, Schema: parse(t, strings.Replace(loans, "group: person\n", split, 1)), Seed: 3})
		require.NoError(t, err)
		return table
	}
	text := made(1000, 1)
	for split, want := range map[string]string{
		"":                                      "t.csv rows: 719 train, 102 validation, 179 test, seed 3, hold-out seed 3",
		"split: {test: 0.5, validation: 0.2}\n": "t.csv rows: 291 train, 218 validation, 491 test, seed 3, hold-out seed 3",
		"split: {test_file: b.csv}\n":           "t.csv file: 905 train, 95 validation, 50 test, seed 3, hold-out seed 3",
		"split: {time: {column: age, test_from: 60}}\n": "", // counted below
		"group: person\n": "",
		"group: person\nsplit: {test_file: b.csv}\n": "",
	} {
		table := load(split, text, map[string]string{"b.csv": made(50, 2)})
		parts := table.Parts
		if got := parts.Split.String(); want != "" && got != want {
			t.Errorf("%s: %s, want %s", split, got, want)
		}
		wantTest, all := 1000, parts.Train.Rows+parts.Validation.Rows+parts.Test.Rows
		if strings.Contains(split, "b.csv") {
			wantTest = 1050
		}
		if all != wantTest {
			t.Errorf("%s: %d rows in all, want %d", split, all, wantTest)
		}
		if strings.Contains(split, "time") {
			for i := range parts.Test.Rows {
				if age := dense(parts.Test, i)[0]; age < float32(2*(60.-18)/72-1)-1e-6 {
					t.Errorf("a test example has age %v", age)
				}
			}
		}
		shared := slices.ContainsFunc(table.Findings, func(f Finding) bool { return strings.Contains(f.Problem, "in another part") })
		if shared != strings.HasPrefix(split, "group: person\nsplit") {
			t.Errorf("%s: findings %v", split, table.Findings)
		}
		counted := slices.ContainsFunc(table.Findings, func(f Finding) bool { return strings.Contains(f.Problem, "an id has up to 2 training rows") })
		if counted != strings.HasPrefix(split, "group") {
			t.Errorf("%s: findings %v", split, table.Findings)
		}
		if strings.HasPrefix(split, "group") && !strings.Contains(split, "file") {
			if share := float64(parts.Test.Rows) / 1000; share < 0.1 || share > 0.3 {
				t.Errorf("groups: %v are for testing", share)
			}
		}
	}
}

// Rows have the group of their value in the fairness column, in every part, and small groups are found.
func TestFairness(t *testing.T) {
	const schema = `
rows: public
label: {column: y, values: [a, b]}
features: [{column: id, range: [0, 1023]}]
split: {test: 0.5}
fairness: {column: sex, values: [f, m, x]}
`
	text, sexes := "id,sex,y\n", []string{"f", "m", "?"}
	for i := range 600 {
		sex := sexes[i%3]
		if i%100 == 0 {
			sex = "x"
		}
		text += fmt.Sprintf("%d,%s,%c\n", i, sex, 'a'+rune(i%2))
	}
	table, err := Load(t.Context(), Request{Path: writeFile(t, "t.csv", text), Schema: parse(t, schema), Seed: 1})
	require.NoError(t, err)
	for _, part := range []*dataset.Dataset{table.Parts.Train, table.Parts.Validation, table.Parts.Test} {
		for i, got := range part.Groups {
			id := int(math.Round((float64(dense(part, i)[0]) + 1) / 2 * 1023))
			want := []int{0, 1, -1}[id%3]
			if id%100 == 0 {
				want = 2
			}
			if got != want {
				t.Errorf("row %d is in group %d, want %d", id, got, want)
			}
		}
	}
	compared := 0
	for _, rows := range table.Parts.Test.Compared() {
		compared += len(rows)
		if len(rows) < dataset.LeastGroup {
			t.Errorf("a group of %d rows is compared", len(rows))
		}
	}
	validation, test := table.Parts.Validation.Rows, table.Parts.Test.Rows
	want := fmt.Sprintf(`[column "sex": validation examples are in no group or one of fewer than 100, which error_gap leaves out (%d rows) `+
		`column "sex": fewer than two groups have 100 validation examples: there is no error_gap of these `+
		`column "sex": test examples are in no group or one of fewer than 100, which error_gap leaves out (%d rows)`, validation, test-compared)
	if got := fmt.Sprint(table.Findings); !strings.HasPrefix(got, want) || len(table.Parts.Test.Compared()) != 2 {
		t.Errorf("findings %s, want %s", got, want)
	}
	for change, want := range map[string]string{
		"column: sex=>column: y":         "fairness: must be a column that is not the label",
		"values: [f, m, x]=>values: [f]": "different values of two groups or more",
		"[f, m, x]=>[f, f]":              "different values of two groups or more",
		"values: [f, m, x]=>values: []":  "different values of two groups or more",
		"column: sex, =>":                "different values of two groups or more",
		"column: sex=>colum: sex":        "field colum is unknown of fairness",
	} {
		old, replacement, _ := strings.Cut(change, "=>")
		if _, err := ParseSchema([]byte(strings.Replace(schema, old, replacement, 1))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", change, err, want)
		}
	}
	if _, err := Load(t.Context(), Request{Path: writeFile(t, "t.csv", strings.Replace(text, "sex", "gender", 1)), Schema: parse(t, schema)}); err == nil ||
		!strings.Contains(err.Error(), `has no column "sex"`) {
		t.Errorf("without the column: %v", err)
	}
}

// No broken file trains, and no error has a value of the file.
func TestBrokenFiles(t *testing.T) {
	const header = "person,age,income,work,married,repaid\n"
	good := header
	for i := range 20 {
		good += fmt.Sprintf("a%d,30,1000,private,0,no\nb%d,50,2000,none,1,yes\n", i, i)
	}
	compress := func(text string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write([]byte(text))
		_ = w.Close()
		return b.String()
	}
	for name, tt := range map[string]struct{ text, change, want string }{
		"good":            {good, "", ""},
		"compressed":      {compress(good), "", ""},
		"old line ends":   {strings.ReplaceAll(good, "\n", "\r"), "", ""},
		"empty":           {"", "", "is empty, must have a header"},
		"header alone":    {header, "", "has no rows"},
		"no header":       {strings.TrimPrefix(good, header), "", `header: has no column "repaid", "age"`},
		"wrong header":    {strings.Replace(good, "income", "Salary7", 1), "", `header: has no column "income" of the schema among its 6`},
		"column twice":    {strings.Replace(good, "person,", "age,", 1), "group: person=>", `header: has column "age" of the schema twice`},
		"semicolons":      {strings.ReplaceAll(good, ",", ";"), "", ""},
		"declared":        {"sep=;\r\n" + strings.ReplaceAll(good, ",", ";"), "", ""},
		"declared late":   {"SEP=,\n" + good + "i,40,1,S\xfcd,0,no\n", "", "t.csv: line 43: is not UTF-8"},
		"tabs":            {strings.ReplaceAll(good, ",", "\t"), "", ""},
		"decimal commas":  {strings.ReplaceAll(strings.ReplaceAll(good, ",", ";"), "1000;", "999,5;"), "", ""},
		"two commas":      {strings.ReplaceAll(good, ",", ";") + "i;1.2,5;1;none;0;no\n", "", `column "age": values are not finite numbers`},
		"quoted commas":   {good + "i,\"1,5\",1,none,0,no\n", "", `column "age": values are not finite numbers`},
		"another comma":   {good, "group: person=>separator: ;", `among its 1;`},
		"Latin-1":         {good + "i,40,1,S\xfcd,0,no\n", "", "t.csv: line 42: is not UTF-8: save the file as UTF-8"},
		"Latin-1 header":  {strings.Replace(good, "income", "Einkommen \xf6", 1), "", "t.csv: line 1: is not UTF-8"},
		"short row":       {good + "SECRET,7\n", "", "rows do not have the 6 fields of the header (1 rows)"},
		"open quote":      {good + `i,30,"1000,private,0,no`, "", "is malformed after 40 rows"},
		"cut off":         {compress(good)[:60], "", "unexpected EOF"},
		"no number":       {good + "i,SECRET,1,none,0,no\nj,NaN7,1,none,0,no\n", "", `column "age": values are not finite numbers; missing of the schema has the texts of missing values (2 rows)`},
		"NaN":             {good + "i,NaN,1,none,0,no\n", "", `column "age": values are missing`},
		"infinite":        {good + "i,40,-Inf,none,0,no\n", "", `column "income": values are not finite numbers; missing of the schema has the texts of missing values (1 rows)`},
		"missing":         {good + "i,,1,none,0,no\n", "", `column "age": values are missing; the schema can say missing: indicator (1 rows)`},
		"unseen category": {good + "i,40,1,none,SECRET,no\n", "", `column "married": values are not among the categories of the schema, which can say unknown: other (1 rows)`},
		"unseen label":    {good + "i,40,1,none,0,SECRET\n", "", `column "repaid": labels are not among the values of the schema; rows without a label must be left out (1 rows)`},
		"missing label":   {good + "i,40,1,none,0,\n", "", `column "repaid": labels are not`},
		"missing id":      {good + ",40,1,none,0,no\n", "", `column "person": ids are missing (1 rows)`},
		"one class":       {strings.ReplaceAll(good, "yes", "no"), "", `column "repaid": the training examples have only one class`},
		"too few rows":    {header + "a,30,1000,private,0,no\n", "group: person=>", "split: leaves 1 training, 0 validation and 0 test examples"},
		"wrong time":      {good, "group: person=>split: {time: {column: work, test_from: 2020-01-01}}", `column "work": times have another form than test_from (40 rows)`},
		"private rows":    {good, "rows: public=>rows: private", "rows: must be public, because every mechanism here reveals the number of rows"},
		"no test file":    {good, "group: person=>split: {test_file: none.csv}", "none.csv: no such file"},
	} {
		text := loans
		if old, replacement, ok := strings.Cut(tt.change, "=>"); ok {
			text = strings.Replace(loans, old, replacement, 1)
		}
		_, err := Load(t.Context(), Request{Path: writeFile(t, "t.csv", tt.text), Schema: parse(t, text), Seed: 2})
		if tt.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %s", name, err, tt.want)
			continue
		}
		for _, value := range []string{"SECRET", "Salary7", "NaN7", "1000"} {
			if strings.Contains(err.Error(), value) {
				t.Errorf("%s: the error has a value of the file: %v", name, err)
			}
		}
	}
	e := newEncoder(parse(t, loans))
	e.most = 20
	rows, err := newCSV(strings.NewReader(good), ',')
	require.NoError(t, err)
	if err := e.read(rows); err == nil || !strings.Contains(err.Error(), "is too large: more than 20 encoded values") {
		t.Errorf("too large: %v", err)
	}
}

func TestSchemaErrors(t *testing.T) {
	for change, want := range map[string]string{
		"rows: public=>":                                                        `rows: must be public or private, is ""`,
		"rows: public=>rows: 12":                                                `rows: must be public or private, is "12"`,
		"[no, yes]=>[yes]":                                                      "label.values: must be all values of the label, at least two, are 1; a number to predict has a label.range",
		"values: [no, yes]=>range: [5, 5]":                                      "label.range: must be [least, largest], two finite numbers that differ, without label.values",
		"values: [no, yes]=>values: [no, yes], range: [0, 5]":                   "label.range: must be [least, largest]",
		"[no, yes]=>[no, no]":                                                   "label.values: must be different",
		", range: [18, 90]=>":                                                   "features[0] (age): must have either a range or categories, of public knowledge: they are never read from the rows",
		"[18, 90]=>[90, 18]":                                                    "features[0] (age): range: must be [least, largest]",
		"[18, 90]=>[18]":                                                        "features[0] (age): range: must be [least, largest]",
		"[18, 90]=>[0, .inf]":                                                   "features[0] (age): range: must be [least, largest]",
		"[18, 90]=>[18, 90], unknown: other":                                    "features[0] (age): unknown: must be other, for categories alone",
		"missing: indicator=>missing: mean":                                     `features[1] (income): missing: must be indicator or left out, is "mean"`,
		"categories: [0, 1]=>categories: [0, 0]":                                "features[3] (married): categories: must be different",
		"column: income=>column: age":                                           "columns must be different",
		"column: income=>column: repaid":                                        "no feature can be the label",
		"group: person=>group: age":                                             "group: must not be a feature",
		"group: person=>norm: -1":                                               "norm: must be a positive number, is -1",
		"group: person=>norms: 1":                                               "line 9: field norms is unknown",
		"group: person=>norms: 1\nseparators: 2":                                "schema: line 9: field norms is unknown; line 10: field separators is unknown",
		"column: age, =>col: age, ":                                             "field col is unknown of a feature",
		"group: person=>separator: ab":                                          "separator: must be one character, has 2",
		"group: person=>split: {test: 0.95}":                                    "must be shares whose sum is below 1, are 0.95 and 0.1",
		"group: person=>split: {test_file: ../b.csv}":                           "split.test_file: must be the name of a file",
		"group: person=>split: {test: 0.1, test_file: b.csv}":                   "must have one of test and test_file",
		"group: person=>split: {time: {column: age, test_from: soon}}":          "split.time: must have a column",
		"group: person=>split: {time: {column: a, test_from: 1}, test_file: b}": "must have one of test, time and test_file",
		"group: person=>group: person\ngroup: other":                            `"group" already`,
	} {
		old, replacement, _ := strings.Cut(change, "=>")
		_, err := ParseSchema([]byte(strings.Replace(loans, old, replacement, 1)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", change, err, want)
		}
	}
	if _, err := ParseSchema(nil); err == nil || err.Error() != "schema: is empty" {
		t.Errorf("empty: %v", err)
	}
}

func TestDigests(t *testing.T) {
	schema := parse(t, loans)
	again := parse(t, "# a comment\n"+strings.ReplaceAll(loans, "[no, yes]", "[ \"no\", 'yes' ]"))
	other := parse(t, strings.Replace(loans, "[18, 90]", "[18, 91]", 1))
	if schema.Digest() != again.Digest() || schema.Digest() == other.Digest() || len(schema.Digest()) != 32 {
		t.Errorf("digests %s, %s, %s", schema.Digest(), again.Digest(), other.Digest())
	}
	load := func(path string) *Table {
		t.Helper()
		table, err := Load(t.Context(), Request{Path: path, Schema: schema})
		require.NoError(t, err)
		return table
	}
	path := writeFile(t, "t.csv", made(100, 1))
	if _, err := ReadKey(path); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "t.csv.key is missing: copy it") {
		t.Errorf("no key: %v", err)
	}
	key, err := MakeKey(path)
	require.NoError(t, err)
	if same, err := MakeKey(path); err != nil || !bytes.Equal(same, key) {
		t.Errorf("the key changed, error %v", err)
	}
	if info, err := os.Stat(KeyPath(path)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
	digest := load(path).Digest(key)
	flipped := writeFile(t, "t.csv", strings.Replace(made(100, 1), ",yes\n", ",no\n", 1))
	if other := load(flipped).Digest(key); other == digest || len(digest) != 32 {
		t.Errorf("digests %s and %s", digest, other)
	}
	if other := load(path).Digest(make([]byte, 32)); other == digest {
		t.Error("the digest does not depend on the key")
	}
	require.NoError(t, os.WriteFile(KeyPath(path), []byte("abc\n"), 0o600))
	if _, err := MakeKey(path); err == nil || !strings.Contains(err.Error(), "must have 64 hexadecimal digits") {
		t.Errorf("wrong key: %v", err)
	}
}

func TestDuplicates(t *testing.T) {
	row := func(x float32) *dataset.Dataset {
		return &dataset.Dataset{Rows: 2, Dim: 1, Classes: 2, Dense: []float32{x, 5}, Labels: []float32{1, -1}}
	}
	parts := &dataset.Parts{Train: dataset.Concat("", row(1), row(1)), Test: row(1), Validation: row(2)}
	if across, within := Duplicates(parts); across != 3 || within != 2 {
		t.Errorf("%d across parts and %d within, want 3 and 2", across, within)
	}
}

// A schema is proposed from the public rows alone, and fits them.
func TestPropose(t *testing.T) {
	public := made(200, 1)
	propose := func(text string, sample Sample) (*Schema, []string, error) {
		sample.Path = writeFile(t, "t.csv", text)
		return Propose(sample)
	}
	sample := Sample{Rows: 200, Label: "repaid"}
	s, notes, err := propose(public, sample)
	require.NoError(t, err)
	private := public + "p7,1000000,1e9,new employer,7,x,perhaps\n"
	again, _, err := propose(private, sample)
	if err != nil || again.Digest() != s.Digest() {
		t.Errorf("a private row has changed the schema, error %v", err)
	}
	content, err := s.YAML()
	require.NoError(t, err)
	const want = `rows: private
label:
  column: repaid
  values: ["no", "yes"]
features:
  - column: age
    range: [10, 90]
  - column: income
    range: [0, 200000]
    missing: indicator
  - column: work
    categories: [none, private, public, secret-employer]
    missing: indicator
    unknown: other
  - column: married
    range: [0, 1]
`
	if string(content) != want {
		t.Errorf("schema\n%s", content)
	}
	if got := strings.Join(notes, "; "); !strings.Contains(got, "notes is left out") || !strings.Contains(got, "person is left out: it has too many different texts") {
		t.Errorf("notes %s", got)
	}
	read := parse(t, strings.Replace(string(content), "rows: private", "rows: public", 1))
	if _, err := Load(t.Context(), Request{Path: writeFile(t, "t.csv", public), Schema: read, Seed: 1}); err != nil {
		t.Error(err)
	}
	for name, tt := range map[string]struct {
		text   string
		sample Sample
		want   string
	}{
		"too many":    {public, Sample{Rows: 201, Label: "repaid"}, "public rows: are 201, but the file has only 200"},
		"no rows":     {public, Sample{Label: "repaid"}, "public rows: must be at least 1, are 0: ranges and categories are never read from private rows"},
		"no label":    {public, Sample{Rows: 9, Label: "owed"}, `header: has no column "owed", the label`},
		"no header":   {"1,2\n3,4\n", Sample{Rows: 1, Label: "1"}, "which are no numbers"},
		"empty":       {"", Sample{Rows: 1, Label: "1"}, "must have a header"},
		"twice":       {"a,a\n", Sample{Rows: 1, Label: "a"}, "must have different names"},
		"texts":       {made(2000, 1), Sample{Rows: 2000, Label: "person"}, "values in the public rows, must have 2 to 100 unless all are numbers"},
		"short row":   {"a,b\nx,1\ny\n", Sample{Rows: 2, Label: "a"}, "is malformed after 1 rows"},
		"one label":   {"a,b\nx,1\nx,2\n", Sample{Rows: 2, Label: "a"}, "has 1 values"},
		"no features": {"a,b\nx,1\ny,1\n", Sample{Rows: 2, Label: "a"}, "features: at least one is required"},
	} {
		if _, _, err := propose(tt.text, tt.sample); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %s", name, err, tt.want)
		}
	}
}

// A text among numbers is named, and can stand for a missing value. Numbers between semicolons have decimal commas.
func TestProposeForTextsAmongNumbers(t *testing.T) {
	var b strings.Builder
	b.WriteString("died;age;cost\n")
	for i := range 119 {
		fmt.Fprintf(&b, "%c;%d;%d,5\n", 'n'+i%2, i, i)
	}
	b.WriteString("n;50;-\n")
	sample := Sample{Path: writeFile(t, "t.csv", b.String()), Rows: 120, Label: "died"}
	s, notes, err := Propose(sample)
	require.NoError(t, err)
	const left = `cost is left out: ["-"] are among its numbers; give those that stand for a missing value with --missing`
	if len(s.Features) != 1 || !slices.Equal(notes, []string{left}) {
		t.Errorf("features %+v, notes %q", s.Features, notes)
	}
	sample.Missing = []string{"-"}
	s, notes, err = Propose(sample)
	require.NoError(t, err)
	if cost := s.Features[1]; !slices.Equal(cost.Range, []float64{0, 200}) || cost.Missing != Indicator || len(notes) > 0 {
		t.Errorf("cost %+v, notes %q", cost, notes)
	}
	s.Rows = Public
	if _, err := Load(t.Context(), Request{Path: sample.Path, Schema: s, Seed: 1}); err != nil {
		t.Error(err)
	}
	sample.Label = "cost"
	if _, _, err := Propose(sample); err == nil || !strings.Contains(err.Error(), `unless all are numbers, which ["-"] are not; leave out rows without a label`) {
		t.Errorf("as the label: %v", err)
	}
}

// Numbers to predict are moved into their range and scaled; those that are missing are errors.
func TestNumbersToPredict(t *testing.T) {
	text := strings.Replace(loans, "{column: repaid, values: [no, yes]}", "{column: income, range: [0, 1000]}", 1)
	schema := parse(t, strings.Replace(text, "- {column: income, range: [0, 200000], missing: indicator}\n", "", 1))
	const header = "person,age,income,work,married\n"
	e := newEncoder(schema)
	_, err := e.readFile(writeFile(t, "t.csv", header+"a,30,500,none,0\nb,30,2000,none,0\nc,30,0,none,1\n"))
	require.NoError(t, err)
	d := e.finish("t")
	if !slices.Equal(d.Labels, []float32{0, 1, -1}) || d.Classes != 0 || d.LabelRange != [2]float64{0, 1000} || e.found.list[0].String() != `column "income": numbers outside the range were moved to its ends (1 rows)` {
		t.Errorf("labels %v, %d classes, range %v, findings %v", d.Labels, d.Classes, d.LabelRange, e.found.list)
	}
	for text, want := range map[string]string{
		header + "a,30,,none,0\n": `column "income": labels are not finite numbers; rows without a label must be left out (1 rows)`,
		header + strings.Repeat("a,30,5,none,0\n", 9) + "b,30,5,none,1\nc,30,5,none,1\nd,30,5,none,1\ne,30,5,none,1\n": `column "income": all training examples have one label`,
	} {
		if _, err := Load(t.Context(), Request{Path: writeFile(t, "t.csv", text), Schema: schema, Seed: 6}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// Every example has a schema that is proposed from its rows, and fits them. Equal seeds give equal files.
func TestWriteExample(t *testing.T) {
	for name, label := range map[string]string{"loans": "repaid", "rents": "rent", "crops": "crop"} {
		write := func(seed uint64) string {
			var b strings.Builder
			require.NoError(t, WriteExample(&b, name, 500, seed))
			return b.String()
		}
		if first := write(1); first != write(1) || first == write(2) {
			t.Errorf("%s: files do not follow their seeds", name)
		}
		path := writeFile(t, name+".csv", write(1))
		s, _, err := Propose(Sample{Path: path, Rows: 500, Label: label})
		require.NoError(t, err)
		s.Rows = Public
		if (name == "rents") != (len(s.Label.Range) == 2) || name == "crops" && len(s.Label.Values) != 7 {
			t.Errorf("%s: label %+v", name, s.Label)
		}
		table, err := Load(t.Context(), Request{Path: path, Schema: s, Seed: 1})
		if err != nil || table.Parts.Train.Rows < 330 {
			t.Errorf("%s: %v", name, err)
		}
	}
	for want, err := range map[string]error{
		`example "SVT" is unknown, must be one of loans, rents, crops`: WriteExample(nil, "SVT", 1, 1),
		"rows: must be at least 1, are 0":                              WriteExample(nil, "loans", 0, 1),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
