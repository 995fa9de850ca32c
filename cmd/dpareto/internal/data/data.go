// Package data holds the commands dpareto data: they list and download datasets, and check the user's own.
package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
)

// Command returns the command data.
func Command(env *command.Env) *cobra.Command {
	return command.Group("data", "List, download and check datasets",
		`Datasets that trainers know by name. Trainers download what they need themselves; these
commands do it beforehand, and show the downloaded ones.

Files are looked for in --data-dir, as DIR/FILE or DIR/DATASET/FILE, and then in the cache
folder of the user, where downloads are kept.

Your own data are a file and a schema. The command data schema proposes a schema, data check
reads the file as trainers do, and "dpareto study init --data" writes a study. To begin, data
example makes up a file.`,
		listCommand(env), fetchCommand(env), schemaCommand(env), checkCommand(env), exampleCommand(env))
}

func listCommand(env *command.Env) *cobra.Command {
	var dataDir string
	out := command.NewPrinter(env)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the datasets",
		Long: `Lists the datasets: examples to train on and to test with, features, classes, size of the
files, licence, and folder. The state is complete, partial, or absent.`,
		Example: `  dpareto data list
  dpareto data list --data-dir ~/data --output json`,
		Args: command.Args(command.NoArgs),
		RunE: func(*cobra.Command, []string) error { return list(out, dataDir) },
	}
	command.DataDirFlag(cmd, &dataDir)
	out.AddFlag(cmd)
	return cmd
}

type fetchFlags struct {
	all     bool
	dataDir string
	mirror  string
}

func fetchCommand(env *command.Env) *cobra.Command {
	var f fetchFlags
	out := command.NewPrinter(env)
	cmd := &cobra.Command{
		Use:   "fetch NAME... | --all",
		Short: "Download datasets",
		Long: `Downloads datasets into the cache folder, unless they are there or in --data-dir, and prints
where their files are. Files in the cache folder are checked, and replaced if they are
wrong.

Every file must have the digest that the program knows. A download that breaks off or stalls
is resumed a few times, and again when the command is repeated. Ctrl-C keeps what has been
received.`,
		Example: `  dpareto data fetch mnist
  dpareto data fetch --all --mirror https://mirror.example.org/data`,
		Args: command.Args(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, names []string) error { return fetch(cmd.Context(), env, out, names, f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.all, "all", false, "download all datasets that can be downloaded")
	flags.StringVar(&f.mirror, "mirror", "", "address that has the files as MIRROR/DATASET/FILE, in place of the canonical ones")
	command.FromEnvironment(flags, "mirror")
	command.DataDirFlag(cmd, &f.dataDir)
	out.AddFlag(cmd)
	return cmd
}

// dataNames returns the names of all datasets.
func dataNames() []string {
	var names []string
	for _, info := range dataset.Catalog() {
		names = append(names, info.Name)
	}
	return names
}

// States of a dataset.
const (
	dataComplete = "complete"
	dataPartial  = "partial"
	dataAbsent   = "absent"
)

// dataState is a dataset and where it is.
type dataState struct {
	info  dataset.Info
	paths []string // of the files, in their order; "" for one that is not there
}

// state tells how many of the files are there.
func (d *dataState) state() string {
	switch absent := slices.Index(d.paths, ""); {
	case absent < 0:
		return dataComplete
	case slices.ContainsFunc(d.paths, func(path string) bool { return path != "" }):
		return dataPartial
	default:
		return dataAbsent
	}
}

// folders returns the folders of the files that are there.
func (d *dataState) folders() []string {
	var folders []string
	for _, path := range d.paths {
		if folder := filepath.Dir(path); path != "" && !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	return folders
}

// list prints all datasets.
func list(out *command.Printer, dataDir string) error {
	if err := command.CheckDataDir(dataDir); err != nil {
		return err
	}
	source := dataset.Source{DataDir: dataDir}
	var states []dataState
	for _, info := range dataset.Catalog() {
		paths, err := source.Find(info.Name)
		if err != nil {
			return err
		}
		states = append(states, dataState{info, paths})
	}
	if out.Format == output.JSON {
		return printJSON(out, states)
	}
	table := &output.Table{Columns: []string{
		"dataset", "train", "test", "features", "classes", "megabytes", "licence", "state", "folder",
	}}
	for _, s := range states {
		var megabytes any
		if size := s.info.Size(); size > 0 {
			megabytes = float64(size) / 1e6
		}
		var test any
		if s.info.TestRows > 0 {
			test = int64(s.info.TestRows)
		}
		where := strings.Join(s.folders(), " ")
		if where == "" && !downloadable(s.info) {
			where = "(has to be in --data-dir)"
		}
		table.Rows = append(table.Rows, []any{
			s.info.Name, int64(s.info.TrainRows), test, int64(s.info.Dim), int64(s.info.Classes),
			megabytes, s.info.Licence, s.state(), where,
		})
	}
	return out.Table(table)
}

// downloadable reports whether all files can be downloaded.
func downloadable(info dataset.Info) bool {
	return !slices.ContainsFunc(info.Files, func(f dataset.FileInfo) bool { return !f.Downloadable })
}

// dataJSON is a dataset in JSON.
type dataJSON struct {
	Name      string         `json:"name"`
	Summary   string         `json:"summary"`
	Licence   string         `json:"licence"`
	TrainRows int            `json:"train_rows"`
	TestRows  int            `json:"test_rows"` // 0 if the dataset is not divided
	Features  int            `json:"features"`
	Classes   int            `json:"classes"`
	State     string         `json:"state"`
	Files     []dataFileJSON `json:"files"`
}

// dataFileJSON is a file of a dataset in JSON.
type dataFileJSON struct {
	Name         string   `json:"name"`
	Bytes        int64    `json:"bytes,omitempty"` // absent if it is not known
	URLs         []string `json:"urls"`
	Downloadable bool     `json:"downloadable"`
	Path         string   `json:"path,omitempty"` // absent if it is not there
}

func printJSON(out io.Writer, states []dataState) error {
	list := make([]dataJSON, len(states))
	for i, s := range states {
		list[i] = dataJSON{
			Name: s.info.Name, Summary: s.info.Summary, Licence: s.info.Licence,
			TrainRows: s.info.TrainRows, TestRows: s.info.TestRows,
			Features: s.info.Dim, Classes: s.info.Classes, State: s.state(),
		}
		for k, f := range s.info.Files {
			list[i].Files = append(list[i].Files, dataFileJSON{
				Name: f.Name, Bytes: f.Size, URLs: f.URLs, Downloadable: f.Downloadable, Path: s.paths[k],
			})
		}
	}
	return output.WriteJSON(out, list)
}

// validate checks the flags and returns the names of the datasets to download.
func (f *fetchFlags) validate(names []string) ([]string, error) {
	known := dataNames()
	switch {
	case f.all && len(names) > 0:
		return nil, errors.New("data fetch: name datasets, or give --all, but not both")
	case f.all:
		return known, nil
	case len(names) == 0:
		return nil, fmt.Errorf("data fetch: name a dataset (%s), or give --all", strings.Join(known, ", "))
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("data fetch: dataset must be one of %s, is %q", strings.Join(known, ", "), name)
		}
	}
	return names, nil
}

// fetch downloads datasets and prints where they are. It goes on after a failure.
func fetch(ctx context.Context, env *command.Env, out *command.Printer, names []string, f fetchFlags) error {
	names, err := f.validate(names)
	if err != nil {
		return command.Usage(err)
	}
	if err := command.CheckDataDir(f.dataDir); err != nil {
		return err
	}
	var states []dataState
	var failed error
	for _, info := range dataset.Catalog() {
		if !slices.Contains(names, info.Name) {
			continue
		}
		progress := env.Download("downloading " + info.Name)
		source := dataset.Source{DataDir: f.dataDir, Mirror: f.mirror, Progress: progress.Set}
		paths, err := source.Fetch(ctx, info.Name)
		progress.Finish()
		switch {
		case err == nil:
			states = append(states, dataState{info, paths})
		case ctx.Err() != nil:
			return err
		case f.all && !downloadable(info) && errors.Is(err, fs.ErrNotExist):
			env.Sayf("%s is left out: it cannot be downloaded, and has to be in --data-dir\n", info.Name)
		default:
			failed = errors.Join(failed, err)
		}
	}
	return errors.Join(printFetched(out, states), failed)
}

// printFetched prints the files of datasets.
func printFetched(out *command.Printer, states []dataState) error {
	if out.Format == output.JSON {
		return printJSON(out, states)
	}
	table := &output.Table{Columns: []string{"dataset", "file"}}
	for _, s := range states {
		for _, path := range s.paths {
			table.Rows = append(table.Rows, []any{s.info.Name, path})
		}
	}
	return out.Table(table)
}
