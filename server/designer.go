package server

import (
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/suggest"
)

// algorithms are the algorithms of the contract that this version has, in its order.
var algorithms = []dparetov1.Algorithm{
	dparetov1.Algorithm_ALGORITHM_RANDOM,
	dparetov1.Algorithm_ALGORITHM_GRID,
	dparetov1.Algorithm_ALGORITHM_QUASI_RANDOM,
	dparetov1.Algorithm_ALGORITHM_DPARETO,
	dparetov1.Algorithm_ALGORITHM_NSGA2,
}

// newDesigner returns the designer behind an algorithm, or nil if there is none.
func newDesigner(algorithm dparetov1.Algorithm, initialTrials int) suggest.Designer {
	switch algorithm {
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

// designerOf returns the designer of a study.
func designerOf(study *spec.Study) suggest.Designer {
	return newDesigner(study.Spec.GetAlgorithm().GetName(), study.InitialTrials())
}
