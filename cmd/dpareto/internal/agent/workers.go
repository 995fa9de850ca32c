package agent

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/clients/go/agent"
	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/console"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
)

// progressEvery is the least time between two log lines about one worker's trial.
const progressEvery = 5 * time.Second

// workers shows the progress of the workers of an agent: a bar for each on a terminal,
// log lines elsewhere.
type workers struct {
	env        *command.Env
	checkpoint string   // the parameter that counts a training's steps, if there is one
	metrics    []string // that are measured and matter, in the order of the spec

	bars map[string]*console.Progress // by worker; none where there is no terminal
	now  func() time.Time
	mu   sync.Mutex
	due  map[string]time.Time // of the next line of the log, by worker
}

// showWorkers begins to show the progress of the workers of an agent.
func showWorkers(ctx context.Context, env *command.Env, spec *dparetov1.StudySpec, workerID string, count int) *workers {
	w := &workers{
		env: env, checkpoint: spec.GetCheckpointParameter(), now: time.Now,
		bars: make(map[string]*console.Progress), due: make(map[string]time.Time),
	}
	for _, m := range spec.GetMetrics() {
		if m.GetReported() != nil && m.GetRole() != dparetov1.MetricRole_METRIC_ROLE_TRACKED {
			w.metrics = append(w.metrics, m.GetId())
		}
	}
	if showsBars(ctx, env) {
		for i := range count {
			id := fmt.Sprintf("%s-%d", workerID, i+1) // as agent.Agent calls it
			w.bars[id] = env.Console.Start(idle, 0, "")
		}
	}
	return w
}

// idle is the label of a worker without a trial.
const idle = "waiting"

// finish removes the bars.
func (w *workers) finish() {
	for _, bar := range w.bars {
		bar.Finish()
	}
}

func (w *workers) events() agent.Events {
	return agent.Events{TrialStarted: w.started, Measured: w.measured, TrialDone: w.done}
}

// started shows that a worker begins with a trial.
func (w *workers) started(worker string, trial *dpareto.Trial) {
	w.env.Logger.Debug("trial started", "trial", trial.Number(), "worker", worker)
	w.isDue(worker, true)
	label := fmt.Sprintf("trial %d", trial.Number())
	if isReplicate(trial) {
		label += ", replicate"
	}
	if trial.Attempt() > 1 {
		label += fmt.Sprintf(", attempt %d", trial.Attempt())
	}
	if total := w.total(trial); total > 0 {
		w.bars[worker].Restart(label, total, w.checkpoint)
	} else {
		w.bars[worker].Restart(label, 0, "")
	}
}

// isReplicate reports whether a trial repeats another.
func isReplicate(trial *dpareto.Trial) bool {
	return trial.Message().GetOrigin() == dparetov1.TrialOrigin_TRIAL_ORIGIN_REPLICATE
}

// total returns the number of steps of a trial, or 0 where it is not known.
func (w *workers) total(trial *dpareto.Trial) int64 {
	if w.checkpoint == "" {
		return 0
	}
	return trial.Int(w.checkpoint)
}

// measured shows an intermediate measurement.
func (w *workers) measured(worker string, trial *dpareto.Trial, m trainer.Measurement) {
	var metrics []any // alternately names and values
	var notes []string
	total := w.total(trial)
	if total == 0 {
		notes = append(notes, fmt.Sprintf("step %d", m.Step))
	}
	for _, id := range w.metrics {
		if runs := m.Metrics[id]; len(runs) > 0 {
			value := show.Number(mean(runs))
			metrics = append(metrics, id, value)
			notes = append(notes, id+" "+value)
		}
	}
	w.bars[worker].Set(m.Step, strings.Join(notes, ", "))
	if len(w.bars) > 0 || !w.isDue(worker, false) {
		return
	}
	attributes := []any{"trial", trial.Number(), "step", m.Step}
	if total > 0 {
		attributes = append(attributes, "of", total)
	}
	attributes = append(attributes, slog.Group("metrics", metrics...), "seconds", show.Number(m.Elapsed.Seconds()), "worker", worker)
	w.env.Logger.Info("trial progress", attributes...)
}

// mean returns the mean of at least one value.
func mean(x []float64) float64 {
	var sum float64
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// isDue reports whether it is time for a log line about a worker's trial. A trial that
// begins is always due.
func (w *workers) isDue(worker string, begins bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	if !begins && now.Before(w.due[worker]) {
		return false
	}
	w.due[worker] = now.Add(progressEvery)
	return true
}

// done shows that a worker is done with a trial.
func (w *workers) done(worker string, trial *dpareto.Trial, outcome agent.Outcome, m trainer.Measurement, err error) {
	w.bars[worker].Restart(idle, 0, "")
	w.logTrial(worker, trial, outcome, m, err)
}

// logTrial logs the outcome of a trial: failures as warnings, and ordinary outcomes for
// debugging only where bars show that the agent is alive.
func (w *workers) logTrial(worker string, trial *dpareto.Trial, outcome agent.Outcome, m trainer.Measurement, err error) {
	attributes := []any{"trial", trial.Number(), "outcome", outcome.String(), "worker", worker}
	if isReplicate(trial) {
		attributes = append(attributes, "replicate_of", view.ID(trial.Message().GetReplicateOf()))
	}
	level := slog.LevelInfo
	if w.env.Console.IsTerminal() {
		level = slog.LevelDebug
	}
	switch outcome {
	case agent.Succeeded:
		attributes = append(attributes, "seconds", show.Number(m.Elapsed.Seconds()))
	case agent.Stopped:
		level = slog.LevelInfo
		attributes = append(attributes, "step", m.Step, "seconds", show.Number(m.Elapsed.Seconds()), "reason", err)
	case agent.Failed, agent.Abandoned:
		level = slog.LevelWarn
		attributes = append(attributes, "error", err)
	case agent.Infeasible, agent.Released:
		attributes = append(attributes, "reason", err)
	}
	w.env.Logger.Log(context.Background(), level, "trial done", attributes...)
}
