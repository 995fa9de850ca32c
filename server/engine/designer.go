package engine

import (
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/suggest"
)

// Algorithms are the algorithms of the contract that this version has, in its order.
var Algorithms = []dparetov1.Algorithm{
	dparetov1.Algorithm_ALGORITHM_DEFAULT,
	dparetov1.Algorithm_ALGORITHM_RANDOM,
	dparetov1.Algorithm_ALGORITHM_GRID,
	dparetov1.Algorithm_ALGORITHM_QUASI_RANDOM,
	dparetov1.Algorithm_ALGORITHM_DPARETO,
	dparetov1.Algorithm_ALGORITHM_EHVI,
	dparetov1.Algorithm_ALGORITHM_NSGA2,
}

// NewDesigner returns the designer behind an algorithm, or nil if there is none.
func NewDesigner(algorithm dparetov1.Algorithm, initialTrials int) suggest.Designer {
	switch algorithm {
	case dparetov1.Algorithm_ALGORITHM_DEFAULT:
		return suggest.NewDefault(suggest.EngineOptions{InitialPoints: initialTrials})
	case dparetov1.Algorithm_ALGORITHM_EHVI:
		return suggest.NewEHVI(suggest.EngineOptions{InitialPoints: initialTrials})
	case dparetov1.Algorithm_ALGORITHM_RANDOM:
		return suggest.NewRandom()
	case dparetov1.Algorithm_ALGORITHM_GRID:
		return suggest.NewGrid()
	case dparetov1.Algorithm_ALGORITHM_QUASI_RANDOM:
		return suggest.NewQuasiRandom()
	case dparetov1.Algorithm_ALGORITHM_DPARETO:
		return suggest.NewDPareto(suggest.DParetoOptions{InitialPoints: initialTrials})
	case dparetov1.Algorithm_ALGORITHM_NSGA2:
		return suggest.NewNSGA2(suggest.NSGA2Options{InitialPoints: initialTrials})
	default:
		return nil
	}
}

// DesignerOf returns the designer of a study.
func DesignerOf(study *spec.Study) suggest.Designer {
	return NewDesigner(study.Spec.GetAlgorithm().GetName(), study.InitialTrials())
}

// isModelBased reports whether the designer of a study fits a model, which takes time.
func isModelBased(study *spec.Study) bool {
	switch study.Spec.GetAlgorithm().GetName() {
	case dparetov1.Algorithm_ALGORITHM_DEFAULT, dparetov1.Algorithm_ALGORITHM_EHVI, dparetov1.Algorithm_ALGORITHM_DPARETO:
		return true
	default:
		return false
	}
}

// learnsFromCheckpoints reports whether the designer of a study takes every measurement
// of a run for an evaluation of its own. The others know complete runs only, as the
// published methods do.
func learnsFromCheckpoints(study *spec.Study) bool {
	switch study.Spec.GetAlgorithm().GetName() {
	case dparetov1.Algorithm_ALGORITHM_DEFAULT, dparetov1.Algorithm_ALGORITHM_EHVI:
		return study.Checkpoints()
	default:
		return false
	}
}
