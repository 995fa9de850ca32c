package fronts

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// recordHeader are the columns of a record. untouched_error is NaN where the search sees all examples.
var recordHeader = []string{"epsilon", "error", "best_error", "worst_error", "untouched_error"}

// recordedBy begins the first line of a record, which ends with the version that ran the study.
const recordedBy = "# dpareto-lab "

// recordPath returns the file of a study's outcomes in a folder of records.
func recordPath(folder string, s *series) string { return filepath.Join(folder, s.studyID()+".csv") }

// writeRecord writes what a finished study has measured.
func writeRecord(folder string, s *series, version string, outcomes []outcome) error {
	out := bytes.NewBufferString(recordedBy + version + "\n")
	w := csv.NewWriter(out)
	rows := [][]string{recordHeader}
	for _, o := range outcomes {
		var row []string
		for _, x := range []float64{o.epsilon, o.mean, o.best, o.worst, o.untouched} {
			row = append(row, strconv.FormatFloat(x, 'g', -1, 64))
		}
		rows = append(rows, row)
	}
	if err := errors.Join(w.WriteAll(rows), os.MkdirAll(folder, 0o750)); err != nil {
		return err
	}
	// A file that is cut short could end within a number.
	path := recordPath(folder, s)
	if err := os.WriteFile(path+".new", out.Bytes(), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// readRecord returns what a study has measured, and the version that ran it. There are no outcomes if it has no record.
func readRecord(folder string, s *series) (outcomes []outcome, version string, err error) {
	content, err := os.ReadFile(recordPath(folder, s))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	first, rest, _ := strings.Cut(string(content), "\n")
	version, ok := strings.CutPrefix(first, recordedBy)
	if !ok {
		return nil, "", fmt.Errorf("%s: the first line names no version of dpareto-lab", recordPath(folder, s))
	}
	reader := csv.NewReader(strings.NewReader(rest))
	reader.FieldsPerRecord = len(recordHeader)
	rows, err := reader.ReadAll()
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", recordPath(folder, s), err)
	}
	if len(rows)-1 != int(s.trials()) {
		return nil, "", fmt.Errorf("%s has %d trials, want %d", recordPath(folder, s), max(len(rows)-1, 0), s.trials())
	}
	for _, row := range rows[1:] {
		var x [5]float64
		for i := range x {
			if x[i], err = strconv.ParseFloat(row[i], 64); err != nil {
				return nil, "", fmt.Errorf("%s: %w", recordPath(folder, s), err)
			}
		}
		outcomes = append(outcomes, outcome{x[0], x[1], x[2], x[3], x[4]})
	}
	return outcomes, version, nil
}
