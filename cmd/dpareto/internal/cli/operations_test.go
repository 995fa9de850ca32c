package cli_test

import (
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
)

// Every command, flag and environment variable that docs/operations.md shows exists.
func TestOperationsNamesWhatExists(t *testing.T) { checkDocument(t, "operations.md", 10) }

// checkDocument checks the commands, flags and environment variables of a document, which has at least so
// many commands.
func checkDocument(t *testing.T, name string, least int) {
	t.Helper()
	text := clitest.Document(t, "docs/"+name)
	checkVariables(t, name, text)
	commands := 0
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		line = strings.TrimSpace(line)
		rest, ok := strings.CutPrefix(strings.TrimPrefix(line, "sudo -u dpareto "), "dpareto ")
		if !ok {
			continue
		}
		rest, _, _ = strings.Cut(rest, " >")
		rest, _, _ = strings.Cut(rest, " #")
		rest, _, _ = strings.Cut(rest, " |")
		checkCommand(t, name, strings.Fields(strings.ReplaceAll(strings.TrimSuffix(rest, "&"), "'", "")))
		commands++
	}
	if commands < least {
		t.Errorf("%d commands", commands)
	}
}
