package dpsgd

import (
	"errors"
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/model"
	"github.com/dpareto/dpareto/internal/require"
)

func makeTrainer(t *testing.T, options Options) *Trainer {
	t.Helper()
	made, err := New(&dataset.Parts{Train: dataset.Generated(300, 1), Test: dataset.Generated(100, 2)}, options)
	require.NoError(t, err)
	return made
}

// A run whose parameters choose the model and the optimizer is the run of the trainer with
// these settings, to the last bit, whatever the trainer's own model is.
func TestChoicesAreSettings(t *testing.T) {
	mlp := func(widths ...int) model.Spec { return model.Spec{Kind: model.MLP, Hidden: widths} }
	for _, own := range []Options{
		{}, {Model: model.Spec{Kind: model.HuberSVM, HuberWidth: 0.1}}, {Model: mlp(3)}, {Sampling: Poisson}, {Initialization: model.InitializeHe},
	} {
		made := makeTrainer(t, own)
		for _, tt := range []struct {
			choices trainer.Parameters
			want    Options
		}{
			{trainer.Parameters{"model": "logistic-regression"}, Options{}},
			{trainer.Parameters{"model": "linear-svm", "optimizer": "sgd"}, Options{Model: model.Spec{Kind: model.LinearSVM}}},
			{trainer.Parameters{"model": "softmax-regression", "optimizer": "adam"}, Options{Model: model.Spec{Kind: model.SoftmaxRegression}, Optimizer: Adam}},
			{trainer.Parameters{"model": "mlp", "hidden": int64(5)}, Options{Model: mlp(5)}},
			{trainer.Parameters{"model": "mlp", "hidden": "6, 4", "optimizer": "adam"}, Options{Model: mlp(6, 4), Optimizer: Adam}},
		} {
			tt.want.Sampling, tt.want.Initialization = own.Sampling, own.Initialization
			run := trainer.Run{Parameters: parameters(tt.choices), Replicates: 2, Seed: new(uint64(3))}
			got := metrics(t, made, run)
			run.Parameters = parameters(nil)
			want := metrics(t, makeTrainer(t, tt.want), run)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("trainer %+v, parameters %v (-settings +parameters):\n%s", own, tt.choices, diff)
			}
		}
	}
	// Widths that are no parameter are the trainer's for its own kind, and the default for others.
	for _, tt := range []struct {
		own, want model.Spec
	}{{mlp(3), mlp(3)}, {model.Spec{}, mlp(128, 64)}} {
		o, _, err := makeTrainer(t, Options{Model: tt.own}).parse(parameters(trainer.Parameters{"model": "mlp"}))
		if diff := cmp.Diff(tt.want, o.Model); err != nil || diff != "" {
			t.Errorf("model %+v, error %v, want %+v", o.Model, err, tt.want)
		}
	}
	o, _, err := makeTrainer(t, Options{Model: mlp(3)}).parse(parameters(trainer.Parameters{"hidden": int64(7)}))
	if diff := cmp.Diff(mlp(7), o.Model); err != nil || diff != "" {
		t.Errorf("model %+v, error %v, want %+v", o.Model, err, mlp(7))
	}
}

func TestBadChoices(t *testing.T) {
	sgd, adam := makeTrainer(t, Options{}), makeTrainer(t, Options{Optimizer: Adam})
	ten, err := New(&dataset.Parts{Train: digits(30, 10, 1), Test: digits(30, 10, 2)}, Options{Model: model.Spec{Kind: model.SoftmaxRegression}})
	require.NoError(t, err)
	for _, tt := range []struct {
		made    *Trainer
		choices trainer.Parameters
		want    string
	}{
		{sgd, trainer.Parameters{"model": "tree"}, `parameter "model" is "tree", want logistic-regression, linear-svm, huber-svm, linear-regression, softmax-regression or mlp`},
		{sgd, trainer.Parameters{"model": 1.0}, `parameter "model" is 1 (float64), want a string`},
		{sgd, trainer.Parameters{"optimizer": "lbfgs"}, `parameter "optimizer" is "lbfgs", want sgd or adam`},
		{adam, trainer.Parameters{"optimizer": "adam"}, `parameter "optimizer" is unknown, want one of epochs`},
		{adam, trainer.Parameters{"learning_rate_adam": 0.1}, `parameter "learning_rate_adam" is unknown`},
		{sgd, trainer.Parameters{"model": "mlp", "hidden": "4,x"}, `parameter "hidden" is "4,x", want widths of at least 1`},
		{sgd, trainer.Parameters{"model": "mlp", "hidden": int64(0)}, `parameter "hidden" is "0", want widths of at least 1`},
		{sgd, trainer.Parameters{"model": "mlp", "hidden": 2.5}, `parameter "hidden" is 2.5 (float64), want an int64 or a string`},
		{sgd, trainer.Parameters{"hidden": int64(4)}, `parameter "hidden" is 4, want none: model logistic-regression has no hidden layers`},
		{sgd, trainer.Parameters{"learning_rate_sgd": 0.1}, `parameter "learning_rate_sgd" is given together with learning_rate`},
		{sgd, trainer.Parameters{"learning_rate": nil, "learning_rate_sgd": 0.0}, `parameter "learning_rate_sgd" is 0, want a positive`},
		{sgd, trainer.Parameters{"learning_rate": nil, "learning_rate_adam": 0.1}, `parameter "learning_rate_adam" is given for optimizer sgd`},
		{sgd, trainer.Parameters{"learning_rate": nil, "optimizer": "adam", "learning_rate_sgd": 0.1}, `parameter "learning_rate_sgd" is given for optimizer adam`},
		{sgd, trainer.Parameters{"learning_rate": nil}, `parameter "learning_rate" is missing`},
		{sgd, trainer.Parameters{"normalized_learning_rate": 0.1}, `parameter "normalized_learning_rate" is given with another learning rate`},
		{sgd, trainer.Parameters{"learning_rate": nil, "learning_rate_adam": 0.1, "normalized_learning_rate": 0.1}, `"normalized_learning_rate" is given with another`},
		{sgd, trainer.Parameters{"learning_rate": nil, "optimizer": "adam", "normalized_learning_rate": 0.1}, "or optimizer adam"},
		{sgd, trainer.Parameters{"learning_rate": nil, "normalized_learning_rate": 0.0}, `parameter "normalized_learning_rate" is 0, want a positive`},
		{adam, trainer.Parameters{"normalized_learning_rate": 0.1}, `parameter "normalized_learning_rate" is unknown`},
		{makeTrainer(t, Options{Initialization: model.InitializeZero}), trainer.Parameters{"model": "mlp"}, `parameter "model" is "mlp": initialisation zero leaves`},
		{ten, trainer.Parameters{"model": "linear-svm"}, `parameter "model" is "linear-svm": model linear-svm is for 2 classes`},
	} {
		p := parameters(tt.choices)
		_, trained := tt.made.Train(t.Context(), trainer.Run{Parameters: p, Replicates: 1, Seed: new(uint64(0))}, nil)
		_, accounted := tt.made.Mechanism(p)
		for _, err := range []error{trained, accounted} {
			if _, ok := errors.AsType[*trainer.ParameterError](err); !ok || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v: error %v, want %s", tt.choices, err, tt.want)
			}
		}
	}
}

// Each optimizer takes its own learning rate, and no choice changes the mechanism.
func TestChoicesOfOptimizer(t *testing.T) {
	made := makeTrainer(t, Options{})
	want, err := made.Mechanism(parameters(nil))
	require.NoError(t, err)
	for _, optimizer := range []Optimizer{SGD, Adam} {
		p := parameters(trainer.Parameters{"optimizer": string(optimizer), "learning_rate": 0.25})
		one := metrics(t, made, trainer.Run{Parameters: p, Replicates: 1, Seed: new(uint64(1))})
		own := maps.Clone(p)
		delete(own, ParameterLearningRate)
		own[ParameterLearningRate+"_"+string(optimizer)] = 0.25
		if diff := cmp.Diff(one, metrics(t, made, trainer.Run{Parameters: own, Replicates: 1, Seed: new(uint64(1))})); diff != "" {
			t.Errorf("%s (-learning_rate +its own):\n%s", optimizer, diff)
		}
		for _, kind := range model.Kinds() {
			if kind == model.LinearRegression { // is for numbers
				continue
			}
			own["model"] = string(kind)
			got, err := made.Mechanism(own)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%s by %s: error %v, mechanism (-want +got):\n%s", kind, optimizer, err, diff)
			}
		}
	}
}

// The normalised rate is the learning rate times the clipping norm, and changes no mechanism.
func TestNormalizedRate(t *testing.T) {
	made := makeTrainer(t, Options{})
	p := parameters(trainer.Parameters{"learning_rate": 0.5, "clipping_norm": 0.25})
	normalized := maps.Clone(p)
	delete(normalized, ParameterLearningRate)
	normalized[ParameterNormalizedRate] = 0.125
	run := trainer.Run{Parameters: p, Replicates: 2, Seed: new(uint64(1))}
	want := metrics(t, made, run)
	run.Parameters = normalized
	if diff := cmp.Diff(want, metrics(t, made, run)); diff != "" {
		t.Errorf("metrics (-learning_rate +normalized_learning_rate):\n%s", diff)
	}
	mechanism, err := made.Mechanism(p)
	require.NoError(t, err)
	if same, err := made.Mechanism(normalized); err != nil || !cmp.Equal(mechanism, same) {
		t.Errorf("mechanism %v, error %v, want %v", same, err, mechanism)
	}
	run.Parameters = maps.Clone(normalized)
	run.Parameters[ParameterClippingNorm], run.Parameters[ParameterNoiseMultiplier] = math.Inf(1), 0.0
	if _, err := made.Train(t.Context(), run, nil); err == nil || !strings.Contains(err.Error(), "without a finite clipping_norm") {
		t.Errorf("no clipping: error %v", err)
	}
}

// Data with a stated norm have wide domains, and every configuration of theirs is valid.
func TestDeclarationOfOwnData(t *testing.T) {
	for _, rows := range []int{1, 20, 300, 20000} {
		train := dataset.Generated(rows, 1)
		train.FeatureNorm = 4
		for _, options := range []Options{{}, {Optimizer: Adam}, {Model: model.Spec{Kind: model.MLP, Hidden: []int{3}}}, {Sampling: Poisson}} {
			made, err := New(&dataset.Parts{Train: train, Test: dataset.Generated(100, 2)}, options)
			require.NoError(t, err)
			d := made.Declaration()
			for _, corner := range []func(trainer.ParameterDeclaration) float64{
				func(p trainer.ParameterDeclaration) float64 { return p.Min }, func(p trainer.ParameterDeclaration) float64 { return p.Max },
			} {
				p := make(trainer.Parameters)
				for _, declared := range d.Parameters {
					p[declared.Name] = corner(declared)
					if declared.Integer {
						p[declared.Name] = int64(corner(declared))
					}
				}
				if _, err := made.Mechanism(p); err != nil {
					t.Errorf("%d rows, %+v: %v: %v", rows, options, p, err)
				}
			}
			if got, want := d.Parameters[2].Name == ParameterNormalizedRate, made.options.Optimizer == SGD; got != want {
				t.Errorf("%+v: parameters %+v", options, d.Parameters)
			}
		}
	}
}
