package engine

import (
	"strings"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/surrogate"
)

// NewDesigner returns the designer that implements an algorithm, or nil if there is none. An
// algorithm's name is ALGORITHM_ and the designer's name.
func NewDesigner(algorithm dparetov1.Algorithm, o designers.Options) suggest.Designer {
	designer, _ := designers.ByName(strings.ToLower(strings.TrimPrefix(algorithm.String(), "ALGORITHM_")), o)
	return designer
}

// designerOf returns the designer of a study.
func (e *Engine) designerOf(study *spec.Study) suggest.Designer {
	return NewDesigner(study.Spec.GetAlgorithm().GetName(), designers.Options{
		InitialPoints: study.InitialTrials(),
		Published:     study.Spec.GetAlgorithm().GetPublishedAcquisition(),
		Cache:         &e.fits,
		Workers:       fitWorkers,
	})
}

// ModelOptions returns the options of the models of a study.
func (e *Engine) ModelOptions(study *dparetov1.Study) model.Options {
	return model.Options{Seed: study.GetSeed(), Cache: &e.fits, Workers: fitWorkers}
}

// fitWorkers is one: a fit has one slot of the pool.
var fitWorkers = surrogate.Workers{Max: 1}

// isModelBased reports whether the designer of a study fits a model, which is slow.
func isModelBased(study *spec.Study) bool {
	switch study.Spec.GetAlgorithm().GetName() {
	case dparetov1.Algorithm_ALGORITHM_DEFAULT, dparetov1.Algorithm_ALGORITHM_EHVI, dparetov1.Algorithm_ALGORITHM_DPARETO:
		return true
	default:
		return false
	}
}

// learnsFromCheckpoints reports whether the designer of a study treats every measurement of a run as
// an evaluation. Other designers see complete runs only, as in the papers.
func learnsFromCheckpoints(study *spec.Study) bool {
	switch study.Spec.GetAlgorithm().GetName() {
	case dparetov1.Algorithm_ALGORITHM_DEFAULT, dparetov1.Algorithm_ALGORITHM_EHVI:
		return study.Points.Checkpoints()
	default:
		return false
	}
}
