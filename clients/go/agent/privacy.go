package agent

import (
	"context"
	"errors"
	"fmt"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/clients/go/trainer"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
)

// PrivacyError says that the study accounts less for a trial than the trainer's run
// costs: its spec describes another mechanism, sampler, data set or adjacency.
type PrivacyError struct {
	// Trainer is the name of the trainer.
	Trainer string
	// Metric is the id of the study's privacy metric.
	Metric string
	// Reason in words.
	Reason string
}

// Error implements error.
func (e *PrivacyError) Error() string {
	return fmt.Sprintf("agent: metric %s of the study does not hold for trainer %s: %s", e.Metric, e.Trainer, e.Reason)
}

// ShardError says that the trainer's shards of the training examples are not the study's.
type ShardError struct {
	// Trainer is the name of the trainer.
	Trainer string
	// Shards is the trainer's number of shards, Want the study's.
	Shards, Want int
}

// Error implements error.
func (e *ShardError) Error() string {
	return fmt.Sprintf("agent: the study has its trials trained on %d shards of the training examples, trainer %s on %d", e.Want, e.Trainer, e.Shards)
}

// SubsetError says that the trainer cannot train on the subset of the training examples that a trial
// is for.
type SubsetError struct {
	// Trainer is the name of the trainer.
	Trainer string
	// Reason in words; it never says which examples are in the subset.
	Reason string
}

// Error implements error.
func (e *SubsetError) Error() string {
	return fmt.Sprintf("agent: the study has its candidates trained on a secret subset of the training examples, but trainer %s %s", e.Trainer, e.Reason)
}

// trainerFor returns the trainer on the examples that a trial is for: all of them, or the trial's
// shard or subset. It returns a *ShardError or a *SubsetError if the trainer cannot train on those.
func (c *crew) trainerFor(ctx context.Context, trial *dpareto.Trial) (trainer.Trainer, error) {
	rows := trainer.Rows{
		Subset: trial.TrainingSubset(),
		Shard:  int(trial.Message().GetTrainingShard()), Shards: max(1, int(c.privateMode.GetTrainingShards())),
	}
	fail := func(reason string) error { return &SubsetError{Trainer: c.Trainer.Name(), Reason: reason} }
	all, ok := c.Trainer.(trainer.Divisible)
	shards := 1
	if ok {
		shards = all.Shards()
	}
	switch {
	case shards != rows.Shards:
		return nil, &ShardError{Trainer: c.Trainer.Name(), Shards: shards, Want: rows.Shards}
	case rows.Subset == nil && rows.Shards == 1:
		return c.Trainer, nil
	case !ok:
		return nil, fail("cannot train on a subset")
	}
	fitting, err := all.On(ctx, rows)
	if err != nil && rows.Subset != nil && ctx.Err() == nil {
		return nil, fail("cannot take it: " + err.Error())
	}
	return fitting, err
}

// privacyTolerance is the relative amount by which accountants may differ.
const privacyTolerance = 1e-6

// checkPrivacy returns a *PrivacyError if a trial's computed ε is less than the ε of the trainer's own
// mechanism at its parameters, and a *trainer.ParameterError if the trainer does not take the
// parameters. The trainer is the one on the examples that the trial is for. Trainers that do not know
// their mechanism are not checked, nor are metrics without a value.
func (c *crew) checkPrivacy(trial *dpareto.Trial, fitting trainer.Trainer) error {
	private, ok := fitting.(trainer.PrivateTrainer)
	if !ok {
		return nil
	}
	for _, id := range c.private {
		stated := trial.Message().GetComputedMetrics()[id].GetPrivacy()
		if stated == nil {
			continue
		}
		if err := CheckStated(private, id, trial.Name(), trial.Parameters(), stated); err != nil {
			return err
		}
	}
	return nil
}

// CheckStated compares the ε that a study states for a run with parameters, under the name of a metric,
// with the trainer's own. It returns a *PrivacyError if the study states less, or another adjacency, and a
// *trainer.ParameterError if the trainer does not take the parameters.
func CheckStated(private trainer.PrivateTrainer, metric, run string, parameters trainer.Parameters, stated *dparetov1.PrivacyGuarantee) error {
	fail := func(format string, args ...any) error {
		return &PrivacyError{Trainer: private.Name(), Metric: metric, Reason: fmt.Sprintf(format, args...)}
	}
	mechanism, err := private.Mechanism(parameters)
	if _, ok := errors.AsType[*trainer.ParameterError](err); ok {
		return err
	} else if err != nil {
		return fail("%v", err)
	}
	if got := adjacencyOf(mechanism.Adjacency()); got != stated.GetAdjacency() {
		return fail("it is stated for %v, the trainer's noise is for %v", stated.GetAdjacency(), got)
	}
	own, err := privacy.Epsilon(privacy.Tightest{}, mechanism, 1, stated.GetDelta())
	if err != nil {
		return fail("%v", err)
	}
	if stated.GetEpsilon() < own.Epsilon*(1-privacyTolerance) {
		return fail("it states ε = %g for %s, whose run costs at least %g at δ = %g; compare the mechanism in the spec with the trainer's settings",
			stated.GetEpsilon(), run, own.Epsilon, stated.GetDelta())
	}
	return nil
}

// checkFinalRun makes the check of [crew.checkPrivacy] for the final run of a study already when a
// candidate of it is run. The final run is handed out once, and a trainer that refused it then
// would end the study without a result.
func (c *crew) checkFinalRun(ctx context.Context, candidate *dpareto.Trial) error {
	private, ok := c.Trainer.(trainer.PrivateTrainer)
	if !ok || candidate.TrainingSubset() == nil || len(c.private) == 0 {
		return nil
	}
	study, err := c.Study.Get(ctx)
	if err != nil {
		return err
	}
	parameters := candidate.Parameters()
	for id, value := range study.GetSpec().GetRandomStopping().GetFinalRun().GetValues() {
		switch v := value.GetKind().(type) {
		case *dparetov1.Value_DoubleValue:
			parameters[id] = v.DoubleValue
		case *dparetov1.Value_IntValue:
			parameters[id] = v.IntValue
		case *dparetov1.Value_StringValue:
			parameters[id] = v.StringValue
		}
	}
	return CheckStated(private, c.private[0], "the final run", parameters, study.GetPublication().GetFinalRun())
}

func adjacencyOf(a privacy.Adjacency) dparetov1.Adjacency {
	switch a {
	case privacy.AddRemove:
		return dparetov1.Adjacency_ADJACENCY_ADD_REMOVE
	case privacy.ReplaceOne:
		return dparetov1.Adjacency_ADJACENCY_REPLACE_ONE
	default:
		return dparetov1.Adjacency_ADJACENCY_UNSPECIFIED
	}
}
