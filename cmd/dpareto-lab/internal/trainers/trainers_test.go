package trainers

import (
	"io"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
)

func TestMeasure(t *testing.T) {
	lots := Lots
	t.Cleanup(func() { Lots = lots })
	Lots = []int64{16, 50}
	done := 0
	table, err := Measure(t.Context(), 50, 1, func(n int) { done = n })
	require.NoError(t, err)
	if len(table.Rows) != Count() || done != Count() {
		t.Fatalf("%d rows, %d done, want %d", len(table.Rows), done, Count())
	}
	sizes := map[any]int64{"adult": 124, "mlp2": 784*128 + 128 + 128*64 + 64 + 64*10 + 10, "mlp1": 784*1000 + 1000 + 1000*10 + 10}
	require.NoError(t, table.WriteCSV(io.Discard))
	for _, row := range table.Rows {
		private, clipped, not, ratio := row[5].(float64), row[6].(float64), row[7].(float64), row[8].(float64)
		if row[2] != sizes[row[0]] || !(private > 0 && clipped > 0 && not > 0) || ratio != private/not {
			t.Errorf("row %v, want %d parameters", row, sizes[row[0]])
		}
	}
}
