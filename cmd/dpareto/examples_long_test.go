//go:build long && unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dpareto "github.com/dpareto/dpareto/clients/go"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

// buildPatience is more than building an example takes, downloads included.
const buildPatience = 15 * time.Minute

// exampleWorker is an example that runs a study, as docs/reference/clients.md builds and starts it.
type exampleWorker struct {
	language string
	tools    []string
	study    string
	oneTrial string // arguments for a study of one trial of 24 seconds, of which it reports half
}

var exampleWorkers = []exampleWorker{
	{"TypeScript", []string{"node", "npm"}, "svt-typescript", "-- --trials 1 --seconds 24"},
	{"Java", []string{"java", "mvn"}, "svt-java", "1 24"},
}

// The workers of docs/reference/clients.md, built and started as it says, work as it says.
func TestExamples(t *testing.T) {
	for _, w := range exampleWorkers {
		t.Run(w.language, func(t *testing.T) {
			folder, run := buildExample(t, w.language, w.tools...)
			t.Run("kill", func(t *testing.T) { surviveKill(t, w, folder, run) })
			t.Run("lease", func(t *testing.T) { keepLease(t, w, folder, run) })
		})
	}
}

// surviveKill has a worker finish a study whose server is killed in the middle, and load the
// study afterwards.
func surviveKill(t *testing.T, w exampleWorker, folder, run string) {
	storeFile := filepath.Join(t.TempDir(), "studies.db")
	srv := serve(t, storeFile, "127.0.0.1:0")
	study := studyOf(t, srv.address, w.study)

	var stdout bytes.Buffer
	program := startExample(t, folder, run, srv.address, &stdout)
	awaitTrials(t, study, 4, dparetov1.TrialState_TRIAL_STATE_SUCCEEDED)
	srv.signal(syscall.SIGKILL)
	program.await(1, regexp.MustCompile("(?i)^again after: .*unavailable"))
	serve(t, storeFile, srv.address)
	if code := program.wait(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, stdout.String())
	}

	trials := trialsOf(t, study)
	if len(trials) != 24 {
		t.Errorf("%d trials, want 24", len(trials))
	}
	for _, trial := range trials {
		runs := trial.GetFinalMeasurement().GetMetrics()["error"].GetRuns()
		if trial.GetState() != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED || len(runs) != 50 {
			t.Errorf("%s is %v with %d runs", trial.GetName(), trial.GetState(), len(runs))
		}
		if n := strings.Count(stdout.String(), trial.GetName()+": cutoff"); n != 1 {
			t.Errorf("%s was completed %d times", trial.GetName(), n)
		}
	}
	printed := printedFront(t, stdout.String())
	if want := frontTrials(t, study); !slices.Equal(printed, want) {
		t.Errorf("printed the front %v, want %v", printed, want)
	}

	stdout.Reset()
	if code := startExample(t, folder, run, srv.address, &stdout).wait(); code != 0 {
		t.Fatalf("exit code %d when it loads the study", code)
	}
	if again := printedFront(t, stdout.String()); !slices.Equal(again, printed) {
		t.Errorf("printed the front %v at first and %v when it loads the study", printed, again)
	}
}

// keepLease has a worker run a trial for longer than its lease, of 10 seconds, lasts, while
// another one asks for it.
func keepLease(t *testing.T, w exampleWorker, folder, run string) {
	srv := serve(t, filepath.Join(t.TempDir(), "studies.db"), "127.0.0.1:0")
	study := studyOf(t, srv.address, w.study)
	var stdout bytes.Buffer
	program := startExample(t, folder, run+" "+w.oneTrial, srv.address, &stdout)
	awaitTrials(t, study, 1, dparetov1.TrialState_TRIAL_STATE_ACTIVE)

	if trial, err := study.Ask(t.Context(), "other"); !errors.Is(err, dpareto.ErrDone) {
		t.Errorf("another worker was given %v, %v", trial, err)
	}
	if code := program.wait(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, stdout.String())
	}
	trial, err := study.Trial(t.Context(), 1)
	require.NoError(t, err)
	if trial.GetState() != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED || trial.GetAttempt() != 1 {
		t.Errorf("%v after %d attempts", trial.GetState(), trial.GetAttempt())
	}
	if trained := trial.GetEndTime().AsTime().Sub(trial.GetStartTime().AsTime()); trained < 24*time.Second {
		t.Errorf("the trial took %v", trained)
	}
}

// The minimal calls of docs/reference/clients.md, built and started as it says, list studies.
func TestExamplesCall(t *testing.T) {
	for language, tools := range map[string][]string{
		"Rust": {"cargo"},
		"C++":  {"cmake", "g++", "protoc", "grpc_cpp_plugin"},
	} {
		t.Run(language, func(t *testing.T) {
			folder, run := buildExample(t, language, tools...)
			srv := serve(t, filepath.Join(t.TempDir(), "studies.db"), "127.0.0.1:0")
			const studies = 102 // more than a page
			client, err := dpareto.Dial(srv.address)
			require.NoError(t, err)
			defer client.Close()
			var want strings.Builder
			for i := range studies {
				id := fmt.Sprintf("study-%03d", i)
				require.NoError(t, require.ErrOf(client.CreateStudy(t.Context(), id, smallStudy())))
				fmt.Fprintf(&want, "studies/%s: 0 trials succeeded\n", id)
			}
			var stdout bytes.Buffer
			if code := startExample(t, folder, run, srv.address, &stdout).wait(); code != 0 {
				t.Fatalf("exit code %d", code)
			}
			if got := stdout.String(); got != want.String() {
				t.Errorf("got %q, want %q", got, want.String())
			}
		})
	}
}

// buildExample runs the script of docs/reference/clients.md for a language, without its last command,
// which runs the example. It returns that, and the folder that it is to be run in. The test is
// skipped where a tool is missing.
func buildExample(t *testing.T, language string, tools ...string) (folder, run string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the example in %s is not built: %v", language, err)
		}
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "docs", "reference", "clients.md"))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), "<!-- script: "+language+" -->")
	rest, _, ok := strings.Cut(rest, "<!-- end of script -->")
	if !ok {
		t.Fatalf("docs/reference/clients.md has no script for %s", language)
	}
	var commands []string
	for line := range strings.Lines(rest) {
		command, ok := strings.CutPrefix(line, "    ")
		if !ok {
			continue
		}
		command = strings.TrimSpace(command)
		commands = append(commands, command)
		if path, ok := strings.CutPrefix(command, "cd "); ok {
			folder = filepath.Join(root, path)
		}
	}
	if len(commands) < 3 || folder == "" {
		t.Fatalf("the script for %s is %q", language, commands)
	}
	run = commands[len(commands)-1]
	ctx, cancel := context.WithTimeout(t.Context(), buildPatience)
	defer cancel()
	build := exec.CommandContext(ctx, "bash", "-euxc", strings.Join(commands[:len(commands)-1], "\n"))
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, output)
	}
	return folder, run
}

// startExample starts a command in a shell, for a server. It is killed at the end of the test
// with all programs that it has started.
func startExample(t *testing.T, folder, run, address string, stdout *bytes.Buffer) *process {
	t.Helper()
	cmd := exec.Command("bash", "-euc", run)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "DPARETO_SERVER="+address)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p := start(t, cmd, stdout)
	t.Cleanup(func() {
		select {
		case <-p.ended:
		default:
			syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	})
	return p
}

// studyOf returns a study of a server, which need not exist yet.
func studyOf(t *testing.T, address, id string) *dpareto.Study {
	t.Helper()
	client, err := dpareto.Dial(address)
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	return client.Study(id)
}

// awaitTrials waits until at least n trials of a study are in a state.
func awaitTrials(t *testing.T, study *dpareto.Study, n int64, state dparetov1.TrialState) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		message, err := study.Get(ctx)
		if err != nil && status.Code(err) != codes.NotFound {
			t.Fatal(err)
		}
		counts := message.GetTrialCounts()
		if state == dparetov1.TrialState_TRIAL_STATE_ACTIVE && counts.GetActive() >= n ||
			state == dparetov1.TrialState_TRIAL_STATE_SUCCEEDED && counts.GetSucceeded() >= n {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("the study never had %d trials %v: %v", n, state, counts)
		}
	}
}

// printedFront returns the names of the trials of a front that an example printed.
func printedFront(t *testing.T, output string) []string {
	t.Helper()
	_, points, ok := strings.Cut(output, "front of hypervolume ")
	if !ok {
		t.Fatalf("no front in\n%s", output)
	}
	return regexp.MustCompile(`studies/\S+`).FindAllString(points, -1)
}

// frontTrials returns the names of the trials on the front of a study.
func frontTrials(t *testing.T, study *dpareto.Study) []string {
	t.Helper()
	front, err := study.Front(t.Context(), dparetov1.FrontKind_FRONT_KIND_POSTERIOR)
	require.NoError(t, err)
	var names []string
	for _, point := range front.GetPoints() {
		names = append(names, point.GetTrial())
	}
	if len(names) < 2 {
		t.Errorf("the front has %d points", len(names))
	}
	return names
}

// smallStudy returns a study of one objective.
func smallStudy() *dparetov1.Study {
	reference := 1.0
	return &dparetov1.Study{Spec: &dparetov1.StudySpec{
		Parameters: []*dparetov1.ParameterSpec{{
			Id: "x", Scale: dparetov1.Scale_SCALE_LINEAR,
			Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Max: 1}},
		}},
		Metrics: []*dparetov1.MetricSpec{{
			Id: "error", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE,
			Transform: dparetov1.Transform_TRANSFORM_LOGIT, ReferenceValue: &reference,
			Source: &dparetov1.MetricSpec_Reported{Reported: &dparetov1.ReportedSource{}},
		}},
		Algorithm: &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_RANDOM},
	}}
}
