package spec

import (
	"math"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/suggest/space"
)

// FinalRun is the run on all training records that follows a tuning on a secret subset.
type FinalRun struct {
	// Study is the study in the final run: its privacy metrics are for all training records, and its
	// parameters need not meet the constraints of candidates.
	Study *Study
	// SubsetSize is the number of records that candidates see, of DatasetSize.
	SubsetSize, DatasetSize int64
	// Part is the mechanism of the final run with the number of its runs, the same whatever the
	// tuning finds.
	Part privacy.Part

	values map[string]*dparetov1.Value
}

// subsetSize returns the number of records in a subset of a share of n.
func subsetSize(share float64, n int64) int64 { return int64(math.Round(share * float64(n))) }

// Point returns the configuration of the final run after a tuning that chose best.
func (f *FinalRun) Point(best space.Point) space.Point {
	point := best.Clone()
	for id, value := range f.values {
		i := f.Study.Points.index[id]
		point[i], _ = inDomain(&f.Study.Points.space.Parameters[i], value) // checked when the spec was compiled
	}
	return f.Study.Points.space.Canonical(point)
}
