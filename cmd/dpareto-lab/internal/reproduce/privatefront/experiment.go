package privatefront

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/clients/go/agent"
	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/builtin"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce/local"
	"github.com/dpareto/dpareto/cmd/dpareto/studies"
	"github.com/dpareto/dpareto/cmd/internal/studyfile"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/suggest/pareto"
)

// studyName is the bundled study; errorMetric and epsilonMetric are its objectives.
const (
	studyName     = "adult-private"
	errorMetric   = "error"
	epsilonMetric = "epsilon"
)

// slotFilter is the TrainFilter of slots.
const slotFilter = "slots"

// Experiment is the experiment. It implements reproduce.Experiment.
type Experiment struct {
	Trials       int64   // at most, of each study
	TestEpsilon  float64 // declared for the test records
	TrainEpsilon float64 // declared for the training records
	TrainFilter  string  // "gaussian", "renyi", "slots" or "" for the study's own choice
	Runs         int     // with which a reported configuration is trained again
	Seed         uint64  // of everything, noise included
	DataDir      string
	Generated    bool // made-up examples in the shape of Adult, for tests
}

// Name implements reproduce.Experiment.
func (*Experiment) Name() string { return "private-front" }

// Validate implements reproduce.Experiment.
func (e *Experiment) Validate() error {
	switch {
	case e.Trials < 1:
		return fmt.Errorf("--trials must be at least 1, is %d", e.Trials)
	case !(e.TestEpsilon > 0) || !(e.TrainEpsilon > 0) || math.IsInf(e.TestEpsilon+e.TrainEpsilon, 1):
		return errors.New("private-front: ε must be positive and finite")
	case e.TrainFilter != "" && e.TrainFilter != slotFilter && trainFilter(e.TrainFilter) == dparetov1.TrainFilter_TRAIN_FILTER_UNSPECIFIED:
		return fmt.Errorf("--train-filter must be gaussian, renyi or slots, is %q", e.TrainFilter)
	case e.Runs < 1:
		return fmt.Errorf("--runs must be at least 1, is %d", e.Runs)
	default:
		return nil
	}
}

// trainFilter returns the filter with a name, unspecified for none.
func trainFilter(name string) dparetov1.TrainFilter {
	return dparetov1.TrainFilter(dparetov1.TrainFilter_value["TRAIN_FILTER_"+strings.ToUpper(name)])
}

// point is a configuration on a reported front.
type point struct {
	parameters       trainer.Parameters
	epsilon          float64
	reported, actual float64 // error rates
}

// outcome is the outcome of a study.
type outcome struct {
	name      string
	study     *dparetov1.Study // at its end
	endReason dparetov1.EndReason
	points    []point
	// Hypervolumes within the reference values: as reported, of the posterior front and of
	// the values at face value, and of the same configurations trained again.
	reported, observed, actual float64
}

// Run implements reproduce.Experiment.
func (e *Experiment) Run(ctx context.Context, progress func(done, total int)) (_ *reproduce.Result, err error) {
	content, err := studies.File(studyName)
	if err != nil {
		return nil, err
	}
	file, err := studyfile.Parse(content)
	if err != nil {
		return nil, err
	}
	spec := file.Study.GetSpec()
	spec.Seed, spec.Budget.MaxTrials = &e.Seed, e.Trials
	spec.PrivateMode.TestEpsilon, spec.PrivateMode.TrainEpsilon = e.TestEpsilon, e.TrainEpsilon
	if e.TrainFilter == slotFilter {
		if spec.PrivateMode.Slots, err = declareSlots(e.Trials, e.TrainEpsilon, spec.GetPrivateMode().GetDelta()); err != nil {
			return nil, err
		}
	} else {
		spec.PrivateMode.TrainFilter = trainFilter(e.TrainFilter)
	}
	settings := trainer.Settings(spec.GetTrainer().GetSettings())
	if e.Generated {
		settings["generated"] = "true"
	}
	trained, err := builtin.Registry().New(ctx, spec.GetTrainer().GetName(), trainer.Options{DataDir: e.DataDir, Settings: settings})
	if err != nil {
		return nil, err
	}
	client, stop, err := local.Serve(ctx, "", noise.Seeded(e.Seed)) // repeatable noise: for an experiment only
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()

	total := 2 * int(e.Trials+1)
	done := 0
	step := func() {
		done = min(done+1, total-1)
		progress(done, total)
	}
	for _, l := range file.Ledgers {
		l.Epsilon = max(e.TestEpsilon, e.TrainEpsilon) // one study each
	}
	file.ID = "private"
	private, err := e.run(ctx, client, "private", file, trained, step)
	if err != nil {
		return nil, err
	}
	spec.PrivateMode, spec.TestLedger, spec.TrainLedger = nil, "", ""
	file.ID, file.Ledgers = "open", nil
	open, err := e.run(ctx, client, "not private", file, trained, step)
	if err != nil {
		return nil, err
	}
	progress(total, total)
	return e.result(private, open), nil
}

// run runs a study to its end, and trains what it reports again.
func (e *Experiment) run(ctx context.Context, client *dpareto.Client, name string, file *studyfile.File, t trainer.Trainer, step func()) (*outcome, error) {
	handle, err := file.Create(ctx, client, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	worker := &agent.Agent{Study: handle, Trainer: &repeatable{Trainer: t, seed: e.Seed}, WorkerID: "worker", Events: agent.Events{
		TrialDone: func(string, *dpareto.Trial, agent.Outcome, trainer.Measurement, error) { step() },
	}}
	if err := worker.Run(ctx); err != nil {
		return nil, err
	}
	o := &outcome{name: name}
	refused, err := client.Studies.SuggestTrials(ctx, &dparetov1.SuggestTrialsRequest{Parent: handle.Name(), WorkerId: "another"})
	if err != nil {
		return nil, err
	}
	o.endReason = refused.GetEndReason()
	if o.study, err = handle.Get(ctx); err != nil {
		return nil, err
	}
	resp, err := client.Fronts.GetFront(ctx, &dparetov1.GetFrontRequest{Name: handle.Name(), Kind: dparetov1.FrontKind_FRONT_KIND_POSTERIOR})
	if err != nil {
		return nil, err
	}
	front := resp.GetFront()
	for _, v := range front.GetHypervolumes() {
		if v.GetKind() == dparetov1.FrontKind_FRONT_KIND_OBSERVED {
			o.observed = v.GetHypervolume()
		}
	}
	o.reported = front.GetHypervolume()
	for i, p := range front.GetPoints() {
		if p.GetBeyondReference() {
			continue
		}
		q := point{
			parameters: parametersOf(p), epsilon: p.GetValues()[epsilonMetric].GetValue(), reported: p.GetValues()[errorMetric].GetValue(),
		}
		if q.actual, err = e.trainAgain(ctx, t, q.parameters, i); err != nil {
			return nil, err
		}
		o.points = append(o.points, q)
	}
	o.actual = hypervolume(o.points, front.GetReference(), func(p *point) float64 { return p.actual })
	step()
	return o, nil
}

// parametersOf returns the configuration of a point.
func parametersOf(p *dparetov1.FrontPoint) trainer.Parameters {
	parameters := make(trainer.Parameters)
	for id, v := range p.GetParameters() {
		switch v.GetKind().(type) {
		case *dparetov1.Value_IntValue:
			parameters[id] = v.GetIntValue()
		default:
			parameters[id] = v.GetDoubleValue()
		}
	}
	return parameters
}

// repeatable is a trainer with known randomness, which a study with private_mode would refuse if
// it knew: for an experiment on public data only.
type repeatable struct {
	trainer.Trainer
	seed uint64
	runs int64
}

// Train implements trainer.Trainer.
func (t *repeatable) Train(ctx context.Context, run trainer.Run, report trainer.Report) (trainer.Measurement, error) {
	t.runs++
	run.Seed = new(agent.TrialSeed(t.seed, t.runs, 1))
	return t.Trainer.Train(ctx, run, report)
}

// trainAgain returns the mean error of fresh runs of a configuration.
func (e *Experiment) trainAgain(ctx context.Context, t trainer.Trainer, parameters trainer.Parameters, i int) (float64, error) {
	m, err := t.Train(ctx, trainer.Run{Parameters: parameters, Replicates: e.Runs, Seed: new(agent.TrialSeed(e.Seed+1, int64(i), 1))}, nil)
	if err != nil {
		return 0, err
	}
	mean := 0.0
	for _, x := range m.Metrics[errorMetric] {
		mean += x / float64(e.Runs)
	}
	return mean, nil
}

// hypervolume returns the hypervolume of points, each with an error rate, within reference
// values.
func hypervolume(points []point, reference map[string]float64, errorRate func(*point) float64) float64 {
	var costs [][]float64
	for i := range points {
		costs = append(costs, []float64{points[i].epsilon, errorRate(&points[i])})
	}
	return pareto.Hypervolume(costs, []float64{reference[epsilonMetric], reference[errorMetric]})
}
