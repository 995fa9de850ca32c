package spec

import (
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// Study is a compiled spec. It is immutable and safe for concurrent use.
//
// Points, Metrics and Measurements answer for the search space, for values and for reports.
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

	Points       *Points
	Metrics      *Metrics
	Measurements *Measurements

	*noise
	*privateMode
	*randomStopping
	*curve

	features *features // nil without
}

// newStudy connects the parts of a study. The compiler fills them.
func newStudy(spec *dparetov1.StudySpec, s *space.Space) *Study {
	study := &Study{Spec: spec}
	study.Points = newPoints(s)
	study.Metrics = &Metrics{points: study.Points, cost: -1, latest: newMemo()}
	study.noise = &noise{spec: spec, metrics: study.Metrics}
	study.Measurements = &Measurements{points: study.Points, metrics: study.Metrics, noise: study.noise}
	study.privateMode = &privateMode{spec: spec, points: study.Points, metrics: study.Metrics}
	study.randomStopping = &randomStopping{
		spec: spec, points: study.Points,
		metrics: study.Metrics, measurements: study.Measurements, noise: study.noise,
	}
	study.curve = &curve{spec: spec, points: study.Points}
	return study
}

// Objectives returns the ids of the objectives in the order of the problem's.
func (s *Study) Objectives() []string {
	ids := make([]string, len(s.Metrics.objectives))
	for i, m := range s.Metrics.objectives {
		ids[i] = s.Metrics.all[m].id()
	}
	return ids
}
