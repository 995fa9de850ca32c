package mechanism

import (
	"fmt"
	"slices"

	"github.com/spf13/pflag"
)

// RegisterRun adds the flags of [Flags.Run] to a set: those of the mechanism of one run, without
// accountants, for a command that has its own.
func (f *Flags) RegisterRun(flags *pflag.FlagSet) {
	without := []string{flagBase, flagMeanRuns, flagDistribution, flagTries, flagMaxRuns, flagAccountant, flagConversion}
	f.register(flags, func(o option) bool { return !slices.Contains(without, o.name) })
}

// Run returns the mechanism of one run that the flags describe.
func (f *Flags) Run() (*Mechanism, error) {
	v := f.given()
	if v[flagMechanism] == repeatedName {
		return nil, fmt.Errorf("--mechanism must name the mechanism of one run, is %s", repeatedName)
	}
	return mechanismOf(v, nil)
}
