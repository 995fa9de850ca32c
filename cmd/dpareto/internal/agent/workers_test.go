package agent

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/clients/go/agent"
	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/serve"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/console"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

// epochsSpec is a study of runs of 40 or 41 epochs, which are checkpoints or not.
func epochsSpec(checkpoints bool) *dparetov1.StudySpec {
	spec := &dparetov1.StudySpec{
		Parameters: []*dparetov1.ParameterSpec{{
			Id: "epochs", Scale: dparetov1.Scale_SCALE_LINEAR,
			Domain: &dparetov1.ParameterSpec_IntegerDomain{IntegerDomain: &dparetov1.IntegerDomain{Min: 40, Max: 41}},
		}, {
			Id: "rate", Scale: dparetov1.Scale_SCALE_LINEAR,
			Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Min: 0, Max: 1}},
		}},
		Metrics: []*dparetov1.MetricSpec{{
			Id: "cost", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE, Transform: dparetov1.Transform_TRANSFORM_IDENTITY, ReferenceValue: new(100.0),
			Source: &dparetov1.MetricSpec_Computed{Computed: &dparetov1.ComputedSource{
				Function: &dparetov1.ComputedSource_Expression{Expression: "rate"},
			}},
		}, {
			Id: "error", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE, Transform: dparetov1.Transform_TRANSFORM_IDENTITY, ReferenceValue: new(1.0),
			Source: &dparetov1.MetricSpec_Reported{Reported: &dparetov1.ReportedSource{}},
		}, {
			Id: "loss", Role: dparetov1.MetricRole_METRIC_ROLE_TRACKED,
			Source: &dparetov1.MetricSpec_Reported{Reported: &dparetov1.ReportedSource{}},
		}},
		Algorithm: &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_RANDOM},
		Budget:    &dparetov1.Budget{MaxTrials: 10},
		Seed:      new(uint64(1)),
	}
	if checkpoints {
		spec.CheckpointParameter = "epochs"
	}
	return spec
}

// startServer runs a server until the end of the test and returns its address.
func startServer(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		args := []string{"--store", filepath.Join(t.TempDir(), "test.db"), "--create", "--listen", "127.0.0.1:0"}
		command.Main(ctx, args, strings.NewReader(""), writer, io.Discard, serve.Command)
		writer.Close()
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	line, err := bufio.NewReader(reader).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimPrefix(strings.TrimSpace(line), serve.Listening)
}

// askThrice creates a study and returns its first two trials and a replicate of the first.
func askThrice(t *testing.T, spec *dparetov1.StudySpec) (first, second, replicate *dpareto.Trial) {
	t.Helper()
	address := startServer(t)
	client, err := dpareto.Dial(address)
	require.NoError(t, err)
	defer client.Close()
	study, err := client.CreateStudy(t.Context(), "s", &dparetov1.Study{Spec: spec})
	require.NoError(t, err)
	var trials []*dpareto.Trial
	for i := range 3 {
		if i == 2 {
			require.NoError(t, require.ErrOf(study.Replicate(t.Context(), trials[0].Name(), nil)))
		}
		trial, err := study.Ask(t.Context(), fmt.Sprintf("w-%d", i+1))
		require.NoError(t, err)
		trials = append(trials, trial)
	}
	return trials[0], trials[1], trials[2]
}

func measurement(step int64, errors ...float64) trainer.Measurement {
	return trainer.Measurement{
		Step: step, Elapsed: time.Duration(step) * time.Second,
		Metrics: map[string][]float64{"error": errors, "loss": {7}},
	}
}

// newEnv returns an environment with a log on a console.
func newEnv(c *console.Console) *command.Env {
	return &command.Env{Console: c, Logger: slog.New(slog.NewTextHandler(c, nil))}
}

// Every worker has a bar on a terminal, with the steps of its trial and what was
// measured last; failures are logged above.
func TestWorkerBars(t *testing.T) {
	for _, checkpoints := range []bool{true, false} {
		spec := epochsSpec(checkpoints)
		first, second, replicate := askThrice(t, spec)
		var out bytes.Buffer
		env := newEnv(console.NewTerminal(&out, func() (width, height int) { return 90, 24 }))
		shown := func(want ...string) {
			t.Helper()
			out.Reset()
			fmt.Fprintln(env.Console, "a line") // draws what is below, too
			text := out.String()
			for _, w := range want {
				i := strings.Index(text, w)
				if i < 0 {
					t.Fatalf("checkpoints %v: no %q, or not in order, in %q", checkpoints, w, out.String())
				}
				text = text[i+len(w):]
			}
		}
		w := showWorkers(t.Context(), env, spec, "w", 2)
		shown("waiting", "waiting")
		w.started("w-1", first)
		w.started("w-2", second)
		w.measured("w-1", first, measurement(20, 0.25, 0.125))
		if checkpoints {
			shown("trial 1  [====", fmt.Sprintf("]  20 of %d epochs, error 0.1875, ", first.Int("epochs")), "trial 2  [  ", "]  0 of ")
		} else {
			shown("trial 1  step 20, error 0.1875, ", "trial 2  0s")
		}
		w.done("w-1", first, agent.Succeeded, measurement(40, 0.25), nil)
		shown("waiting", "trial 2")
		out.Reset()
		w.done("w-2", second, agent.Failed, trainer.Measurement{}, errors.New("the disk is full"))
		if !strings.Contains(out.String(), `level=WARN msg="trial done" trial=2 outcome=failed worker=w-2 error="the disk is full"`) {
			t.Errorf("a failure is not logged: %q", out.String())
		}
		out.Reset()
		w.done("w-1", first, agent.Stopped, measurement(20, 0.25), fmt.Errorf("report: %w: seen enough", dpareto.ErrStop))
		if !strings.Contains(out.String(), `level=INFO msg="trial done" trial=1 outcome=stopped worker=w-1 step=20 seconds=20.00 reason="report: `) {
			t.Errorf("a run that was stopped is not logged: %q", out.String())
		}
		w.started("w-1", replicate)
		shown(fmt.Sprintf("trial %d, replicate", replicate.Number()))
		w.done("w-1", replicate, agent.Released, trainer.Measurement{}, errors.New("the worker was stopped"))
		w.finish()
		out.Reset()
		fmt.Fprintln(env.Console, "after")
		if got := out.String(); got != "after\n" {
			t.Errorf("left behind: %q", got)
		}
	}
}

// Elsewhere the log tells every few seconds how far a trial is.
func TestWorkerLog(t *testing.T) {
	spec := epochsSpec(true)
	first, second, _ := askThrice(t, spec)
	var out bytes.Buffer
	env := newEnv(console.New(&out))
	w := showWorkers(t.Context(), env, spec, "w", 2)
	now := time.Unix(0, 0)
	w.now = func() time.Time { return now }
	w.started("w-1", first)
	for step := range int64(40) {
		now = now.Add(time.Second)
		if step == 37 {
			w.started("w-2", second)
		}
		if step > 37 {
			w.measured("w-2", second, measurement(step, 0.5))
		}
		w.measured("w-1", first, measurement(step+1, 0.25, 0.125))
	}
	w.done("w-1", first, agent.Succeeded, measurement(40, 0.25), nil)
	w.finish()
	text := out.String()
	if got, want := strings.Count(text, `msg="trial progress"`), 40/5; got != want {
		t.Errorf("%d lines on the way, want %d:\n%s", got, want, text)
	}
	for _, want := range []string{
		fmt.Sprintf(`level=INFO msg="trial progress" trial=1 step=5 of=%d metrics.error=0.1875 seconds=5.000 worker=w-1`, first.Int("epochs")),
		`level=INFO msg="trial done" trial=1 outcome=succeeded worker=w-1 seconds=40.00`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
