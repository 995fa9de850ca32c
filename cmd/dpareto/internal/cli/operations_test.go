package cli

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write the table of settings into docs/operations.md")

// The table of settings in docs/operations.md is what the program has. Write it with
// go test ./cmd/dpareto/internal/cli -run TestSettingsTable -update.
func TestSettingsTable(t *testing.T) {
	var groups flagGroups
	new(serveFlags).add(&groups)
	var table strings.Builder
	for _, topic := range groups.names {
		fmt.Fprintf(&table, "\n%s:\n\n| setting | default | |\n|---|---|---|\n", topic)
		groups.sets[topic].VisitAll(func(flag *pflag.Flag) {
			value := flag.DefValue
			if value != "" && value != "[]" {
				value = "`" + value + "`"
			}
			usage, _, _ := strings.Cut(flag.Usage, " (env ")
			fmt.Fprintf(&table, "| `%s` | %s | %s |\n", flag.Name, value, usage)
		})
	}
	const begin, end = "<!-- settings -->\n", "\n<!-- end of settings -->"
	path := filepath.Join("..", "..", "..", "..", "docs", "operations.md")
	text := document(t, "operations.md")
	before, rest, ok := strings.Cut(text, begin)
	written, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("docs/operations.md has no place for the table of settings")
	}
	if written == table.String() {
		return
	}
	if !*update {
		t.Fatalf("the table of settings is stale; it should be\n%s", table.String())
	}
	if err := os.WriteFile(path, []byte(before+begin+table.String()+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Every command, flag and environment variable that docs/operations.md shows exists.
func TestOperationsNamesWhatExists(t *testing.T) {
	text := document(t, "operations.md")
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
