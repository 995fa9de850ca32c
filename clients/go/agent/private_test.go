package agent

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/clients/go/trainer"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

// shardTrainer is a trainer on shards.
type shardTrainer struct {
	funcTrainer
	shards int
	asked  func(rows trainer.Rows)
}

func (s shardTrainer) Shards() int { return s.shards }

func (s shardTrainer) On(_ context.Context, rows trainer.Rows) (trainer.Trainer, error) {
	s.asked(rows)
	return s.funcTrainer, nil
}

// privateStudy creates a study with private_mode on shards.
func (f *fixture) privateStudy(shards int32, change func(*dparetov1.StudySpec)) {
	f.t.Helper()
	study, err := f.study.Get(f.t.Context())
	require.NoError(f.t, err)
	spec := study.GetSpec()
	spec.Metrics = append(spec.Metrics[:2:2], &dparetov1.MetricSpec{
		Id: "epsilon", Role: dparetov1.MetricRole_METRIC_ROLE_TRACKED,
		Source: &dparetov1.MetricSpec_Computed{Computed: &dparetov1.ComputedSource{Function: &dparetov1.ComputedSource_Privacy{Privacy: &dparetov1.PrivacySpec{
			Mechanism: &dparetov1.PrivacySpec_Gaussian{Gaussian: &dparetov1.GaussianMechanism{Sensitivity: "1", StandardDeviation: "10.0 + noise_scale"}},
			Delta:     1e-6, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
		}}}},
	})
	spec.PrivateMode = &dparetov1.PrivateModeSpec{TestSetSize: 1000, TestEpsilon: 1, TrainEpsilon: 10, Delta: 1e-6, TrainingShards: shards}
	spec.TestLedger, spec.TrainLedger = "ledgers/test", "ledgers/train"
	for id, l := range map[string]*dparetov1.Ledger{"test": {Records: 1000, Epsilon: 1.1}, "train": {Records: 3000, Epsilon: 11}} {
		l.Delta, l.Adjacency = 1e-5, dparetov1.Adjacency_ADJACENCY_REPLACE_ONE
		require.NoError(f.t, require.ErrOf(f.client.Releases.CreateLedger(f.t.Context(), &dparetov1.CreateLedgerRequest{LedgerId: id, Ledger: l})))
	}
	change(spec)
	if f.study, err = f.client.CreateStudy(f.t.Context(), "private", &dparetov1.Study{Spec: spec}); err != nil {
		f.t.Fatal(err)
	}
}

// Trials are trained on their shards, and what the study has no room for is not an error.
func TestPrivateMode(t *testing.T) {
	for _, checkpoint := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := start(t, 6)
			f.privateStudy(3, func(s *dparetov1.StudySpec) {
				if checkpoint {
					s.CheckpointParameter, s.PrivateMode.MaxValues = "cutoff", 8
				}
			})
			var r recorder
			shards := make(map[int]int)
			events := r.hooks()
			var want, opened trainer.Rows // of the trial; opened is zero once it has been trained on
			events.TrialStarted = func(_ string, trial *dpareto.Trial) {
				want = trainer.Rows{Shard: int(trial.Message().GetTrainingShard()), Shards: 3}
			}
			a := &Agent{Study: f.study, WorkerID: "a", Events: events, Trainer: shardTrainer{
				func(_ context.Context, run trainer.Run, report trainer.Report) (trainer.Measurement, error) {
					if opened != want {
						t.Errorf("trains on %+v, want %+v", opened, want)
					}
					shards[opened.Shard]++
					opened = trainer.Rows{}
					steps := int64(3)
					if checkpoint {
						steps = min(3, run.Parameters["cutoff"].(int64))
					}
					return checkpoints(steps).Train(t.Context(), run, report)
				}, 3, func(rows trainer.Rows) { opened = rows },
			}}
			require.NoError(t, a.Run(t.Context()))
			r.wantOutcomes(t, map[Outcome]int{Succeeded: 6})
			kept := 0
			for _, trial := range f.trials() {
				kept += len(trial.GetMeasurements())
			}
			// There is room for two; a run of the test may end before the step that is planned for it.
			if least := map[bool]int{false: 0, true: 1}[checkpoint]; kept > 2*least || kept < least {
				t.Errorf("checkpoints %v: %d measurements on the way are kept, want at least %d", checkpoint, kept, least)
			}
			if len(shards) != 3 {
				t.Errorf("trained on %v", shards)
			}
		})
	}
}

// A trainer that would train on all examples gives the trial back.
func TestShardMismatch(t *testing.T) {
	for _, tt := range []trainer.Trainer{checkpoints(1), shardTrainer{checkpoints(1), 2, nil}} {
		synctest.Test(t, func(t *testing.T) {
			f := start(t, 6)
			f.privateStudy(3, func(*dparetov1.StudySpec) {})
			a := &Agent{Study: f.study, WorkerID: "a", Trainer: tt}
			err := a.Run(t.Context())
			if mismatch, ok := errors.AsType[*ShardError](err); !ok || mismatch.Want != 3 {
				t.Errorf("error %v", err)
			}
			f.wantStates(queued)
		})
	}
}
