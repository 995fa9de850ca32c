package estimate_test

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/clients/go/trainer/objectiveperturbation"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/internal/require"
)

// estimateArgs are the flags of a small problem on generated examples.
func estimateArgs(command string, more ...string) []string {
	return append([]string{"estimate", command, "--set", "generated=true", "--set", "train_rows=1000"}, more...)
}

// readCSV returns the cells of a table by the names of the columns, and the rows.
func readCSV(t *testing.T, text string) []map[string]float64 {
	t.Helper()
	records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(records) < 2 {
		t.Fatalf("%q: %v", text, err)
	}
	var rows []map[string]float64
	for _, record := range records[1:] {
		row := make(map[string]float64)
		for i, cell := range record {
			x, err := strconv.ParseFloat(cell, 64)
			if err != nil {
				x = math.NaN()
			}
			row[records[0][i]] = x
		}
		rows = append(rows, row)
	}
	return rows
}

// Interpolated and exact curves agree, in all forms, and say what they are not.
func TestEstimateCurve(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "curve.svg")
	run := func(args ...string) (string, string) {
		t.Helper()
		stdout, stderr, code := clitest.Invoke(t, "", estimateArgs("curve", append(args, "--epsilons", "0.2..4/5", "--draws", "3")...)...)
		if code != command.ExitOK {
			t.Fatalf("%q: exit code %d: %s", args, code, stderr)
		}
		return stdout, stderr
	}
	table, notes := run("--plot", picture, "--anchors", "5")
	if !strings.HasPrefix(table, "epsilon  train_loss  train_loss_se") || strings.Count(table, "\n") != 6 {
		t.Errorf("table %s", table)
	}
	for _, want := range []string{"pure ε-DP", "replaced", "NOT differentially private", "0.6931", "generated", "5 exact trainings for each of 3 draws"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q: %s", want, notes)
		}
	}
	if svg, err := os.ReadFile(picture); err != nil || !strings.Contains(string(svg), "not differentially private") || !strings.Contains(string(svg), "loss of no model") {
		t.Errorf("picture of %d bytes, %v", len(svg), err)
	}
	text, _ := run("--output", "csv", "--anchors", "5")
	exactText, _ := run("--output", "csv", "--method", "newton")
	rows, exact := readCSV(t, text), readCSV(t, exactText)
	for i, want := range exact {
		if got := rows[i]; got["epsilon"] != want["epsilon"] || math.Abs(got["held_out_loss"]-want["held_out_loss"]) > 5e-3 || !(got["held_out_error_sd"] >= 0) {
			t.Errorf("row %d: %v, want %v", i, got, want)
		}
	}
	encoded, _ := run("--output", "json", "--loss", "huber", "--calibration", "continuous", "--method", "line")
	var document struct {
		Private     *bool                `json:"differentially_private"`
		Notes       []string             `json:"notes"`
		TrivialLoss float64              `json:"trivial_loss"`
		Rows        []map[string]float64 `json:"rows"`
	}
	require.NoError(t, json.Unmarshal([]byte(encoded), &document))
	if document.Private == nil || *document.Private || len(document.Notes) != 4 || document.TrivialLoss != 1 || len(document.Rows) != 5 || document.Rows[0]["epsilon"] != 0.2 {
		t.Errorf("document %+v", document)
	}
	if alone, _, code := clitest.Invoke(t, "", estimateArgs("curve", "--epsilons", "0.5", "--draws", "1", "--output", "csv")...); code != command.ExitOK || len(readCSV(t, alone)) != 1 {
		t.Errorf("one value: exit code %d, %s", code, alone)
	}
}

func TestEstimateEpsilonFor(t *testing.T) {
	run := func(target string, more ...string) (stdout, stderr string, code int) {
		return clitest.Invoke(t, "", estimateArgs("epsilon-for", append(more, "--epsilons", "0.5..8", "--draws", "4", "--target", target, "--output", "csv")...)...)
	}
	stdout, stderr, code := run("0.8", "--metric", "held-out-loss")
	if code != command.ExitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	row := readCSV(t, stdout)[0]
	if !(row["epsilon"] > 0.5 && row["epsilon"] < 8 && row["single_lower"] <= row["epsilon"] && row["epsilon_se"] > 0) || !strings.Contains(stderr, "NOT differentially private") {
		t.Errorf("%v, %s", row, stderr)
	}
	// The curve has the target there.
	curve, _, code := clitest.Invoke(t, "", estimateArgs("curve", "--epsilons", "0.5,"+strconv.FormatFloat(row["epsilon"], 'g', -1, 64)+",8", "--draws", "4", "--output", "csv")...)
	if code != command.ExitOK || math.Abs(readCSV(t, curve)[1]["held_out_loss"]-0.8) > 1e-4 {
		t.Errorf("curve %s", curve)
	}
	// A multiple of the loss at an ε is the same as its value there.
	start, _, _ := clitest.Invoke(t, "", estimateArgs("curve", "--epsilons", "0.5,1,8", "--draws", "4", "--output", "csv")...)
	lower := strconv.FormatFloat(readCSV(t, start)[1]["held_out_loss"]*0.9, 'g', -1, 64)
	absolute, _, _ := run(lower)
	if relative, stderr, _ := run("0.9", "--relative-to", "1"); absolute == "" || math.Abs(readCSV(t, relative)[0]["epsilon"]-readCSV(t, absolute)[0]["epsilon"]) > 1e-4 {
		t.Errorf("nine tenths of the loss at ε = 1: %s, want %s; %s", relative, absolute, stderr)
	}
	if _, stderr, code := run("0.01"); code != command.ExitFailure || !strings.Contains(stderr, "not reachable") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if stdout, stderr, code := run("9", "--metric", "train_loss"); code != command.ExitOK || !strings.Contains(stderr, "less than ε = 0.5000 may do") || readCSV(t, stdout)[0]["epsilon"] != 0.5 {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}

func TestEstimateModel(t *testing.T) {
	stdout, stderr, code := clitest.Invoke(t, "", estimateArgs("model", "--epsilon", "0.6", "--epsilons", "0.3..1", "--exact", "--output", "csv")...)
	if code != command.ExitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	rows := readCSV(t, stdout)
	if len(rows) != 123 {
		t.Fatalf("%d weights", len(rows))
	}
	var distance, norm float64
	for _, row := range rows {
		distance += (row["estimated"] - row["trained"]) * (row["estimated"] - row["trained"])
		norm += row["trained"] * row["trained"]
	}
	if !(distance > 0 && distance < 1e-4*norm) {
		t.Errorf("squared distance %v of norm %v", distance, norm)
	}
	for _, want := range []string{"NOT for release", "reveals the noise", "estimated model at ε = 0.6000", "distance of the two"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("the notes lack %q: %s", want, stderr)
		}
	}
}

func TestEstimateRefusals(t *testing.T) {
	for _, tt := range []struct {
		command, args string
		code          int
		want          string
	}{
		{"curve", "--epsilons 0", command.ExitUsage, "must be positive numbers, has"},
		{"curve", "--method guess", command.ExitUsage, "hermite, newton or line"},
		{"curve", "--draws 0", command.ExitUsage, "at least 1"},
		{"curve", "--regularization 0", command.ExitUsage, "regularization"},
		{"curve", "--loss hinge", command.ExitUsage, "logistic or huber"},
		{"curve", "--set loss=huber", command.ExitUsage, "give --loss"},
		{"curve", "--calibration chaudhuri --split 0.1", command.ExitUsage, "rank-one"},
		{"curve", "--plot curve.txt", command.ExitUsage, ".svg"},
		{"curve", "--calibration chaudhuri --regularization 0.003 --epsilons 0.05..1", command.ExitFailure, "discontinuous"},
		{"epsilon-for", "", command.ExitUsage, "--target"},
		{"epsilon-for", "--target 1 --metric auc", command.ExitUsage, "held_out_error"},
		{"epsilon-for", "--target 1 --epsilons 1", command.ExitUsage, "range"},
		{"epsilon-for", "--target 0.9 --relative-to 0", command.ExitUsage, "--relative-to"},
		{"epsilon-for", "--target 0.9 --relative-to 100", command.ExitFailure, "outside of the anchors"},
		{"model", "", command.ExitUsage, "--epsilon"},
		{"model", "--epsilon 2", command.ExitFailure, "outside of the anchors"},
	} {
		_, stderr, code := clitest.Invoke(t, "", estimateArgs(tt.command, strings.Fields(tt.args)...)...)
		if code != tt.code || !strings.Contains(stderr, tt.want) {
			t.Errorf("estimate %s %s: exit code %d, %s", tt.command, tt.args, code, stderr)
		}
	}
}

// Curves become a study that another names as its prior, and the engine believes them:
// little ε wants much regularisation, much ε little.
func TestEstimatesArePriorKnowledge(t *testing.T) {
	address, _ := clitest.StartServer(t, "--listen", "127.0.0.1:0")
	run := func(stdin string, args ...string) string {
		t.Helper()
		stdout, _ := clitest.Must(t, stdin, append(args, "--server", address)...)
		return stdout
	}
	for _, lambda := range []string{"1e-6", "1e-3", "0.1", "0.1"} { // the last again, which adds nothing
		run("", estimateArgs("curve", "--epsilons", "0.05..8/6", "--draws", "3", "--regularization", lambda, "--study", "estimates", "--set", "train_rows=8000")...)
	}
	if got := strings.Count(run("", "trial", "list", "estimates", "--output", "csv"), "succeeded"); got != 18 {
		t.Errorf("%d trials, want 18", got)
	}
	stdout, stderr, code := clitest.Invoke(t, "", "study", "init", "--trainer", objectiveperturbation.Name, "--set", "generated=true", "--set", "train_rows=8000", "--id", "next")
	if code != command.ExitOK {
		t.Fatal(stderr)
	}
	suggested := func(study string, more ...string) map[string]float64 {
		t.Helper()
		return readCSV(t, run("", slices.Concat([]string{"trial", "suggest", study, "--worker-id", "w", "--output", "csv"}, more)...))[0]
	}
	for study, prior := range map[string]string{"informed": "  prior_studies: [studies/estimates]\n", "ignorant": ""} {
		file := strings.Replace(stdout, "spec:\n", "spec:\n  seed: 1\n"+prior, 1)
		run(file, "study", "create", "-", "--id", study)
		much, little := suggested(study, "--fix", "target_epsilon=8"), suggested(study, "--fix", "target_epsilon=0.15")
		if believed := much["regularization"] < 2e-3 && little["regularization"] > 0.01; believed != (prior != "") {
			t.Errorf("%s: %v at ε = 8, %v at ε = 0.15", study, much, little)
		}
	}
}
