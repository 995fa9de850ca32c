package cli

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset/datasettest"
	"github.com/dpareto/dpareto/cmd/internal/command"
)

// printedReport is a report as JSON.
type printedReport struct {
	Title    string           `json:"title"`
	Sections []printedSection `json:"sections"`
}

type printedSection struct {
	Name string           `json:"name"`
	Rows []map[string]any `json:"rows"`
}

// report runs an experiment with --output json.
func report(t *testing.T, line string) (r printedReport) {
	t.Helper()
	stdout, stderr, code := invoke(t, append(append([]string{"reproduce"}, strings.Fields(line)...), "--output", "json")...)
	if code != command.ExitOK {
		t.Fatalf("%s: exit code %d: %s", line, code, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%s: %v\n%s", line, err, stdout)
	}
	return r
}

func TestReproduceFastEstimation(t *testing.T) {
	data := datasettest.Folder(t, "adult")
	folder := filepath.Join(t.TempDir(), "figures")
	run := []string{
		"reproduce", "fast-estimation", "--dataset", "adult", "--loss", "lr", "--rows", "100", "--draws", "1", "--data-dir", data,
	}
	stdout, stderr, code := invoke(t, append(run, "--plot", folder)...)
	if code != command.ExitOK || !strings.Contains(stderr, "figure1-gamma.svg") || !strings.Contains(stderr, "took=") {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{"Table 1", "0.008230", "hermite_3", "Figure 2", "n=200", "2.371", "may be released"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	figure, err := os.ReadFile(filepath.Join(folder, "fast-estimation", "figure2-laplace.svg"))
	if err != nil || !strings.Contains(string(figure), "measured at 0.25") {
		t.Errorf("figure 2: %v", err)
	}
	stdout, stderr, code = invoke(t, append(run, "--output", "csv")...)
	if rows, err := csv.NewReader(strings.NewReader(stdout)).ReadAll(); code != command.ExitOK || err != nil || len(rows) != 1+8+3+4+5+5+9+5 {
		t.Errorf("exit code %d, %d rows of CSV: %v: %s", code, len(rows), err, stderr)
	}
	if r := report(t, strings.Join(run[1:], " ")); len(r.Sections) != 7 {
		t.Errorf("%d sections of JSON", len(r.Sections))
	}
}

func TestReproduceUsage(t *testing.T) {
	for args, want := range map[string]string{
		"genesis":                            "unknown command",
		"fast-estimation --dataset mnist":    `--dataset must be some of adult, kddcup99, gisette, covertype, is "mnist"`,
		"fast-estimation --loss hinge":       `--loss must be some of lr, svm, is "hinge"`,
		"fast-estimation --rows 10":          "--rows must be at least 100, is 10",
		"fast-estimation --plot figures.pdf": ".svg, .png",
		"fast-estimation --output markdown":  "must be one of table, json, csv",
		"fast-estimation adult":              "unknown command",
		"dpareto --whole-mnist":              "--store must name a file",
	} {
		_, stderr, code := invoke(t, append([]string{"reproduce"}, strings.Fields(args)...)...)
		if code != command.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, %q, want %q", args, code, stderr, want)
		}
	}
	if _, stderr, code := invoke(t, "reproduce", "fast-estimation", "--data-dir", "/missing"); code != command.ExitFailure || !strings.Contains(stderr, "--data-dir") {
		t.Errorf("a missing folder: exit code %d, %q", code, stderr)
	}
	store := filepath.Join(t.TempDir(), "missing", "store.db")
	if _, stderr, code := invoke(t, "reproduce", "dpareto", "table1", "--store", store); code != command.ExitFailure || !strings.Contains(stderr, store) {
		t.Errorf("a store in no folder: exit code %d, %q", code, stderr)
	}
}

// The reproductions run in a small size, and can be drawn.
func TestReproduceTuning(t *testing.T) {
	folder := t.TempDir()
	r := report(t, "propose-test --runs 5 --plot "+filepath.Join(folder, "a"))
	if !slices.ContainsFunc(r.Sections, func(s printedSection) bool { return s.Name == "comparison" && len(s.Rows) > 0 }) {
		t.Errorf("no comparison among %+v", r.Sections)
	}
	r = report(t, "dp-bayesian-optimization --generated --side 2 --train-rows 200 --sizes 100 --pairs 2 --records 100 --plot "+filepath.Join(folder, "b.svg"))
	if !strings.Contains(r.Title, "generated data") {
		t.Errorf("%q", r.Title)
	}
	for _, file := range []string{"a/propose-test/figure1.svg", "a/propose-test/figure2.svg", "b.svg"} {
		if _, err := os.Stat(filepath.Join(folder, file)); err != nil {
			t.Error(err)
		}
	}
	for _, line := range []string{"propose-test --runs 1", "dp-bayesian-optimization --pairs 0", "propose-test --plot x.txt"} {
		if _, stderr, code := invoke(t, append([]string{"reproduce"}, strings.Fields(line)...)...); code != command.ExitUsage {
			t.Errorf("%s: exit code %d: %s", line, code, stderr)
		}
	}
}

// Without data and a way to download them, what needs none is computed, and the rest named.
func TestReproduceWithoutData(t *testing.T) {
	for _, variable := range []string{"DPARETO_DATA_DIR", "HOME", "XDG_CACHE_HOME", "LocalAppData"} {
		t.Setenv(variable, "") // no folder for downloads: they fail
	}
	for line, sections := range map[string]int{
		"fast-estimation --draws 1":                      3,
		"propose-test --adult --runs 2":                  4,
		"dp-bayesian-optimization":                       2,
		"private-front --quick --output json":            0,
		"fast-estimation --dataset adult --plot figures": 3,
	} {
		t.Chdir(t.TempDir())
		r := report(t, line)
		if len(r.Sections) < sections || r.Title == "" {
			t.Errorf("%s: %d sections of %q", line, len(r.Sections), r.Title)
		}
		_, stderr, _ := invoke(t, append([]string{"reproduce"}, strings.Fields(line)...)...)
		if !strings.Contains(stderr, "was not run, its data are missing") {
			t.Errorf("%s does not say what is missing: %s", line, stderr)
		}
	}
}
