package remote

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/internal/command"
)

// StudyID returns the id of the study that an argument names, with or without "studies/".
func StudyID(arg string) string { return strings.TrimPrefix(arg, "studies/") }

// TakeStudy has a command take its study as the argument STUDY or as --study.
func TakeStudy(cmd *cobra.Command, study *string) {
	cmd.Flags().StringVar(study, "study", "", "id of the study, in place of the argument")
	cmd.Args = command.Args(func(_ *cobra.Command, given []string) error {
		if len(given) == 1 && *study == "" {
			*study = given[0]
			return nil
		}
		if len(given) > 0 || *study == "" {
			return errors.New("name one study, as an argument or with --study")
		}
		return nil
	})
}
