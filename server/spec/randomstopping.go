package spec

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/suggest/space"
)

// costDraws is the number of draws of the design distributions among which the costliest
// configuration of a study with random stopping is found.
const costDraws = 10_000

// randomStopping keeps scores and bounds the cost of trials in a study with random_stopping.
type randomStopping struct {
	spec         *dparetov1.StudySpec
	points       *points
	constraints  *constraints
	metrics      *metrics
	measurements *measurements
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
	return r.measurements.Measurement(path, point, m, final)
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

// SearchDistribution returns the distribution of the number of trials of a study with random
// stopping.
func (r *randomStopping) SearchDistribution() privacy.SearchDistribution {
	stopping := r.spec.GetRandomStopping()
	_, isPoisson := stopping.GetDistribution().(*dparetov1.RandomStoppingSpec_Poisson)
	return privacy.SearchDistribution{Mean: stopping.GetMeanTrials(), Eta: stopping.GetEta(), Poisson: isPoisson}
}

// SearchBound returns what a trial of a study with random stopping costs at most. 10,000
// draws of the design distributions attain the bound; draws that are not allowed, or whose
// cost is unknown, do not count. The seed is fixed, so that the bound is a function of the
// spec. It takes up to seconds. The error is INVALID_ARGUMENT, or ctx's.
func (r *randomStopping) SearchBound(ctx context.Context) (privacy.SearchBound, error) {
	rng := rand.New(rand.NewPCG(3, 4))
	seen := make(map[string]bool)
	var candidates []privacy.Part
	var first error
	for range costDraws {
		if err := ctx.Err(); err != nil {
			return privacy.SearchBound{}, err
		}
		point := r.points.space.Sample(rng)
		if !r.constraints.allowed(point) {
			continue
		}
		part, err := r.candidate(point)
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
		return privacy.SearchBound{}, invalid.Field(field, "the cost of a trial is known at none of %d draws of the design distributions: %v", costDraws, first)
	}
	bound, err := r.SearchDistribution().Bound(candidates, r.SearchDelta())
	if err != nil {
		return privacy.SearchBound{}, invalid.Field(field, "the cost of a trial cannot be bounded: %v", err)
	}
	return bound, nil
}

// SearchAdmits reports whether a configuration may be a trial of a study with random
// stopping and the given bound: it is allowed, and its cost known and not above the bound.
func (r *randomStopping) SearchAdmits(bound privacy.SearchBound, point space.Point) bool {
	if !r.constraints.allowed(point) {
		return false
	}
	part, err := r.candidate(point)
	return err == nil && r.SearchDistribution().Admits(bound, part)
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
	runs := int64(replicates(r.spec)) * max(1, int64(r.spec.GetRandomStopping().GetPortfolio()))
	if part.Count > math.MaxInt64/runs {
		return part, fmt.Errorf("%d times %d runs are too many", part.Count, runs)
	}
	part.Count *= runs
	return part, nil
}
