package tuning

import (
	"errors"
	"math"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/internal/pld"
	"github.com/dpareto/dpareto/privacy/internal/profile"
	"github.com/dpareto/dpareto/privacy/internal/runs"
)

// SubsetSampled runs Base on a secret random subset of the data: SubsetSize of DatasetSize
// records, uniformly without replacement. The best way to use it is to tune on the subset and
// then to train once on all records: a [privacy.Composition] of SubsetSampled, whose Base is a selection
// such as [CappedSelection], with the final run (Koskela and Kulkarni, "Practical differentially
// private hyperparameter tuning with subsampling", 2023). The final run's mechanism must be fixed
// beforehand: noise multiplier, lots and steps. What its guarantee does not depend on, such as
// learning rate and clipping norm, may come from the tuning.
//
// Adjacency is replace-one: sizes are public. With r = SubsetSize/DatasetSize and δ_A of Base
//
//	δ(log(1 + r(e^ε − 1))) <= r·δ_A(ε),  ε >= 0
//
// (Balle, Barthe and Gaboardi, "Privacy amplification by subsampling", 2018, Theorem 9).
//
// Proof. Let α = e^ε and α′ = 1 + r(α − 1). Let the outputs be distributed as ν without the record
// that differs, and as μ or μ′ with it: (1−r)ν + rμ against (1−r)ν + rμ′. Since
// (α−1)(1−r) + α′ = α, with b = α′/α
//
//	∫[(1−r)ν + rμ − α′((1−r)ν + rμ′)]₊ = r·∫[μ − α((1−b)ν + bμ′)]₊
//
// is at most r times the larger of ∫[μ − αν]₊ and ∫[μ − αμ′]₊. Both are at most δ_A(ε): given
// a subset, μ and μ′ differ in one record. A uniform subset without the record is one with it
// after a uniform record from outside has taken its place, so that μ and ν also differ in one. ∎
//
// If one record is added or removed, a subset of the same share has another size, and neither step
// holds.
type SubsetSampled struct {
	Base        privacy.Mechanism // stated for SubsetSize records; a Composition if it has several steps
	SubsetSize  int64             // 1 <= SubsetSize <= DatasetSize
	DatasetSize int64             // >= 1
}

// Name returns "subset_sampled".
func (m SubsetSampled) Name() string { return "subset_sampled" }

// Adjacency returns ReplaceOne.
func (m SubsetSampled) Adjacency() privacy.Adjacency { return privacy.ReplaceOne }

// Records returns DatasetSize.
func (m SubsetSampled) Records() int64 { return m.DatasetSize }

// Validate reports the fields "base", the base's own as "base.field", "base.adjacency" if it is
// not replace-one, "base.dataset_size" if the base is stated for another number of records than the
// subset's, "subset_size" and "dataset_size".
func (m SubsetSampled) Validate() error {
	var errs []error
	if m.DatasetSize < 1 {
		errs = append(errs, privacy.FieldErrorf("dataset_size", "must be at least 1, is %d", m.DatasetSize))
	}
	if m.SubsetSize < 1 || m.SubsetSize > m.DatasetSize {
		errs = append(errs, privacy.FieldErrorf("subset_size", "must be in [1, %d], is %d", m.DatasetSize, m.SubsetSize))
	}
	const oneStep = 1
	if invalid := checkCandidate(m.Base, oneStep); len(invalid) > 0 {
		return errors.Join(append(errs, invalid...)...)
	}
	if m.Base.Adjacency() != privacy.ReplaceOne {
		errs = append(errs, privacy.FieldErrorf("base.adjacency", "must be %s for a subset of a fixed size, is %s", privacy.ReplaceOne, m.Base.Adjacency()))
	}
	if size, ok := otherSize(m.Base, m.SubsetSize); ok {
		errs = append(errs, privacy.FieldErrorf("base.dataset_size", "must be the size of the subset, %d, is %d", m.SubsetSize, size))
	}
	if _, err := runs.New(m.Base, 1); err != nil {
		errs = append(errs, privacy.FieldErrorf("base", "%s has no known profile", m.Base.Name()))
	}
	return errors.Join(errs...)
}

// otherSize returns a number of records that a part of m is stated for, if it is not size.
func otherSize(m privacy.Mechanism, size int64) (other int64, found bool) {
	for _, p := range privacy.Parts(m) {
		switch part := p.Mechanism.(type) {
		case privacy.SizedMechanism:
			if of := part.Records(); of != size {
				return of, true
			}
		case Mixture:
			for _, choice := range part.choices {
				if other, found = otherSize(choice.Mechanism, size); found {
					return other, true
				}
			}
		case selectionOfRuns:
			base, _ := part.candidate()
			if other, found = otherSize(base, size); found {
				return other, true
			}
		}
	}
	return 0, false
}

// Assumptions returns the conditions that the search must meet.
func (m SubsetSampled) Assumptions() []privacy.Assumption {
	return privacy.JoinAssumptions([]privacy.Assumption{
		privacy.PremiseSampler.Assume("the subset is drawn uniformly without replacement, once, and which records are in it stays secret; " +
			"what runs on it does not depend on their order, or takes them in the random order of the draw"),
	}, m.Base.Assumptions())
}

// subsetTail is the δ beyond which nothing is assumed of the losses on a subset: for a smaller δ ε is infinite.
const subsetTail = 1e-18

// DominatingPairs returns a pair with the amplified profile, which takes some tenths of a second. None is
// known to be attained.
func (m SubsetSampled) DominatingPairs() pld.Pairs {
	share := float64(m.SubsetSize) / float64(m.DatasetSize)
	all := []profile.Point{{R: 0, Epsilon: 0, Delta: 1}} // where the profile is not known
	if of, err := profileDown(m.Base, math.Min(0.5, subsetTail/share)); err == nil {
		points, err := profile.Points(amplified(of, share), subsetTail, profile.Nodes)
		if err == nil {
			all = points
		}
	}
	return pld.Pairs{Upper: []pld.Pair{profile.NewDiscretePair(all, all).Pair()}}
}

// amplified returns ε for log δ on a subset of a share of the records.
func amplified(of func(logDelta float64) (float64, error), share float64) func(logDelta float64) (float64, error) {
	if share == 1 {
		return of
	}
	return func(logDelta float64) (float64, error) {
		logDelta -= math.Log(share)
		if logDelta >= 0 {
			return 0, nil
		}
		epsilon, err := of(logDelta)
		return pld.LogMixture(share, epsilon), err
	}
}

// profileDown returns ε for log δ of both orders of the data sets, down to a δ. That of a selection
// is [Location]'s: the bound is computed once.
func profileDown(m privacy.Mechanism, least float64) (func(logDelta float64) (float64, error), error) {
	if s, ok := m.(selectionOfRuns); ok {
		curve, err := Location{}.Curve(s)
		if err != nil {
			return nil, err
		}
		c := curve.(*locationCurve)
		bounds, err := c.bounds(least)
		if err != nil {
			return nil, err
		}
		return func(logDelta float64) (float64, error) {
			epsilon := 0.0
			for _, b := range bounds {
				epsilon = math.Max(epsilon, b.epsilon(math.Exp(logDelta)))
			}
			return epsilon, nil
		}, nil
	}
	profiles, err := runs.New(m, 1)
	if err != nil {
		return nil, err
	}
	return func(logDelta float64) (float64, error) {
		epsilon := 0.0
		for _, direction := range profiles.Directions {
			one, err := direction(logDelta)
			if err != nil {
				return 0, err
			}
			epsilon = math.Max(epsilon, one)
		}
		return epsilon, nil
	}, nil
}
