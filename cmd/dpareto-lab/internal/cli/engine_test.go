package cli

import (
	"encoding/csv"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/internal/command"
)

func TestBenchEngine(t *testing.T) {
	for _, problem := range []string{"zdt2", "NoisyBraninCurrin"} {
		run := []string{
			"bench", "engine", "--problem", problem, "--designer", "RANDOM,quasi-random", "--seeds", "2", "--budget", "12",
			"--at", "11",
		}
		stdout, stderr, code := invoke(t, append(run, "--output", "csv")...)
		if code != command.ExitOK || !strings.Contains(stderr, "48 of 48 runs") {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		rows, err := csv.NewReader(strings.NewReader(stdout)).ReadAll()
		if err != nil || len(rows) != 5 {
			t.Fatalf("%d rows: %v", len(rows), err)
		}
		get := func(row int, name string) string {
			i := slices.Index(rows[0], name)
			if i < 0 {
				t.Fatalf("no column %s among %v", name, rows[0])
			}
			return rows[row][i]
		}
		for row, want := range []string{"random 11", "random 12", "quasi_random 11", "quasi_random 12"} {
			if got := get(row+1, "designer") + " " + get(row+1, "budget"); got != want {
				t.Errorf("row %d is of %s, want %s", row, got, want)
			}
			for _, name := range []string{
				"seeds", "observed_hypervolume_mean", "observed_hypervolume_sd", "true_hypervolume_mean", "true_hypervolume_sd",
				"log10_difference_mean", "log10_difference_sd", "claimed_hypervolume_mean", "cpu_seconds_per_suggestion",
			} {
				if _, err := strconv.ParseFloat(get(row+1, name), 64); err != nil {
					t.Errorf("row %d: %s: %v", row, name, err)
				}
			}
			if got := get(row+1, "remeasured_hypervolume_mean"); got != "" {
				t.Errorf("remeasured %s without being asked to", got)
			}
		}
		stdout, _, code = invoke(t, append(run, "--output", "markdown")...)
		if code != command.ExitOK || !strings.HasPrefix(stdout, "| problem | designer |") || strings.Count(stdout, "\n") != 6 {
			t.Errorf("markdown, exit code %d:\n%s", code, stdout)
		}
		stdout, _, code = invoke(t, append(run, "--by-seed", "--noise", "0.1", "--unknown-noise", "--output", "csv")...)
		if code != command.ExitOK || !strings.HasPrefix(stdout, "problem,designer,seed,budget,") || strings.Count(stdout, "\n") != 9 {
			t.Errorf("by seed, exit code %d:\n%s", code, stdout)
		}
		stdout, _, code = invoke(t, append(run, "--output", "json")...)
		var objects []map[string]any
		if err := json.Unmarshal([]byte(stdout), &objects); err != nil || code != command.ExitOK || len(objects) != 4 {
			t.Errorf("JSON, exit code %d: %v:\n%s", code, err, stdout)
		}
	}
}

func TestBenchEngineUsage(t *testing.T) {
	for args, want := range map[string]string{
		"":                                 "--problem is required",
		"--problem zdt1":                   "--designer or --tool is required",
		"--problem zdt1 --designer oracle": `ehvi_exact, grid, nsga2, quasi_random, random, is "oracle"`,
		"--problem zdt1 --designer random --noise -1":        "--noise must be a finite number, at least 0, is -1",
		"--problem svt --designer random --noise 0.1":        "--noise is for test problems",
		"--problem zdt1 --designer random --budget 0":        "--budget must be at least 1, is 0",
		"--problem zdt1 --designer random --remeasure 5":     "has no noise",
		"--problem zdt1 --designer random --output xml":      "must be table, json, csv or markdown",
		"--problem zdt1 --designer random --at 60 --seeds 1": "1 to 50",
		"--problem adults --designer random":                 "--problem must be one of branin_currin",
	} {
		_, stderr, code := invoke(t, append([]string{"bench", "engine"}, strings.Fields(args)...)...)
		if code != command.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, %q, want %q", args, code, stderr, want)
		}
	}
}
