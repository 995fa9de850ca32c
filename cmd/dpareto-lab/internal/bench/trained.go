package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/builtin"
	"github.com/dpareto/dpareto/clients/go/trainer/dpsgd"
	"github.com/dpareto/dpareto/clients/go/trainer/sparsevector"
	"github.com/dpareto/dpareto/cmd/dpareto/studies"
	"github.com/dpareto/dpareto/cmd/internal/studyfile"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/random"
	"github.com/dpareto/dpareto/suggest/space"
)

// trainedStudy is a problem with a trainer: a bundled study.
type trainedStudy struct {
	name       string
	file       string // of package studies
	checkpoint string // the parameter whose smaller values a run passes through, or ""
	truth      func(space.Point) []float64
	logScales  []string // parameters that are measured on a log scale, whatever the file says
	noDesign   bool     // without the design distributions
}

// trainedStudies are the problems with a trainer, on which methods were compared before.
var trainedStudies = []trainedStudy{
	{name: "svt", file: "svt", truth: func(q space.Point) []float64 {
		cutoff, noiseScale := int64(q[0]), q[1]
		return []float64{sparsevector.Epsilon(cutoff, noiseScale), sparsevector.ExpectedError(cutoff, noiseScale)}
	}},
	{
		name: "adult", file: adultStudy, checkpoint: dpsgd.ParameterEpochs,
		logScales: []string{dpsgd.ParameterEpochs, dpsgd.ParameterLotSize},
	},
	{
		name: "adult_uniform", file: adultStudy, checkpoint: dpsgd.ParameterEpochs, noDesign: true,
		logScales: []string{dpsgd.ParameterEpochs, dpsgd.ParameterLotSize},
	},
	{name: "adult_linear", file: adultStudy, checkpoint: dpsgd.ParameterEpochs}, // as published
}

// adultStudy is the bundled study of the problems on Adult.
const adultStudy = "adult-variance"

// open compiles the study and makes its trainer.
func (s *trainedStudy) open(ctx context.Context, o ProblemOptions) (*Problem, error) {
	content, err := studies.File(s.file)
	if err != nil {
		return nil, err
	}
	file, err := studyfile.Parse(content)
	if err != nil {
		return nil, err
	}
	message := file.Study.GetSpec()
	for _, p := range message.GetParameters() {
		if slices.Contains(s.logScales, p.GetId()) {
			p.Scale = dparetov1.Scale_SCALE_LOG
		}
		if s.noDesign {
			p.Design = nil
		}
	}
	maps.Copy(message.GetTrainer().GetSettings(), o.Settings)
	message.CheckpointParameter = s.checkpoint
	if o.FinalOnly {
		message.CheckpointParameter = ""
	}
	study, err := spec.Compile("study.spec", message)
	if err != nil {
		return nil, fmt.Errorf("study %s: %w", s.file, err)
	}
	t, err := builtin.Registry().New(ctx, message.GetTrainer().GetName(), trainer.Options{
		DataDir: o.DataDir, Settings: message.GetTrainer().GetSettings(), Progress: o.Progress,
	})
	if err != nil {
		return nil, err
	}
	problem := *study.Problem
	problem.Checkpoint = message.GetCheckpointParameter()
	if o.EpochCost {
		problem.Cost = suggest.CostCheckpoint
	}
	p := &Problem{
		Problem:        &problem,
		Name:           s.name,
		Initial:        random.New(), // draws from the design distributions
		InitialPoints:  study.InitialTrials(),
		Truth:          s.truth,
		MaxHypervolume: math.NaN(),
		Start: func() Evaluator {
			return func(ctx context.Context, q space.Point, seed uint64) ([]suggest.Evaluation, error) {
				return train(ctx, study, t, q, seed)
			}
		},
	}
	isEpochs := func(q space.Parameter) bool { return q.Name == dpsgd.ParameterEpochs }
	if i := slices.IndexFunc(problem.Space.Parameters, isEpochs); i >= 0 {
		p.Epochs = func(q space.Point) float64 { return q[i] }
	}
	return p, nil
}

// train runs one trial of a study, as an agent and the server do together.
func train(ctx context.Context, study *spec.Study, t trainer.Trainer, q space.Point, seed uint64) ([]suggest.Evaluation, error) {
	run := trainer.Run{Parameters: make(trainer.Parameters), Replicates: int(study.Replicates()), Seed: &seed}
	for i, v := range q {
		switch p := &study.Problem.Space.Parameters[i]; p.Kind {
		case space.Integer:
			run.Parameters[p.Name] = int64(v)
		case space.Categorical:
			run.Parameters[p.Name] = p.Choices[int(v)]
		case space.Double, space.Discrete:
			run.Parameters[p.Name] = v
		}
	}
	var evaluations []suggest.Evaluation
	add := func(m trainer.Measurement) error {
		message := &dparetov1.Measurement{Metrics: make(map[string]*dparetov1.MetricValue)}
		if study.Points.Checkpoints() {
			message.Step = m.Step
		}
		for _, metric := range study.Spec.GetMetrics() {
			if runs, ok := m.Metrics[metric.GetId()]; ok {
				message.Metrics[metric.GetId()] = &dparetov1.MetricValue{Runs: runs}
			}
		}
		complete, _, err := study.Measurements.Accept("measurement", q, message, false)
		if err != nil {
			return err
		}
		evaluations = append(evaluations, study.Metrics.Evaluation(q, complete))
		return nil
	}
	var report trainer.Report
	if study.Points.Checkpoints() {
		report = add // also called at the end of the run
	}
	final, err := t.Train(ctx, run, report)
	if _, infeasible := errors.AsType[*trainer.InfeasibleError](err); infeasible {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !study.Points.Checkpoints() {
		err = add(final)
	}
	return evaluations, err
}
