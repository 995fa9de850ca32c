package mechanism

import (
	"errors"
	"fmt"
	"maps"
	"strconv"

	"github.com/spf13/pflag"
)

// Repeated is the best of a random number of runs of a mechanism.
type Repeated struct {
	// Total is the whole, a repeated-selection, and Base one run.
	Total, Base *Mechanism
	// Poisson says that the number of runs has a Poisson distribution; else it has the
	// truncated negative binomial distribution of shape Eta.
	Poisson bool
	Eta     float64
	// MeanRuns is the expected number of runs.
	MeanRuns float64
}

// RegisterRepeated adds the flags of [Flags.Repeated] to a set: the flags of the mechanism
// of one run, and of the number of runs.
func (f *Flags) RegisterRepeated(flags *pflag.FlagSet) {
	f.register(flags, func(o option) bool { return o.name != flagBase })
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
	base, err := mechanismOf(one, nil)
	if err != nil {
		return nil, err
	}
	r := &Repeated{Base: base}
	v[flagBase], v[flagMechanism] = v[flagMechanism], repeatedName
	if r.Total, err = mechanismOf(v, nil); err != nil {
		return nil, err
	}
	if r.MeanRuns, err = strconv.ParseFloat(v[flagMeanRuns], 64); err != nil {
		return nil, fmt.Errorf("--mean-runs: %w", err)
	}
	if r.Poisson = v[flagDistribution] == poisson; r.Poisson {
		return r, nil
	}
	if r.Eta, err = strconv.ParseFloat(shape(v[flagDistribution]), 64); err != nil {
		return nil, fmt.Errorf("--distribution: %w", err)
	}
	return r, nil
}
