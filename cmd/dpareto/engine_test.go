package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	dpareto "github.com/dpareto/dpareto/clients/go"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

// checkpointStudy is a study of the default engine on generated data.
const checkpointStudy = `
study_id: adult
spec:
  parameters:
    - {id: epochs, integer_domain: {min: 1, max: 16}, scale: LOG}
    - {id: noise_multiplier, double_domain: {min: 0.5, max: 8}, scale: LOG}
  metrics:
    - id: epsilon
      role: OBJECTIVE
      goal: MINIMIZE
      transform: LOG
      reference_value: 10
      computed:
        privacy:
          dp_sgd: {sampling: FIXED_SIZE, dataset_size: "1000", batch_size: "50", noise_multiplier: noise_multiplier, epochs: epochs}
          delta: 1e-5
          adjacency: REPLACE_ONE
    - {id: error, role: OBJECTIVE, goal: MINIMIZE, transform: LOGIT, reference_value: 1, reported: {}}
  checkpoint_parameter: epochs
  algorithm: {name: DEFAULT}
  budget: {max_trials: 12}
  seed: 1
  trainer:
    name: dp-sgd
    settings: {generated: "true", evaluation: test, train_rows: "1000", lot_size: "50", learning_rate: "0.05", clipping_norm: "1"}
`

// createStudy creates a study on a server.
func createStudy(t *testing.T, srv *server, content string) {
	t.Helper()
	if r := runProgram(t, content, "--server", srv.address, "study", "create", "-"); r.code != 0 {
		t.Fatal(r.stderr)
	}
}

// checkModelled fails unless the engine suggested every trial after the initial ones, by a
// model of what the study measures.
func checkModelled(t *testing.T, trials []*dparetov1.Trial, initial int) {
	t.Helper()
	for _, trial := range trials {
		p := trial.GetProvenance()
		if p.GetFallbackReason() != "" || (p.GetPredictions()["error"] != nil) != (trial.GetNumber() > int64(initial)) {
			t.Errorf("%s: provenance %v", trial.GetName(), p)
		}
	}
}

// Two agents finish a study of the default engine with measurements on the way.
func TestDefaultEngine(t *testing.T) {
	const trials, initial = 12, 2 * (2 + 1)
	srv := serve(t, filepath.Join(t.TempDir(), "studies.db"), "127.0.0.1:0")
	createStudy(t, srv, checkpointStudy)
	var agents []*process
	for i := range 2 {
		agents = append(agents, start(t, program(t, "agent", "--server", srv.address, "--study", "adult", "--workers", "1",
			"--worker-id", fmt.Sprintf("agent-%d", i+1), "--seed", "1"), io.Discard))
	}
	for _, agent := range agents {
		if code := agent.wait(); code != 0 {
			t.Errorf("an agent ended with exit code %d", code)
		}
	}
	list := trialsOf(t, studyAt(t, srv.address))
	if len(list) != trials {
		t.Fatalf("%d trials, want %d", len(list), trials)
	}
	for _, trial := range list {
		if trial.GetState() != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED || len(trial.GetMeasurements()) == 0 {
			t.Errorf("%s is %v with %d measurements", trial.GetName(), trial.GetState(), len(trial.GetMeasurements()))
		}
	}
	// A demand that came in before the last initial trials were complete may still be
	// answered by the initial design.
	checkModelled(t, list[:initial], initial)
	checkModelled(t, list[initial+2:], initial+2)
	view := must(t, "--server", srv.address, "study", "get", "adult")
	for _, want := range []string{"completed: the budget of 12 trials is spent", "algorithm    default", "every value of epochs"} {
		if !strings.Contains(view, want) {
			t.Errorf("no %q in\n%s", want, view)
		}
	}
	if one := must(t, "--server", srv.address, "trial", "get", "adult", "12"); !strings.Contains(one, "suggested by  default") || !strings.Contains(one, "expected ") {
		t.Errorf("trial get printed\n%s", one)
	}
	if front := must(t, "--server", srv.address, "front", "adult"); !strings.Contains(front, "posterior front") {
		t.Errorf("front printed\n%s", front)
	}
}

// choiceStudy is a study over a model and an optimiser, each with its own parameters.
const choiceStudy = `
study_id: adult
spec:
  parameters:
    - {id: model, categorical_domain: {categories: [linear, network]}}
    - {id: width, integer_domain: {min: 8, max: 512}, scale: LOG, when: {model: network}}
    - {id: optimizer, categorical_domain: {categories: [sgd, adam]}}
    - {id: sgd_rate, double_domain: {min: 0.01, max: 10}, scale: LOG, when: {optimizer: sgd}}
    - {id: adam_rate, double_domain: {min: 0.0001, max: 0.1}, scale: LOG, when: {optimizer: adam}}
    - {id: noise_multiplier, double_domain: {min: 0.5, max: 8}, scale: LOG}
  parameter_constraints: [model != 'network' || noise_multiplier < 7.0]
  metrics:
    - {id: epsilon, role: OBJECTIVE, goal: MINIMIZE, transform: LOG, reference_value: 4, computed: {expression: 2.0 / noise_multiplier}}
    - {id: error, role: OBJECTIVE, goal: MINIMIZE, transform: LOGIT, reference_value: 1, reported: {}}
  algorithm: {name: DEFAULT, initial_trials: 8}
  budget: {max_trials: 18}
  seed: 1
`

// choiceError is the error of a configuration of choiceStudy: a network trained by Adam
// is best.
func choiceError(trial *dpareto.Trial) float64 {
	logit := -1.5 + 1/(1+2/trial.Float("noise_multiplier"))
	if trial.Text("model") == "network" {
		logit += 0.1*math.Abs(math.Log(trial.Float("width")/128)) - 0.5
	}
	if trial.Text("optimizer") == "adam" {
		logit += 0.2*math.Abs(math.Log(trial.Float("adam_rate")/0.003)) - 0.3
	} else {
		logit += 0.2 * math.Abs(math.Log(trial.Float("sgd_rate")/0.5))
	}
	return 1 / (1 + math.Exp(-logit))
}

// work runs trials of a study until n are complete or the study is done.
func work(t *testing.T, address string, n int) {
	t.Helper()
	study := studyAt(t, address)
	for range n {
		trial, err := study.Ask(t.Context(), "worker")
		if errors.Is(err, dpareto.ErrDone) {
			return
		}
		require.NoError(t, err)
		require.NoError(t, trial.Complete(t.Context(), dpareto.Metrics{"error": {choiceError(trial)}}))
	}
}

// One study chooses between models and optimisers, and a server that is killed in between
// makes the same suggestions as one that is not.
func TestChoicesAndRestarts(t *testing.T) {
	const trials = 18
	var runs [2][]*dparetov1.Trial
	for i, kills := range [][]int{nil, {3, 7, 5}} { // in the initial design and after it
		storeFile := filepath.Join(t.TempDir(), "studies.db")
		srv := serve(t, storeFile, "127.0.0.1:0")
		createStudy(t, srv, choiceStudy)
		for _, n := range kills {
			work(t, srv.address, n)
			srv.signal(syscall.SIGKILL)
			srv = serve(t, storeFile, "127.0.0.1:0")
		}
		work(t, srv.address, trials+1)
		runs[i] = trialsOf(t, studyAt(t, srv.address))
		srv.signal(syscall.SIGTERM)
		checkStore(t, storeFile)
	}
	if len(runs[0]) != trials || len(runs[1]) != trials {
		t.Fatalf("%d and %d trials, want %d", len(runs[0]), len(runs[1]), trials)
	}
	for i, trial := range runs[0] {
		if diff := cmp.Diff(trial.GetParameters(), runs[1][i].GetParameters(), protocmp.Transform()); diff != "" {
			t.Errorf("%s with kills (-without +with):\n%s", trial.GetName(), diff)
		}
		parameters := trial.GetParameters()
		if (parameters["width"] != nil) != (parameters["model"].GetStringValue() == "network") ||
			(parameters["adam_rate"] != nil) != (parameters["optimizer"].GetStringValue() == "adam") ||
			(parameters["sgd_rate"] == nil) != (parameters["optimizer"].GetStringValue() == "adam") {
			t.Errorf("%s has parameters whose condition does not hold, or lacks others: %v", trial.GetName(), parameters)
		}
	}
	checkModelled(t, runs[0], 8)
	// The model has learnt what to choose.
	best := 0
	for _, trial := range runs[0][8:] {
		p := trial.GetParameters()
		if p["model"].GetStringValue() == "network" && p["optimizer"].GetStringValue() == "adam" {
			best++
		}
	}
	if best < 5 {
		t.Errorf("%d of 10 suggestions are networks trained by Adam, want at least half", best)
	}
}

// documentedCommands returns the lines of a document that run the program, but for those
// that go on.
func documentedCommands(t *testing.T, path string) [][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", path))
	require.NoError(t, err)
	var out [][]string
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		if rest, ok := strings.CutPrefix(line, "    dpareto "); ok && !strings.HasPrefix(rest, "serve ") {
			out = append(out, words(rest))
		}
	}
	return out
}

// words splits a line as a shell does that knows quotes and nothing else.
func words(line string) []string {
	var all []string
	var word strings.Builder
	quote, inside := rune(0), false
	for _, r := range line {
		switch {
		case quote == 0 && (r == '\'' || r == '"'):
			quote, inside = r, true
		case r == quote:
			quote = 0
		case quote == 0 && unicode.IsSpace(r):
			if inside {
				all = append(all, word.String())
				word.Reset()
			}
			inside = false
		default:
			word.WriteRune(r)
			inside = true
		}
	}
	return all
}

// notInTour begins documented commands that a tour cannot take: they have no end, or take
// the study or its training away.
var notInTour = []string{"study create FILE", "study watch", "study delete", "trial stop"}

// Every command of docs/start/command-line.md, and of docs/reference/running-studies.md after it, works as it
// stands there, on a study of fewer trials.
func TestTour(t *testing.T) {
	srv := serve(t, filepath.Join(t.TempDir(), "tour.db"), "127.0.0.1:0")
	home := t.TempDir()
	folder := filepath.Join(home, "cmd", "dpareto", "studies")
	require.NoError(t, os.MkdirAll(folder, 0o700))
	study, err := os.ReadFile(svtStudy(t, 20, 50))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "svt.yaml"), study, 0o600))
	commands := append(documentedCommands(t, filepath.Join("docs", "start", "command-line.md")), documentedCommands(t, filepath.Join("docs", "reference", "running-studies.md"))...)
	if len(commands) < 15 {
		t.Errorf("%d commands", len(commands))
	}
	for _, args := range commands {
		if slices.ContainsFunc(notInTour, func(skipped string) bool { return strings.HasPrefix(strings.Join(args, " "), skipped) }) {
			continue
		}
		cmd := program(t, args...)
		cmd.Dir = home
		cmd.Env = append(cmd.Env, "DPARETO_SERVER="+srv.address)
		if r := finish(t, cmd, ""); r.code != 0 {
			t.Errorf("dpareto %s: exit code %d\n%s", strings.Join(args, " "), r.code, r.stderr)
		}
	}
}

// scripts returns the commands between <!-- script --> and <!-- end of script --> in a page of docs/, "" if it has none.
func scripts(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	var script strings.Builder
	for rest := string(text); ; {
		_, after, found := strings.Cut(rest, "<!-- script -->")
		if !found {
			return script.String()
		}
		block, after, ended := strings.Cut(after, "<!-- end of script -->")
		if !ended {
			t.Fatalf("%s: a script has no end", page)
		}
		for line := range strings.Lines(block) {
			if command, ok := strings.CutPrefix(line, "    "); ok {
				script.WriteString(command)
			}
		}
		rest = after
	}
}

// runScript runs commands in a shell beside a server of their own, in a folder with the bundled studies, and returns
// what they print.
func runScript(t *testing.T, script string) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	srv := serve(t, filepath.Join(t.TempDir(), "script.db"), "127.0.0.1:0")
	cmd := program(t)
	require.NoError(t, os.Symlink(filepath.Join(root, "cmd"), filepath.Join(cmd.Dir, "cmd")))
	shell := exec.Command("bash", "-eux")
	shell.Dir = cmd.Dir
	shell.Env = slices.Concat(cmd.Env, []string{"DPARETO_SERVER=" + srv.address, "PATH=" + filepath.Dir(binary) + string(filepath.ListSeparator) + os.Getenv("PATH")})
	r := finish(t, shell, script)
	if r.code != 0 {
		t.Fatalf("exit code %d\n%s\n%s", r.code, r.stdout, r.stderr)
	}
	return r.stdout
}

// The scripts of the pages of docs/ work as they stand there.
func TestDocumentedScripts(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*", "*.md"))
	require.NoError(t, err)
	count := 0
	for _, page := range pages {
		script := scripts(t, page)
		if script == "" || filepath.Base(page) == "publish.md" { // which TestPublishing runs
			continue
		}
		count++
		t.Run(filepath.Base(page), func(t *testing.T) { runScript(t, script) })
	}
	if count < 7 {
		t.Errorf("%d pages with scripts", count)
	}
}

// The commands of docs/how-to/publish.md work as they stand there, on the bundled studies.
func TestPublishing(t *testing.T) {
	script := scripts(t, filepath.Join("..", "..", "docs", "how-to", "publish.md"))
	if n := strings.Count(script, "dpareto "); n < 15 {
		t.Errorf("%d commands", n)
	}
	stdout := runScript(t, script)
	for _, want := range []string{
		"studies/fixed/releases/1: permute-and-flip among", "studies/fixed/releases/2: Gaussian noise on all 16 values",
		"studies/adult-private/releases/1: the posterior front of a model of noisy values",
		"studies/adult-best/releases/1: the best of a secret number of runs",
		"studies/adult-curve/releases/1: the learning curve of the best of a secret number of runs", "ledgers/people/releases/1: permute-and-flip among 5 candidates",
		"1.201", // what the ledger has spent: twice 0.1 and 1, the repetition for nothing
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
}

// The study that docs/reference/studies.md shows can be created, and is shown with all its parts.
func TestDocumentedStudy(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/studies.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(text), "<!-- file: choices.yaml -->")
	if !ok {
		t.Fatal("docs/reference/studies.md has no choices.yaml")
	}
	var file strings.Builder
	for line := range strings.Lines(strings.TrimLeft(rest, "\n")) {
		if !strings.HasPrefix(line, "    ") && strings.TrimSpace(line) != "" {
			break
		}
		file.WriteString(strings.TrimPrefix(line, "    "))
	}
	srv := serve(t, filepath.Join(t.TempDir(), "studies.db"), "127.0.0.1:0")
	createStudy(t, srv, file.String())
	view := must(t, "--server", srv.address, "study", "get", "choices")
	for _, want := range []string{"width: one of 32, 128, 512, logarithmic, where model is network", ", at most 1.5", "its train_seconds", "algorithm    default"} {
		if !strings.Contains(view, want) {
			t.Errorf("no %q in\n%s", want, view)
		}
	}
}
