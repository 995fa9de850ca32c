package accountants

import (
	"testing"

	"github.com/dpareto/dpareto/internal/require"
)

func TestMeasure(t *testing.T) {
	table, err := Measure(1, 1)
	require.NoError(t, err)
	names := make(map[any]bool)
	for _, row := range table.Rows {
		names[row[0]] = true
		lower, upper, time := row[11].(float64), row[12].(float64), row[13].(float64)
		if !(0 < lower && lower <= upper && upper < 200 && time > 0) {
			t.Errorf("%v", row)
		}
	}
	if len(names) != 8 || len(table.Rows) != 8 {
		t.Errorf("%d rows of %d mechanisms, want one of each of 8", len(table.Rows), len(names))
	}
}
