package surface

import (
	"bytes"
	"encoding/csv"
	"math"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest/space"
)

// The file of public runs has the end of every configuration, with the mean of its replicates, up to a number of them.
func TestPublicRuns(t *testing.T) {
	s, err := ByName("adult-svm-sgd")
	require.NoError(t, err)
	q := space.Point{3, 64, 0.1, 2, 1.5}
	table := &Table{Surface: s, Runs: []Run{
		{Number: 0, Point: q, Errors: []float64{0.4, 0.3, 0.2}}, {Number: 0, Point: q, Errors: []float64{0.4, 0.3, 0.22}},
		{Number: 2, Point: q, Errors: []float64{0.4, 0.3, 0.5}}, {Number: 3, Point: q, Errors: []float64{0.1, 0.1, 0.1}},
	}}
	runs := table.PublicRuns(2)
	if len(runs) != 2 || math.Abs(runs[0].Error-0.21) > 1e-12 || runs[1].Error != 0.5 {
		t.Fatalf("runs %+v", runs)
	}
	// 32,561 records in lots of 64 are 509 steps an epoch; noise is relative to the norm of which the sensitivity is twice.
	if r := runs[0]; r.Dataset != "adult" || r.Normalized || r.Records != 16281 || r.Run.Steps != 3*509 || r.Run.Noise != 3 || r.Run.LotSize != 64 {
		t.Errorf("run %+v", r)
	}
	var file bytes.Buffer
	require.NoError(t, WritePublicRuns(&file, []*Table{table}, 10))
	reader := csv.NewReader(&file)
	reader.Comment = '#'
	rows, err := reader.ReadAll()
	if err != nil || len(rows) != 4 || rows[3][0] != "adult-svm-sgd" {
		t.Errorf("rows %v, %v", rows, err)
	}
}
