package spec

import (
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// Study is a compiled spec. It is immutable and safe for concurrent use.
//
// Its methods belong to parts with one job each, in files of about their names: points and
// constraints for the search space, metrics and measurements for values, conditions for
// requests, and noise, privateMode, randomStopping and curve for studies that publish results.
type Study struct {
	// Spec is the spec that was compiled.
	Spec *dparetov1.StudySpec
	// Problem is what designers solve. Its parameters, objectives (metrics with the role
	// OBJECTIVE) and constraints (metrics with the role CONSTRAINT) have the order of the spec.
	Problem *suggest.Problem
	// Warnings concern every reader of the study's results.
	Warnings []*dparetov1.Warning
	// Final is the final run of a study with random_stopping and a subset_share, nil without.
	Final *FinalRun

	*points
	*constraints
	*metrics
	*measurements
	*conditions
	*noise
	*privateMode
	*randomStopping
	*curve

	features *features // nil without
}

// newStudy connects the parts of a study. The compiler fills them.
func newStudy(spec *dparetov1.StudySpec, s *space.Space) *Study {
	study := &Study{Spec: spec}
	study.points = newPoints(s)
	study.constraints = &constraints{points: study.points}
	study.metrics = &metrics{points: study.points, cost: -1, latest: newMemo()}
	study.noise = &noise{spec: spec, metrics: study.metrics}
	study.measurements = &measurements{points: study.points, metrics: study.metrics, noise: study.noise}
	study.conditions = &conditions{points: study.points, constraints: study.constraints, metrics: study.metrics}
	study.privateMode = &privateMode{spec: spec, points: study.points, metrics: study.metrics}
	study.randomStopping = &randomStopping{
		spec: spec, points: study.points, constraints: study.constraints,
		metrics: study.metrics, measurements: study.measurements, noise: study.noise,
	}
	study.curve = &curve{spec: spec, points: study.points}
	return study
}

// Objectives returns the ids of the objectives in the order of the problem's.
func (s *Study) Objectives() []string {
	ids := make([]string, len(s.objectives))
	for i, m := range s.objectives {
		ids[i] = s.metrics.all[m].id()
	}
	return ids
}
