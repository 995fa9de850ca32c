package reproduce

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dpareto/dpareto/clients/go/dataset"
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
	// Run computes the result. It calls progress with the amount done and the total, which
	// is at least 1, from one goroutine at a time. It fails if data cannot be read or ctx
	// is done. Where some parts need data that are missing it runs the others, and names
	// these in Result.Missing; see [Missing].
	Run(ctx context.Context, progress func(done, total int)) (*Result, error)
}

// Result is the result of an experiment.
type Result struct {
	Report  output.Report
	Figures []Figure
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

// Draw saves the figures. In a folder, which is created if it is missing, they are NAME.svg; a single figure
// goes to a file as it is named, and several to FILE-NAME.svg in place of FILE.svg. It returns the files' paths.
func (r *Result) Draw(path string) (files []string, err error) {
	extension := filepath.Ext(path)
	if extension == "" {
		if err := os.MkdirAll(path, 0o777); err != nil { //nolint:gosec // as the umask says
			return nil, err
		}
	}
	for _, f := range r.Figures {
		file := path
		switch {
		case extension == "":
			file = filepath.Join(path, f.Name+".svg")
		case len(r.Figures) > 1:
			file = strings.TrimSuffix(path, extension) + "-" + f.Name + extension
		}
		if err := f.Picture.Save(file); err != nil {
			return files, err
		}
		files = append(files, file)
	}
	return files, nil
}
