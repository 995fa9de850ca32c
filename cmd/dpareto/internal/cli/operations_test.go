package cli_test

import (
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
)

// Every command, flag and environment variable that docs/operations.md shows exists.
func TestOperationsNamesWhatExists(t *testing.T) {
	text := clitest.Document(t, "docs/operations.md")
	checkVariables(t, "operations.md", text)
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
		checkCommand(t, "operations.md", strings.Fields(strings.ReplaceAll(strings.TrimSuffix(rest, "&"), "'", "")))
		commands++
	}
	if commands < 10 {
		t.Errorf("%d commands", commands)
	}
}
