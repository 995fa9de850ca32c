package private

import (
	"context"
	"fmt"
	"math"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/pause"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/stopping"
	"github.com/dpareto/dpareto/privacy/tuning"
	"github.com/dpareto/dpareto/server/accounting"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/suggest/space"
)

// SearchPublication returns the guarantee of a study with random stopping whose candidates come from a
// list. It accounts every mechanism of the list, at some milliseconds each, and calls progress after each. It is
// INVALID_ARGUMENT if there is no guarantee.
func SearchPublication(ctx context.Context, compiled *spec.Study, list []space.Point, progress func(done, total int)) (*dparetov1.Publication, error) {
	const field = "study.spec.random_stopping"
	asked, delta := compiled.Spec.GetRandomStopping(), searchDelta(compiled)
	dist, err := trialsDistribution(asked)
	if err != nil {
		return nil, err
	}
	run, err := searchRun(ctx, compiled, list, progress)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, invalid.Field(field, "the cost of a trial cannot be bounded: %v", err)
	}
	// The runs of a portfolio draw their configurations independently: k runs of the mixture.
	tuning := dist.Mechanism(run, portfolio(compiled))
	g, err := privacy.Epsilon(privacy.Tightest{}, thenFinalRun(tuning, finalOf(compiled)), 1, delta)
	if err != nil {
		return nil, invalid.Field(field, "the cost of the best trial cannot be bounded: %v", err)
	}
	_, function := compiled.Metrics.Mechanism("")
	p := &dparetov1.Publication{
		Train: accounting.Message(g, function.Adjacency()),
		Assumptions: show.Assumptions([]privacy.Assumption{
			privacy.PremiseSecrecy.Assume("workers, admins of the whole server, its operators, and everyone who reads its metrics, logs, traces, exports or backups, in whichever system collects them, are trusted: " +
				"they can tell the number of trials, and disclose nothing; on a server without authentication everyone is an operator"),
			privacy.PremiseTheorem.Assume("a run learns about the training records only through the accounted mechanism, and its score is computed from the mechanism's output"),
			privacy.PremiseIndependence.Assume("runs are independent: the outcome of a run, including a failure, does not depend on the results of others"),
			privacy.PremiseSecrecy.Assume("no worker learns the number of trials, by running most of them or the final run, or it does not disclose it"),
			privacy.PremiseFixedInAdvance.Assume("the study was not abandoned, paused or deleted for good because of its results"),
		}),
		NotCovered: []string{
			"how long the study took, and how busy the server was meanwhile, as other calls notice",
			"anything else run on the same data, including a copy of the study from a backup or an export: the total cost of all studies is the sum in their ledgers, as far as it was charged there",
		},
	}
	statePublicSize(p, function.PublicSize())
	if releasesCurve(compiled) {
		assume(p, privacy.PremiseTheorem.Assume("all intermediate states of a run are covered by the guarantee of the whole run, as in DP-SGD"))
	}
	if err := stateFinalRun(p, compiled, delta); err != nil {
		return nil, invalid.Field(field+".final_run", "has a cost that cannot be bounded: %v", err)
	}
	if n := asked.GetTestSetSize(); n > 0 {
		var sigma float64
		if sigma, g, err = searchNoise(dist, finalOf(compiled) != nil, n, candidateValues(compiled), asked.GetTestEpsilon(), delta); err != nil {
			return nil, err
		}
		p.NoiseStandardDeviation = sigma
		p.Test = accounting.Message(g, dparetov1.Adjacency_ADJACENCY_REPLACE_ONE)
		assume(p, privacy.PremiseScores.Assume(fmt.Sprintf("%s is an average over %d test records, and runs learn nothing else about them", asked.GetMetric(), n)),
			privacy.PremiseDisjoint.Assume("no person is in both the training and the test set; then the larger ε holds for everyone"))
	} else {
		p.NotCovered = append(p.NotCovered, "the test records: the values that are released have no noise")
	}
	return p, nil
}

// searchRun returns the mechanism of a run of a configuration that is drawn uniformly from a list.
func searchRun(ctx context.Context, compiled *spec.Study, list []space.Point, progress func(done, total int)) (privacy.Mechanism, error) {
	choices, err := searchChoices(compiled, list)
	if err != nil {
		return nil, err
	}
	progress(0, len(choices))
	return tuning.NewMixture(choices, func(done int) error {
		progress(done, len(choices))
		return pause.Check(ctx)
	})
}

// searchNoise returns the smallest standard deviation of Gaussian noise in values, averages over n
// records, such that the best of a random number of candidates with so many values, and the value of a
// final run if there is one, cost each record at most epsilon. It also returns that guarantee.
func searchNoise(dist stopping.Distribution, hasFinal bool, n, values int64, epsilon, delta float64) (float64, privacy.Guarantee, error) {
	// In units of 1/n, by which a record changes each value at most. Rounding noise to a grid adds less
	// than 2^-39 of the deviation to the sensitivity, and less than 1e-20 to δ; the slack in ε covers both.
	family := func(sigma float64) privacy.Mechanism {
		base := privacy.Gaussian{Sensitivity: math.Sqrt(float64(values)) * (1 + 0x1p-39*sigma), StandardDeviation: sigma, Neighbours: privacy.ReplaceOne}
		if hasFinal {
			return thenScored(dist.Mechanism(base, 1), base)
		}
		return dist.Mechanism(base, 1)
	}
	sigma, g, err := privacy.CalibrateNoise(privacy.Tightest{}, family, 1, epsilon*(1-1e-9), delta)
	g.Epsilon = epsilon
	return sigma / float64(n), g, err
}
