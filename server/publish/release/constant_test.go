package release_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/servertest"
)

// No front lists what a constant point beats or equals, and lists the point itself unless it is beaten.
func TestConstantPointOnFronts(t *testing.T) {
	f := servertest.Start(t)
	with, without := f.Create("with", servertest.WithConstant(servertest.SVTSpec(), 0, 0.5)), f.Create("without", servertest.SVTSpec())
	kinds := []dparetov1.FrontKind{
		dparetov1.FrontKind_FRONT_KIND_OBSERVED, dparetov1.FrontKind_FRONT_KIND_POSTERIOR,
		dparetov1.FrontKind_FRONT_KIND_BEST, dparetov1.FrontKind_FRONT_KIND_WORST,
	}
	for _, kind := range kinds {
		front := f.Front(with, kind)
		if len(front.GetPoints()) != 1 || front.GetPoints()[0].GetConstantPoint() != "majority" || math.Abs(front.GetHypervolume()-10*0.5) > 1e-12 {
			t.Errorf("%v of an empty study: %v", kind, front)
		}
	}
	for _, study := range []string{with, without} {
		f.ImportTrial(study, 15, 0.9, 0.9, 0.9)  // ε = 1
		f.ImportTrial(study, 7.5, 0.8, 0.8, 0.8) // ε = 2
		f.ImportTrial(study, 3, 0.2, 0.2, 0.2)   // ε = 5
	}
	for _, kind := range kinds {
		front, all := f.Front(with, kind), f.Front(without, kind)
		if n := len(all.GetPoints()); n != 3 {
			t.Errorf("%v: %d points without the constant point, want 3: this tests nothing", kind, n)
		}
		if len(front.GetPoints()) != 2 {
			t.Fatalf("%v: %v", kind, front.GetPoints())
		}
		constant, other := front.GetPoints()[0], front.GetPoints()[1]
		want := &dparetov1.FrontPoint{
			ConstantPoint: "majority", Contribution: constant.GetContribution(),
			Values: map[string]*dparetov1.FrontValue{"epsilon": {Value: 0}, "error": {Value: 0.5}},
		}
		if diff := cmp.Diff(want, constant, protocmp.Transform()); diff != "" {
			t.Errorf("%v (-want +got):\n%s", kind, diff)
		}
		e := other.GetValues()["error"].GetValue()
		if volume := 10*0.5 + 5*(0.5-e); math.Abs(front.GetHypervolume()-volume) > 1e-9 {
			t.Errorf("%v: hypervolume %g, want %g", kind, front.GetHypervolume(), volume)
		}
		if volume := 10*0.5 - 5*0.5; math.Abs(constant.GetContribution()-volume) > 1e-9 {
			t.Errorf("%v: the constant point contributes %g, want %g", kind, constant.GetContribution(), volume)
		}
		trace, err := f.Fronts.ListHypervolumes(t.Context(), &dparetov1.ListHypervolumesRequest{Name: with, Kind: kind})
		require.NoError(t, err)
		if last := trace.GetPoints()[2].GetHypervolume(); math.Abs(last-front.GetHypervolume()) > 1e-9 {
			t.Errorf("%v: hypervolume %g over time, %g of the front", kind, last, front.GetHypervolume())
		}
		if first := trace.GetPoints()[0].GetHypervolume(); kind != dparetov1.FrontKind_FRONT_KIND_POSTERIOR && math.Abs(first-5) > 1e-12 {
			t.Errorf("%v: hypervolume %g after a run that the constant point beats, want 5", kind, first)
		}
	}
	beaten := f.Create("beaten", servertest.WithConstant(servertest.SVTSpec(), 6, 0.5))
	f.ImportTrial(beaten, 3, 0.2)
	if front := f.Front(beaten, dparetov1.FrontKind_FRONT_KIND_OBSERVED); len(front.GetPoints()) != 1 || front.GetPoints()[0].GetConstantPoint() != "" {
		t.Errorf("a constant point that is beaten: %v", front.GetPoints())
	}
}

// A query is answered with the constant point where nothing within the bounds is better.
func TestQueryOfConstantPoint(t *testing.T) {
	t.Parallel()
	f := servertest.Start(t)
	study := f.Create("svt", servertest.WithConstant(servertest.SparseSpec(), 0, 0.5))
	query := func(req *dparetov1.QueryFrontRequest) *dparetov1.QueryFrontResponse {
		t.Helper()
		req.Name = study
		resp, err := f.Fronts.QueryFront(t.Context(), req)
		require.NoError(t, err)
		return resp
	}
	within := func(epsilon float64, measuredOnly bool) *dparetov1.QueryFrontResponse {
		return query(&dparetov1.QueryFrontRequest{Bounds: map[string]float64{"epsilon": epsilon}, MeasuredOnly: measuredOnly})
	}
	constant := func(resp *dparetov1.QueryFrontResponse) bool {
		return resp.GetConstantPoint() == "majority" && resp.GetReachable() && len(resp.GetParameters()) == 0 && len(resp.GetTrials()) == 0 &&
			maps.Equal(resp.GetReached(), map[string]float64{"epsilon": 0, "error": 0.5})
	}
	if resp := within(0.5, false); !constant(resp) || len(resp.GetWarnings()) == 0 {
		t.Errorf("before any run: %v", resp)
	}
	f.TrialsOfSparse(study)
	for _, measuredOnly := range []bool{false, true} {
		if resp := within(0.5, measuredOnly); !constant(resp) { // configurations have 0.63 there
			t.Errorf("measured only %t: %v", measuredOnly, resp)
		}
		if resp := within(5, measuredOnly); resp.GetConstantPoint() != "" || len(resp.GetParameters()) == 0 { // and 0.23 there
			t.Errorf("measured only %t: %v", measuredOnly, resp)
		}
	}
	if resp := query(&dparetov1.QueryFrontRequest{Bounds: map[string]float64{"error": 0.6}}); !constant(resp) {
		t.Errorf("the smallest ε for an error of 0.6: %v", resp)
	}
	if resp := query(&dparetov1.QueryFrontRequest{Bounds: map[string]float64{"error": 0.3}}); resp.GetConstantPoint() != "" {
		t.Errorf("the smallest ε for an error of 0.3: %v", resp)
	}
}

func TestConstantPointsAreChecked(t *testing.T) {
	f := servertest.Start(t)
	point := func(change func(*dparetov1.ConstantPoint)) *dparetov1.StudySpec {
		spec := servertest.WithConstant(servertest.SVTSpec(), 0, 0.5)
		change(spec.GetConstantPoints()[0])
		return spec
	}
	value := func(id string, v float64) *dparetov1.StudySpec {
		return point(func(p *dparetov1.ConstantPoint) { p.GetValues()[id] = v })
	}
	many := servertest.SVTSpec()
	for range 11 {
		servertest.WithConstant(many, 0, 0.5)
	}
	const at = "study.spec.constant_points[0]"
	for field, spec := range map[string]*dparetov1.StudySpec{
		at + ".id":                           point(func(p *dparetov1.ConstantPoint) { p.Id = "" }),
		"study.spec.constant_points[1].id":   servertest.WithConstant(servertest.WithConstant(servertest.SVTSpec(), 0, 0.5), 0, 0.5),
		"study.spec.constant_points":         many,
		at + ".display_name":                 point(func(p *dparetov1.ConstantPoint) { p.DisplayName = string(make([]byte, 201)) }),
		at + ".description":                  point(func(p *dparetov1.ConstantPoint) { p.Description = string(make([]byte, 1001)) }),
		at + `.values["epsilon"]`:            value("epsilon", -1),
		at + `.values["error"]`:              value("error", 1.01),
		at + `.values["loss"]`:               value("loss", 1),
		at + `.values["epsilon"] ` + "unset": point(func(p *dparetov1.ConstantPoint) { delete(p.GetValues(), "epsilon") }),
		at + `.values["error"] ` + "finite":  value("error", math.NaN()),
		at + `.values["epsilon"] ` + "huge":  value("epsilon", 1e101),
	} {
		_, err := f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "bad", Study: &dparetov1.Study{Spec: spec}})
		servertest.WantCode(t, err, codes.InvalidArgument, fieldOf(field))
	}
	f.Create("zero", servertest.WithConstant(servertest.SVTSpec(), 0, 1)) // under TRANSFORM_LOG, and beyond the reference
	// The values are part of the question.
	study := f.Create("fixed", servertest.WithConstant(servertest.SVTSpec(), 0, 0.5))
	got, err := f.Studies.GetStudy(t.Context(), &dparetov1.GetStudyRequest{Name: study})
	require.NoError(t, err)
	changed := proto.CloneOf(got.GetStudy())
	changed.Spec.ConstantPoints[0].Values["error"] = 0.4
	_, err = f.Studies.UpdateStudy(t.Context(), &dparetov1.UpdateStudyRequest{Study: changed, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"spec"}}})
	servertest.WantCode(t, err, codes.InvalidArgument, "constant_points")
}

// Exact values of a fixed design get noise before a front or a best trial is chosen. A constant point,
// whose value nothing protects, decides nothing there: the same noise gives the same releases.
func TestReleasesOfAFixedDesignIgnoreConstantPoints(t *testing.T) {
	released := func(constants ...float64) (front, best []*dparetov1.ReleasedPoint) {
		f := servertest.StartSeeded(t, 7)
		spec := servertest.FixedSpec(8, f.NewLedger("l", 10))
		for _, e := range constants {
			servertest.WithConstant(spec, 0, e)
		}
		study := f.Create("s", spec)
		for i := range 8 {
			f.Tell(f.One(study, "w"), 0.5-0.05*float64(i))
		}
		f1, err := f.Releases().ReleaseFront(t.Context(), &dparetov1.ReleaseFrontRequest{Name: study, Epsilon: 3, Delta: 1e-6})
		require.NoError(t, err)
		f2, err := f.Releases().ReleaseBest(t.Context(), &dparetov1.ReleaseBestRequest{Name: study, Metric: "error", Epsilon: 1})
		require.NoError(t, err)
		return f1.GetRelease().GetPoints(), f2.GetRelease().GetPoints()
	}
	front, best := released()
	if len(front) == 0 || len(best) != 1 {
		t.Fatalf("front %v, best %v", front, best)
	}
	for _, e := range []float64{0, 0.35} { // better than all, and than some
		otherFront, otherBest := released(e)
		if diff := cmp.Diff(front, otherFront, protocmp.Transform()); diff != "" {
			t.Errorf("the front beside a constant point of error %g (-without +with):\n%s", e, diff)
		}
		if diff := cmp.Diff(best, otherBest, protocmp.Transform()); diff != "" {
			t.Errorf("the best beside a constant point of error %g (-without +with):\n%s", e, diff)
		}
	}
}

// publicConstant is a study with private_mode, little noise, and a constant point of public data.
func publicConstant(errorRate float64) *dparetov1.StudySpec {
	spec := servertest.WithConstant(servertest.PrivateSpec(6, 20), 0, errorRate)
	spec.PrivateMode.TestEpsilon, spec.PrivateMode.ConstantPointsArePublic = 100, true
	return servertest.WithLedgers(spec)
}

// A study with private_mode releases what its posterior front lists, without constant points: they are
// public, and no configuration. It says that it rests on that.
func TestReleasesOfAPrivateStudyBesideConstantPoints(t *testing.T) {
	for _, e := range []float64{0, 0.5} {
		f := servertest.Start(t)
		study := f.Create("s", publicConstant(e))
		for i := range 6 {
			f.Tell(f.One(study, "w"), []float64{0.8, 0.2}[i%2])
		}
		if a := f.Study(study).GetPublication().GetAssumptions(); !strings.Contains(fmt.Sprint(a), "the values of the constant points come from public data only") {
			t.Errorf("assumptions %q", a)
		}
		resp, err := f.Releases().ReleaseFront(t.Context(), &dparetov1.ReleaseFrontRequest{Name: study})
		require.NoError(t, err)
		front := f.Front(study, dparetov1.FrontKind_FRONT_KIND_POSTERIOR)
		if front.GetPoints()[0].GetConstantPoint() != "majority" {
			t.Fatalf("error %g: the front is %v", e, front)
		}
		points, want := resp.GetRelease().GetPoints(), front.GetPoints()[1:]
		if len(points) != len(want) || (len(points) > 0) != (e > 0) {
			t.Fatalf("error %g: released %v of the front %v", e, points, want)
		}
		for i, p := range points {
			if diff := cmp.Diff(want[i].GetParameters(), p.GetParameters(), protocmp.Transform()); diff != "" || p.GetValues()["error"] >= e {
				t.Errorf("error %g: released %v, want %v", e, p, want[i])
			}
		}
	}
	f := servertest.Start(t)
	if a := f.Study(f.Create("none", servertest.PrivateSpec(4, 1))).GetPublication().GetAssumptions(); slices.ContainsFunc(a, func(a *dparetov1.Assumption) bool {
		return strings.Contains(a.GetText(), "constant")
	}) {
		t.Errorf("assumptions without constant points: %q", a)
	}
}

// What was declared public cannot be taken back.
func TestConstantPointsStayPublic(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("s", publicConstant(0.5))
	private := f.Study(study)
	private.Spec.PrivateMode.ConstantPointsArePublic = false
	_, err := f.Update(private, "spec")
	servertest.WantCode(t, err, codes.InvalidArgument, "constant_points_are_public")
}

// fieldOf drops what tells two cases of one field apart.
func fieldOf(name string) string {
	if i := slices.Index([]byte(name), ' '); i >= 0 {
		return name[:i]
	}
	return name
}
