package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/clients/go/dataset"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
)

func (a *app) dataCommand() *cobra.Command {
	group := command.Group("data", "List and download datasets", `Datasets that trainers know by name. Trainers download what they need by themselves; these
commands do it beforehand, and show what is there.

Files are looked for in --data-dir, as DIR/FILE or DIR/DATASET/FILE, and then in the cache
folder of the user, where downloads are kept.`)
	group.AddCommand(a.dataListCommand(), a.dataFetchCommand())
	return group
}

func (a *app) dataListCommand() *cobra.Command {
	var dataDir string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the datasets",
		Long: `Lists the datasets: examples to train on and to test with, features, classes, size of the
files, licence, and where they lie. The state is complete, partial, or absent.`,
		Example: `  dpareto data list
  dpareto data list --data-dir ~/data --output json`,
		Args: command.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return a.listData(dataDir) },
	}
	command.DataDirFlag(cmd, &dataDir)
	command.OutputFlag(cmd, &a.output)
	return cmd
}

type fetchFlags struct {
	all     bool
	dataDir string
	mirror  string
}

func (a *app) dataFetchCommand() *cobra.Command {
	var f fetchFlags
	cmd := &cobra.Command{
		Use:   "fetch NAME... | --all",
		Short: "Download datasets",
		Long: `Downloads datasets into the cache folder, unless they are there or in --data-dir, and prints
where their files are. Files in the cache folder are checked, and replaced if they are
wrong.

Every file has to have the digest that the program knows of it. A download that breaks off
or stands still goes on where it stopped, a few times at once and otherwise when the command
is run again. Ctrl-C keeps what has been received.`,
		Example: `  dpareto data fetch mnist
  dpareto data fetch --all --mirror https://mirror.example.org/data`,
		Args:      command.Args(cobra.ArbitraryArgs),
		ValidArgs: dataNames(),
		RunE:      func(cmd *cobra.Command, names []string) error { return a.fetchData(cmd.Context(), names, f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.all, "all", false, "download all datasets that can be downloaded")
	flags.StringVar(&f.mirror, "mirror", "", "address that has the files as MIRROR/DATASET/FILE, in place of the canonical ones")
	command.FromEnvironment(flags, "mirror")
	command.DataDirFlag(cmd, &f.dataDir)
	command.OutputFlag(cmd, &a.output)
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

// listData prints all datasets.
func (a *app) listData(dataDir string) error {
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
	if a.output == output.JSON {
		return a.printDataJSON(states)
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
	return a.printTable(table)
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
	TestRows  int            `json:"test_rows"` // 0 if the dataset has no division of its own
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

func (a *app) printDataJSON(states []dataState) error {
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
	encoder := json.NewEncoder(a.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(list)
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
			return nil, fmt.Errorf("data fetch: dataset %q is unknown, want one of %s", name, strings.Join(known, ", "))
		}
	}
	return names, nil
}

// fetchData downloads datasets and prints where they are. One that fails does not keep
// the others from being downloaded.
func (a *app) fetchData(ctx context.Context, names []string, f fetchFlags) error {
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
		progress := a.Download("downloading " + info.Name)
		source := dataset.Source{DataDir: f.dataDir, Mirror: f.mirror, Progress: progress.Set}
		paths, err := source.Fetch(ctx, info.Name)
		progress.Finish()
		switch {
		case err == nil:
			states = append(states, dataState{info, paths})
		case ctx.Err() != nil:
			return err
		case f.all && !downloadable(info) && errors.Is(err, fs.ErrNotExist):
			a.Sayf("%s is left out: it cannot be downloaded, and has to be in --data-dir\n", info.Name)
		default:
			failed = errors.Join(failed, err)
		}
	}
	return errors.Join(a.printFetched(states), failed)
}

// printFetched prints the files of datasets.
func (a *app) printFetched(states []dataState) error {
	if a.output == output.JSON {
		return a.printDataJSON(states)
	}
	table := &output.Table{Columns: []string{"dataset", "file"}}
	for _, s := range states {
		for _, path := range s.paths {
			table.Rows = append(table.Rows, []any{s.info.Name, path})
		}
	}
	return a.printTable(table)
}
