package surface

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dpareto/dpareto/suggest/space"
)

// Run is one training: the error after each of its epochs.
type Run struct {
	// Number tells the configuration from others: replicates have the same.
	Number int
	// Point is the configuration, in the order of the surface's parameters.
	Point space.Point
	// Errors are the fractions of test records classified wrongly after epoch 1, 2, and so on.
	Errors []float64
}

// Table holds the runs of a surface.
type Table struct {
	Surface *Surface
	Runs    []Run
	// Digest is the SHA-256 of the file, in hexadecimal.
	Digest string
	// Checked says that the digest is the one that was written when the table was complete. A
	// table that is not complete, or that another program made, has none.
	Checked bool
}

// columns are the columns of a table that are read, by name. Others are ignored, and without a
// replicate column every configuration has one run.
var columns = append(append([]string{columnRun}, names[:]...), columnEpoch, columnError)

// Names of columns that are no parameters.
const (
	columnRun       = "run"       // number of the configuration, from 0
	columnReplicate = "replicate" // number of the training of the configuration, from 0
	columnEpoch     = "epoch"     // that has passed
	columnError     = "error"     // on the test records
)

// path returns the file of a surface's table in a folder.
func (s *Surface) path(folder string) string { return filepath.Join(folder, s.Name+".csv") }

// digestPath returns the file with a table's digest, in the format of sha256sum.
func digestPath(table string) string { return table + ".sha256" }

// Read reads the table of a surface in a folder: a CSV file named after it, with a row for every
// epoch of every run. The rows of a run follow each other. The end of a run that was interrupted
// is left out. It fails if the digest beside the file is another, if rows are malformed, or
// outside of the surface's domain.
func Read(s *Surface, folder string) (*Table, error) {
	path := s.path(folder)
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w (dpareto-lab bench dp-table makes it)", err)
	}
	if err != nil {
		return nil, err
	}
	t := &Table{Surface: s, Digest: digest(content)}
	switch wanted, err := os.ReadFile(digestPath(path)); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case !strings.HasPrefix(string(wanted), t.Digest+" "):
		return nil, fmt.Errorf("%s: the file is not the one that %s names: it was changed", path, digestPath(path))
	default:
		t.Checked = true
	}
	if t.Runs, err = s.parse(strings.NewReader(string(content))); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// parse reads runs.
func (s *Surface) parse(in io.Reader) ([]Run, error) {
	reader := csv.NewReader(in)
	reader.Comment = '#'
	header, err := reader.Read()
	if err != nil {
		return nil, fmt.Errorf("line 1: %w", err)
	}
	at := make([]int, len(columns))
	for i, name := range columns {
		if at[i] = slices.Index(header, name); at[i] < 0 {
			return nil, fmt.Errorf("line 1: column %s is missing", name)
		}
	}
	var runs []Run
	key, rest := "", 0 // of the run that is being read: its rows' key, and the number that is to come
	for {
		row, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		line, _ := reader.FieldPos(0)
		if err != nil {
			return nil, err
		}
		values, err := numbers(row, at)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		own := row[at[0]]
		if i := slices.Index(header, columnReplicate); i >= 0 {
			own += "," + row[i]
		}
		point := space.Point(values[1 : 1+dimension])
		epoch, failed := values[len(values)-2], values[len(values)-1]
		if own != key {
			if rest > 0 {
				return nil, fmt.Errorf("line %d: run %s lacks its last %d epochs", line, key, rest)
			}
			if err := s.contains(point); err != nil {
				return nil, fmt.Errorf("line %d: %w", line, err)
			}
			runs = append(runs, Run{Number: int(values[0]), Point: point})
			key, rest = own, int(point[epochs])
		}
		last := &runs[len(runs)-1]
		switch {
		case epoch != float64(len(last.Errors)+1) || rest == 0:
			return nil, fmt.Errorf("line %d: epoch must be %d, is %g", line, len(last.Errors)+1, epoch)
		case !(failed >= 0 && failed <= 1):
			return nil, fmt.Errorf("line %d: error must be 0 to 1, is %g", line, failed)
		}
		last.Errors = append(last.Errors, failed)
		rest--
	}
	if rest > 0 {
		runs = runs[:len(runs)-1]
	}
	if len(runs) == 0 {
		return nil, errors.New("the file holds no complete run")
	}
	return runs, nil
}

// numbers returns some columns of a row.
func numbers(row []string, at []int) ([]float64, error) {
	values := make([]float64, len(at))
	for i, c := range at {
		v, err := strconv.ParseFloat(row[c], 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%s must be a number, is %q", columns[i], row[c])
		}
		values[i] = v
	}
	return values, nil
}

// contains returns an error for a configuration outside of the domain.
func (s *Surface) contains(q space.Point) error {
	lower, upper := s.bounds()
	for i, v := range q {
		if !(v >= lower[i] && v <= upper[i]) {
			return fmt.Errorf("%s must be %g to %g on surface %s, is %g", names[i], lower[i], upper[i], s.Name, v)
		}
		if (i == epochs || i == lotSize) && v != math.Trunc(v) {
			return fmt.Errorf("%s must be whole, is %g", names[i], v)
		}
	}
	return nil
}
