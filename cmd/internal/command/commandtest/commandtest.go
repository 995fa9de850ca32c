// Package commandtest checks the commands of a program against the documents that show
// them.
package commandtest

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/internal/require"
)

// CheckTable checks that the table of commands in a document lists every command of a
// program, and no other.
func CheckTable(t *testing.T, document string, root *cobra.Command) {
	t.Helper()
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	listed := make(map[string]bool)
	names := regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(string(text)) {
		first, ok := strings.CutPrefix(line, "| `"+root.Name()+" ")
		if !ok {
			continue
		}
		group := ""
		for i, name := range names.FindAllStringSubmatch("`"+strings.Split(first, "|")[0], -1) {
			words := strings.Fields(name[1])
			if i == 0 && len(words) > 1 {
				group = words[0] + " "
			}
			listed[group+words[len(words)-1]] = true
		}
	}
	var check func(cmd *cobra.Command, prefix string)
	check = func(cmd *cobra.Command, prefix string) {
		for _, sub := range cmd.Commands() {
			path := prefix + sub.Name()
			if sub.HasSubCommands() {
				check(sub, path+" ")
			} else if sub.Runnable() && !sub.Hidden && !listed[path] && path != "version" {
				t.Errorf("%s lacks %s %s", document, root.Name(), path)
			}
			delete(listed, path)
		}
	}
	check(root, "")
	for name := range listed {
		t.Errorf("%s lists %s %s, which does not exist", document, root.Name(), name)
	}
}
