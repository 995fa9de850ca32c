package spec

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/server/accounting"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/suggest/space"
)

// Limits of a RandomStoppingSpec.
const (
	maxMeanTrials = 1e6
	maxEta        = 100
)

// searchDraws is the number of draws of the design distributions among which the costliest
// configuration of a study with random stopping is found.
const searchDraws = 10_000

// randomStopping checks what random_stopping asks of a spec: that trials are independent draws
// from one distribution, each with one score, and that the accounting knows what each costs.
func (c *compiler) randomStopping(study *Study) {
	spec := study.Spec
	stopping := spec.GetRandomStopping()
	if stopping == nil {
		return
	}
	c.searchDistribution(stopping)
	c.searchScore(study)
	refuse := func(field string, isSet bool, reason string) {
		if isSet {
			c.addf(field, "must not be set with random_stopping: %s", reason)
		}
	}
	if name := spec.GetAlgorithm().GetName(); name != dparetov1.Algorithm_ALGORITHM_RANDOM {
		c.addf("algorithm.name", "must be ALGORITHM_RANDOM with random_stopping: trials have to be independent draws from one distribution; is %v", name)
	}
	for i, p := range spec.GetParameters() {
		refuse(fmt.Sprintf("parameters[%d].condition", i), p.GetCondition() != nil, "all configurations are drawn from one distribution")
	}
	budget := spec.GetBudget()
	const drawn = "the number of trials is drawn, and all of them are run"
	refuse("budget.max_trials", budget.GetMaxTrials() != 0, drawn)
	refuse("budget.max_duration", budget.GetMaxDuration() != nil, drawn)
	refuse("budget.max_stagnant_trials", budget.GetMaxStagnantTrials() != 0, drawn)
	refuse("prior_studies", len(spec.GetPriorStudies()) > 0, "nothing may be learnt from results")
	refuse("checkpoint_parameter", spec.GetCheckpointParameter() != "", "a run is one candidate, at its end")
	refuse("cost", spec.GetCost() != nil, "nothing may be learnt from results")
	refuse("disable_early_stopping", spec.GetDisableEarlyStopping(), "no run is stopped early in any case")
	refuse("seed", spec.Seed != nil, "who knows it can tell how many configurations were drawn before the one that is released")
	if len(study.metrics) > 0 {
		c.searchMechanism(study)
	}
}

// searchDistribution checks the distribution of the number of trials.
func (c *compiler) searchDistribution(stopping *dparetov1.RandomStoppingSpec) {
	const field = "random_stopping."
	least := 1.0
	switch dist := stopping.GetDistribution().(type) {
	case *dparetov1.RandomStoppingSpec_Eta:
		if !(dist.Eta > -1 && dist.Eta <= maxEta) {
			c.addf(field+"eta", "must be above -1 and at most %d, is %g", maxEta, dist.Eta)
			return
		}
	case *dparetov1.RandomStoppingSpec_Poisson:
		least = 0
	default:
		c.addf(field+"distribution", "one of eta and poisson must be set")
		return
	}
	mean := stopping.GetMeanTrials()
	if !(mean > least && mean <= maxMeanTrials) {
		c.addf(field+"mean_trials", "must be above %g and at most %g, is %g", least, maxMeanTrials, mean)
	} else if least == 1 {
		if _, err := privacy.SelectionGamma(stopping.GetEta(), mean); err != nil {
			c.addf(field+"mean_trials", "%v", err)
		}
	}
}

// searchScore checks the metric that chooses the best trial, and how it is protected.
func (c *compiler) searchScore(study *Study) {
	stopping := study.Spec.GetRandomStopping()
	i := slices.IndexFunc(study.metrics, func(m metric) bool { return m.spec.GetId() == stopping.GetMetric() })
	switch {
	case i < 0:
		c.addf("random_stopping.metric", "%q is not a metric", stopping.GetMetric())
	case study.metrics[i].spec.GetReported() == nil || study.metrics[i].spec.GetRole() != dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE:
		c.addf("random_stopping.metric", "%q must be a reported objective", stopping.GetMetric())
	default:
		if n, size := stopping.GetTestSetSize(), study.metrics[i].spec.GetReported().GetSampleSize(); n > 0 && size != 0 && size != float64(n) {
			c.addf(fmt.Sprintf("metrics[%d].reported.sample_size", i), "must be test_set_size, %d, or unset with random_stopping, is %g", n, size)
		}
		for j := range study.metrics {
			if j != i && study.metrics[j].spec.GetReported() != nil {
				c.addf(fmt.Sprintf("metrics[%d].reported", j), "must not be set with random_stopping: %q is the only reported metric, nothing would ever be shown of another", stopping.GetMetric())
			}
		}
	}
	switch n, epsilon := stopping.GetTestSetSize(), stopping.GetTestEpsilon(); {
	case n < 0 || n > maxTestSet:
		c.addf("random_stopping.test_set_size", "must be in [0, 2^40], is %d", n)
	case n == 0 && epsilon != 0:
		c.addf("random_stopping.test_epsilon", "is only for studies with test_set_size")
	case n > 0 && !(epsilon > 0 && !math.IsInf(epsilon, 1)):
		c.addf("random_stopping.test_epsilon", "must be positive and finite, is %g", epsilon)
	}
	if study.Spec.GetTestLedger() != "" && stopping.GetTestSetSize() == 0 {
		c.addf("test_ledger", "needs random_stopping.test_set_size: without it nothing is guaranteed for the test records")
	}
}

// searchMechanism checks that a mechanism tells what a trial costs.
func (c *compiler) searchMechanism(study *Study) {
	id, function := study.Mechanism("")
	if function == nil {
		if !slices.ContainsFunc(study.Spec.GetMetrics(), func(m *dparetov1.MetricSpec) bool { return m.GetComputed().GetPrivacy() != nil }) {
			c.addf("random_stopping", "needs a metric that is computed from a privacy mechanism: what a trial costs the training records")
		}
		return // else it has violations of its own
	}
	stopping := study.Spec.GetRandomStopping()
	if delta := study.SearchDelta(); !(delta > 0 && delta < 1) {
		c.addf("random_stopping.delta", "must be in (0, 1), or 0 for the delta of %s if that is positive, is %g", id, stopping.GetDelta())
	}
}

// searchWarnings refuses a guarantee that is none.
func (c *compiler) searchWarnings(study *Study) {
	for _, w := range study.Warnings {
		if study.IsSearch() && w.GetCode() == accounting.WarnSamplingMismatch {
			c.addf("random_stopping", "needs a guarantee; the privacy metric is accounted for another sampler than the trainer's")
		}
	}
}

// IsSearch reports whether the study has random stopping.
func (s *Study) IsSearch() bool { return s.Spec.GetRandomStopping() != nil }

// IsNoisy reports whether reported values are kept with noise only.
func (s *Study) IsNoisy() bool {
	return s.IsPrivate() || s.Spec.GetRandomStopping().GetTestSetSize() > 0
}

// Score returns what is kept of the measurement at the end of a run of a study with random
// stopping, from at most as many runs as it accounts for: of a study with test_set_size the
// score, clipped to [0, 1] and with noise of a standard deviation, as noisy adds it, and
// nothing else.
func (s *Study) Score(path string, point space.Point, m *dparetov1.Measurement, standardDeviation float64, noisy func(value float64) float64) (*dparetov1.Measurement, []*dparetov1.Warning, error) {
	id := s.Spec.GetRandomStopping().GetMetric()
	if n, most := len(m.GetMetrics()[id].GetRuns()), int(s.Replicates()); n > most {
		return nil, nil, invalid.Field(fmt.Sprintf("%s.metrics[%q].runs", path, id), "must hold at most %d runs, for which a trial is accounted, holds %d", most, n)
	}
	if !s.IsNoisy() {
		return s.Measurement(path, point, m, true)
	}
	clipped, err := s.Clipped(path, m)
	if err != nil {
		return nil, nil, err
	}
	kept, warnings, err := s.Measurement(path, point, clipped, true)
	if err != nil {
		return nil, nil, err
	}
	s.AddNoise(kept, standardDeviation, noisy)
	return kept, warnings, nil
}

// SearchDelta returns the δ of the guarantees of a study with random stopping.
func (s *Study) SearchDelta() float64 {
	if delta := s.Spec.GetRandomStopping().GetDelta(); delta != 0 {
		return delta
	}
	id, _ := s.Mechanism("")
	for i := range s.metrics {
		if m := s.metrics[i].spec; m.GetId() == id {
			return m.GetComputed().GetPrivacy().GetDelta()
		}
	}
	return 0
}

// SearchDistribution returns the distribution of the number of trials of a study with random
// stopping.
func (s *Study) SearchDistribution() privacy.SearchDistribution {
	stopping := s.Spec.GetRandomStopping()
	_, isPoisson := stopping.GetDistribution().(*dparetov1.RandomStoppingSpec_Poisson)
	return privacy.SearchDistribution{Mean: stopping.GetMeanTrials(), Eta: stopping.GetEta(), Poisson: isPoisson}
}

// SearchBound returns what a trial of a study with random stopping costs at most: the bound
// that 10,000 draws of the design distributions attain, of which those count that are allowed
// and whose cost is known. They come from a fixed seed, so that the bound is a function of the
// spec. It takes up to seconds. The error is INVALID_ARGUMENT, or that of ctx.
func (s *Study) SearchBound(ctx context.Context) (privacy.SearchBound, error) {
	rng := rand.New(rand.NewPCG(3, 4))
	seen := make(map[string]bool)
	var candidates []privacy.Part
	var first error
	for range searchDraws {
		if err := ctx.Err(); err != nil {
			return privacy.SearchBound{}, err
		}
		point := s.Problem.Space.Sample(rng)
		if !s.allowed(point) {
			continue
		}
		part, err := s.candidate(point)
		if err != nil {
			first = cmp.Or(first, err)
			continue
		}
		if key := fmt.Sprintf("%d %T%+v", part.Count, part.Mechanism, part.Mechanism); !seen[key] {
			seen[key] = true
			candidates = append(candidates, part)
		}
	}
	const field = "study.spec.random_stopping"
	if len(candidates) == 0 {
		return privacy.SearchBound{}, invalid.Field(field, "what a trial costs is known at none of %d draws of the design distributions: %v", searchDraws, first)
	}
	bound, err := s.SearchDistribution().Bound(candidates, s.SearchDelta())
	if err != nil {
		return privacy.SearchBound{}, invalid.Field(field, "what a trial costs cannot be bounded: %v", err)
	}
	return bound, nil
}

// SearchAdmits reports whether a configuration may be a trial of a study with random
// stopping and the given bound: it is allowed, and its cost known and not above the bound.
func (s *Study) SearchAdmits(bound privacy.SearchBound, point space.Point) bool {
	if !s.allowed(point) {
		return false
	}
	part, err := s.candidate(point)
	return err == nil && s.SearchDistribution().Admits(bound, part)
}

// candidate returns the mechanism of a trial with the number of its runs.
func (s *Study) candidate(point space.Point) (privacy.Part, error) {
	_, function := s.Mechanism("")
	part, err := function.Part(s.variables(point))
	if err == nil {
		err = part.Mechanism.Validate()
	}
	if err != nil {
		return part, err
	}
	replicates := int64(s.Replicates())
	if part.Count > math.MaxInt64/replicates {
		return part, fmt.Errorf("%d times %d runs are too many", part.Count, replicates)
	}
	part.Count *= replicates
	return part, nil
}
