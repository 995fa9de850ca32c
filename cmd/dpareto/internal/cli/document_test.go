package cli_test

import (
	"encoding/csv"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/internal/command/commandtest"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/privacy"
)

// The reference lists every command.
func TestReferenceListsCommands(t *testing.T) {
	commandtest.CheckTable(t, filepath.Join(clitest.Root(t), "docs", "reference", "command-line.md"), root())
}

// Every dpareto command that stands alone in these documents works as it stands there.
func TestDocumentedCommands(t *testing.T) {
	least := map[string]int{"reference/privacy.md": 10, "reference/trainers.md": 3, "reference/data.md": 2, "how-to/estimating.md": 3}
	texts := make(map[string]string)
	for name := range least {
		texts[name] = strings.ReplaceAll(clitest.Document(t, filepath.Join("docs", filepath.FromSlash(name))), "\\\n", " ")
	}
	t.Chdir(t.TempDir()) // some write files
	for name, text := range texts {
		commands := 0
		for line := range strings.Lines(text) {
			rest, ok := strings.CutPrefix(line, "    dpareto ")
			if !ok {
				continue
			}
			commands++
			if _, stderr, code := clitest.Invoke(t, "", strings.Fields(rest)...); code != 0 {
				t.Errorf("%s: exit code %d: %s", strings.TrimSpace(line), code, stderr)
			}
		}
		if commands < least[name] {
			t.Errorf("%s: %d commands", name, commands)
		}
	}
}

// The table of accountants in docs/explanation/accounting.md is what the command below it prints with each.
func TestDocumentedAccountants(t *testing.T) {
	text := strings.ReplaceAll(clitest.Document(t, "docs/explanation/accounting.md"), "\\\n", " ")
	_, command, found := strings.Cut(text, "    dpareto ")
	if !found {
		t.Fatal("there is no command")
	}
	command, _, _ = strings.Cut(command, " --accountant exact\n")
	rows := regexp.MustCompile("(?m)^\\| `(\\w+)` \\|.*\\| ([\\d.]+) \\| ([\\d.]*) ?\\|$").FindAllStringSubmatch(text, -1)
	if len(rows) != 3 {
		t.Fatalf("%d rows, want 3", len(rows))
	}
	for _, row := range rows {
		stdout, _ := clitest.Must(t, "", append(strings.Fields(command), "--accountant", row[1])...)
		for _, bound := range []string{row[2] + " at most", row[3] + " at least"} {
			if !strings.HasPrefix(bound, " ") && !strings.Contains(stdout, bound) {
				t.Errorf("%s: no %q in\n%s", row[1], bound, stdout)
			}
		}
	}
}

// The table of ways to search in docs/reference/publishing.md is what the commands below it print.
func TestDocumentedSearch(t *testing.T) {
	text := strings.ReplaceAll(clitest.Document(t, "docs/reference/publishing.md"), "\\\n", " ")
	var printed []map[string]string // cells by way and column
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, "    dpareto privacy search")
		if !ok {
			continue
		}
		stdout, _ := clitest.Must(t, "", strings.Fields("privacy search"+rest+" --output csv")...)
		table, err := csv.NewReader(strings.NewReader(stdout)).ReadAll()
		require.NoError(t, err)
		cells := make(map[string]string)
		for _, row := range table[1:] {
			for i, name := range table[0] {
				cells[row[1]+"/"+name] = row[i]
			}
		}
		printed = append(printed, cells)
	}
	if len(printed) != 2 {
		t.Fatalf("%d commands, want 2", len(printed))
	}
	rows := 0
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if _, ok := printed[0][cells[0]+"/epsilon"]; !ok || len(cells) != 7 {
			continue
		}
		rows++
		want := []string{cells[0], printed[0][cells[0]+"/released"], printed[0][cells[0]+"/adaptive"]}
		for _, p := range printed {
			epsilon, err := strconv.ParseFloat(p[cells[0]+"/epsilon"], 64)
			require.NoError(t, err)
			want = append(want, show.NumberUp(epsilon))
			if cell := p[cells[0]+"/test_epsilon"]; cell != "" {
				test, err := strconv.ParseFloat(cell, 64)
				require.NoError(t, err)
				want = append(want, show.NumberUp(test))
			}
		}
		if want = append(want, printed[1][cells[0]+"/runs_for_budget"]); !slices.Equal(cells, want) {
			t.Errorf("row %q, want %q", cells, want)
		}
	}
	if want := strings.Count(strings.Join(slices.Collect(maps.Keys(printed[0])), "\n"), "/mean_runs"); rows != want {
		t.Errorf("%d rows, want %d", rows, want)
	}
}

// The table of costs in docs/reference/privacy.md is what the accountants say.
func TestDocumentedCosts(t *testing.T) {
	rows := 0
	for line := range strings.Lines(clitest.Document(t, "docs/reference/privacy.md")) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 13 {
			continue
		}
		var numbers [13]float64
		numeric := true
		for i, cell := range cells[1:] {
			x, err := strconv.ParseFloat(strings.TrimSpace(cell), 64)
			numbers[i+1], numeric = x, numeric && err == nil
		}
		if !numeric {
			continue // the heading
		}
		rows++
		n, m, sigma, steps, delta := int64(numbers[1]), int64(numbers[2]), numbers[3], int64(numbers[4]), numbers[5]
		guarantee := func(a privacy.Accountant, m privacy.Mechanism, steps int64) privacy.Guarantee {
			g, err := privacy.Epsilon(a, m, steps, delta)
			require.NoError(t, err)
			return g
		}
		fixed := privacy.FixedSizeGaussian{DatasetSize: n, BatchSize: m, NoiseMultiplier: sigma}
		poisson := func(a privacy.Adjacency) privacy.Mechanism {
			return privacy.PoissonGaussian{SamplingProbability: float64(m) / float64(n), NoiseMultiplier: 2 * sigma, Neighbours: a}
		}
		exact := guarantee(privacy.Exact{}, fixed, steps)
		passes := (steps-1)/(n/m) + 1
		want := []string{
			show.NumberUp(exact.Epsilon),
			show.NumberDown(exact.EpsilonLower),
			show.NumberUp(guarantee(privacy.RDP{}, fixed, steps).Epsilon),
			show.NumberUp(guarantee(privacy.RDP{Conversion: privacy.Classic}, fixed, steps).Epsilon),
			show.NumberUp(guarantee(privacy.Exact{}, poisson(privacy.ReplaceOne), steps).Epsilon),
			show.NumberUp(guarantee(privacy.Exact{}, poisson(privacy.AddRemove), steps).Epsilon),
			show.NumberUp(guarantee(privacy.Exact{}, privacy.ShuffledGaussian{NoiseMultiplier: sigma, Neighbours: privacy.ReplaceOne}, passes).Epsilon),
		}
		for i, w := range want {
			if got := strings.TrimSpace(cells[6+i]); got != w {
				t.Errorf("row %s, column %d: %s, want %s", strings.TrimSpace(cells[0]), 6+i, got, w)
			}
		}
	}
	if rows != 5 {
		t.Errorf("%d rows, want 5", rows)
	}
}

// Every relative link of a document leads to a file and, where it names one, to a heading there.
func TestLinks(t *testing.T) {
	root := clitest.Root(t)
	var documents []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "cmd/dpareto-lab/notes/*.md", "clients/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		require.NoError(t, err)
		documents = append(documents, found...)
	}
	links := 0
	for _, document := range documents {
		text, err := os.ReadFile(document)
		require.NoError(t, err)
		for _, link := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllSubmatch(text, -1) {
			target, err := url.Parse(string(link[1]))
			if err != nil || target.IsAbs() {
				continue
			}
			links++
			file := document
			if target.Path != "" {
				file = filepath.Join(filepath.Dir(document), filepath.FromSlash(target.Path))
			}
			content, err := os.ReadFile(file)
			if info, statErr := os.Stat(file); statErr == nil && info.IsDir() {
				continue
			}
			if err != nil || target.Fragment != "" && !slices.Contains(anchors(string(content)), target.Fragment) {
				t.Errorf("%s: %s leads nowhere", document, link[1])
			}
		}
	}
	if links < 150 {
		t.Errorf("%d links", links)
	}
}

// anchors returns the anchors of the headings of a document as GitHub makes them.
func anchors(document string) []string {
	var all []string
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(document, -1) {
		all = append(all, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r) || unicode.IsNumber(r) || r == '-' || r == '_':
				return unicode.ToLower(r)
			default:
				return -1
			}
		}, heading[1]))
	}
	return all
}
