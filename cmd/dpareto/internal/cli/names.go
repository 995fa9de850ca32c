package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/internal/command"
)

// studyID returns the id of the study that an argument names, with or without "studies/".
func studyID(arg string) string { return strings.TrimPrefix(arg, "studies/") }

// takeStudy has a command take its study as the argument STUDY or as --study.
func takeStudy(cmd *cobra.Command, study *string) {
	cmd.Flags().StringVar(study, "study", "", "id of the study, in place of the argument")
	cmd.Args = command.Args(func(_ *cobra.Command, given []string) error {
		if len(given) == 1 && *study == "" {
			*study = given[0]
			return nil
		}
		if len(given) > 0 || *study == "" {
			return errors.New("want one study, as an argument or with --study")
		}
		return nil
	})
}
