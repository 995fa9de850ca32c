package agent

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dpareto/dpareto/clients/go/trainer"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

// subsetTrainer is a trainer that can train on subsets of 1,000 examples, and notes how often it
// trains on what.
type subsetTrainer struct {
	noisyTrainer                // on all
	keys         map[string]int // runs by the key of the subset, "" for all
}

// newSubsetTrainer returns a trainer whose runs on all examples have a noise multiplier.
func newSubsetTrainer(multiplier float64) subsetTrainer {
	s := subsetTrainer{keys: make(map[string]int)}
	s.noisyTrainer = s.on("", multiplier)
	return s
}

// on returns the trainer on the examples of a key.
func (s subsetTrainer) on(key string, multiplier float64) noisyTrainer {
	return noisyTrainer{func(ctx context.Context, run trainer.Run, report trainer.Report) (trainer.Measurement, error) {
		if run.Seed != nil {
			return trainer.Measurement{}, errors.New("the run is seeded")
		}
		s.keys[key]++
		return checkpoints(1)(ctx, run, report)
	}, gaussian(multiplier)}
}

func (s subsetTrainer) Shards() int { return 1 }

func (s subsetTrainer) On(_ context.Context, rows trainer.Rows) (trainer.Trainer, error) {
	return s.on(string(rows.Subset.Key), 10), nil
}

// tunedStudy creates a study that tunes on a tenth of 1,000 examples, and waits until it is paid for. Each of
// three candidates, and the final run, is one Gaussian release with noise multiplier 10.
func (f *fixture) tunedStudy() {
	f.t.Helper()
	study, err := f.study.Get(f.t.Context())
	require.NoError(f.t, err)
	spec := study.GetSpec()
	spec.Metrics = append(spec.Metrics[:2:2], &dparetov1.MetricSpec{
		Id: "epsilon", Role: dparetov1.MetricRole_METRIC_ROLE_TRACKED,
		Source: &dparetov1.MetricSpec_Computed{Computed: &dparetov1.ComputedSource{Function: &dparetov1.ComputedSource_Privacy{Privacy: &dparetov1.PrivacySpec{
			Mechanism: &dparetov1.PrivacySpec_Gaussian{Gaussian: &dparetov1.GaussianMechanism{Sensitivity: "1", StandardDeviation: "10.0"}},
			Delta:     1e-6, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
		}}}},
	})
	spec.Budget, spec.Seed, spec.Algorithm = nil, nil, &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_RANDOM}
	spec.RandomStopping = &dparetov1.RandomStoppingSpec{
		MeanTrials: 3, Distribution: &dparetov1.RandomStoppingSpec_Fixed{Fixed: new(dparetov1.FixedNumber)}, Metric: spec.GetMetrics()[1].GetId(), Listed: 10,
		SubsetShare: 0.1, FinalRun: &dparetov1.FinalRunSpec{DatasetSize: 1000, Values: map[string]*dparetov1.Value{
			"cutoff": {Kind: &dparetov1.Value_IntValue{IntValue: 2}},
		}},
	}
	spec.TrainLedger = "ledgers/train"
	l := &dparetov1.Ledger{Records: 1000, Epsilon: 11, Delta: 1e-5, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE}
	require.NoError(f.t, require.ErrOf(f.client.Releases.CreateLedger(f.t.Context(), &dparetov1.CreateLedgerRequest{LedgerId: "train", Ledger: l})))
	if f.study, err = f.client.CreateStudy(f.t.Context(), "tuned", &dparetov1.Study{Spec: spec}); err != nil {
		f.t.Fatal(err)
	}
}

// The agent trains all candidates on the study's subset, then once on all examples.
func TestSubset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 6)
		f.tunedStudy()
		var r recorder
		tr := newSubsetTrainer(10)
		a := &Agent{Study: f.study, WorkerID: "a", Workers: 1, Trainer: tr, Events: r.hooks()}
		require.NoError(t, a.Run(t.Context()))
		r.wantOutcomes(t, map[Outcome]int{Succeeded: 4})
		if len(tr.keys) != 2 || tr.keys[""] != 1 {
			t.Errorf("%d different sets of examples, all of them %d times, want 2 and once", len(tr.keys), tr.keys[""])
		}
		release, err := f.client.Releases.ReleaseBest(t.Context(), &dparetov1.ReleaseBestRequest{Name: f.study.Name(), Metric: "error"})
		if err != nil || release.GetRelease().GetPoints()[0].GetParameters()["cutoff"].GetIntValue() != 2 {
			t.Errorf("released %v, %v", release, err)
		}
	})
}

// A trainer that cannot train on subsets, has other examples, or would cost more in the final run is
// found out by the first candidate.
func TestSubsetMismatch(t *testing.T) {
	other := newSubsetTrainer(10)
	for name, tt := range map[string]struct {
		trainer trainer.Trainer
		want    string
	}{
		"no subsets":     {other.noisyTrainer, "cannot train on a subset"},
		"final run":      {newSubsetTrainer(5), "for the final run, whose run costs at least"},
		"other examples": {otherExamples{other}, "cannot take it: there are 2,000 examples"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, 6)
				f.tunedStudy()
				var r recorder
				err := (&Agent{Study: f.study, WorkerID: "a", Workers: 1, Trainer: tt.trainer, Events: r.hooks()}).Run(t.Context())
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error %v, want %q", err, tt.want)
				}
				r.wantOutcomes(t, map[Outcome]int{Released: 1})
			})
		})
	}
	if len(other.keys) != 0 {
		t.Errorf("trained %v", other.keys)
	}
}

// otherExamples is a trainer with other examples than the study's.
type otherExamples struct{ subsetTrainer }

func (otherExamples) On(context.Context, trainer.Rows) (trainer.Trainer, error) {
	return nil, errors.New("there are 2,000 examples")
}
