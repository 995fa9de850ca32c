package privatefront

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/clients/go/agent"
	"github.com/dpareto/dpareto/clients/go/trainer"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/suggest/pareto"
)

// reference is the point (ε, error) within which hypervolumes are.
var reference = []float64{1, 0.25}

// epochsParameter is the length of a run. A shorter run is a state of a longer one.
const epochsParameter = "epochs"

// The attempts of TrialSeed that runs of the studies and fresh runs are seeded with.
const (
	studyAttempt = 1
	freshAttempt = 2
)

// recorder is a trainer with known randomness, which a study with private_mode or random_stopping
// would refuse if it knew: for an experiment on public data only. It remembers its measurements.
type recorder struct {
	trainer.Divisible
	seed uint64

	mu     sync.Mutex // guards what follows
	runs   int64
	errors map[string]float64 // by configuration
}

func newRecorder(t trainer.Divisible, seed uint64) *recorder {
	return &recorder{Divisible: t, seed: seed, errors: make(map[string]float64)}
}

// Train implements trainer.Trainer.
func (r *recorder) Train(ctx context.Context, run trainer.Run, report trainer.Report) (trainer.Measurement, error) {
	run.Seed = new(r.next())
	m, err := r.Divisible.Train(ctx, run, report)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.errors[configuration(run.Parameters)] = stat.Mean(m.Metrics[errorMetric], nil)
	}
	return m, err
}

// On implements trainer.Divisible. Runs on a subset count as others do.
func (r *recorder) On(ctx context.Context, rows trainer.Rows) (trainer.Trainer, error) {
	t, err := r.Divisible.On(ctx, rows)
	return &onSubset{t, r}, err
}

// onSubset is the recorder's trainer on a subset.
type onSubset struct {
	trainer.Trainer
	all *recorder
}

// Train implements trainer.Trainer.
func (o *onSubset) Train(ctx context.Context, run trainer.Run, report trainer.Report) (trainer.Measurement, error) {
	run.Seed = new(o.all.next())
	return o.Trainer.Train(ctx, run, report)
}

// next returns the seed of the next run.
func (r *recorder) next() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs++
	return agent.TrialSeed(r.seed, r.runs, studyAttempt)
}

// count returns the number of runs.
func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return int(r.runs)
}

// measured returns the error of the last run of a configuration. ok is false if there was none.
func (r *recorder) measured(configured string) (value float64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	value, ok = r.errors[configured]
	return value, ok
}

// configuration returns a name of parameters that others do not have.
func configuration(p trainer.Parameters) string { return fmt.Sprint(p) } // in the order of their keys

// parametersOf returns the parameters of numbers in a message.
func parametersOf(values map[string]*dparetov1.Value) trainer.Parameters {
	parameters := make(trainer.Parameters)
	for id, v := range values {
		switch v.GetKind().(type) {
		case *dparetov1.Value_IntValue:
			parameters[id] = v.GetIntValue()
		default:
			parameters[id] = v.GetDoubleValue()
		}
	}
	return parameters
}

// trainAgain finds the true errors of the points: means of fresh runs. Points that differ in their epochs
// only are states of the same runs.
func (o *outcome) trainAgain(ctx context.Context, t trainer.Trainer, runs int, seed uint64) error {
	states := make(map[string][]*point)
	var order []string
	for i := range o.Points {
		others := maps.Clone(o.Points[i].parameters)
		delete(others, epochsParameter)
		run := configuration(others)
		if states[run] == nil {
			order = append(order, run)
		}
		states[run] = append(states[run], &o.Points[i])
	}
	for i, run := range order {
		if err := trainStates(ctx, t, states[run], runs, agent.TrialSeed(seed, int64(i), freshAttempt)); err != nil {
			return err
		}
	}
	return nil
}

// trainStates finds the true errors of states of the same runs.
func trainStates(ctx context.Context, t trainer.Trainer, states []*point, runs int, seed uint64) error {
	longest := states[0]
	for _, p := range states {
		if p.epochs() > longest.epochs() {
			longest = p
		}
	}
	at := make(map[int64]float64)
	keep := func(m trainer.Measurement) error {
		at[m.Step] = stat.Mean(m.Metrics[errorMetric], nil)
		return nil
	}
	last, err := t.Train(ctx, trainer.Run{Parameters: longest.parameters, Replicates: runs, Seed: &seed}, keep)
	if err != nil {
		return err
	}
	for _, p := range states {
		step := p.epochs()
		if step == 0 { // fixed by a setting of the trainer
			step = last.Step
		}
		actual, ok := at[step]
		if !ok {
			return fmt.Errorf("the trainer reported no measurement at epoch %d", step)
		}
		p.Actual = actual
	}
	return nil
}

// epochs returns the length of the run, 0 if it is no parameter.
func (p *point) epochs() int64 {
	epochs, _ := p.parameters[epochsParameter].(int64)
	return epochs
}

// hypervolume returns the hypervolume of points, each with an error rate, within the reference.
func hypervolume(points []point, errorRate func(*point) float64) float64 {
	var costs [][]float64
	for i := range points {
		costs = append(costs, []float64{points[i].Epsilon, errorRate(&points[i])})
	}
	return pareto.Hypervolume(costs, reference)
}
