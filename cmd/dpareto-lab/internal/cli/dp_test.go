package cli

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/surface/surfacetest"
	"github.com/dpareto/dpareto/cmd/internal/command"
)

func TestBenchDP(t *testing.T) {
	folder := surfacetest.Write(t, 60)
	results := filepath.Join(t.TempDir(), "results.jsonl")
	run := []string{
		"bench", "dp", "--surface", surfacetest.Name, "--tables", folder, "--smooth", "--designer", "RANDOM,quasi-random",
		"--seeds", "2", "--budget", "4", "--at", "2", "--results", results, "--output", "csv",
	}
	stdout, stderr, code := invoke(t, run...)
	if code != command.ExitOK || !strings.Contains(stderr, "4 of 4 studies") || !strings.Contains(stderr, "no digest") ||
		!strings.Contains(stderr, "60 runs in the table") {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	rows, err := csv.NewReader(strings.NewReader(stdout)).ReadAll()
	if err != nil || len(rows) != 5 {
		t.Fatalf("%d rows: %v\n%s", len(rows), err, stdout)
	}
	method, budget := slices.Index(rows[0], "method"), slices.Index(rows[0], "budget")
	for i, want := range []string{"quasi_random 2", "quasi_random 4", "random 2", "random 4"} {
		if got := rows[i+1][method] + " " + rows[i+1][budget]; got != want {
			t.Errorf("row %d is of %s, want %s", i, got, want)
		}
	}
	// The file of results alone gives the same table.
	without := slices.Delete(slices.Clone(run), 7, 9)
	again, stderr, code := invoke(t, without...)
	if code != command.ExitOK || again != stdout {
		t.Errorf("from the results, exit code %d, %s: %s", code, stderr, again)
	}
	content, err := os.ReadFile(results)
	if err != nil || strings.Count(string(content), "\n") != 4 {
		t.Errorf("results: %v\n%s", err, content)
	}
	if stdout, _, code := invoke(t, append(without, "--at-epochs", "2", "--output", "markdown")...); code != command.ExitOK || !strings.HasPrefix(stdout, "| surface | variant |") || !strings.Contains(stdout, "| epochs |") {
		t.Errorf("markdown, exit code %d:\n%s", code, stdout)
	}
}

func TestBenchDPUsage(t *testing.T) {
	for args, want := range map[string]string{
		"dp --designer random":                                                  "--surface must be one of adult-logistic-sgd",
		"dp --surface adult-svm-sgd --designer random":                          "--tables is required",
		"dp --surface adult-svm-sgd --tables x":                                 "--designer or --tool is required",
		"dp --surface adult-svm-sgd --tables x --designer oracle":               `is "oracle"`,
		"dp --surface adult-svm-sgd --tables x --designer random --at 31":       "--at must be 1 to 30",
		"dp --surface adult-svm-sgd --tables x --designer random --seeds 0":     "--seeds must be at least 1",
		"dp --surface adult-svm-sgd --tables x --designer random --at-epochs 0": "--at-epochs must be at least 1",
		"dp --surface adult-svm-sgd --tables x --tool x":                        "--tool",
		"dp --surface adult-svm-sgd --tables x --tool random=x":                 "must not be named like the designer random",
		"dp-table --surface adult --tables x":                                   "--surface must be one of",
		"dp-table --surface adult-svm-sgd":                                      "--tables is required",
		"dp-table --surface adult-svm-sgd --tables x --configurations 0":        "--configurations must be at least 1",
	} {
		_, stderr, code := invoke(t, append([]string{"bench"}, strings.Fields(args)...)...)
		if code != command.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, %q, want %q", args, code, stderr, want)
		}
	}
	_, stderr, code := invoke(t, "bench", "dp", "--surface", "adult-svm-sgd", "--tables", t.TempDir(), "--designer", "random")
	if code != command.ExitFailure || !strings.Contains(stderr, "dp-table makes it") {
		t.Errorf("without a table: exit code %d, %q", code, stderr)
	}
}
