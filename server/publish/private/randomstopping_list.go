package private

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
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest/space"
)

// drawsPerListed bounds the draws for each configuration of a list, since constraints may refuse many.
const drawsPerListed = 1000

// scored checks a measurement of a study with random stopping and returns the part that the study
// keeps, without noise yet. With test_set_size that is only the value, clipped to [0, 1].
func (p randomStopping) scored(compiled *spec.Study, r study.Report) (*dparetov1.Measurement, []*dparetov1.Warning, error) {
	m := r.Measurement
	if p.isNoisy {
		var err error
		if m, err = clipped(compiled.Spec, r.Path, m); err != nil {
			return nil, nil, err
		}
	}
	return compiled.Measurements.Accept(r.Path, r.Point, m, r.Final)
}

// searchDelta returns the δ of the guarantees of a study with random stopping.
func searchDelta(compiled *spec.Study) float64 {
	if delta := compiled.Spec.GetRandomStopping().GetDelta(); delta != 0 {
		return delta
	}
	for _, m := range compiled.Spec.GetMetrics() {
		if p := m.GetComputed().GetPrivacy(); p != nil {
			return p.GetDelta()
		}
	}
	return 0
}

// searchList draws the list of configurations that candidates of a study with random stopping are drawn
// from: independent draws from the parameters' distributions that are allowed and whose cost is known. The
// error is INVALID_ARGUMENT, or ctx's.
func searchList(ctx context.Context, compiled *spec.Study, rng *rand.Rand) ([]space.Point, error) {
	n := int(cmp.Or(compiled.Spec.GetRandomStopping().GetListed(), defaultListed))
	list := make([]space.Point, 0, n)
	var first error
	for tries := 0; len(list) < n; tries++ {
		if err := pause.Check(ctx); err != nil {
			return nil, err
		}
		if tries == drawsPerListed*n {
			return nil, invalid.Field(specPath+".random_stopping", "the cost of a trial is known at only %d of %d draws of the parameters' distributions, but listed is %d: %v",
				len(list), tries, n, cmp.Or(first, errors.New("the constraints do not hold")))
		}
		point := compiled.Problem.Space.Sample(rng)
		if err := checkListed(compiled, point); err != nil {
			first = cmp.Or(first, err)
			continue
		}
		list = append(list, point)
	}
	return list, nil
}

// checkListed reports why a configuration cannot be on the list of a study with random stopping.
func checkListed(compiled *spec.Study, point space.Point) error {
	if err := compiled.Problem.Space.Contains(point); err != nil {
		return err
	}
	if compiled.Points.CheckAllowed("", point) != nil {
		return errors.New("the constraints do not hold")
	}
	_, err := listedRun(compiled, point)
	return err
}

// listedRun is candidateRun, for a configuration of the list: a study that tunes on a subset accounts every candidate
// on it.
func listedRun(compiled *spec.Study, point space.Point) (privacy.Part, error) {
	part, err := candidateRun(compiled, point)
	if final := compiled.Spec.GetRandomStopping().GetFinalRun(); err == nil && final != nil {
		err = statedFor(part.Mechanism, subsetSize(compiled.Spec.GetRandomStopping().GetSubsetShare(), final.GetDatasetSize()))
	}
	return part, err
}

// searchChoices returns the mechanisms of trials whose configurations are drawn uniformly from a list.
// Configurations with the same mechanism are one choice.
func searchChoices(compiled *spec.Study, list []space.Point) ([]tuning.Choice, error) {
	var choices []tuning.Choice
	known := make(map[string]int)
	for _, point := range list {
		part, err := listedRun(compiled, point)
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

// candidateRun returns the mechanism of a trial with the number of its runs.
func candidateRun(compiled *spec.Study, point space.Point) (privacy.Part, error) {
	_, function := compiled.Metrics.Mechanism("")
	part, err := function.Part(compiled.Points.Variables(point))
	if err == nil {
		err = part.Mechanism.Validate()
	}
	if err != nil {
		return part, err
	}
	return repeated(part, compiled)
}

// repeated returns the mechanism of all replicates of a trial.
func repeated(part privacy.Part, compiled *spec.Study) (privacy.Part, error) {
	runs := int64(compiled.Replicates())
	if part.Count > math.MaxInt64/runs {
		return part, fmt.Errorf("%d times %d runs are too many", part.Count, runs)
	}
	part.Count *= runs
	return part, nil
}
