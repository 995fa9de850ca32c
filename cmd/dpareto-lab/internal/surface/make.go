package surface

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/quasirandom"
	"github.com/dpareto/dpareto/suggest/space"
)

// MakeOptions say what table [Make] makes.
type MakeOptions struct {
	// Folder is where the table is written.
	Folder string
	// Configurations is the number of configurations.
	Configurations int
	// Replicates is the number of trainings of each configuration.
	Replicates int
	// DataDir is a folder in which data files are looked for first.
	DataDir string
	// Download, when not nil, is called while data files are downloaded.
	Download func(done, total int64)
	// Progress, when not nil, is called after every configuration, and first with the number of
	// configurations that the table has already.
	Progress func(done int)
}

// Validate returns an error for options out of range.
func (o *MakeOptions) Validate() error {
	switch {
	case o.Folder == "":
		return errors.New("--tables is required: the folder of the tables")
	case o.Configurations < 1:
		return fmt.Errorf("--configurations must be at least 1, is %d", o.Configurations)
	case o.Replicates < 1:
		return fmt.Errorf("--replicates must be at least 1, is %d", o.Replicates)
	}
	return nil
}

// seed determines the configurations of all tables and the randomness of all trainings.
const seed = 7

// Make trains the configurations of a surface, which are spread evenly on the parameters' scales,
// and writes them to its table. A table that is there is continued; what a configuration gives does
// not depend on where earlier work stopped. A complete table gets a file with its digest. Make
// returns the errors of the trainer and of files, and an error if the table has other settings.
func Make(ctx context.Context, s *Surface, o MakeOptions) error {
	if err := o.Validate(); err != nil {
		return err
	}
	problem, err := s.Problem(true)
	if err != nil {
		return err
	}
	train, err := s.trainer(ctx, o.DataDir, o.Download)
	if err != nil {
		return err
	}
	if err := s.checkRows(train); err != nil {
		return err
	}
	if err := os.MkdirAll(o.Folder, 0o750); err != nil {
		return err
	}
	path := s.path(o.Folder)
	content, done, err := s.resume(path, o.Replicates)
	if err != nil {
		return err
	}
	if o.Progress != nil {
		o.Progress(done)
	}
	if done < o.Configurations {
		if err := s.extend(ctx, problem, train, path, content, done, o); err != nil {
			return err
		}
	}
	if content, err = os.ReadFile(path); err != nil {
		return err
	}
	line := digest(content) + "  " + filepath.Base(path) + "\n"
	return os.WriteFile(digestPath(path), []byte(line), 0o644) //nolint:gosec // tables are for everybody
}

// checkRows returns an error if the data have other numbers of rows than the surface.
func (s *Surface) checkRows(t trainer.Trainer) error {
	declared, ok := t.(interface{ Declaration() trainer.Declaration })
	if !ok {
		return fmt.Errorf("trainer %s declares nothing", t.Name())
	}
	d := declared.Declaration()
	if rows := d.Privacy.Fields["dataset_size"]; rows != strconv.FormatInt(s.TrainRows, 10) {
		return fmt.Errorf("surface %s has %d training records, the data have %s", s.Name, s.TrainRows, rows)
	}
	i := slices.IndexFunc(d.Metrics, func(m trainer.MetricDeclaration) bool { return m.Name == columnError })
	if i < 0 || int64(d.Metrics[i].SampleSize) != s.TestRows {
		return fmt.Errorf("surface %s has %d test records, the data have others", s.Name, s.TestRows)
	}
	return nil
}

// comment returns the first line of a table: what has to agree where it is continued.
func (s *Surface) comment(replicates int) string {
	return fmt.Sprintf("# %s: %s, seed %d, %d replicates\n", s.Name, s.Summary, seed, replicates)
}

// resume returns what a table has of complete configurations, and their number.
func (s *Surface) resume(path string, replicates int) (content []byte, done int, err error) {
	comment := []byte(s.comment(replicates))
	content, err = os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		content, err = s.header(comment)
		return content, 0, err
	}
	if err != nil {
		return nil, 0, err
	}
	if !bytes.HasPrefix(content, comment) {
		return nil, 0, fmt.Errorf("%s: the first line is not %q: it is a table of other settings", path, comment[:len(comment)-1])
	}
	return complete(content, replicates)
}

// header returns the first two lines of a table.
func (s *Surface) header(comment []byte) ([]byte, error) {
	var out bytes.Buffer
	out.Write(comment)
	w := csv.NewWriter(&out)
	err := w.Write(slices.Insert(slices.Clone(columns), 1, columnReplicate))
	w.Flush()
	return out.Bytes(), errors.Join(err, w.Error())
}

// complete cuts off rows at the end that do not complete a configuration, of which a crash may have
// left some, and returns the number of those that are complete.
func complete(content []byte, replicates int) ([]byte, int, error) {
	reader := csv.NewReader(bytes.NewReader(content))
	reader.Comment = '#'
	if _, err := reader.Read(); err != nil {
		return nil, 0, err
	}
	end, done := reader.InputOffset(), 0
	for {
		row, err := reader.Read()
		if err != nil {
			return content[:end], done, nil //nolint:nilerr // the line at which the crash was is cut off
		}
		last := len(row) - 1
		isEnd := row[1] == strconv.Itoa(replicates-1) && row[last-1] == row[2] && row[0] == strconv.Itoa(done)
		if offset := reader.InputOffset(); isEnd && content[offset-1] == '\n' {
			end, done = offset, done+1
		}
	}
}

// extend trains the missing configurations and appends each to the file.
func (s *Surface) extend(
	ctx context.Context, problem *suggest.Problem, train trainer.Trainer, path string, content []byte, done int, o MakeOptions,
) error {
	if err := os.Remove(digestPath(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // tables are for everybody
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // the end of a write that fails is cut off next time
	if err := out.Truncate(int64(len(content))); err != nil {
		return err
	}
	if _, err := out.WriteAt(content, 0); err != nil {
		return err
	}
	if _, err := out.Seek(0, io.SeekEnd); err != nil {
		return err
	}
	for number := done; number < o.Configurations; number++ {
		rows, err := s.rows(ctx, problem, train, number, o.Replicates)
		if err != nil {
			return fmt.Errorf("configuration %d: %w", number, err)
		}
		if _, err := out.Write(rows); err != nil {
			return err
		}
		if o.Progress != nil {
			o.Progress(number + 1)
		}
	}
	return out.Close()
}

// rows trains one configuration and returns its rows.
func (s *Surface) rows(ctx context.Context, problem *suggest.Problem, train trainer.Trainer, number, replicates int) ([]byte, error) {
	suggested, err := quasirandom.New().Suggest(ctx, problem, new(suggest.History), suggest.Request{Count: 1, Seed: seed, Number: int64(number + 1)})
	if err != nil {
		return nil, err
	}
	errorsOf, err := errorsOf(ctx, train, suggested[0].Point, number, replicates)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	for replicate, failed := range errorsOf {
		for i, v := range failed {
			row := []string{strconv.Itoa(number), strconv.Itoa(replicate)}
			for _, x := range suggested[0].Point {
				row = append(row, strconv.FormatFloat(x, 'g', -1, 64))
			}
			row = append(row, strconv.Itoa(i+1), strconv.FormatFloat(v, 'g', -1, 64))
			if err := w.Write(row); err != nil {
				return nil, err
			}
		}
	}
	w.Flush()
	return out.Bytes(), w.Error()
}

// errorsOf trains a configuration and returns the errors of each replicate by epoch.
func errorsOf(ctx context.Context, train trainer.Trainer, q space.Point, number, replicates int) ([][]float64, error) {
	stream := uint64(seed)<<32 + uint64(number)
	run := trainer.Run{Parameters: make(trainer.Parameters), Replicates: replicates, Seed: &stream}
	for i, v := range q {
		if run.Parameters[names[i]] = v; i == epochs || i == lotSize {
			run.Parameters[names[i]] = int64(v)
		}
	}
	out := make([][]float64, replicates)
	_, err := train.Train(ctx, run, func(m trainer.Measurement) error {
		for r, v := range m.Metrics[columnError] {
			out[r] = append(out[r], v)
		}
		return nil
	})
	return out, err
}
