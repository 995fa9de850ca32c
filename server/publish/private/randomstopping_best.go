package private

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest/pareto"
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

// contender is a candidate with the trials of it that succeeded, in the order of their numbers.
type contender struct {
	candidate

	number int64
	runs   []*dparetov1.Trial
}

// add adds a trial that succeeded. The token of the first decides ties: it is uniform whichever trials
// succeed.
func (c *contender) add(record *storev1.TrialRecord) {
	if len(c.runs) == 0 {
		c.token = record.GetCompletionToken()
	}
	c.runs = append(c.runs, record.GetTrial())
}

// best returns the best candidate of a study with random stopping once all trials are complete, nil if
// no trial succeeded. Each candidate is as many consecutive trials as the study's portfolio has.
func best(ctx context.Context, tx *store.ReadTx, id string, compiled *spec.Study) (first *contender, err error) {
	score := scoreOf(compiled)
	current := new(contender)
	settle := func() {
		if len(current.runs) == 0 {
			return
		}
		current.score = score(current.runs)
		if first == nil || current.betterThan(first.candidate) {
			first = current
		}
	}
	err = tx.Trials(id, 0, func(record *storev1.TrialRecord) (bool, error) {
		if number := (record.GetTrial().GetNumber() - 1) / portfolio(compiled); number != current.number {
			settle()
			current = &contender{number: number}
		}
		if record.GetTrial().GetState() == dparetov1.TrialState_TRIAL_STATE_SUCCEEDED {
			current.add(record)
		}
		return true, ctx.Err()
	})
	settle()
	return first, err
}

// scoreOf returns the score of the runs of a candidate, larger for better ones: the final value of the only
// run, or the hypervolume of all values within the reference values of the objectives. It depends
// on nothing but the candidate.
func scoreOf(compiled *spec.Study) func(runs []*dparetov1.Trial) float64 {
	if releasesCurve(compiled) {
		return func(runs []*dparetov1.Trial) float64 {
			var points [][]float64
			for _, run := range runs {
				for _, m := range states(run) {
					if compiled.Metrics.Acceptable(m) {
						points = append(points, study.MeasuredCosts(compiled, m))
					}
				}
			}
			return pareto.Hypervolume(points, compiled.Problem.ReferenceCosts())
		}
	}
	metric, sign := compiled.Spec.GetRandomStopping().GetMetric(), 1.0
	for _, m := range compiled.Spec.GetMetrics() {
		if m.GetId() == metric && m.GetGoal() == dparetov1.Goal_GOAL_MINIMIZE {
			sign = -1
		}
	}
	return func(runs []*dparetov1.Trial) float64 {
		return sign * runs[0].GetFinalMeasurement().GetMetrics()[metric].GetValue()
	}
}

// states returns the measurements that a study with random stopping keeps of a run, the last one at the end.
func states(run *dparetov1.Trial) []*dparetov1.Measurement {
	all := slices.Clone(run.GetMeasurements())
	final := run.GetFinalMeasurement()
	return append(slices.DeleteFunc(all, func(m *dparetov1.Measurement) bool { return m.GetStep() == final.GetStep() }), final)
}

// ReleaseBest returns the one release of a study with random_stopping, the same at every call, without
// name and time. It returns FAILED_PRECONDITION while a trial is missing.
func ReleaseBest(ctx context.Context, tx *store.ReadTx, id string, record *storev1.StudyRecord, compiled *spec.Study) (*dparetov1.Release, error) {
	of := record.GetStudy()
	if !record.GetRandomStopping().GetPaid() {
		return nil, status.Errorf(codes.FailedPrecondition, "%s has no trials: %v %s", of.GetName(), of.GetState(), of.GetStateReason())
	}
	if !isRun(record) {
		return nil, status.Errorf(codes.FailedPrecondition, "%s is not completed: it shows only its best trial, and only after all trials", of.GetName())
	}
	first, err := shown(ctx, tx, id, record, compiled)
	if err != nil {
		return nil, err
	}
	publication, asked := of.GetPublication(), of.GetSpec().GetRandomStopping()
	release := &dparetov1.Release{
		Guarantee:              publication.GetTest(),
		TrainingGuarantee:      publication.GetTrain(),
		Assumptions:            publication.GetAssumptions(),
		NotCovered:             publication.GetNotCovered(),
		Mechanism:              mechanismText(compiled),
		NoiseStandardDeviation: publication.GetNoiseStandardDeviation(),
	}
	if n := asked.GetTestSetSize(); n > 0 {
		release.Protects = fmt.Sprintf("the %d test records", n)
	}
	if first == nil {
		return release, nil
	}
	release.Points = releasedPoints(compiled, first, publication.GetNoiseStandardDeviation())
	if finalOf(compiled) == nil {
		release.Warnings = []*dparetov1.Warning{{
			Code:    study.WarnSelectionBias,
			Message: "the best of several measured values is better, on average, than a fresh run",
		}}
	}
	return release, nil
}

// shown returns what a study shows once all trials are complete: the best candidate, or the final run, nil if
// that did not succeed.
func shown(ctx context.Context, tx *store.ReadTx, id string, record *storev1.StudyRecord, compiled *spec.Study) (*contender, error) {
	if finalOf(compiled) == nil {
		return best(ctx, tx, id, compiled)
	}
	run, err := finalTrial(tx, id, record)
	if err != nil || run == nil {
		return nil, err
	}
	return &contender{runs: []*dparetov1.Trial{run}}, nil
}

// releasedPoints returns what a study releases of its best candidate: a point for every state that it keeps, in
// rising order of ε.
func releasedPoints(compiled *spec.Study, first *contender, deviation float64) []*dparetov1.ReleasedPoint {
	metric := compiled.Spec.GetRandomStopping().GetMetric()
	var released []*dparetov1.ReleasedPoint
	var costs [][]float64
	var acceptable []*dparetov1.ReleasedPoint // the points of costs
	for i, run := range first.runs {
		for _, m := range states(run) {
			point := releasedPoint(compiled, run, m)
			if deviation > 0 { // then the value was in [0, 1] before the noise
				point.StandardDeviations = map[string]float64{metric: deviation}
				point.Values[metric] = min(max(point.GetValues()[metric], 0), 1)
			}
			if releasesCurve(compiled) {
				point.Run = int32(i + 1)
			}
			if compiled.Metrics.Acceptable(m) {
				costs, acceptable = append(costs, study.MeasuredCosts(compiled, m)), append(acceptable, point)
			}
			released = append(released, point)
		}
	}
	if releasesCurve(compiled) {
		for _, i := range pareto.NonDominated(costs) {
			acceptable[i].OnFront = true
		}
	}
	epsilon, _ := compiled.Metrics.Mechanism("")
	slices.SortStableFunc(released, func(a, b *dparetov1.ReleasedPoint) int {
		return cmp.Compare(a.GetValues()[epsilon], b.GetValues()[epsilon])
	})
	return released
}

// releasedPoint returns the configuration of a state of a run, with its metrics.
func releasedPoint(compiled *spec.Study, run *dparetov1.Trial, m *dparetov1.Measurement) *dparetov1.ReleasedPoint {
	point := &dparetov1.ReleasedPoint{Parameters: maps.Clone(run.GetParameters()), Values: make(map[string]float64)}
	if releasesCurve(compiled) {
		point.Parameters[compiled.Spec.GetCheckpointParameter()] = &dparetov1.Value{Kind: &dparetov1.Value_IntValue{IntValue: m.GetStep()}}
	}
	for id, value := range m.GetMetrics() {
		if value.Value != nil {
			point.Values[id] = value.GetValue()
		}
	}
	return point
}

// mechanismText says what is released, and how it is chosen.
func mechanismText(compiled *spec.Study) string {
	distribution := distributionText(compiled.Spec.GetRandomStopping())
	switch k := portfolio(compiled); {
	case finalOf(compiled) != nil:
		return fmt.Sprintf("one run on all training records, as chosen on a secret subset of share %g by the best of a secret number of runs: %s",
			compiled.Spec.GetRandomStopping().GetSubsetShare(), distribution)
	case k > 1:
		return fmt.Sprintf("the learning curves of the best of a secret number of portfolios of %d runs, by their hypervolume: %s", k, distribution)
	case releasesCurve(compiled):
		return "the learning curve of the best of a secret number of runs, by its hypervolume: " + distribution
	default:
		return "the best of a secret number of runs: " + distribution
	}
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
