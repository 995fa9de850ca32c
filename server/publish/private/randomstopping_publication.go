package private

import (
	"fmt"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/server/spec"
)

// SearchPublication says what a study with random stopping guarantees.
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
			"workers and operators of the server are trusted: they see trials, logs, metrics and exports, and tell nobody; on a server without authentication everybody is an operator",
			"a run learns of the training records by the mechanism that is accounted alone, and its score is computed from what that released",
			"runs are independent, and one that failed, was lost or was given back was so for reasons that do not depend on the data; otherwise every attempt counts as a trial, and the guarantee does not hold",
			"the study was not abandoned, paused or deleted for good because of its results",
		},
		NotCovered: []string{
			"how long the study took",
			"everything else that was run on the same data, a copy of the study from a backup or an export included",
		},
	}
	if n := asked.GetTestSetSize(); n > 0 {
		var sigma float64
		if sigma, g, err = searchNoise(compiled.SearchDistribution(), n, asked.GetTestEpsilon(), delta); err != nil {
			return nil, err
		}
		p.NoiseStandardDeviation = sigma
		p.Test = searchGuarantee(g, dparetov1.Adjacency_ADJACENCY_REPLACE_ONE)
		p.Assumptions = append(p.Assumptions, fmt.Sprintf("%s is an average over %d test records, which runs learn nothing else of", asked.GetMetric(), n),
			"nobody is both in the training and in the test set; then the larger ε holds for everybody")
	} else {
		p.NotCovered = append(p.NotCovered, "the test records, of which the score of the best trial tells as it is")
	}
	return p, nil
}

// searchGuarantee converts the guarantee of a search.
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

// searchNoise returns the least standard deviation of Gaussian noise in a score, an average
// over n records, with which the best of a random number of scores costs each record at most
// epsilon, and that guarantee.
func searchNoise(dist privacy.SearchDistribution, n int64, epsilon, delta float64) (float64, privacy.Guarantee, error) {
	gamma := 0.0
	if !dist.Poisson {
		var err error
		if gamma, err = privacy.SelectionGamma(dist.Eta, dist.Mean); err != nil {
			return 0, privacy.Guarantee{}, err
		}
	}
	// In units of 1/n. The grid of the noise adds less than 2^-39 of the deviation to the
	// sensitivity, and less than 1e-20 to every δ, for which the last digits of ε make up.
	family := func(sigma float64) privacy.Mechanism {
		base := privacy.Gaussian{Sensitivity: 1 + 0x1p-39*sigma, StandardDeviation: sigma, Neighbours: privacy.ReplaceOne}
		if dist.Poisson {
			return privacy.PoissonSelection{Base: base, Steps: 1, Mean: dist.Mean}
		}
		return privacy.RepeatedSelection{Base: base, Steps: 1, Eta: dist.Eta, Gamma: gamma}
	}
	sigma, g, err := privacy.CalibrateNoise(privacy.RDP{}, family, 1, epsilon*(1-1e-9), delta)
	g.Epsilon = epsilon
	return sigma / float64(n), g, err
}
