package cli

import (
	"context"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/console"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/cmd/internal/plot"
)

// reproduceFlags are the flags of every experiment.
type reproduceFlags struct {
	picture string
	format  output.Format
}

func (f *reproduceFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.picture, "plot", "", "also draw the figures, to a folder of the experiment in this folder, or to a file ("+plot.Formats+")")
	command.OutputFlag(cmd, &f.format)
}

// run runs an experiment, draws its figures as they come if there is a path for them, and prints its
// tables and how long it took. What could not be run without data is named, and no error.
func (f *reproduceFlags) run(ctx context.Context, env *command.Env, e reproduce.Experiment, dataDir string, k kept) error {
	if err := command.CheckDataDir(dataDir); err != nil {
		return err
	}
	if err := e.Validate(); err != nil {
		return command.Usage(err)
	}
	if f.picture != "" {
		if err := reproduce.CheckPath(f.picture); err != nil {
			return command.Usage(err)
		}
	}
	start := time.Now()
	var bar *console.Progress
	before := 0
	watch := reproduce.Watch{Progress: func(done, total int) {
		switch {
		case bar == nil:
			bar = env.Console.Start(e.Name(), int64(total), "runs")
		case total != before: // of the next of several experiments
			bar.Restart(e.Name(), int64(total), "runs")
		}
		before = total
		bar.Set(int64(done), "")
	}}
	if f.picture != "" {
		path := f.picture
		if filepath.Ext(path) == "" {
			path = filepath.Join(path, e.Name()) // a folder of several experiments
		}
		watch.Draw = reproduce.NewDrawer(path, func(file string) { env.Logger.Info("drew a figure", "file", file) }).Draw
	}
	result, err := e.Run(ctx, watch)
	bar.Finish()
	if line, ok := reproduce.Missing(e.Name(), err); ok {
		result, err = &reproduce.Result{Report: output.Report{Title: e.Name()}, Missing: []string{line}}, nil
	}
	if err != nil {
		return interrupted(ctx, env, err, k)
	}
	for _, line := range result.Missing {
		env.Logger.Warn(line)
	}
	result.Report.Version, result.Report.Command = command.Version(), env.CommandLine()
	result.Report.Notes = append(result.Report.Notes, result.Missing...)
	if err := result.Report.Write(env.Stdout, f.format); err != nil {
		return err
	}
	env.Logger.Info("finished "+e.Name(), "took", time.Since(start).Round(time.Millisecond))
	return nil
}
