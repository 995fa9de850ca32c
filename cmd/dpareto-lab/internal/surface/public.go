package surface

import (
	"encoding/csv"
	"fmt"
	"io"

	coordinates "github.com/dpareto/dpareto/suggest/dpsgd"
)

// PublicRuns returns the ends of the runs of the first configurations of a table, at most a number of them, each
// with the mean error of its replicates.
func (t *Table) PublicRuns(most int) []coordinates.PublicRun {
	s := t.Surface
	var all []coordinates.PublicRun
	for i := 0; i < len(t.Runs) && len(all) < most; {
		q, sum, count := t.Runs[i].Point, 0.0, 0.0
		for number := t.Runs[i].Number; i < len(t.Runs) && t.Runs[i].Number == number; i++ {
			sum += t.Runs[i].Errors[len(t.Runs[i].Errors)-1]
			count++
		}
		all = append(all, coordinates.PublicRun{
			Surface: s.Name, Dataset: s.dataset(), Normalized: s.isNormalized(), Run: s.run(q, int64(q[epochs])),
			Records: float64(s.TestRows), Error: sum / count,
		})
	}
	return all
}

// WritePublicRuns writes the file of package dpsgd from the tables in a folder, with at most a number
// of runs of each. The tables that are not there are left out.
func WritePublicRuns(w io.Writer, tables []*Table, most int) error {
	if _, err := fmt.Fprintf(w, "# Runs of DP training on public data, made by dpareto-lab bench dp-table and dp-public: the test error at the\n"+
		"# end of runs, a mean over replicates. noise is the standard deviation of the noise in a sum of gradients over the clipping norm.\n"); err != nil {
		return err
	}
	out := csv.NewWriter(w)
	if err := out.Write(coordinates.Columns); err != nil {
		return err
	}
	for _, t := range tables {
		for _, r := range t.PublicRuns(most) {
			if err := out.Write(r.Row()); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}
