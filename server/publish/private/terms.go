package private

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"google.golang.org/protobuf/proto"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/privacy/adaptive"
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
	// leastHandOuts and handOutsPerTrial are how many hand-outs a Gaussian filter admits at most. More
	// cost a little of the budget: four times as many 0.1 % of μ.
	leastHandOuts    = 1000
	handOutsPerTrial = 4
)

// shards returns the number of shards of the training set.
func shards(compiled *spec.Study) int {
	return max(1, int(compiled.Spec.GetPrivateMode().GetTrainingShards()))
}

// maxValues returns the number of noisy values that private_mode asks for: by default one for every
// reported metric of every trial.
func maxValues(asked *dparetov1.StudySpec) int64 {
	return cmp.Or(max(0, asked.GetPrivateMode().GetMaxValues()), finalValues(asked))
}

// finalValues returns the number of values that all trials report at their end.
func finalValues(asked *dparetov1.StudySpec) int64 {
	return asked.GetBudget().GetMaxTrials() * reportedMetrics(asked)
}

// warnLargeNoise warns of noise that hides the values it is added to.
const warnLargeNoise = "LARGE_TEST_NOISE"

// warnOfNoise warns in a study if the noise on its values, which are in [0, 1], has a standard deviation of ½ or more.
func warnOfNoise(s *dparetov1.Study, sigma float64) {
	if sigma < 0.5 {
		return
	}
	s.Warnings = append(slices.Clone(s.GetWarnings()), &dparetov1.Warning{Code: warnLargeNoise, Message: fmt.Sprintf(
		"values in [0, 1] get noise of standard deviation %s, which hides them: more test records, a larger test_epsilon or fewer values make it smaller", show.Number(sigma))})
}

// privateTerms fixes the budgets of a study with private_mode. It depends only on the spec.
func privateTerms(ctx context.Context, path string, compiled *spec.Study) (*storev1.PrivateModeRecord, error) {
	mode := compiled.Spec.GetPrivateMode()
	at := func(field string) string { return path + ".private_mode." + field }
	terms := &storev1.PrivateModeRecord{MaxValues: maxValues(compiled.Spec), ShardCosts: make([]float64, shards(compiled))}
	var err error
	terms.NoiseStandardDeviation, err = transcript.ReleaseNoise(mode.GetTestSetSize(), terms.GetMaxValues(), mode.GetTestEpsilon(), mode.GetDelta())
	if err != nil {
		return nil, invalid.Field(at("test_epsilon"), "gives no noise for %d values over %d test records: %v", terms.GetMaxValues(), mode.GetTestSetSize(), err)
	}
	if slots := slotsOf(compiled); slots != nil {
		declareSlots(terms, slots, shards(compiled))
		return terms, nil
	}
	draws := typicalConfigurations(compiled)
	if err := chooseFilter(ctx, at, compiled, terms, draws); err != nil {
		return nil, err
	}
	terms.LeastCost = leastCost(compiled, terms, draws)
	if !(terms.GetLeastCost() <= terms.GetTrainBudget()) {
		return nil, invalid.Field(at("train_epsilon"), "must pay for one run: the cheapest configuration found costs %.4g %s, but the budget is %.4g",
			terms.GetLeastCost(), costUnit(terms), terms.GetTrainBudget())
	}
	return terms, nil
}

// costUnit says in which unit terms count costs.
func costUnit(terms *storev1.PrivateModeRecord) string {
	if terms.GetMaxHandOuts() > 0 {
		return "of μ² of Gaussian differential privacy"
	}
	return fmt.Sprintf("of Rényi divergence of order %g", terms.GetOrder())
}

// chooseFilter fixes the filter of the training budget and its order. Of the two filters, where the
// spec leaves the choice, it takes the one that admits more runs of the configuration of median cost.
//
// Either filter keeps the declared ε and δ whatever it admits, so that any choice made before the first run does, if
// it depends on the spec alone: this one compares costs of configurations drawn with a fixed seed. A choice by results,
// or for each run the filter that charges less, would need another proof.
func chooseFilter(ctx context.Context, at func(field string) string, compiled *spec.Study, terms *storev1.PrivateModeRecord, draws []space.Point) error {
	mode := compiled.Spec.GetPrivateMode()
	median := func(order float64) (space.Point, float64) {
		cost := func(point space.Point) float64 {
			return renyiCost(compiled, terms, order, point, compiled.Replicates())
		}
		typical := medianOf(draws, cost)
		return typical, cost(typical)
	}
	var err error
	terms.Order, terms.TrainBudget, err = transcript.Order(mode.GetTrainEpsilon(), mode.GetDelta(), func(order float64) (float64, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if _, cost := median(order); !math.IsInf(cost, 1) {
			return cost, nil
		}
		_, err := divergence(compiled, draws[0], order)
		return 0, noBound(err)
	})
	if err := ctx.Err(); err != nil {
		return err
	}
	if err != nil {
		return invalid.Field(at("train_epsilon"), "gives no Rényi filter: %v", err)
	}
	typical, cost := median(terms.GetOrder())
	terms.TypicalCost = cost
	if mode.GetTrainFilter() == dparetov1.TrainFilter_TRAIN_FILTER_RENYI {
		return nil
	}
	gaussian := proto.CloneOf(terms)
	gaussian.MaxHandOuts = max(leastHandOuts, handOutsPerTrial*compiled.Spec.GetBudget().GetMaxTrials())
	budget, err := gaussianBudget(compiled, gaussian)
	if err != nil {
		return invalid.Field(at("train_epsilon"), "gives no Gaussian filter: %v", err)
	}
	gaussian.TrainBudget = budget.Squared
	inGaussian := trainingCost(compiled, gaussian, typical, compiled.Replicates())
	switch {
	case mode.GetTrainFilter() == dparetov1.TrainFilter_TRAIN_FILTER_UNSPECIFIED && terms.GetTrainBudget()/cost > budget.Squared/inGaussian:
	case math.IsInf(inGaussian, 1):
		return invalid.Field(at("train_filter"), "must be TRAIN_FILTER_RENYI or unset: the μ of a typical run has no bound")
	default:
		terms.TrainBudget, terms.MaxHandOuts, terms.TypicalCost = gaussian.GetTrainBudget(), gaussian.GetMaxHandOuts(), inGaussian
	}
	return nil
}

// medianOf returns the point of median cost.
func medianOf(points []space.Point, cost func(space.Point) float64) space.Point {
	costs := make(map[string]float64, len(points))
	for _, point := range points {
		costs[point.Key()] = cost(point)
	}
	sorted := slices.SortedFunc(slices.Values(points), func(a, b space.Point) int { return cmp.Compare(costs[a.Key()], costs[b.Key()]) })
	return sorted[len(sorted)/2]
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
		if compiled.Points.CheckAllowed("", point) == nil {
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

// trainingCost returns what one hand-out of a configuration costs the training records, in the unit
// of the study's filter: +Inf where no bound is known.
func trainingCost(compiled *spec.Study, terms *storev1.PrivateModeRecord, point space.Point, replicates int32) float64 {
	if terms.GetMaxHandOuts() == 0 {
		return renyiCost(compiled, terms, terms.GetOrder(), point, replicates)
	}
	budget, err := gaussianBudget(compiled, terms)
	if err != nil {
		return math.Inf(1) // cannot happen: the study was created with this budget
	}
	_, function := compiled.Metrics.Mechanism("")
	cost, err := function.GaussianCost(compiled.Points.Variables(point), int64(max(1, replicates)), budget)
	if err != nil || math.IsNaN(cost) {
		return math.Inf(1)
	}
	return transcript.GaussianCharge(budget, cost, valuesOf(compiled, terms, point), terms.GetNoiseStandardDeviation())
}

// cheapCost stands in for trainingCost in the search, where a Gaussian filter would take tens of
// milliseconds for every noise multiplier: μ-Gaussian DP has the Rényi divergence αμ²/2.
func cheapCost(compiled *spec.Study, terms *storev1.PrivateModeRecord, point space.Point) float64 {
	rho := renyiCost(compiled, terms, terms.GetOrder(), point, compiled.Replicates())
	if terms.GetMaxHandOuts() == 0 {
		return rho
	}
	return 2 * rho / terms.GetOrder()
}

// renyiCost returns the Rényi divergence, at an order, of one hand-out of a configuration.
func renyiCost(compiled *spec.Study, terms *storev1.PrivateModeRecord, order float64, point space.Point, replicates int32) float64 {
	rho, err := divergence(compiled, point, order)
	if err != nil || math.IsNaN(rho) {
		rho = math.Inf(1)
	}
	return transcript.Charge(order, rho, int64(max(1, replicates)), valuesOf(compiled, terms, point), terms.GetNoiseStandardDeviation())
}

// divergence bounds the Rényi divergence of an order of one run of the first privacy metric's mechanism.
func divergence(compiled *spec.Study, point space.Point, order float64) (float64, error) {
	_, function := compiled.Metrics.Mechanism("")
	return function.Divergence(compiled.Points.Variables(point), order)
}

// valuesOf returns the largest number of values that a hand-out of a configuration can bring: one for
// every metric and step.
func valuesOf(compiled *spec.Study, terms *storev1.PrivateModeRecord, point space.Point) int64 {
	return min(terms.GetMaxValues(), reportedMetrics(compiled.Spec)*(compiled.Points.LastStep(point)+1))
}

// gaussianBudget returns the budget of each shard in a study with a Gaussian filter.
func gaussianBudget(compiled *spec.Study, terms *storev1.PrivateModeRecord) (adaptive.GaussianBudget, error) {
	mode := compiled.Spec.GetPrivateMode()
	return adaptive.NewGaussianBudget(mode.GetTrainEpsilon(), mode.GetDelta(), terms.GetMaxHandOuts())
}

// leastCost returns the cost of the cheapest configuration that it finds by coordinate descent from
// the cheapest of some configurations. Each step moves one parameter to an end of its domain.
func leastCost(compiled *spec.Study, terms *storev1.PrivateModeRecord, from []space.Point) float64 {
	cost := func(point space.Point) float64 { return cheapCost(compiled, terms, point) }
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
			if p.Kind == space.Categorical {
				for k := range p.Choices {
					values = append(values, float64(k))
				}
			} else {
				values = []float64{p.At(0), p.At(1)}
			}
			for _, value := range values {
				point := best.Clone()
				point[i] = value
				point = s.Canonical(point)
				if compiled.Points.CheckAllowed("", point) != nil {
					continue
				}
				if c := cost(point); c < least {
					best, least, improved = point, c, true
				}
			}
		}
	}
	return trainingCost(compiled, terms, best, compiled.Replicates())
}

// nextShard returns the shard for the next hand-out of a trial.
func nextShard(terms *storev1.PrivateModeRecord, number int64) int {
	return shardsInTurn(terms, number)[0]
}

// shardsInTurn returns the shards, from the one that has spent least on. Ties go to the first in turn
// from a trial's number.
func shardsInTurn(terms *storev1.PrivateModeRecord, number int64) []int {
	spent := terms.GetShardCosts()
	shards := make([]int, len(spent))
	for i := range shards {
		shards[i] = int((number + int64(i)) % int64(len(spent)))
	}
	slices.SortStableFunc(shards, func(a, b int) int { return cmp.Compare(spent[a], spent[b]) })
	return shards
}

// scarcity returns how scarce the training budget is, in [0, 1): 0 if it pays for a run of a typical
// configuration for every trial that is left, and otherwise the share of them that it does not pay for.
func scarcity(record *storev1.StudyRecord) float64 {
	terms := record.GetPrivateMode()
	trials := record.GetStudy().GetSpec().GetBudget().GetMaxTrials() - record.GetNextTrialNumber() + 1
	left := 0.0
	for _, spent := range terms.GetShardCosts() {
		left += terms.GetTrainBudget() - spent
	}
	return 1 - math.Min(1, left/(float64(max(1, trials))*terms.GetTypicalCost()))
}

// charge is the part of the training budget that a hand-out takes.
type charge struct {
	shard int
	cost  float64
	slot  int // its kind, 0 with a filter
}

// take deducts the charge from the training budget.
func (c charge) take(terms *storev1.PrivateModeRecord) {
	terms.ShardCosts[c.shard] += c.cost
	if kinds := len(terms.GetSlotsUsed()) / len(terms.GetShardCosts()); kinds > 0 {
		terms.SlotsUsed[c.shard*kinds+c.slot]++
	}
}

// nextCharge returns the charge of a hand-out of a configuration, for the trial with a number, or false
// if it does not fit.
func nextCharge(compiled *spec.Study, terms *storev1.PrivateModeRecord, point space.Point, replicates int32, number int64) (charge, bool) {
	if slotsOf(compiled) != nil {
		return nextSlot(compiled, terms, point, replicates, number)
	}
	c := charge{shard: nextShard(terms, number), cost: trainingCost(compiled, terms, point, replicates)}
	return c, c.cost <= leftFor(terms)
}

// leftFor returns the budget left for the next hand-out.
func leftFor(terms *storev1.PrivateModeRecord) float64 {
	return terms.GetTrainBudget() - slices.Min(terms.GetShardCosts())
}
