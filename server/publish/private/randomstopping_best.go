package private

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
)

// candidate is what decides which trial is best.
type candidate struct {
	score float64 // larger is better
	token string  // lease token of its completion
}

// betterThan reports whether c beats other. The larger token breaks ties: tokens are uniform and
// independent of everything else, so the order of the trials has no influence on the release.
func (c candidate) betterThan(other candidate) bool {
	return c.score > other.score || c.score == other.score && c.token > other.token
}

// best returns the best trial of a study with random stopping once all trials are complete, nil if
// none succeeded.
func best(ctx context.Context, tx *store.ReadTx, id string, study *dparetov1.Study) (found *dparetov1.Trial, err error) {
	metric, sign := study.GetSpec().GetRandomStopping().GetMetric(), 1.0
	for _, m := range study.GetSpec().GetMetrics() {
		if m.GetId() == metric && m.GetGoal() == dparetov1.Goal_GOAL_MINIMIZE {
			sign = -1
		}
	}
	var first candidate
	err = tx.Trials(id, 0, func(record *storev1.TrialRecord) (bool, error) {
		trial := record.GetTrial()
		if trial.GetState() != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED {
			return true, ctx.Err()
		}
		c := candidate{sign * trial.GetFinalMeasurement().GetMetrics()[metric].GetValue(), record.GetCompletionToken()}
		if found == nil || c.betterThan(first) {
			found, first = trial, c
		}
		return true, ctx.Err()
	})
	return found, err
}

// ReleaseBest returns the one release of a study with random_stopping, the same at every call, without
// name and time. It returns FAILED_PRECONDITION while a trial is missing.
func ReleaseBest(ctx context.Context, tx *store.ReadTx, id string, record *storev1.StudyRecord) (*dparetov1.Release, error) {
	of := record.GetStudy()
	if !record.GetRandomStopping().GetPaid() {
		return nil, status.Errorf(codes.FailedPrecondition, "%s has no trials: %v %s", of.GetName(), of.GetState(), of.GetStateReason())
	}
	if !isRun(record) {
		return nil, status.Errorf(codes.FailedPrecondition, "%s is not completed: it shows its best trial once all trials have been run, and nothing before", of.GetName())
	}
	trial, err := shown(ctx, tx, id, record)
	if err != nil {
		return nil, err
	}
	publication, asked := of.GetPublication(), of.GetSpec().GetRandomStopping()
	release := &dparetov1.Release{
		Guarantee:              publication.GetTest(),
		TrainingGuarantee:      publication.GetTrain(),
		Assumptions:            publication.GetAssumptions(),
		NotCovered:             publication.GetNotCovered(),
		Mechanism:              mechanismText(asked),
		NoiseStandardDeviation: publication.GetNoiseStandardDeviation(),
	}
	if n := asked.GetTestSetSize(); n > 0 {
		release.Protects = fmt.Sprintf("the %d test records", n)
	}
	if trial == nil {
		return release, nil
	}
	point := &dparetov1.ReleasedPoint{Parameters: trial.GetParameters(), Values: make(map[string]float64), StandardDeviations: make(map[string]float64)}
	for metric, value := range trial.GetComputedMetrics() {
		if value.Value != nil {
			point.Values[metric] = value.GetValue()
		}
	}
	point.Values[asked.GetMetric()] = trial.GetFinalMeasurement().GetMetrics()[asked.GetMetric()].GetValue()
	if sigma := publication.GetNoiseStandardDeviation(); sigma > 0 {
		point.StandardDeviations[asked.GetMetric()] = sigma
	}
	release.Points = []*dparetov1.ReleasedPoint{point}
	if asked.GetFinalRun() == nil {
		release.Warnings = []*dparetov1.Warning{{
			Code:    study.WarnSelectionBias,
			Message: "the best of several measured values is better, on average, than a fresh run",
		}}
	}
	return release, nil
}

// shown returns the trial that a study with random stopping shows once all trials are complete: the best
// one, or the final run. It is nil if that did not succeed.
func shown(ctx context.Context, tx *store.ReadTx, id string, record *storev1.StudyRecord) (*dparetov1.Trial, error) {
	if record.GetStudy().GetSpec().GetRandomStopping().GetFinalRun() != nil {
		return finalTrial(tx, id, record)
	}
	return best(ctx, tx, id, record.GetStudy())
}

// mechanismText says how a release came about.
func mechanismText(asked *dparetov1.RandomStoppingSpec) string {
	text := "the best of a secret number of runs: " + distributionText(asked)
	if asked.GetFinalRun() != nil {
		return fmt.Sprintf("one run on all training records, as chosen on a secret subset of share %g by %s", asked.GetSubsetShare(), text)
	}
	return text
}

// distributionText names the distribution of the number of trials.
func distributionText(asked *dparetov1.RandomStoppingSpec) string {
	mean, eta := asked.GetMeanTrials(), 1.0
	switch d := asked.GetDistribution().(type) {
	case *dparetov1.RandomStoppingSpec_Poisson:
		return fmt.Sprintf("Poisson, mean %g", mean)
	case *dparetov1.RandomStoppingSpec_Binomial:
		return fmt.Sprintf("binomial, %d tries, mean %g", d.Binomial, mean)
	case *dparetov1.RandomStoppingSpec_Fixed:
		return fmt.Sprintf("exactly %g", mean)
	case *dparetov1.RandomStoppingSpec_Eta:
		eta = d.Eta
	}
	text := fmt.Sprintf("truncated negative binomial, η = %g, mean %g", eta, mean)
	if most := asked.GetMaxTrials(); most > 0 {
		text += fmt.Sprintf(" before the condition that it is at most %d", most)
	}
	return text
}
