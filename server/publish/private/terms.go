package private

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	"github.com/dpareto/dpareto/privacy/transcript"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/suggest/space"
)

const (
	// typicalDraws is the number of configurations whose median cost chooses the Rényi order of the
	// filter. They are drawn from the parameters' distributions.
	typicalDraws = 25
	// typicalTries bounds the draws, since constraints may refuse many.
	typicalTries = 10_000
)

// privateTerms fixes what a study with private_mode may spend. It depends only on the spec.
func privateTerms(ctx context.Context, path string, compiled *spec.Study) (*storev1.PrivateModeRecord, error) {
	mode := compiled.Spec.GetPrivateMode()
	at := func(field string) string { return path + ".private_mode." + field }
	terms := &storev1.PrivateModeRecord{MaxValues: compiled.MaxValues(), ShardDivergences: make([]float64, compiled.Shards())}
	var err error
	terms.NoiseStandardDeviation, err = transcript.ReleaseNoise(mode.GetTestSetSize(), terms.GetMaxValues(), mode.GetTestEpsilon(), mode.GetDelta())
	if err != nil {
		return nil, invalid.Field(at("test_epsilon"), "gives no noise for %d values over %d test records: %v", terms.GetMaxValues(), mode.GetTestSetSize(), err)
	}
	draws := typicalConfigurations(compiled)
	costs := make([]float64, len(draws))
	terms.Order, terms.DivergenceBudget, err = transcript.Order(mode.GetTrainEpsilon(), mode.GetDelta(), func(order float64) (float64, error) {
		for i, point := range draws {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			costs[i] = TrainingCost(compiled, terms, order, point, compiled.Replicates())
		}
		slices.Sort(costs)
		if median := costs[len(costs)/2]; !math.IsInf(median, 1) {
			return median, nil
		}
		return 0, noBound(compiled.DivergenceError(draws[0], order))
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, invalid.Field(at("train_epsilon"), "gives no Rényi filter: %v", err)
	}
	terms.LeastDivergence = leastCost(compiled, terms, draws)
	if !(terms.GetLeastDivergence() <= terms.GetDivergenceBudget()) {
		return nil, invalid.Field(at("train_epsilon"), "does not pay for one run of any configuration found: the cheapest has a Rényi divergence of %.4g at order %g, but the budget is %.4g",
			terms.GetLeastDivergence(), terms.GetOrder(), terms.GetDivergenceBudget())
	}
	return terms, nil
}

// noBound returns err, or an error that there is no finite bound.
func noBound(err error) error {
	if err == nil {
		return errors.New("the mechanism has no finite Rényi divergence")
	}
	return err
}

// typicalConfigurations returns allowed configurations drawn from a study's parameters, or one that
// may not be allowed if it finds none.
func typicalConfigurations(compiled *spec.Study) []space.Point {
	rng := rand.New(rand.NewPCG(3, 5)) // fixed seed: the order may depend on the spec only
	var points []space.Point
	for range typicalTries {
		point := compiled.Problem.Space.Sample(rng)
		if compiled.CheckAllowed("", point) == nil {
			points = append(points, point)
		}
		if len(points) == typicalDraws {
			return points
		}
	}
	if len(points) == 0 {
		points = append(points, compiled.Problem.Space.Sample(rng))
	}
	return points
}

// TrainingCost returns the Rényi divergence, at an order, that one hand-out of a configuration costs
// the training records.
func TrainingCost(compiled *spec.Study, terms *storev1.PrivateModeRecord, order float64, point space.Point, replicates int32) float64 {
	values := min(terms.GetMaxValues(), compiled.MostValues(point))
	return transcript.Charge(order, compiled.Divergence(point, order), int64(max(1, replicates)), values, terms.GetNoiseStandardDeviation())
}

// leastCost returns the lowest cost it finds by coordinate descent from the cheapest of some
// configurations. Each step moves one parameter to an end of its domain.
func leastCost(compiled *spec.Study, terms *storev1.PrivateModeRecord, from []space.Point) float64 {
	cost := func(point space.Point) float64 {
		return TrainingCost(compiled, terms, terms.GetOrder(), point, compiled.Replicates())
	}
	s := compiled.Problem.Space
	best, least := from[0], math.Inf(1)
	for _, point := range from {
		if c := cost(point); c < least {
			best, least = point, c
		}
	}
	for improved := true; improved; {
		improved = false
		for i := range s.Parameters {
			p := &s.Parameters[i]
			var values []float64
			if p.Kind != space.Categorical {
				values = []float64{p.At(0), p.At(1)}
			}
			for k := range p.Choices {
				values = append(values, float64(k))
			}
			for _, value := range values {
				point := best.Clone()
				point[i] = value
				point = s.Canonical(point)
				if compiled.CheckAllowed("", point) != nil {
					continue
				}
				if c := cost(point); c < least {
					best, least, improved = point, c, true
				}
			}
		}
	}
	return least
}

// nextShard returns the shard for the next hand-out of a trial: the one that has spent least. Ties
// go to the first in turn from the trial's number.
func nextShard(terms *storev1.PrivateModeRecord, number int64) int {
	spent := terms.GetShardDivergences()
	first := int(number % int64(len(spent)))
	best := first
	for i := range spent {
		if k := (first + i) % len(spent); spent[k] < spent[best] {
			best = k
		}
	}
	return best
}

// leftFor returns the Rényi divergence left for the next hand-out.
func leftFor(terms *storev1.PrivateModeRecord) float64 {
	return terms.GetDivergenceBudget() - slices.Min(terms.GetShardDivergences())
}
