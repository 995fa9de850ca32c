package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	dpareto "github.com/dpareto/dpareto/clients/go"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

// epochStudy writes a study of trainings of many epochs, each of which is measured, to a
// file and returns its path. Its id is adult.
func epochStudy(t *testing.T, trials int, lease time.Duration) string {
	t.Helper()
	content, err := os.ReadFile("studies/adult.yaml")
	require.NoError(t, err)
	text := string(content)
	for _, change := range [][2]string{
		{"integer_domain: {min: 1, max: 64}", "integer_domain: {min: 60, max: 64}"},
		{"budget: {max_trials: 32}", fmt.Sprintf("replicates: 4\n  budget: {max_trials: %d}", trials)},
		{"lease: {duration: 60s}", fmt.Sprintf("lease: {duration: %gs}", lease.Seconds())},
		{"settings: {split: uci", `settings: {generated: "true", split: uci`},
	} {
		if strings.Count(text, change[0]) != 1 {
			t.Fatalf("%q is not once in the study", change[0])
		}
		text = strings.Replace(text, change[0], change[1], 1)
	}
	path := filepath.Join(t.TempDir(), "study.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// studyAt returns the study adult of a server.
func studyAt(t *testing.T, address string) *dpareto.Study {
	t.Helper()
	client, err := dpareto.Dial(address)
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	return client.Study("adult")
}

// trialsOf returns all trials of a study.
func trialsOf(t *testing.T, study *dpareto.Study) []*dparetov1.Trial {
	t.Helper()
	var out []*dparetov1.Trial
	for trial, err := range study.Trials(t.Context()) {
		require.NoError(t, err)
		out = append(out, trial)
	}
	return out
}

// midTraining starts an agent with two workers and waits until both are in the middle of
// a training.
func midTraining(t *testing.T, address string, study *dpareto.Study, flags ...string) *process {
	t.Helper()
	flags = append([]string{"agent", "--server", address, "--study", "adult", "--workers", "2", "--worker-id", "first"}, flags...)
	agent := start(t, program(t, flags...), io.Discard)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		amid := 0
		for _, trial := range trialsOf(t, study) {
			if trial.GetLease() != nil && len(trial.GetMeasurements()) >= 3 {
				amid++
			}
		}
		if amid == 2 {
			return agent
		}
		select {
		case <-ticker.C:
		case <-agent.ended:
			t.Fatal("the agent has ended")
		case <-ctx.Done():
			t.Fatal("no two trainings are under way")
		}
	}
}

// finishStudy runs another agent until the study is complete and checks that every trial
// counts once, with one measurement for each of its epochs. It returns the trials by
// number.
func finishStudy(t *testing.T, address string, study *dpareto.Study, trials int) map[int64]*dparetov1.Trial {
	t.Helper()
	must(t, "agent", "--server", address, "--study", "adult", "--workers", "2", "--worker-id", "second")
	state, err := study.Get(t.Context())
	require.NoError(t, err)
	counts := state.GetTrialCounts()
	if state.GetState() != dparetov1.StudyState_STUDY_STATE_COMPLETED || counts.GetSucceeded() != int64(trials) ||
		counts.GetActive()+counts.GetQueued()+counts.GetStopping()+counts.GetFailed()+counts.GetInfeasible() != 0 {
		t.Errorf("the study is %v with %v, want %d trials", state.GetState(), counts, trials)
	}
	out := make(map[int64]*dparetov1.Trial)
	for _, trial := range trialsOf(t, study) {
		out[trial.GetNumber()] = trial
		epochs := trial.GetParameters()["epochs"].GetIntValue()
		if int64(len(trial.GetMeasurements())) != epochs || trial.GetFinalMeasurement().GetStep() != epochs {
			t.Errorf("%s has %d measurements and ends at %d, want %d epochs", trial.GetName(), len(trial.GetMeasurements()), trial.GetFinalMeasurement().GetStep(), epochs)
		}
		for i, m := range trial.GetMeasurements() {
			if m.GetStep() != int64(i+1) {
				t.Errorf("%s: measurement %d is of epoch %d", trial.GetName(), i, m.GetStep())
			}
		}
	}
	if len(out) != trials {
		t.Errorf("%d trials, want %d", len(out), trials)
	}
	resp, err := study.Hypervolumes(t.Context(), dparetov1.FrontKind_FRONT_KIND_OBSERVED)
	if n := len(resp.GetPoints()); err != nil || n != trials {
		t.Errorf("%d hypervolumes for %d trials: %v", n, trials, err)
	}
	return out
}

// An agent is killed in the middle of an epoch. Its trials go to another one when their
// leases end, are trained from the beginning, and count once.
func TestAgentKilledMidEpoch(t *testing.T) {
	const trials = 3
	srv := serve(t, filepath.Join(t.TempDir(), "studies.db"), "127.0.0.1:0")
	must(t, "--server", srv.address, "study", "create", epochStudy(t, trials, 2*time.Second))
	study := studyAt(t, srv.address)
	midTraining(t, srv.address, study).signal(syscall.SIGKILL)
	lost := make(map[int64]*dparetov1.Trial)
	for _, trial := range trialsOf(t, study) {
		if trial.GetLease() != nil {
			lost[trial.GetNumber()] = trial
		}
	}
	if len(lost) != 2 {
		t.Fatalf("%d trials are with the agent that was killed, want 2", len(lost))
	}
	outlastTest(t, srv.address)
	for number, trial := range finishStudy(t, srv.address, study, trials) {
		before, wasLost := lost[number]
		switch {
		case !wasLost && trial.GetAttempt() != 1:
			t.Errorf("trial %d: attempt %d", number, trial.GetAttempt())
		case wasLost && (trial.GetAttempt() != 2 || trial.GetStartTime().AsTime().Before(before.GetLease().GetExpireTime().AsTime())):
			t.Errorf("trial %d: attempt %d from %v on, under a lease until %v", number, trial.GetAttempt(),
				trial.GetStartTime().AsTime(), before.GetLease().GetExpireTime().AsTime())
		}
	}
	srv.signal(syscall.SIGTERM)
}

// outlastTest gives the study adult leases that outlast the test. Those that were granted before end as they would have.
func outlastTest(t *testing.T, address string) {
	t.Helper()
	client, err := dpareto.Dial(address)
	require.NoError(t, err)
	defer client.Close()
	_, err = client.Studies.UpdateStudy(t.Context(), &dparetov1.UpdateStudyRequest{
		Study:      &dparetov1.Study{Name: "studies/adult", Spec: &dparetov1.StudySpec{Lease: &dparetov1.LeasePolicy{Duration: durationpb.New(time.Hour)}}},
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"spec.lease"}},
	})
	require.NoError(t, err)
}

// An agent that is asked to stop in the middle of an epoch gives its trials back at once:
// another one finishes the study, although the leases would last for longer than the test.
// Where a job controller asks for it, it ends as one that failed.
func TestAgentStopsMidEpoch(t *testing.T) {
	const trials = 3
	srv := serve(t, filepath.Join(t.TempDir(), "studies.db"), "127.0.0.1:0")
	must(t, "--server", srv.address, "study", "create", epochStudy(t, trials, time.Hour))
	study := studyAt(t, srv.address)
	agent := midTraining(t, srv.address, study, "--fail-when-stopped")
	if code := agent.signal(syscall.SIGTERM); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if log := strings.Join(agent.lines(), "\n"); !strings.Contains(log, "its trials were given back") || strings.Contains(log, "level=WARN") {
		t.Errorf("log\n%s", log)
	}
	released := make(map[int64]bool)
	for _, trial := range trialsOf(t, study) {
		if trial.GetState() == dparetov1.TrialState_TRIAL_STATE_QUEUED && trial.GetStateReason() == "the worker was stopped" {
			released[trial.GetNumber()] = true
		} else if trial.GetEndTime() == nil {
			t.Errorf("%s is %v", trial.GetName(), trial.GetState())
		}
	}
	if len(released) != 2 {
		t.Errorf("%d trials were given back, want 2", len(released))
	}
	for number, trial := range finishStudy(t, srv.address, study, trials) {
		if got := trial.GetAttempt() == 2; got != released[number] || trial.GetAttempt() > 2 {
			t.Errorf("trial %d, given back %v: attempt %d", number, released[number], trial.GetAttempt())
		}
	}
}

// An agent that waits for a server which does not answer is ended by a second signal.
func TestAgentForced(t *testing.T) {
	srv := serve(t, filepath.Join(t.TempDir(), "studies.db"), "127.0.0.1:0")
	must(t, "--server", srv.address, "study", "create", epochStudy(t, 3, time.Hour))
	agent := midTraining(t, srv.address, studyAt(t, srv.address))
	require.NoError(t, srv.cmd.Process.Signal(syscall.SIGSTOP))
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for ended := false; !ended; {
		select {
		case <-ticker.C:
			// The last one may come after the end.
			_ = agent.cmd.Process.Signal(syscall.SIGTERM)
		case <-agent.ended:
			ended = true
		}
	}
	if status, ok := agent.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != syscall.SIGTERM {
		t.Errorf("the agent ended with %v", agent.cmd.ProcessState)
	}
}

// noisyStudy is a study of a trainer that draws private noise.
const noisyStudy = `
study_id: NAME
spec:
  parameters:
    - {id: target_epsilon, double_domain: {min: 0.1, max: 1}, scale: LOG}
    - {id: regularization, double_domain: {min: 0.01, max: 1}, scale: LOG}
  metrics:
    - {id: privacy, role: OBJECTIVE, goal: MINIMIZE, transform: LOG, reference_value: 10, computed: {privacy: {
        objective_perturbation: {epsilon: target_epsilon, dataset_size: "900", regularization: regularization, curvature: "0.25"}, adjacency: REPLACE_ONE}}}
    - {id: loss, role: OBJECTIVE, goal: MINIMIZE, transform: LOG, reference_value: 10, reported: {}}
  algorithm: {name: RANDOM}
  budget: {max_trials: 2}
  seed: 3
  trainer:
    name: objective-perturbation
    settings: {generated: "true", split: shuffled, train_rows: "1000"}
`

// Trainings cannot be repeated, and nothing is recorded that one could be repeated from. A seed
// repeats them, and every output says so.
func TestSeededTraining(t *testing.T) {
	srv := serve(t, filepath.Join(t.TempDir(), "studies.db"), "127.0.0.1:0")
	at := []string{"--server", srv.address}
	losses := func(name string, flags ...string) (values []float64, recorded, log string) {
		t.Helper()
		r := runProgram(t, strings.Replace(noisyStudy, "NAME", name, 1), append(at, "study", "create", "-")...)
		if r.code != 0 {
			t.Fatal(r.stderr)
		}
		r = runProgram(t, "", append(append(at, "agent", "--study", name, "--workers", "1", "--log-level", "debug"), flags...)...)
		if r.code != 0 {
			t.Fatal(r.stderr)
		}
		recorded = must(t, append(at, "trial", "list", name, "-o", "json")...)
		for _, trial := range decodeAll(t, recorded, newTrial) {
			values = append(values, trial.GetFinalMeasurement().GetMetrics()["loss"].GetValue())
		}
		return values, recorded, r.stderr
	}
	seeded, marked, log := losses("seeded", "--seed", "5")
	if !strings.Contains(log, "not for release") || !strings.Contains(log, " code=SEEDED seed=5") || len(seeded) != 2 || slices.Contains(seeded, 0) {
		t.Errorf("%d losses; log\n%s", len(seeded), log)
	}
	if again, _, _ := losses("again", "--seed", "5"); fmt.Sprint(again) != fmt.Sprint(seeded) {
		t.Errorf("the same seed gives %v after %v", again, seeded)
	}
	secret, recorded, log := losses("secret")
	if fmt.Sprint(secret) == fmt.Sprint(seeded) {
		t.Errorf("noise of the system gives %v, as a seed does", secret)
	}
	if strings.Contains(log, "seed") {
		t.Errorf("log\n%s", log)
	}
	// The only seed in a trial is the seed of suggestions, which the study's spec has.
	if seeds := regexp.MustCompile(`"[a-z_]*seed": *"?\d+`).FindAllString(recorded, -1); len(seeds) != 2 || seeds[0] != `"seed": 3` || seeds[1] != seeds[0] {
		t.Errorf("seeds %q are recorded in\n%s", seeds, recorded)
	}

	// What is marked: trials in lists, tables and exports, and the cost of all runs.
	for name, text := range map[string]string{
		"list":   marked,
		"table":  must(t, append(at, "trial", "get", "seeded", "1")...),
		"export": must(t, append(at, "export", "--study", "seeded")...),
		"ledger": must(t, append(at, "privacy", "ledger", "seeded")...),
		"front":  must(t, append(at, "front", "seeded")...),
	} {
		if !strings.Contains(text, "seeded") || !strings.Contains(text, "remove") {
			t.Errorf("%s does not say that runs were seeded:\n%s", name, text)
		}
	}
}
