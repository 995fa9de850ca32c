package mechanism

import (
	"errors"
	"fmt"
	"maps"
	"strconv"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/stopping"
)

// Repeated is the best of a random number of runs of a mechanism.
type Repeated struct {
	// Total is the whole, a repeated-selection, and Base one run.
	Total, Base *Mechanism
	// Distribution is the distribution of the number of runs.
	Distribution stopping.Distribution
}

// Repeated returns the best of a random number of runs of the mechanism that the flags
// describe.
func (f *Flags) Repeated() (*Repeated, error) {
	v := f.given()
	if v[flagMechanism] == repeatedName {
		return nil, fmt.Errorf("--mechanism must name the mechanism of one run, is %s", repeatedName)
	}
	if v[flagMeanRuns] == "" {
		return nil, errors.New("--mean-runs is required: the expected number of runs")
	}
	one := maps.Clone(v)
	delete(one, flagMeanRuns)
	delete(one, flagDistribution)
	delete(one, flagTries)
	delete(one, flagMaxRuns)
	base, err := mechanismOf(one, nil)
	if err != nil {
		return nil, err
	}
	r := &Repeated{Base: base}
	v[flagBase], v[flagMechanism] = v[flagMechanism], repeatedName
	if r.Total, err = mechanismOf(v, nil); err != nil {
		return nil, err
	}
	r.Distribution, err = distributionOf(v)
	return r, err
}

// distributionOf returns the distribution of the number of runs that flags describe.
func distributionOf(v values) (stopping.Distribution, error) {
	mean, err := strconv.ParseFloat(v[flagMeanRuns], 64)
	if err != nil {
		return nil, fmt.Errorf("--mean-runs: must be a number, is %q", v[flagMeanRuns])
	}
	whole := func(flag string) int64 {
		n, parseErr := strconv.ParseInt(v[flag], 10, 64)
		if parseErr != nil {
			err = fmt.Errorf("--%s: must be a whole number, is %q", flag, v[flag])
		}
		return n
	}
	switch name := v[flagDistribution]; name {
	case poisson:
		return stopping.Poisson{Mean: mean}, nil
	case fixed:
		return stopping.Binomial{Tries: int64(mean), Success: 1}, nil
	case binomial:
		n := whole(flagTries)
		return stopping.Binomial{Tries: n, Success: mean / float64(n)}, err
	default:
		eta, parseErr := strconv.ParseFloat(shape(name), 64)
		if parseErr != nil {
			return nil, fmt.Errorf("--distribution: must be a name or a number, is %q", name)
		}
		unlimited, byMeanErr := stopping.ByMean(eta, mean)
		if byMeanErr != nil {
			fault := privacy.FieldErrors(byMeanErr)[0]
			flag := flagDistribution
			if fault.Field == "mean" {
				flag = flagMeanRuns
			}
			return nil, fmt.Errorf("--%s: %s", flag, fault.Message)
		}
		if v[flagMaxRuns] == "" {
			return unlimited, nil
		}
		return stopping.Capped{Of: unlimited, Most: whole(flagMaxRuns)}, err
	}
}
