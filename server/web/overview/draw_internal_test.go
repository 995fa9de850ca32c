package overview

import (
	"fmt"
	"strings"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/internal/show"
)

// pictured returns a study of two objectives with an observed front of three points and others beside
// it, every third of them intermediate.
func pictured(t *testing.T, others int) *frontData {
	t.Helper()
	reference := 1.0
	metric := func(id string) *dparetov1.MetricSpec {
		return &dparetov1.MetricSpec{Id: id, Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE, ReferenceValue: &reference}
	}
	study := &dparetov1.Study{Name: "studies/s", Spec: &dparetov1.StudySpec{Metrics: []*dparetov1.MetricSpec{metric("a"), metric("b")}}}
	settings, err := parseFront(nil, show.Objectives(study.GetSpec()))
	require.NoError(t, err)
	front := &dparetov1.Front{Candidates: int64(others) + 3, Revision: 7, Reference: map[string]float64{"a": 1, "b": 1}}
	for i := range 3 {
		point := &dparetov1.FrontPoint{Trial: fmt.Sprintf("studies/s/trials/%d", i+1), Runs: int64(i + 1), Values: map[string]*dparetov1.FrontValue{
			"a": {Value: float64(i+1) / 8}, "b": {Value: float64(3-i) / 8},
		}}
		front.Points = append(front.Points, point)
	}
	for i := range others {
		front.Others = append(front.Others, &dparetov1.MeasuredPoint{Intermediate: i%3 == 0, Values: map[string]float64{"a": 0.5, "b": float64(i) / float64(others)}})
	}
	return &frontData{Study: study, Settings: settings, Observed: front}
}

// The configurations beside a front are two paths, however many they are; points measured more than
// once are marked.
func TestCloud(t *testing.T) {
	d := pictured(t, 9)
	picture, err := d.Picture()
	require.NoError(t, err)
	paths := make(map[string]int)
	for _, class := range []string{"dots minor", "dots "} {
		_, rest, _ := strings.Cut(string(picture), `<path class="`+class+`" d="`)
		path, _, _ := strings.Cut(rest, `"`)
		paths[class] = strings.Count(path, "h0")
	}
	if paths["dots minor"] != 3 || paths["dots "] != 6 {
		t.Errorf("cloud: %v", paths)
	}
	if n := strings.Count(string(picture), `class="mark second again"`); n != 2 {
		t.Errorf("%d points measured more than once, want 2", n)
	}
	if thinned := d.Thinned(); thinned != "" {
		t.Errorf("thinned: %s", thinned)
	}
	d = pictured(t, maxCloud)
	d.Observed.Candidates = 100_000
	if thinned := d.Thinned(); thinned != "5000 of 99997 other configurations, evenly over time" {
		t.Errorf("thinned: %s", thinned)
	}
}

// While a model is fitted, the last posterior front stays, with the revision that it shows.
func TestEarly(t *testing.T) {
	before, now := pictured(t, 0), pictured(t, 0)
	if first := now.early(nil); first.Posterior != nil || !strings.Contains(first.Note, "first fit") {
		t.Errorf("first: %+v", first)
	}
	before.Posterior = &dparetov1.Front{Revision: 5}
	if next := now.early(before); next.Posterior != before.Posterior || !strings.Contains(next.Note, "revision 5, the study is at 7") {
		t.Errorf("next: %+v", next)
	}
	if now.Posterior != nil {
		t.Error("early changes what it is called on")
	}
}

// Thousands of points of a front are drawn, a part of them can be focused.
func TestLargeFront(t *testing.T) {
	d := pictured(t, 0)
	for i := range 3000 {
		d.Observed.Points = append(d.Observed.Points, &dparetov1.FrontPoint{Trial: fmt.Sprintf("studies/s/trials/%d", i+10), Values: map[string]*dparetov1.FrontValue{
			"a": {Value: 0.4 + float64(i)/1e4}, "b": {Value: 0.1 - float64(i)/1e5},
		}})
	}
	picture, err := d.Picture()
	require.NoError(t, err)
	if n := strings.Count(string(picture), `<a class="mark`); n != maxFocusable {
		t.Errorf("%d marks, want %d", n, maxFocusable)
	}
	if len(d.Rows()) != maxFocusable || d.Unlisted() != 3003-maxFocusable {
		t.Errorf("%d rows, %d unlisted", len(d.Rows()), d.Unlisted())
	}
}

// With one objective, the hypervolume tells the best value so far.
func TestBestSoFar(t *testing.T) {
	spec := &dparetov1.StudySpec{Metrics: []*dparetov1.MetricSpec{{Id: "a", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MAXIMIZE}}}
	series := newHypervolumes(spec, &dparetov1.ListHypervolumesResponse{
		Points: []*dparetov1.HypervolumePoint{{Runs: 1}, {Runs: 2, Hypervolume: 2.5}}, Reference: map[string]float64{"a": 10},
	})
	if len(series) != 1 || series[0].Y[0] != nil || *series[0].Y[1] != 12.5 {
		t.Errorf("series: %+v", series)
	}
	if rows := series[0].Rows(); rows[0] != [2]string{"1.000", "none"} && rows[0] != [2]string{"1", "none"} {
		t.Errorf("rows: %v", rows)
	}
}

// An ε is rounded up wherever it is written: at the axes of parallel coordinates, in the table of
// the best value so far, and beside a point.
func TestEpsilonUp(t *testing.T) {
	const epsilon = 3.00041
	d := pictured(t, 0)
	m := d.Study.GetSpec().GetMetrics()[0]
	m.Source = &dparetov1.MetricSpec_Computed{Computed: &dparetov1.ComputedSource{Function: &dparetov1.ComputedSource_Privacy{Privacy: new(dparetov1.PrivacySpec)}}}
	d.Observed.GetPoints()[2].Values["a"] = &dparetov1.FrontValue{Value: epsilon, Observed: new(float64(epsilon))}
	if columns := coordinates(d.Settings.Axes, d.Study.GetSpec().GetParameters(), d.Observed.GetPoints()); columns[0].high != "3.001" || columns[1].high != "0.3750" {
		t.Errorf("axes up to %s and %s", columns[0].high, columns[1].high)
	}
	value := &dparetov1.FrontValue{Value: 4, Observed: new(float64(epsilon)), Lower: new(4.0), Upper: new(4.0)}
	if text := frontValueText(m, value); !strings.Contains(text, "measured 3.001") {
		t.Errorf("value %q", text)
	}
	series := newHypervolumes(&dparetov1.StudySpec{Metrics: d.Study.GetSpec().GetMetrics()[:1]}, &dparetov1.ListHypervolumesResponse{
		Points: []*dparetov1.HypervolumePoint{{Runs: 1, Hypervolume: 1 - 0.30001}}, Reference: map[string]float64{"a": 1},
	})
	if rows := series[0].Rows(); rows[0] != [2]string{"1", "0.3001"} {
		t.Errorf("rows %v", rows)
	}
}

// A comparison names a better study only where its interval lies apart from all others.
func TestVerdict(t *testing.T) {
	study := func(id string, goal dparetov1.Goal, value float64, interval ...float64) *comparedStudy {
		v := &dparetov1.FrontValue{Value: value}
		if len(interval) > 0 {
			v.Lower, v.Upper = &interval[0], &interval[1]
		}
		return &comparedStudy{
			ID: id, Study: &dparetov1.Study{Spec: &dparetov1.StudySpec{Metrics: []*dparetov1.MetricSpec{{Id: "m", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: goal}}}},
			Front: &dparetov1.Front{Points: []*dparetov1.FrontPoint{{Trial: "studies/s/trials/1", Values: map[string]*dparetov1.FrontValue{"m": v}}}},
		}
	}
	const least, most = dparetov1.Goal_GOAL_MINIMIZE, dparetov1.Goal_GOAL_MAXIMIZE
	other := study("b", least, 0.2, 0.18, 0.22)
	other.Guarantees = []string{"another δ"}
	for name, tc := range map[string]struct {
		studies []*comparedStudy
		want    string
	}{
		"clear":        {[]*comparedStudy{study("a", least, 0.3, 0.28, 0.32), study("b", least, 0.2, 0.18, 0.22)}, "Best m: b 0.200, a 0.300. b is better: its 90 % interval overlaps no other."},
		"largest":      {[]*comparedStudy{study("a", most, 0.3, 0.28, 0.32), study("b", most, 0.2, 0.18, 0.22)}, "Best m: a 0.300, b 0.200. a is better: its 90 % interval overlaps no other."},
		"overlap":      {[]*comparedStudy{study("a", least, 0.3, 0.2, 0.4), study("b", least, 0.2, 0.1, 0.3)}, "Best m: b 0.200, a 0.300. No study is clearly better: the 90 % intervals overlap."},
		"measured":     {[]*comparedStudy{study("a", least, 0.3), study("b", least, 0.2, 0.1, 0.3)}, "Best m: b 0.200, a 0.300. Measured means do not say how certain this order is."},
		"other ε":      {[]*comparedStudy{study("a", least, 0.3, 0.28, 0.32), other}, ""},
		"alone":        {[]*comparedStudy{study("a", least, 0.3)}, ""},
		"without runs": {[]*comparedStudy{study("a", least, 0.3), {ID: "b", Study: other.Study, Front: new(dparetov1.Front)}}, ""},
	} {
		if got := (&comparison{Studies: tc.studies}).Verdict(); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
