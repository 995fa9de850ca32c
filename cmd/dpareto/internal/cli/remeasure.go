package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/clients/go/agent"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/suggest/pareto"
)

// remeasureFlags say how to run the configurations of a front again.
type remeasureFlags struct {
	replicates int // of each point
	points     int // at most
	workers    int // of this process
	dataDir    string
	seed       uint64
	hasSeed    bool
	timeout    time.Duration // 0: none
}

// validate checks the flags.
func (f *remeasureFlags) validate() error {
	switch {
	case f.replicates < 0:
		return fmt.Errorf("front: --remeasure is %d, want at least 1", f.replicates)
	case f.points < 1:
		return fmt.Errorf("front: --points is %d, want at least 1", f.points)
	case f.workers < 0:
		return fmt.Errorf("front: --workers is %d, want at least 0", f.workers)
	case f.timeout < 0:
		return fmt.Errorf("front: --timeout is %v, want at least 0", f.timeout)
	default:
		return nil
	}
}

// remeasurement is a front whose configurations are run again.
type remeasurement struct {
	*app
	remeasureFlags
	handle     *dpareto.Study
	study      *dparetov1.Study
	front      *dparetov1.Front
	chosen     []*dparetov1.FrontPoint
	replicates [][]*dparetov1.Trial // of each chosen point, as last seen
}

// remeasure runs the configurations of a front again and prints what they give.
func (a *app) remeasure(ctx context.Context, id string, kind dparetov1.FrontKind, f remeasureFlags) error {
	client, err := a.dial(dpareto.WithRetryNotice(a.notice()))
	if err != nil {
		return err
	}
	defer closeClient(client)
	client.Studies = agent.GiveBack(client.Studies)
	r := &remeasurement{app: a, remeasureFlags: f, handle: client.Study(id)}
	if r.study, err = r.handle.Get(ctx); err != nil {
		return err
	}
	if r.front, err = r.handle.Front(ctx, kind); err != nil {
		return err
	}
	r.choose()
	if len(r.chosen) == 0 {
		return fmt.Errorf("the front of %s has no point within the reference values: there is nothing to re-measure", r.handle.Name())
	}
	if err := r.create(ctx); err != nil {
		return err
	}
	waited := r.runAndWait(ctx)
	if waited != nil && !errors.Is(waited, errTimeout) {
		r.Logger.Warn("replicates that are not complete stay in the study's queue", "study", r.handle.Name())
		return waited
	}
	return errors.Join(r.print(), waited)
}

// choose takes the points of the front that make up most of its hypervolume.
func (r *remeasurement) choose() {
	var costs [][]float64
	for _, p := range r.front.GetPoints() {
		costs = append(costs, r.costs(func(id string) float64 { return p.GetValues()[id].GetValue() }))
	}
	indices := pareto.Subset(costs, r.reference(), r.points)
	slices.Sort(indices)
	for _, i := range indices {
		r.chosen = append(r.chosen, r.front.GetPoints()[i])
	}
}

// costs returns the objectives in their order with the sign of those to maximise turned.
func (r *remeasurement) costs(value func(id string) float64) []float64 {
	var costs []float64
	for _, m := range objectivesOf(r.study.GetSpec()) {
		v := value(m.GetId())
		if m.GetGoal() == dparetov1.Goal_GOAL_MAXIMIZE {
			v = -v
		}
		costs = append(costs, v)
	}
	return costs
}

// reference returns the anti-ideal point as costs.
func (r *remeasurement) reference() []float64 {
	return r.costs(func(id string) float64 { return r.front.GetReference()[id] })
}

// create creates the replicates: one of every point, then another of every point, so that
// all have about as many when time runs out.
func (r *remeasurement) create(ctx context.Context) error {
	r.replicates = make([][]*dparetov1.Trial, len(r.chosen))
	for range r.remeasureFlags.replicates {
		for i, p := range r.chosen {
			trial, err := r.handle.Replicate(ctx, p.GetTrial(), p.GetParameters())
			if err != nil {
				return err
			}
			r.replicates[i] = append(r.replicates[i], trial)
		}
	}
	return nil
}

// errTimeout says that not all replicates are complete.
var errTimeout = errors.New("the time is up")

// runAndWait runs the replicates, if workers are asked for, and waits for them.
func (r *remeasurement) runAndWait(ctx context.Context) error {
	if r.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.timeout, errTimeout)
		defer cancel()
	}
	group, waiting := errgroup.WithContext(ctx)
	running, stop := context.WithCancel(waiting)
	defer stop()
	if r.workers > 0 {
		group.Go(func() error { return r.runAgent(running) })
	} else {
		r.Logger.Info("waiting for agents to run the replicates; start one with dpareto agent, or give --workers", "study", r.handle.Name())
	}
	group.Go(func() error {
		defer stop()
		return r.wait(waiting)
	})
	err := group.Wait()
	if err != nil && errors.Is(context.Cause(ctx), errTimeout) {
		done, total := r.progress()
		return fmt.Errorf("%w after %v: %d of %d replicates are complete; the others stay in the study's queue", errTimeout, r.timeout, done, total)
	}
	return err
}

// runAgent trains trials of the study until ctx is done or there are none.
func (r *remeasurement) runAgent(ctx context.Context) error {
	flags := agentFlags{seed: r.seed, hasSeed: r.hasSeed}
	chosen, err := flags.choose(r.study.GetSpec())
	if err != nil {
		return err
	}
	trainer, err := r.trainer(ctx, chosen, r.dataDir)
	if err != nil {
		return err
	}
	if !r.hasSeed {
		flags.seed = rand.Uint64()
	}
	workerID, release := r.defaultWorkerID(view.ID(r.handle.Name()))
	defer release()
	shown := r.showWorkers(ctx, r.study.GetSpec(), workerID, r.workers)
	defer shown.finish()
	runner := &agent.Agent{
		Study: r.handle, Trainer: trainer, Workers: r.workers, WorkerID: workerID, Seed: flags.seed,
		Events: shown.events(),
	}
	if err := runner.Run(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// wait waits until all replicates are complete and shows how far they are.
func (r *remeasurement) wait(ctx context.Context) error {
	_, total := r.progress()
	bar := r.Console.Start("re-measuring "+view.ID(r.handle.Name()), int64(total), "trials")
	defer bar.Finish()
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		done, _ := r.progress()
		bar.Set(int64(done), "")
		if done == total {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		for _, replicates := range r.replicates {
			for k, trial := range replicates {
				if isDone(trial) {
					continue
				}
				latest, err := r.handle.Trial(ctx, trial.GetNumber())
				if err != nil {
					return err
				}
				replicates[k] = latest
			}
		}
	}
}

// progress returns how many of the replicates are complete.
func (r *remeasurement) progress() (done, total int) {
	for _, replicates := range r.replicates {
		for _, trial := range replicates {
			total++
			if isDone(trial) {
				done++
			}
		}
	}
	return done, total
}

// isDone reports whether a trial will not change any more.
func isDone(trial *dparetov1.Trial) bool {
	switch trial.GetState() {
	case dparetov1.TrialState_TRIAL_STATE_SUCCEEDED,
		dparetov1.TrialState_TRIAL_STATE_INFEASIBLE,
		dparetov1.TrialState_TRIAL_STATE_FAILED:
		return true
	default:
		return false
	}
}

// result compares what the front claims with what the replicates gave.
func (r *remeasurement) result() *view.Remeasurement {
	kind := frontKind(r.front.GetKind())
	out := &view.Remeasurement{
		Study: view.ID(r.handle.Name()), Kind: kind.String(),
		FrontPoints: len(r.front.GetPoints()), FrontHypervolume: r.front.GetHypervolume(),
	}
	var claimed, remeasured [][]float64
	for i, p := range r.chosen {
		point := view.RemeasuredPoint{
			Front: p, Trial: p.GetTrial(), Step: p.GetStep(),
			Parameters: make(map[string]any), Values: make(map[string]view.RemeasuredValue),
		}
		for id, v := range p.GetParameters() {
			point.Parameters[id] = view.Value(v)
		}
		for _, m := range objectivesOf(r.study.GetSpec()) {
			v := p.GetValues()[m.GetId()]
			value := view.RemeasuredValue{Claimed: v.GetValue(), Lower: v.Lower, Upper: v.Upper}
			if m.GetComputed() == nil {
				runs := freshRuns(r.replicates[i], m.GetId(), p.GetStep())
				point.Runs = max(point.Runs, len(runs))
				value.Remeasured, value.StandardError = summary(runs)
			}
			point.Values[m.GetId()] = value
		}
		for _, trial := range r.replicates[i] {
			point.Replicates = append(point.Replicates, trial.GetName())
			if isDone(trial) && !gives(trial, p.GetStep()) {
				point.Failures++
			}
		}
		out.Points = append(out.Points, point)
		if point.Runs == 0 && point.Failures == 0 {
			continue // nothing is known of it
		}
		out.ComparedPoints++
		claimed = append(claimed, r.costs(func(id string) float64 { return point.Values[id].Claimed }))
		if point.Runs > 0 {
			remeasured = append(remeasured, r.costs(func(id string) float64 {
				if v := point.Values[id]; v.Remeasured != nil {
					return *v.Remeasured
				}
				return point.Values[id].Claimed // computed: it is exact
			}))
		}
	}
	out.ClaimedHypervolume = pareto.Hypervolume(claimed, r.reference())
	out.Hypervolume = pareto.Hypervolume(remeasured, r.reference())
	return out
}

// gives reports whether a replicate was trained up to a step, 0 where steps do not matter.
// A run that was stopped before is one of another configuration.
func gives(trial *dparetov1.Trial, step int64) bool {
	return trial.GetState() == dparetov1.TrialState_TRIAL_STATE_SUCCEEDED && (step == 0 || trial.GetFinalMeasurement().GetStep() == step)
}

// freshRuns returns the runs of a metric in the replicates that were trained up to a step.
func freshRuns(replicates []*dparetov1.Trial, metric string, step int64) []float64 {
	var runs []float64
	for _, trial := range replicates {
		if !gives(trial, step) {
			continue
		}
		value := trial.GetFinalMeasurement().GetMetrics()[metric]
		switch {
		case len(value.GetRuns()) > 0:
			runs = append(runs, value.GetRuns()...)
		case value.Value != nil:
			runs = append(runs, value.GetValue())
		}
	}
	return runs
}

// summary returns the mean of runs, nil if there are none, and its standard error, nil if
// there are fewer than two.
func summary(runs []float64) (average, standardError *float64) {
	if len(runs) == 0 {
		return nil, nil
	}
	m := mean(runs)
	if len(runs) == 1 {
		return &m, nil
	}
	squares := 0.0
	for _, x := range runs {
		squares += (x - m) * (x - m)
	}
	n := float64(len(runs))
	se := math.Sqrt(squares / (n - 1) / n)
	return &m, &se
}

// print prints the comparison.
func (r *remeasurement) print() error {
	result := r.result()
	if r.output == output.JSON {
		return result.WriteJSON(r.Stdout)
	}
	if r.output == output.Text {
		if err := r.printHeading(result.Heading(r.study, r.front)); err != nil {
			return err
		}
	}
	return r.printTable(result.Table(r.study.GetSpec(), r.front))
}
