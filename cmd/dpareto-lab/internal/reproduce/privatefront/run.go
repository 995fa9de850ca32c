package privatefront

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/clients/go/agent"
	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce/local"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
	"github.com/dpareto/dpareto/privacy/noise"
)

// errorMetric and epsilonMetric are the objectives of all studies.
const (
	errorMetric   = "error"
	epsilonMetric = "epsilon"
)

// study runs the study of a way to its end, on a server of its own, and trains what it publishes again.
func (e *Experiment) study(ctx context.Context, w *way, seed uint64) (_ *outcome, err error) {
	file, err := e.file(w, seed)
	if err != nil {
		return nil, err
	}
	declared := file.Study.GetSpec().GetTrainer()
	trained, err := e.registry.NewDivisible(ctx, declared.GetName(), trainer.Options{DataDir: e.DataDir, Settings: declared.GetSettings()}, 1)
	if err != nil {
		return nil, err
	}
	client, stop, err := local.Serve(ctx, "", noise.Seeded(seed)) // repeatable noise: for an experiment only
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	handle, err := file.Create(ctx, client, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	runs := newRecorder(trained, seed)
	if err := (&agent.Agent{Study: handle, Trainer: runs, WorkerID: "worker"}).Run(ctx); err != nil {
		return nil, err
	}
	o := &outcome{Key: e.key(w, seed), Trainings: runs.count()}
	if err := o.read(ctx, client, handle, runs); err != nil {
		return nil, err
	}
	if err := o.trainAgain(ctx, trained, e.Runs, seed); err != nil {
		return nil, err
	}
	o.Published = hypervolume(o.Points, func(p *point) float64 { return p.Actual })
	return o, nil
}

// read reads what a study shows at its end.
func (o *outcome) read(ctx context.Context, client *dpareto.Client, handle *dpareto.Study, runs *recorder) error {
	refused, err := client.Studies.SuggestTrials(ctx, &dparetov1.SuggestTrialsRequest{Parent: handle.Name(), WorkerId: "another"})
	if err != nil {
		return err
	}
	o.End = strings.ReplaceAll(enum.Name(refused.GetEndReason()), "-", " ")
	study, err := handle.Get(ctx)
	if err != nil {
		return err
	}
	publication := study.GetPublication()
	o.TrainEpsilon, o.TestEpsilon = publication.GetTrain().GetEpsilon(), publication.GetTest().GetEpsilon()
	o.Noise, o.SpentTrain = publication.GetNoiseStandardDeviation(), publication.GetSpent().GetTrain().GetEpsilon()
	if study.GetSpec().GetRandomStopping() != nil {
		return o.readRelease(ctx, client, handle)
	}
	if err := o.readFront(ctx, client, handle); err != nil {
		return err
	}
	return o.readRuns(ctx, handle, runs)
}

// readRelease reads the only release of a study with random_stopping, of curves what is on their front.
func (o *outcome) readRelease(ctx context.Context, client *dpareto.Client, handle *dpareto.Study) error {
	resp, err := client.Releases.ReleaseBest(ctx, &dparetov1.ReleaseBestRequest{Name: handle.Name(), Metric: errorMetric})
	if err != nil {
		return err
	}
	for _, p := range resp.GetRelease().GetPoints() {
		if p.GetRun() > 0 && !p.GetOnFront() { // a reader of noisy values takes others
			continue
		}
		o.Points = append(o.Points, point{
			parameters: parametersOf(p.GetParameters()), Epsilon: p.GetValues()[epsilonMetric], Reported: p.GetValues()[errorMetric],
		})
	}
	return nil
}

// readFront reads the front of a study that shows one.
func (o *outcome) readFront(ctx context.Context, client *dpareto.Client, handle *dpareto.Study) error {
	resp, err := client.Fronts.GetFront(ctx, &dparetov1.GetFrontRequest{Name: handle.Name(), Kind: dparetov1.FrontKind_FRONT_KIND_POSTERIOR})
	if err != nil {
		return err
	}
	for _, p := range resp.GetFront().GetPoints() {
		if p.GetBeyondReference() {
			continue
		}
		o.Points = append(o.Points, point{
			parameters: parametersOf(p.GetParameters()), Epsilon: p.GetValues()[epsilonMetric].GetValue(), Reported: p.GetValues()[errorMetric].GetValue(),
		})
	}
	return nil
}

// readRuns compares all runs of a study that shows its trials with the runs of the
// published configurations, by the errors that the worker measured.
func (o *outcome) readRuns(ctx context.Context, handle *dpareto.Study, runs *recorder) error {
	isPublished := make(map[string]bool)
	for _, p := range o.Points {
		isPublished[configuration(p.parameters)] = true
	}
	var made, chosen []point
	for t, err := range handle.Trials(ctx) {
		if err != nil {
			return err
		}
		configured := configuration(parametersOf(t.GetParameters()))
		measured, isMeasured := runs.measured(configured)
		if !isMeasured || t.GetState() != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED {
			continue
		}
		p := point{Epsilon: t.GetFinalMeasurement().GetMetrics()[epsilonMetric].GetValue(), Actual: measured}
		made = append(made, p)
		if isPublished[configured] {
			chosen = append(chosen, p)
		}
	}
	actual := func(p *point) float64 { return p.Actual }
	o.Made, o.Chosen = hypervolume(made, actual), hypervolume(chosen, actual)
	return nil
}
