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
	// Terms is for data that a package above has compiled from the spec before it shares the study (see
	// package publish/private), nil in ordinary studies.
	Terms any

	Points       *Points
	Metrics      *Metrics
	Measurements *Measurements

	features *features // nil without
}

// newStudy connects the parts of a study. The compiler fills them.
func newStudy(spec *dparetov1.StudySpec, s *space.Space) *Study {
	points := newPoints(s)
	metrics := &Metrics{points: points, cost: -1, latest: newMemo()}
	return &Study{Spec: spec, Points: points, Metrics: metrics, Measurements: &Measurements{points: points, metrics: metrics}}
}

// Objectives returns the ids of the objectives in the order of the problem's.
func (s *Study) Objectives() []string {
	ids := make([]string, len(s.Metrics.objectives))
	for i, m := range s.Metrics.objectives {
		ids[i] = s.Metrics.all[m].id()
	}
	return ids
}
