package front

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/stat"

	dpareto "github.com/dpareto/dpareto/clients/go"
	goagent "github.com/dpareto/dpareto/clients/go/agent"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/agent"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/suggest/pareto"
)

// remeasureFlags say how to run the configurations of a front again.
type remeasureFlags struct {
	replicates int // of each point
	points     int // at most
	local      agent.Local
	timeout    time.Duration // 0: none
}

// validate checks the flags.
func (f *remeasureFlags) validate() error {
	switch {
	case f.replicates < 0:
		return fmt.Errorf("--remeasure must be at least 1, is %d", f.replicates)
	case f.points < 1:
		return fmt.Errorf("--points must be at least 1, is %d", f.points)
	case f.local.Workers < 0:
		return fmt.Errorf("--workers must be at least 0, is %d", f.local.Workers)
	case f.timeout < 0:
		return fmt.Errorf("--timeout must be at least 0, is %v", f.timeout)
	default:
		return nil
	}
}

// remeasurement is a front whose configurations are run again.
type remeasurement struct {
	remeasureFlags

	env        *command.Env
	server     *remote.Server
	handle     *dpareto.Study
	study      *dparetov1.Study
	front      *dparetov1.Front
	chosen     []*dparetov1.FrontPoint
	replicates [][]*dparetov1.Trial // of each chosen point, as last seen
}

// remeasure runs the configurations of a front again and prints their results.
func remeasure(ctx context.Context, env *command.Env, server *remote.Server, out *command.Printer, id string, kind dparetov1.FrontKind, f remeasureFlags) error {
	client, err := server.DialPatiently()
	if err != nil {
		return err
	}
	defer remote.Close(client)
	client.Studies = goagent.GiveBack(client.Studies)
	r := &remeasurement{remeasureFlags: f, env: env, server: server, handle: client.Study(id)}
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
		env.Logger.Warn("replicates that are not complete stay in the study's queue", "study", r.handle.Name())
		return waited
	}
	return errors.Join(r.print(out), waited)
}

// choose chooses the points of the front that make up most of its hypervolume.
func (r *remeasurement) choose() {
	var costs [][]float64
	points := slices.DeleteFunc(slices.Clone(r.front.GetPoints()), func(p *dparetov1.FrontPoint) bool { return p.GetConstantPoint() != "" })
	for _, p := range points {
		costs = append(costs, r.costs(func(id string) float64 { return p.GetValues()[id].GetValue() }))
	}
	indices := pareto.Subset(costs, r.reference(), r.points)
	slices.Sort(indices)
	for _, i := range indices {
		r.chosen = append(r.chosen, points[i])
	}
}

// costs returns the objectives in their order, negated if they are to be maximised.
func (r *remeasurement) costs(value func(id string) float64) []float64 {
	var costs []float64
	for _, m := range show.Objectives(r.study.GetSpec()) {
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
// all points have about as many when the time runs out.
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

// lookEvery is the time between two looks at the replicates.
const lookEvery = 500 * time.Millisecond

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
	if r.local.Workers > 0 {
		group.Go(func() error { return r.local.Train(running, r.env, r.server.Address(), r.handle, r.study) })
	} else {
		r.env.Logger.Info("waiting for agents to run the replicates; start one with dpareto agent, or give --workers", "study", r.handle.Name())
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

// wait waits until all replicates are complete and shows how far they are.
func (r *remeasurement) wait(ctx context.Context) error {
	_, total := r.progress()
	bar := r.env.Console.Start("re-measuring "+view.ID(r.handle.Name()), int64(total), "trials")
	defer bar.Finish()
	ticker := time.NewTicker(lookEvery)
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

// result compares the claims of the front with the results of the replicates.
func (r *remeasurement) result() *Comparison {
	out := &Comparison{
		Study: view.ID(r.handle.Name()), Kind: enum.Name(r.front.GetKind()),
		FrontPoints: len(r.front.GetPoints()), FrontHypervolume: r.front.GetHypervolume(),
	}
	var claimed, remeasured [][]float64
	for i, p := range r.chosen {
		point := comparedPoint{
			Front: p, Trial: p.GetTrial(), Step: p.GetStep(),
			Parameters: make(map[string]any), Values: make(map[string]comparedValue),
		}
		for id, v := range p.GetParameters() {
			point.Parameters[id] = view.Value(v)
		}
		for _, m := range show.Objectives(r.study.GetSpec()) {
			v := p.GetValues()[m.GetId()]
			value := comparedValue{Claimed: v.GetValue(), Lower: v.Lower, Upper: v.Upper}
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
			continue // it has no result yet
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

// gives reports whether a replicate was trained up to a step, 0 if steps do not matter. A
// run that stopped before it is one of another configuration.
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
	switch len(runs) {
	case 0:
		return nil, nil
	case 1:
		return &runs[0], nil
	default:
		mean, deviation := stat.MeanStdDev(runs, nil)
		return &mean, new(stat.StdErr(deviation, float64(len(runs))))
	}
}

// print prints the comparison.
func (r *remeasurement) print(out *command.Printer) error {
	result := r.result()
	if out.Format == output.JSON {
		return output.WriteJSON(out, result)
	}
	if err := out.Heading(result.heading(r.study, r.front)); err != nil {
		return err
	}
	return out.Table(result.table(r.study.GetSpec(), r.front))
}
