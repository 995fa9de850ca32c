package report

import (
	"slices"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// Recommendations are for ε that the front has a point at or below, and does not end below.
func TestSpanned(t *testing.T) {
	for _, tt := range []struct{ points, want []float64 }{
		{nil, nil},
		{[]float64{0.3, 1.5, 9}, []float64{0.5, 1, 2, 4, 8}},
		{[]float64{0.9, 4.1}, []float64{1, 2, 4}},
		{[]float64{2, 2}, []float64{2}},
		{[]float64{0.1, 0.2}, []float64{0.1, 0.2}},
		{[]float64{3}, []float64{3}},
		{[]float64{0.03748520081450309, 0.041239999}, []float64{0.03749, 0.04124}},
	} {
		front := new(dparetov1.Front)
		for _, e := range tt.points {
			front.Points = append(front.Points, &dparetov1.FrontPoint{Values: map[string]*dparetov1.FrontValue{"epsilon": {Value: e}}})
		}
		if got := spanned(front, &dparetov1.MetricSpec{Id: "epsilon"}); !slices.Equal(got, tt.want) {
			t.Errorf("a front at %v: %v, want %v", tt.points, got, tt.want)
		}
	}
}

// A long front is shown by points that are spread over it, both ends included.
func TestFrontRows(t *testing.T) {
	r := &Report{Study: &dparetov1.Study{Spec: &dparetov1.StudySpec{}}, Front: new(dparetov1.Front)}
	for range 1000 {
		r.Front.Points = append(r.Front.Points, &dparetov1.FrontPoint{Runs: int64(len(r.Front.GetPoints()))})
	}
	rows := r.FrontRows()
	if len(rows) != maxRows || rows[0].Runs != 0 || rows[maxRows-1].Runs != 999 {
		t.Errorf("%d rows from %d to %d", len(rows), rows[0].Runs, rows[len(rows)-1].Runs)
	}
	for i := range rows[1:] {
		if gap := rows[i+1].Runs - rows[i].Runs; gap < 20 || gap > 21 {
			t.Errorf("a gap of %d points after row %d", gap, i)
		}
	}
}

// A recommendation is within the bound that it was asked for, as asked and as printed.
func TestRecommendedRows(t *testing.T) {
	reached := 0.03748520081450309
	r := &Report{Study: &dparetov1.Study{Spec: &dparetov1.StudySpec{Metrics: []*dparetov1.MetricSpec{{
		Id: "epsilon", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE,
		Source: &dparetov1.MetricSpec_Computed{Computed: &dparetov1.ComputedSource{Function: &dparetov1.ComputedSource_Privacy{Privacy: new(dparetov1.PrivacySpec)}}},
	}}}}}
	for asked, want := range map[float64][2]string{reached: {"0.03748520081450309", "0.03748520081450309"}, 0.0375: {"0.0375", "0.03749"}} {
		r.Recommendations = []Recommendation{{asked, &dparetov1.QueryFrontResponse{
			Reachable: true, Trials: []string{"studies/s/trials/1"}, Runs: 1, ComputedMetrics: map[string]*dparetov1.MetricValue{"epsilon": {Value: &reached}},
		}}}
		row := r.RecommendedRows()[0]
		if row.Asked != want[0] || row.Reached[0] != want[1] || row.Remark != "measured in 1 run" {
			t.Errorf("%+v, want %v", row, want)
		}
	}
}
