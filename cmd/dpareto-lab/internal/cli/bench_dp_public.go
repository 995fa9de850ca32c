package cli

import (
	"errors"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/surface"
	"github.com/dpareto/dpareto/cmd/internal/command"
)

// publicCommand writes the runs that the engine begins with.
func publicCommand(env *command.Env) *cobra.Command {
	var folder string
	var most int
	cmd := &cobra.Command{
		Use:   "dp-public --tables DIR",
		Short: "Write the public runs that the engine begins with",
		Long: `Writes the ends of the runs of all tables in a folder as suggest/dpsgd/public.csv: what models
expect of the error of DP-SGD before a study has runs of its own.`,
		Example: `  dpareto-lab bench dp-public --tables ~/dp-tables > suggest/dpsgd/public.csv`,
		Args:    command.Args(command.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if folder == "" {
				return command.Usagef("--tables is required: the folder of the tables, see dpareto-lab bench dp-table")
			}
			if most < 2 {
				return command.Usagef("--configurations must be at least 2, is %d", most)
			}
			var tables []*surface.Table
			for _, name := range surface.Names() {
				s, err := surface.ByName(name)
				if err != nil {
					return err
				}
				switch t, err := surface.Read(s, folder); {
				case errors.Is(err, fs.ErrNotExist):
					env.Sayf("%s: no table\n", name)
				case err != nil:
					return err
				default:
					tables = append(tables, t)
				}
			}
			return surface.WritePublicRuns(env.Stdout, tables, most)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&folder, "tables", "", "folder of the tables")
	flags.IntVar(&most, "configurations", 150, "number of configurations of each table, at most")
	return cmd
}
