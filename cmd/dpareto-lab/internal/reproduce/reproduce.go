package reproduce

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/cmd/internal/plot"
)

// Experiment is an experiment of a paper. Its fields, one of which is a seed, determine its
// result.
type Experiment interface {
	// Name is the name of the subcommand, such as "fast-estimation".
	Name() string
	// Validate returns an error for invalid fields.
	Validate() error
	// Run computes the result, and tells watch what it has on the way. It fails if data cannot
	// be read, ctx is done, or a figure cannot be drawn. Where some parts need data that are
	// missing it runs the others, and names these in Result.Missing; see [Missing].
	Run(ctx context.Context, watch Watch) (*Result, error)
}

// Watch follows an experiment while it runs. Its functions may be nil. They are called from one
// goroutine at a time.
type Watch struct {
	// Progress gets the amount done and the total, which is at least 1.
	Progress func(done, total int)
	// Draw gets each figure as soon as its data exist, so that an interruption does not lose it. Its
	// error ends the experiment.
	Draw func(Figure) error
}

// Report reports progress.
func (w Watch) Report(done, total int) {
	if w.Progress != nil {
		w.Progress(done, total)
	}
}

// Show hands over figures.
func (w Watch) Show(figures ...Figure) error {
	for _, f := range figures {
		if w.Draw == nil {
			return nil
		}
		if err := w.Draw(f); err != nil {
			return err
		}
	}
	return nil
}

// Result is the result of an experiment, but for its figures; see [Watch].
type Result struct {
	Report output.Report
	// Missing names the parts that were not run because their data are missing, a line
	// each with the reason.
	Missing []string
}

// Missing returns the line of Result.Missing for a part, whose error says that data are in no folder and
// cannot be downloaded; ok is false for other errors.
func Missing(part string, err error) (line string, ok bool) {
	_, failed := errors.AsType[*dataset.DownloadError](err)
	if !failed && !errors.Is(err, fs.ErrNotExist) {
		return "", false
	}
	return fmt.Sprintf("%s was not run, its data are missing (--data-dir names a folder with them): %v", part, err), true
}

// Figure is a picture of a result.
type Figure struct {
	// Name identifies the figure in the result; it is part of a file's name.
	Name    string
	Picture Picture
}

// Picture can be drawn, such as a *plot.Curves.
type Picture interface {
	// Save writes the picture to a file, whose extension tells the format.
	Save(path string) error
}

// CheckPath returns an error if figures cannot be drawn to a path: it has the extension
// of a format of plot, or none, which means a folder.
func CheckPath(path string) error {
	if filepath.Ext(path) == "" {
		return nil
	}
	return plot.CheckPath(path)
}

// Drawer saves figures as they come. In a folder, which is created if it is missing, they are NAME.svg; a single
// figure goes to a file as it is named, and several to FILE-NAME.svg in place of FILE.svg.
type Drawer struct {
	path  string
	first string   // the name of the figure at path itself, "" if there is none
	files []string // what was written
	wrote func(file string)
}

// NewDrawer returns a drawer to a path that [CheckPath] accepts. wrote, unless it is nil, is called
// with every file that has been written or renamed.
func NewDrawer(path string, wrote func(file string)) *Drawer {
	if wrote == nil {
		wrote = func(string) {}
	}
	return &Drawer{path: path, wrote: wrote}
}

// Files returns the paths of the files that were written.
func (d *Drawer) Files() []string { return d.files }

// Draw saves a figure.
func (d *Drawer) Draw(f Figure) error {
	file, err := d.file(f.Name)
	if err != nil {
		return err
	}
	if err := f.Picture.Save(file); err != nil {
		return err
	}
	d.files = append(d.files, file)
	d.wrote(file)
	return nil
}

// file returns where the figure of a name belongs.
func (d *Drawer) file(name string) (string, error) {
	extension := filepath.Ext(d.path)
	if extension == "" {
		return filepath.Join(d.path, name+".svg"), os.MkdirAll(d.path, 0o777) //nolint:gosec // as the umask says
	}
	numbered := func(name string) string { return strings.TrimSuffix(d.path, extension) + "-" + name + extension }
	switch {
	case len(d.files) == 0:
		d.first = name
		return d.path, nil
	case d.first != "": // so that was not the only one
		d.files[0] = numbered(d.first)
		if err := os.Rename(d.path, d.files[0]); err != nil {
			return "", err
		}
		d.first = ""
		d.wrote(d.files[0])
	}
	return numbered(name), nil
}
