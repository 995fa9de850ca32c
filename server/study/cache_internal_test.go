package study

import (
	"slices"
	"testing"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/spec"
)

// derivation is what a package might derive from a study.
type derivation struct{ drop func() }

// Drop is called when the study is not cached any more.
func (d *derivation) Drop() { d.drop() }

// So many studies are kept, those used last; another spec takes the place of the one before, but
// not of a later one. What is derived from a study goes with it.
func TestStudiesAreForgotten(t *testing.T) {
	studies := newCache(2, 10)
	var dropped []string
	study := func(uid string, revision int64, most float64) *dparetov1.Study {
		return &dparetov1.Study{Name: "studies/" + uid, Uid: uid, Revision: revision, Etag: Etag(uid+"12345678", revision), Spec: &dparetov1.StudySpec{
			Parameters: []*dparetov1.ParameterSpec{{
				Id: "x", Scale: dparetov1.Scale_SCALE_LINEAR,
				Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Max: most}},
			}},
			Metrics: []*dparetov1.MetricSpec{{
				Id: "y", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE,
				Transform: dparetov1.Transform_TRANSFORM_IDENTITY, ReferenceValue: new(1.0),
				Source: &dparetov1.MetricSpec_Reported{Reported: &dparetov1.ReportedSource{}},
			}},
			Algorithm: &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_RANDOM},
		}}
	}
	get := func(study *dparetov1.Study) *Cached {
		t.Helper()
		record := &storev1.StudyRecord{Study: study}
		cached := studies.find(record)
		if cached == nil {
			compiled, err := spec.Compile("spec", study.GetSpec())
			require.NoError(t, err)
			cached = studies.add(record, compiled)
		}
		if !cached.hasSpec(study.GetSpec()) {
			t.Errorf("compiled %v", cached.Compiled.Spec)
		}
		return cached
	}
	derive := func(uid string, cached *Cached) *derivation {
		return Derived(cached, func() *derivation { return &derivation{func() { dropped = append(dropped, uid) }} })
	}
	wantDropped := func(want ...string) {
		t.Helper()
		if !slices.Equal(dropped, want) {
			t.Errorf("what was derived from %q is dropped, want %q", dropped, want)
		}
	}
	a, b := get(study("a", 1, 1)), get(study("b", 1, 1))
	of := derive("a", a)
	derive("b", b)
	if get(study("a", 1, 1)) != a || get(study("b", 1, 1)) != b {
		t.Error("compiled again")
	}
	if get(study("a", 2, 1)) != a { // renamed
		t.Error("compiled again")
	}
	if derive("a again", a) != of {
		t.Error("derived again")
	}
	wantDropped()
	c := get(study("c", 1, 1))
	derive("c", c)
	wantDropped("b")
	if studies.studies.Len() != 2 || get(study("a", 2, 1)) != a {
		t.Errorf("%d studies are kept, want a and c", studies.studies.Len())
	}
	if studies.holds(b) { // a late reader of what is not kept any more
		t.Error("b is still kept")
	}
	grown := get(study("a", 3, 2))
	derive("a, grown", grown)
	if grown == a || studies.holds(a) || !studies.holds(grown) {
		t.Error("the smaller space is kept")
	}
	wantDropped("b", "a")
	if past := get(study("a", 2, 1)); past == grown || get(study("a", 3, 2)) != grown || get(study("c", 1, 1)) != c {
		t.Error("the smaller space took the place of the larger one")
	}
	wantDropped("b", "a")
	studies.forget("studies/c") // it was deleted
	studies.forget("studies/c")
	if studies.studies.Len() != 1 || studies.holds(c) {
		t.Errorf("%d studies are kept, want a", studies.studies.Len())
	}
	wantDropped("b", "a", "c")
	// So many measurements are kept of all studies together, but any number of one.
	d := get(study("d", 1, 1))
	derive("d", d)
	studies.grow(grown, 6)
	studies.grow(d, 4)
	wantDropped("b", "a", "c")
	studies.grow(grown, 1)
	wantDropped("b", "a", "c", "d")
	studies.grow(grown, 100)
	studies.grow(d, 100) // a late reader
	if studies.measurements != 107 || !studies.holds(grown) {
		t.Errorf("%d measurements are kept", studies.measurements)
	}
	namesake := study("a", 3, 2) // of a deleted study
	namesake.Uid = "another"
	if studies.find(&storev1.StudyRecord{Study: namesake}) != nil || get(namesake) == grown || studies.latest("studies/a") == grown {
		t.Error("a deleted study takes the place of another of its name")
	}
	wantDropped("b", "a", "c", "d", "a, grown")
	studies.clear()
	if studies.measurements != 0 {
		t.Errorf("%d measurements are kept of nothing", studies.measurements)
	}
	late := 0
	Derived(a, func() *latecomer { return &latecomer{func() { late++ }} })
	if late != 1 {
		t.Errorf("what was derived after its study left the cache is dropped %d times, want once", late)
	}
}

// latecomer is derived from a study that has left the cache.
type latecomer struct{ drop func() }

// Drop is called at once.
func (l *latecomer) Drop() { l.drop() }
