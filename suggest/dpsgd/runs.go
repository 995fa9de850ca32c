package dpsgd

import (
	"bytes"
	_ "embed"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
)

// publicRuns are runs of the bundled trainers on public data: of each data set and model the ends of runs with
// configurations spread evenly over a domain, as `dpareto-lab bench dp-public` writes them.
//
//go:embed public.csv
var publicRuns []byte

// PublicRun is a run on public data with its result.
type PublicRun struct {
	Surface    string // data set, model and optimizer
	Dataset    string
	Normalized bool // the optimizer divides a gradient by its size
	Run        Run
	Records    float64 // test records
	Error      float64 // the fraction of them that was classified wrongly, a mean over the replicates
}

// Columns are the columns of the file of public runs.
var Columns = []string{"surface", "dataset", "optimizer", "learning_rate", "clipping_norm", "noise", "lot_size", "steps", "records", "error"}

// Names of optimizers in the file.
const (
	plainOptimizer      = "sgd"
	normalizedOptimizer = "normalized"
)

// Row returns the run as a row of the file.
func (r *PublicRun) Row() []string {
	optimizer := plainOptimizer
	if r.Normalized {
		optimizer = normalizedOptimizer
	}
	row := []string{r.Surface, r.Dataset, optimizer}
	for _, v := range []float64{r.Run.LearningRate, r.Run.ClippingNorm, r.Run.Noise, r.Run.LotSize, r.Run.Steps, r.Records, r.Error} {
		row = append(row, strconv.FormatFloat(v, 'g', 5, 64))
	}
	return row
}

// PublicRuns returns the runs on public data that the program knows. The caller must not change them.
var PublicRuns = sync.OnceValue(func() []PublicRun {
	reader := csv.NewReader(bytes.NewReader(publicRuns))
	reader.Comment = '#'
	rows, err := reader.ReadAll()
	if err != nil {
		panic("dpsgd: public.csv: " + err.Error())
	}
	runs := make([]PublicRun, 0, len(rows))
	for _, row := range rows[1:] {
		numbers := make([]float64, len(row)-3)
		for k := range numbers {
			if numbers[k], err = strconv.ParseFloat(row[k+3], 64); err != nil {
				panic(fmt.Sprintf("dpsgd: public.csv: %v", err))
			}
		}
		runs = append(runs, PublicRun{
			Surface: row[0], Dataset: row[1], Normalized: row[2] == normalizedOptimizer,
			Run:     Run{numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]},
			Records: numbers[5], Error: numbers[6],
		})
	}
	return runs
})

// logit returns the logit of the error of a run, with half a record more on both sides.
func (r *PublicRun) logit() float64 {
	return math.Log((r.Error*r.Records + 0.5) / ((1-r.Error)*r.Records + 0.5))
}

// PublicDatasets returns the names of the data sets of the public runs with an optimizer.
func PublicDatasets(normalized bool) []string {
	var names []string
	for _, r := range PublicRuns() {
		if r.Normalized == normalized {
			names = append(names, r.Dataset)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
