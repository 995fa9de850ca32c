package reproduce

import (
	"context"
	"fmt"
)

// FastEstimation is the experiment of "Fast Estimation for Privacy and Utility in
// Differentially Private Machine Learning" (anonymous authors, under review, 2020),
// Table 1 and Figure 2.
type FastEstimation struct {
	DataDir string
	Seed    uint64
}

var _ Experiment = (*FastEstimation)(nil)

// Name implements Experiment.
func (*FastEstimation) Name() string { return "fast-estimation" }

// Validate implements Experiment.
func (e *FastEstimation) Validate() error { return nil }

// Run implements Experiment.
func (e *FastEstimation) Run(ctx context.Context, progress func(done, total int)) (*Result, error) {
	return nil, fmt.Errorf("%s", e.Name())
}
