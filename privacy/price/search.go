package price

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/meter"
	"github.com/dpareto/dpareto/privacy/tuning"
)

// Bounds of a [Search].
const (
	// MaxMeanRuns is the largest number of runs, also of those that a budget is said to afford.
	MaxMeanRuns = 1_000_000
	// MaxPortfolios is the largest number of sizes of portfolios.
	MaxPortfolios = 8
	// MaxPortfolio is the largest number of runs in a portfolio.
	MaxPortfolio = 1000
	// MaxCheckpoints is the largest number of checkpoints of a run.
	MaxCheckpoints = 1_000_000
)

// Search is a search all of whose candidates cost as much as one run.
type Search struct {
	// Run is the training of one run: a mechanism with its number of steps.
	Run privacy.Part
	// Delta is the δ of all guarantees, in (0, 1).
	Delta float64
	// Runs is the number of runs, the mean where it is random, in [1, MaxMeanRuns].
	Runs int64
	// Poisson takes the Poisson distribution for the ways that can have any distribution of the
	// number of runs, and not the truncated negative binomial distribution of the shape Eta > −1.
	Poisson bool
	Eta     float64
	// MaxRuns is the largest number of runs of the way that has a hard cap, in [Runs,
	// tuning.MaxMostRuns], or 0 for 4 times as many as its mean without the cap.
	MaxRuns int64
	// Budget is the ε for which the number of runs of each way is found, positive, or 0.
	Budget float64
	// Portfolios are the numbers of runs of the groups that are released together, each in [2,
	// MaxPortfolio].
	Portfolios []int64
	// Subset says how a search on a subset runs, nil without this way. Run is then a
	// privacy.FixedSizeGaussian.
	Subset *Subset
	// CoversStates says that the guarantee of a run covers all of its states, as for DP-SGD, and not its
	// result alone. Otherwise no checkpoints are released.
	CoversStates bool
	// Test is what protects the test records, nil where scores are not released or not protected.
	Test *Test
}

// Subset is a search on a secret random subset of the records, followed by one run on all.
type Subset struct {
	// Share is the share of the records on the subset, in (0, 1].
	Share float64
	// BatchSize is the number of records in a lot on the subset, or 0 for Share of the run's.
	BatchSize int64
	// Epochs is the number of passes over the subset, or 0 for as many steps as the run has.
	Epochs int64
	// Final is the run on all records.
	Final privacy.Part
}

// Test is the noise on scores that are averages over test records of values in [0, 1].
type Test struct {
	// Records is the number of test records, >= 1, which is public.
	Records int64
	// Noise is the standard deviation of the independent Gaussian noise on every score, positive, or
	// 0 where Epsilon is set.
	Noise float64
	// Epsilon is the ε that the noise of each way is found for, positive, or 0 where Noise is set.
	Epsilon float64
	// Checkpoints is the number of scores that a run releases with all its checkpoints, in [1,
	// MaxCheckpoints].
	Checkpoints int64
}

// Validate reports the fields "delta", "runs", "eta", "max_runs", "budget", "portfolios",
// "subset_share", "subset_batch_size", "final_run", "test_records", "test_noise", "test_epsilon" and
// "checkpoints", and the errors of the run's own validation.
func (s *Search) Validate() error {
	if err := s.Run.Mechanism.Validate(); err != nil {
		return err
	}
	errs := []error{s.Subset.validate(s.Run), s.Test.validate()}
	if s.Test != nil && s.Test.Checkpoints > 1 && !s.CoversStates {
		errs = append(errs, privacy.FieldErrorf("checkpoints", "must be 1: the guarantee of a run covers its result, and no state before, is %d", s.Test.Checkpoints))
	}
	if err := privacy.CheckDelta(s.Delta); err != nil {
		errs = append(errs, err)
	}
	if s.Runs < 1 || s.Runs > MaxMeanRuns {
		errs = append(errs, privacy.FieldErrorf("runs", "must be in [1, %d], is %d", MaxMeanRuns, s.Runs))
	}
	if !s.Poisson {
		if _, err := tuning.SelectionGamma(s.Eta, MaxMeanRuns); err != nil {
			errs = append(errs, privacy.FieldErrorf("eta", "must be above -1 and finite, and let the mean be %d, is %g", MaxMeanRuns, s.Eta))
		}
	}
	if s.MaxRuns != 0 {
		if s.Poisson {
			errs = append(errs, privacy.FieldErrorf("max_runs", "must be unset for the Poisson distribution, is %d", s.MaxRuns))
		} else if s.MaxRuns < s.Runs || s.MaxRuns > tuning.MaxMostRuns {
			errs = append(errs, privacy.FieldErrorf("max_runs", "must be in [%d, %d], the runs and the largest cap, is %d", s.Runs, tuning.MaxMostRuns, s.MaxRuns))
		}
	}
	if s.Budget != 0 {
		errs = append(errs, privacy.CheckPositive("budget", s.Budget))
	}
	return errors.Join(append(errs, s.validatePortfolios())...)
}

func (s *Search) validatePortfolios() error {
	if n := len(s.Portfolios); n > MaxPortfolios {
		return privacy.FieldErrorf("portfolios", "must hold at most %d sizes, holds %d", MaxPortfolios, n)
	}
	for i, k := range s.Portfolios {
		if k < 2 || k > MaxPortfolio || slices.Contains(s.Portfolios[:i], k) {
			return privacy.FieldErrorf("portfolios", "must hold different sizes in [2, %d], holds %d", MaxPortfolio, s.Portfolios)
		}
	}
	return nil
}

func (s *Subset) validate(run privacy.Part) error {
	if s == nil {
		return nil
	}
	all, ok := run.Mechanism.(privacy.FixedSizeGaussian)
	if !ok {
		return privacy.FieldErrorf("subset_share", "must be unset: only DP-SGD with lots of a fixed size can run on a subset")
	}
	if !(s.Share > 0 && s.Share <= 1) {
		return privacy.FieldErrorf("subset_share", "must be in (0, 1], is %g", s.Share)
	}
	if size := s.size(all); s.BatchSize < 0 || s.BatchSize > size {
		return privacy.FieldErrorf("subset_batch_size", "must be in [1, %d], the records of the subset, is %d", size, s.BatchSize)
	}
	if err := s.Final.Mechanism.Validate(); err != nil {
		return err
	}
	if final, ok := s.Final.Mechanism.(privacy.FixedSizeGaussian); ok && final.DatasetSize != all.DatasetSize {
		return privacy.FieldErrorf("final_run", "must be on all %d records, is on %d", all.DatasetSize, final.DatasetSize)
	}
	if got := s.Final.Mechanism.Adjacency(); got != privacy.ReplaceOne {
		return privacy.FieldErrorf("final_run", "must be for %s adjacency, is for %s", privacy.ReplaceOne, got)
	}
	return nil
}

func (t *Test) validate() error {
	if t == nil {
		return nil
	}
	var errs []error
	if t.Records < 1 {
		errs = append(errs, privacy.FieldErrorf("test_records", "must be at least 1, is %d", t.Records))
	}
	switch {
	case t.Epsilon != 0:
		errs = append(errs, privacy.CheckPositive("test_epsilon", t.Epsilon))
	default:
		errs = append(errs, privacy.CheckPositive("test_noise", t.Noise))
	}
	if t.Checkpoints < 1 || t.Checkpoints > MaxCheckpoints {
		errs = append(errs, privacy.FieldErrorf("checkpoints", "must be in [1, %d], is %d", MaxCheckpoints, t.Checkpoints))
	}
	return errors.Join(errs...)
}

// Way is a way to search with its price.
type Way struct {
	// Name is the way, and Released what it releases.
	Name, Released string
	// Adaptive says whether configurations may depend on earlier results. If not, all are fixed, or
	// drawn independently of the data.
	Adaptive bool
	// Training is the guarantee for the training records.
	Training privacy.Guarantee
	// Test is the guarantee for the test records, and TestNoise the standard deviation of the noise
	// on every score; both zero without a Test.
	Test      privacy.Guarantee
	TestNoise float64
	// MeanRuns is the number of trainings on average.
	MeanRuns float64
	// MaxRuns is the number of trainings at most, 0 without a bound.
	MaxRuns int64
	// RunsForBudget is how many runs the budget affords, to 2 % from below and with three digits at
	// most; nil without a budget, for a single run, and where it takes too long to find.
	RunsForBudget *int64
}

// Prices returns the ways to search, without those that cannot have so few or so many runs. It counts
// its work in work, except the work of RunsForBudget. The errors are from Validate and work, and a
// *privacy.UnsupportedError for a run that cannot be searched with.
func (s *Search) Prices(work *meter.Work) ([]Way, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	var priced []Way
	for _, w := range s.ways() {
		if work.Pause != nil { // test records take time that is not counted
			if err := work.Pause(); err != nil {
				return nil, err
			}
		}
		runs := s.Runs
		if w.most == 0 {
			runs = 1
		}
		if runs < w.least || w.most > 0 && runs > w.most {
			continue
		}
		p, err := s.price(work, w, runs)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.name, err)
		}
		priced = append(priced, p)
	}
	return priced, nil
}

// price returns the cost of a number of runs in a way.
func (s *Search) price(work *meter.Work, w way, runs int64) (p Way, err error) {
	p = Way{Name: w.name, Released: w.released, Adaptive: w.adaptive}
	p.MeanRuns, p.MaxRuns = w.count(runs)
	if p.Training, err = w.training(privacy.Within(privacy.Tightest{}, work), runs); err != nil {
		return Way{}, err
	}
	p.Training.Assumptions = privacy.JoinAssumptions(p.Training.Assumptions, []privacy.Assumption{runAssumption})
	if s.Test != nil {
		if p.TestNoise, p.Test, err = s.test(work, w, runs); err != nil {
			return Way{}, err
		}
	}
	if s.Budget > 0 && w.most > 0 {
		p.RunsForBudget, err = w.affords(work.Pause, s.Budget)
	}
	return p, err
}

// runAssumption is what all ways assume of the runs of the search.
var runAssumption = privacy.PremiseFixedInAdvance.Assume("a bound for every run was fixed before the first one: none costs more than the stated run")

// scoreAssumption is the assumption on scores behind the guarantees for test records.
var scoreAssumption = privacy.PremiseScores.Assume("scores are averages over the test records of values in [0, 1], and replacing a record changes nothing else")

// test returns the noise on scores, and its guarantee for the test records.
func (s *Search) test(work *meter.Work, w way, runs int64) (noise float64, g privacy.Guarantee, err error) {
	scores := int64(1)
	if w.curves && s.CoversStates {
		scores = s.Test.Checkpoints
	}
	of, err := w.test(runs)
	if err != nil {
		return 0, privacy.Guarantee{}, err
	}
	sensitivity := 1 / float64(s.Test.Records)
	released := func(multiplier float64) privacy.Mechanism { // of the sensitivity
		score := privacy.Gaussian{Sensitivity: 1, StandardDeviation: multiplier, Neighbours: privacy.ReplaceOne}
		return of(privacy.Part{Mechanism: score, Count: scores})
	}
	accountant := privacy.Within(privacy.Tightest{}, work)
	multiplier := s.Test.Noise / sensitivity
	if s.Test.Epsilon > 0 {
		multiplier, g, err = privacy.CalibrateNoise(accountant, released, 1, s.Test.Epsilon, s.Delta)
	} else {
		g, err = privacy.Epsilon(accountant, released(multiplier), 1, s.Delta)
	}
	g.Assumptions = privacy.JoinAssumptions([]privacy.Assumption{scoreAssumption}, g.Assumptions)
	return multiplier * sensitivity, g, err
}
