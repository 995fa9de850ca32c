package mechanism

import (
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
)

// RegisterRun adds the flags of [Flags.Run] and [Flags.Distribution] to a set: the flags of the
// mechanism of one run, without accountants, and of the distribution of the number of runs.
func (f *Flags) RegisterRun(flags *pflag.FlagSet) {
	f.Register(flags, flagBase, flagMeanRuns, flagTries, flagMaxRuns, flagAccountant, flagConversion)
}

// Run returns the mechanism of one run that the flags describe.
func (f *Flags) Run() (*Mechanism, error) {
	v := f.given()
	if v[flagMechanism] == repeatedName {
		return nil, fmt.Errorf("--mechanism must name the mechanism of one run, is %s", repeatedName)
	}
	delete(v, flagDistribution)
	return mechanismOf(v, nil)
}

// Distribution returns the distribution of the number of runs: the Poisson distribution, or the shape η
// of a truncated negative binomial distribution.
func (f *Flags) Distribution() (eta float64, isPoisson bool, err error) {
	name := f.given()[flagDistribution]
	if name == poisson {
		return 0, true, nil
	}
	if eta, err = strconv.ParseFloat(shape(name), 64); err != nil {
		err = fmt.Errorf("--distribution must be geometric, logarithmic, poisson or a number, is %s", name)
	}
	return eta, false, err
}
