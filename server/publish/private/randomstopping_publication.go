package private

import (
	"fmt"
	"math"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/server/spec"
)

// SearchPublication returns the guarantee of a study with random stopping.
func SearchPublication(compiled *spec.Study, bound privacy.SearchBound) (*dparetov1.Publication, error) {
	asked, delta := compiled.Spec.GetRandomStopping(), compiled.SearchDelta()
	g, err := compiled.SearchDistribution().Guarantee(bound, delta)
	if err != nil {
		return nil, err
	}
	_, function := compiled.Mechanism("")
	p := &dparetov1.Publication{
		Train: searchGuarantee(g, function.Adjacency()),
		Assumptions: []string{
			"workers and operators of the server are trusted: they see trials, logs, metrics and exports, and disclose nothing; on a server without authentication everyone is an operator",
			"a run learns about the training records only through the accounted mechanism, and its score is computed from the mechanism's output",
			"runs are independent, and runs that failed, were lost or were released did so for reasons that do not depend on the data; otherwise every attempt counts as a trial, and the guarantee does not hold",
			"the study was not abandoned, paused or deleted for good because of its results",
		},
		NotCovered: []string{
			"how long the study took",
			"anything else run on the same data, including a copy of the study from a backup or an export: what all studies cost together is the sum in their ledgers, as far as it was charged there",
		},
	}
	statePublicSize(p, function.PublicSize())
	if compiled.ReleasesCurve() {
		p.Assumptions = append(p.Assumptions, "all intermediate states of a run are covered by the guarantee of the whole run, as in DP-SGD")
	}
	if n := asked.GetTestSetSize(); n > 0 {
		var sigma float64
		if sigma, g, err = searchNoise(compiled.SearchDistribution(), n, compiled.CandidateValues(), asked.GetTestEpsilon(), delta); err != nil {
			return nil, err
		}
		p.NoiseStandardDeviation = sigma
		p.Test = searchGuarantee(g, dparetov1.Adjacency_ADJACENCY_REPLACE_ONE)
		p.Assumptions = append(p.Assumptions, fmt.Sprintf("%s is an average over %d test records, and runs learn nothing else about them", asked.GetMetric(), n),
			"no person is in both the training and the test set; then the larger ε holds for everyone")
	} else {
		p.NotCovered = append(p.NotCovered, "the test records: the values of the best candidate are released without noise")
	}
	return p, nil
}

// searchGuarantee converts the guarantee of a search to its message.
func searchGuarantee(g privacy.Guarantee, adjacency dparetov1.Adjacency) *dparetov1.PrivacyGuarantee {
	m := &dparetov1.PrivacyGuarantee{
		Epsilon: g.Epsilon, Delta: g.Delta, Adjacency: adjacency, Order: g.Order, Steps: g.Steps,
		Accountant: dparetov1.Accountant_ACCOUNTANT_RDP, Conversion: dparetov1.Conversion_CONVERSION_IMPROVED,
		Assumptions: g.Assumptions,
	}
	for _, w := range g.Warnings {
		m.Warnings = append(m.Warnings, &dparetov1.Warning{Code: string(w.Code), Message: w.Message})
	}
	return m
}

// searchNoise returns the smallest standard deviation of Gaussian noise in values, averages over n
// records, such that the best of a random number of candidates with so many values costs each record
// at most epsilon. It also returns that guarantee.
func searchNoise(dist privacy.SearchDistribution, n, values int64, epsilon, delta float64) (float64, privacy.Guarantee, error) {
	gamma := 0.0
	if !dist.Poisson {
		var err error
		if gamma, err = privacy.SelectionGamma(dist.Eta, dist.Mean); err != nil {
			return 0, privacy.Guarantee{}, err
		}
	}
	// In units of 1/n, by which a record changes each value at most. Rounding noise to a grid adds less
	// than 2^-39 of the deviation to the sensitivity, and less than 1e-20 to δ; the slack in ε covers both.
	family := func(sigma float64) privacy.Mechanism {
		base := privacy.Gaussian{Sensitivity: math.Sqrt(float64(values)) * (1 + 0x1p-39*sigma), StandardDeviation: sigma, Neighbours: privacy.ReplaceOne}
		if dist.Poisson {
			return privacy.PoissonSelection{Base: base, Steps: 1, Mean: dist.Mean}
		}
		return privacy.RepeatedSelection{Base: base, Steps: 1, Eta: dist.Eta, Gamma: gamma}
	}
	sigma, g, err := privacy.CalibrateNoise(privacy.RDP{}, family, 1, epsilon*(1-1e-9), delta)
	g.Epsilon = epsilon
	return sigma / float64(n), g, err
}
