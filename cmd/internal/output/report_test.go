package output_test

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/internal/require"
)

func TestReport(t *testing.T) {
	r := &output.Report{
		Title: "An experiment",
		Notes: []string{
			"A paragraph that is longer than a line, and so long that it does not fit on less than three of them, " +
				"which takes some more words than one would have thought before one began, whatever they say.",
		},
		Sections: []output.Section{
			{
				Name: "first", Title: "Table 1", Notes: []string{"What its numbers mean.", "And what not."},
				Table: &output.Table{
					Columns: []string{"name", "0.10", "count"},
					Rows:    [][]any{{"a \"b\" <c>", 1. / 3, int64(7)}, {"d", math.Inf(1), nil}, {"e", math.NaN(), int64(1)}},
				},
			},
			{
				Name: "second", Title: "Table 2",
				Table: &output.Table{Columns: []string{"count", "epsilon"}, Rows: [][]any{{int64(2), output.Bound(2. / 3)}}},
			},
			{Name: "third", Title: "Table 3", Table: &output.Table{Columns: []string{"name"}}},
		},
	}
	for format, name := range map[output.Format]string{output.Text: "report.txt", output.JSON: "report.json", output.CSV: "report.csv"} {
		var out bytes.Buffer
		require.NoError(t, r.Write(&out, format))
		golden(t, name, out.String())
		if format == output.JSON && !json.Valid(out.Bytes()) {
			t.Error("not JSON")
		}
	}
}
