package spec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/pause"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/tuning"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/suggest/space"
)

// drawsPerListed bounds the draws for each configuration of a list, since constraints may refuse many.
const drawsPerListed = 1000

// randomStopping keeps scores and draws the configurations of a study with random_stopping.
type randomStopping struct {
	spec         *dparetov1.StudySpec
	points       *Points
	metrics      *Metrics
	measurements *Measurements
	noise        *noise
}

// HasRandomStopping reports whether the study has random stopping.
func (r *randomStopping) HasRandomStopping() bool { return r.spec.GetRandomStopping() != nil }

// Scored checks a measurement of a study with random stopping and returns the part that the study
// keeps, without noise yet. With test_set_size that is only the value, clipped to [0, 1].
func (r *randomStopping) Scored(path string, point space.Point, m *dparetov1.Measurement, final bool) (*dparetov1.Measurement, []*dparetov1.Warning, error) {
	if r.noise.isNoisy() {
		var err error
		if m, err = r.noise.Clipped(path, m); err != nil {
			return nil, nil, err
		}
	}
	return r.measurements.Accept(path, point, m, final)
}

// SearchDelta returns the δ of the guarantees of a study with random stopping.
func (r *randomStopping) SearchDelta() float64 {
	if delta := r.spec.GetRandomStopping().GetDelta(); delta != 0 {
		return delta
	}
	id, _ := r.metrics.Mechanism("")
	if i := r.metrics.index(id); i >= 0 {
		return r.metrics.all[i].spec.GetComputed().GetPrivacy().GetDelta()
	}
	return 0
}

// Listed returns the length of the list that candidates are drawn from.
func (r *randomStopping) Listed() int {
	return int(cmp.Or(r.spec.GetRandomStopping().GetListed(), DefaultListed))
}

// SearchList draws the list of configurations that candidates of a study with random stopping are drawn
// from: independent draws from the parameters' distributions that are allowed and whose cost is known. The
// error is INVALID_ARGUMENT, or ctx's.
func (r *randomStopping) SearchList(ctx context.Context, rng *rand.Rand) ([]space.Point, error) {
	n := r.Listed()
	list := make([]space.Point, 0, n)
	var first error
	for tries := 0; len(list) < n; tries++ {
		if err := pause.Check(ctx); err != nil {
			return nil, err
		}
		if tries == drawsPerListed*n {
			return nil, invalid.Field("study.spec.random_stopping", "the cost of a trial is known at only %d of %d draws of the parameters' distributions, but listed is %d: %v",
				len(list), tries, n, cmp.Or(first, errors.New("the constraints do not hold")))
		}
		point := r.points.space.Sample(rng)
		if err := r.CheckListed(point); err != nil {
			first = cmp.Or(first, err)
			continue
		}
		list = append(list, point)
	}
	return list, nil
}

// CheckListed reports why a configuration cannot be on the list of a study with random stopping.
func (r *randomStopping) CheckListed(point space.Point) error {
	if err := r.points.space.Contains(point); err != nil {
		return err
	}
	if !r.points.allowed(point) {
		return errors.New("the constraints do not hold")
	}
	_, err := r.listed(point)
	return err
}

// listed is candidate, for a configuration of the list: a study that tunes on a subset accounts every candidate
// on it.
func (r *randomStopping) listed(point space.Point) (privacy.Part, error) {
	part, err := r.candidate(point)
	if final := r.spec.GetRandomStopping().GetFinalRun(); err == nil && final != nil {
		err = statedFor(part.Mechanism, subsetSize(r.spec.GetRandomStopping().GetSubsetShare(), final.GetDatasetSize()))
	}
	return part, err
}

// SearchChoices returns the mechanisms of trials whose configurations are drawn uniformly from a list.
// Configurations with the same mechanism are one choice.
func (r *randomStopping) SearchChoices(list []space.Point) ([]tuning.Choice, error) {
	var choices []tuning.Choice
	known := make(map[string]int)
	for _, point := range list {
		part, err := r.listed(point)
		if err != nil {
			return nil, err
		}
		i, ok := known[part.Key()]
		if !ok {
			i = len(choices)
			known[part.Key()] = i
			choices = append(choices, tuning.Choice{Mechanism: part.Mechanism, Runs: part.Count})
		}
		choices[i].Weight++
	}
	return choices, nil
}

// candidate returns the mechanism of a trial with the number of its runs.
func (r *randomStopping) candidate(point space.Point) (privacy.Part, error) {
	_, function := r.metrics.Mechanism("")
	part, err := function.Part(r.points.Variables(point))
	if err == nil {
		err = part.Mechanism.Validate()
	}
	if err != nil {
		return part, err
	}
	return repeated(part, r.spec)
}

// repeated returns the mechanism of all replicates of a trial.
func repeated(part privacy.Part, spec *dparetov1.StudySpec) (privacy.Part, error) {
	runs := int64(replicates(spec))
	if part.Count > math.MaxInt64/runs {
		return part, fmt.Errorf("%d times %d runs are too many", part.Count, runs)
	}
	part.Count *= runs
	return part, nil
}
