package spec

import (
	"time"

	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/suggest/designers/engine"
)

// defaultInitialTrials is the number of trials before a model takes over, for algorithms
// whose default does not depend on the problem.
const defaultInitialTrials = 16

const (
	defaultReplicates    = 1
	defaultLeaseDuration = time.Minute
	defaultMaxAttempts   = 5
	// defaultReportTolerance bounds the relative difference between a computed value and
	// the worker's own beyond which a trial carries a warning.
	defaultReportTolerance = 1e-6
)

// WithDefaults returns a spec with the algorithm and the features that it stands for, if it names none: the
// stored spec says what was chosen. It returns the spec itself if nothing is left to choose.
func WithDefaults(spec *dparetov1.StudySpec) *dparetov1.StudySpec {
	features := defaultFeatures(spec)
	if spec == nil || features == nil && spec.GetAlgorithm().GetName() != dparetov1.Algorithm_ALGORITHM_UNSPECIFIED {
		return spec
	}
	spec = proto.CloneOf(spec)
	if spec.GetAlgorithm() == nil {
		spec.Algorithm = new(dparetov1.AlgorithmSpec)
	}
	if spec.GetAlgorithm().GetName() == dparetov1.Algorithm_ALGORITHM_UNSPECIFIED {
		spec.Algorithm.Name = dparetov1.Algorithm_ALGORITHM_DEFAULT
	}
	if features != nil {
		spec.Algorithm.DpSgdFeatures = features
	}
	return spec
}

// Replicates returns the number of runs of a trial.
func (s *Study) Replicates() int32 { return replicates(s.Spec) }

func replicates(spec *dparetov1.StudySpec) int32 {
	if n := spec.GetReplicates(); n > 0 {
		return n
	}
	return defaultReplicates
}

// InitialTrials returns the number of trials before a model takes over.
func (s *Study) InitialTrials() int {
	algorithm := s.Spec.GetAlgorithm()
	if n := algorithm.GetInitialTrials(); n > 0 {
		return int(n)
	}
	switch algorithm.GetName() {
	case dparetov1.Algorithm_ALGORITHM_DEFAULT, dparetov1.Algorithm_ALGORITHM_EHVI:
		return engine.InitialPoints(s.Problem)
	default:
		return defaultInitialTrials
	}
}

// LeaseDuration returns how long a worker may be silent.
func (s *Study) LeaseDuration() time.Duration {
	if d := s.Spec.GetLease().GetDuration(); d != nil {
		return d.AsDuration()
	}
	return defaultLeaseDuration
}

// MaxAttempts returns how often a trial is handed out at most.
func (s *Study) MaxAttempts() int32 {
	if n := s.Spec.GetLease().GetMaxAttempts(); n > 0 {
		return n
	}
	return defaultMaxAttempts
}
