package front

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/enginetest"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/suggest/pareto"
)

// frontsOf returns the fronts of the studies of a service.
func frontsOf(s *enginetest.Service) *Fronts {
	return New(Options{Studies: s.Studies, Histories: s.Histories, Background: s.Background})
}

func TestKnee(t *testing.T) {
	reference := []float64{10, 1}
	for _, tt := range []struct {
		name  string
		costs [][]float64
		want  int
	}{
		{"nothing", nil, -1},
		{"two ends", [][]float64{{1, 0.5}, {2, 0.4}}, -1},
		{"a line", [][]float64{{1, 0.5}, {2, 0.375}, {3, 0.25}}, -1},
		{"bulges outwards", [][]float64{{1, 0.5}, {2, 0.49}, {3, 0.1}}, -1},
		{"two candidates", [][]float64{{0, 0.9}, {1, 0.3}, {2, 0.25}, {8, 0.1}}, 1},
		{"ends outside of the box", [][]float64{{0, 2}, {1, 0.5}, {2, 0.2}, {5, 0.1}, {20, 0.05}}, 2},
		{"the same point twice", [][]float64{{0, 0.9}, {1, 0.3}, {1, 0.3}, {8, 0.1}}, 1},
	} {
		if got := knee(tt.costs, reference); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
	if got := knee([][]float64{{0, 2, 1}, {1, 1, 1}, {2, 0, 1}}, []float64{3, 3, 3}); got != -1 {
		t.Errorf("knee %d of three objectives", got)
	}
}

// What a point contributes is what the hypervolume loses without it.
func TestContributions(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for objectives := 2; objectives <= 4; objectives++ {
		reference := slices.Repeat([]float64{1}, objectives)
		var points [][]float64
		for range 30 {
			p := make([]float64, objectives)
			for j := range p {
				p[j] = 1.1 * rng.Float64()
			}
			points = append(points, p)
		}
		var front [][]float64
		for _, i := range pareto.NonDominated(points) {
			front = append(front, points[i])
		}
		front = append(front, front[0]) // twice: no point of the pair is missed
		got := contributions(front, reference)
		for i := range front {
			without := slices.Delete(slices.Clone(front), i, i+1)
			want := pareto.Hypervolume(front, reference) - pareto.Hypervolume(without, reference)
			if math.Abs(got[i]-want) > 1e-12 {
				t.Errorf("%d objectives: %v contributes %v, want %v", objectives, front[i], got[i], want)
			}
		}
		if got[0] != 0 || !slices.ContainsFunc(got, func(c float64) bool { return c > 0 }) {
			t.Errorf("%d objectives: contributions %v", objectives, got)
		}
	}
}

func TestEvenly(t *testing.T) {
	for _, tt := range []struct {
		n, limit int
		want     []int
	}{
		{0, 3, []int{}},
		{2, 3, []int{1, 2}},
		{3, 3, []int{1, 2, 3}},
		{10, 3, []int{3, 6, 10}},
	} {
		if got := evenly(tt.n, tt.limit); !slices.Equal(got, tt.want) {
			t.Errorf("%d of %d: %v, want %v", tt.limit, tt.n, got, tt.want)
		}
	}
}

// A configuration whose measurements violate a constraint is on no front.
func TestMeasuredConstraints(t *testing.T) {
	const content = "seconds"
	reference, most := 1.0, 10.0
	s := enginetest.With(t, enginetest.Random())
	_, err := s.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "s", Study: &dparetov1.Study{Spec: &dparetov1.StudySpec{
		Parameters: []*dparetov1.ParameterSpec{{
			Id: "x", Scale: dparetov1.Scale_SCALE_LINEAR,
			Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Min: 0, Max: 1}},
		}},
		Metrics: []*dparetov1.MetricSpec{
			{
				Id: "error", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE,
				Transform: dparetov1.Transform_TRANSFORM_LOGIT, ReferenceValue: &reference,
				Source: &dparetov1.MetricSpec_Reported{Reported: &dparetov1.ReportedSource{}},
			},
			{
				Id: content, Role: dparetov1.MetricRole_METRIC_ROLE_CONSTRAINT, Transform: dparetov1.Transform_TRANSFORM_IDENTITY,
				Bounds: &dparetov1.MetricBounds{Max: &most},
				Source: &dparetov1.MetricSpec_Reported{Reported: &dparetov1.ReportedSource{}},
			},
		},
		Algorithm: &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_RANDOM},
	}}})
	require.NoError(t, err)
	add := func(x, err, seconds float64) {
		t.Helper()
		_, failure := s.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: "studies/s", Trial: &dparetov1.Trial{
			Parameters: map[string]*dparetov1.Value{"x": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: x}}},
			FinalMeasurement: &dparetov1.Measurement{
				Metrics: map[string]*dparetov1.MetricValue{"error": {Value: &err}, content: {Value: &seconds}},
			},
		}})
		require.NoError(t, failure)
	}
	add(0.1, 0.5, 9)
	add(0.2, 0.1, 9)
	add(0.2, 0.1, 13) // together too slow
	r, err := frontsOf(s).Results(t.Context(), "s", false)
	require.NoError(t, err)
	front := r.measuredFront(dparetov1.FrontKind_FRONT_KIND_OBSERVED).front
	if len(front.GetPoints()) != 1 || front.GetPoints()[0].GetTrial() != resource.TrialName("s", 1) || front.GetHypervolume() != 0.5 {
		t.Errorf("front %v", front)
	}
}

// Without a reference value, fronts and the whole curve are measured within the one that follows from the
// results so far.
func TestInferredReference(t *testing.T) {
	s := enginetest.With(t, enginetest.Random())
	s.Runs(t, func(asked *dparetov1.StudySpec) {
		asked.CheckpointParameter = ""
		asked.Metrics = asked.GetMetrics()[1:]
		asked.Metrics[0].ReferenceValue = nil
		second := proto.CloneOf(asked.GetMetrics()[0])
		second.Id = "second"
		asked.Metrics = append(asked.Metrics, second)
	})
	f := frontsOf(s)
	complete := func(first, second float64) {
		m := enginetest.ErrorAt(0, first)
		m.Metrics["second"] = &dparetov1.MetricValue{Value: &second}
		s.Complete(t, s.AskRun(t), m)
	}
	complete(0.2, 0.8)
	complete(0.4, 0.4)
	complete(0.9, 0.5) // on no front
	for _, step := range []struct {
		reference []float64
		curve     []float64
	}{
		{[]float64{0.42, 0.84}, []float64{0.22 * 0.04, 0.22*0.04 + 0.02*0.4, 0.22*0.04 + 0.02*0.4}},
		{[]float64{0.64, 0.87}, []float64{0.44 * 0.07, 0.44*0.07 + 0.24*0.4, 0.44*0.07 + 0.24*0.4, 0.44*0.07 + 0.24*0.4 + 0.04*0.3}},
	} {
		front, err := f.GetFront(t.Context(), &dparetov1.GetFrontRequest{Name: "studies/runs", Kind: dparetov1.FrontKind_FRONT_KIND_OBSERVED})
		require.NoError(t, err)
		list, err := f.ListHypervolumes(t.Context(), &dparetov1.ListHypervolumesRequest{Name: "studies/runs"})
		require.NoError(t, err)
		for i, id := range []string{"error", "second"} {
			for _, got := range []float64{front.GetFront().GetReference()[id], list.GetReference()[id]} {
				if math.Abs(got-step.reference[i]) > 1e-12 {
					t.Errorf("reference of %s: %g, want %g", id, got, step.reference[i])
				}
			}
		}
		var curve []float64
		for _, p := range list.GetPoints() {
			curve = append(curve, p.GetHypervolume())
		}
		if !cmp.Equal(curve, step.curve, cmpopts.EquateApprox(1e-9, 0)) || curve[len(curve)-1] != front.GetFront().GetHypervolume() {
			t.Errorf("hypervolumes %v, want %v; of the front %g", curve, step.curve, front.GetFront().GetHypervolume())
		}
		complete(0.6, 0.1)
	}
}

// A reference value far beyond the front is worth a warning, once the front says something.
func TestLooseReference(t *testing.T) {
	for reference, want := range map[float64]bool{1: false, 5: true} {
		s := enginetest.With(t, enginetest.Random())
		s.Runs(t, func(asked *dparetov1.StudySpec) {
			asked.CheckpointParameter = ""
			asked.Metrics = asked.GetMetrics()[1:]
			asked.Metrics[0].ReferenceValue = &reference
			second := proto.CloneOf(asked.GetMetrics()[0])
			second.Id, second.ReferenceValue = "second", new(1.0)
			asked.Metrics = append(asked.Metrics, second)
		})
		f := frontsOf(s)
		for i := range 16 {
			m := enginetest.ErrorAt(0, 0.1+0.01*float64(i))
			m.Metrics["second"] = &dparetov1.MetricValue{Value: new(0.5 - 0.03*float64(i))}
			s.Complete(t, s.AskRun(t), m)
			resp, err := f.GetFront(t.Context(), &dparetov1.GetFrontRequest{Name: "studies/runs", Kind: dparetov1.FrontKind_FRONT_KIND_OBSERVED})
			require.NoError(t, err)
			warned := slices.ContainsFunc(resp.GetFront().GetWarnings(), func(w *dparetov1.Warning) bool {
				return w.GetCode() == "LOOSE_REFERENCE" && strings.Contains(w.GetMessage(), "reference_value of error, 5,")
			})
			if warned != (want && i == 15) {
				t.Errorf("reference %g after %d trials: warnings %v", reference, i+1, resp.GetFront().GetWarnings())
			}
		}
	}
}

// A stated reference value that no run reaches after the initial design is worth a warning, which says how far runs
// are from it.
func TestUnreachedReference(t *testing.T) {
	warnings := func(t *testing.T, front *dparetov1.Front) (messages []string) {
		for _, w := range front.GetWarnings() {
			if w.GetCode() == "UNREACHED_REFERENCE" {
				messages = append(messages, w.GetMessage())
			}
		}
		if len(messages) > 0 && front.GetHypervolume() != 0 {
			t.Errorf("hypervolume %g with warnings %q", front.GetHypervolume(), messages)
		}
		return messages
	}
	const tail = "; runs add nothing to the hypervolume until one "
	for name, tt := range map[string]struct {
		first, second *float64 // reference values
		goal          dparetov1.Goal
		want          []string
	}{
		"reached":  {first: new(1.0), second: new(1.0)},
		"inferred": {},
		"one unreached": {
			first: new(0.05), second: new(1.0),
			want: []string{"no run reaches the reference_value of error, 0.05: the best value so far is 0.1" + tail + "reaches it"},
		},
		"both unreached": {
			first: new(0.1), second: new(-3.0),
			want: []string{
				"no run reaches the reference_value of error, 0.1: the best value so far is 0.1" + tail + "reaches it",
				"no run reaches the reference_value of second, -3: the best value so far is 0.05" + tail + "reaches it",
			},
		},
		"maximised": {
			first: new(1.0), second: new(0.9), goal: dparetov1.Goal_GOAL_MAXIMIZE,
			want: []string{"no run reaches the reference_value of second, 0.9: the best value so far is 0.5" + tail + "reaches it"},
		},
		"never together": {
			first: new(0.11), second: new(0.2),
			want: []string{"no run reaches the reference_value of every objective" + tail + "does"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := enginetest.With(t, enginetest.Random())
			s.Runs(t, func(asked *dparetov1.StudySpec) {
				asked.CheckpointParameter = ""
				asked.Metrics = asked.GetMetrics()[1:]
				asked.Metrics[0].ReferenceValue = tt.first
				second := proto.CloneOf(asked.GetMetrics()[0])
				second.Id, second.ReferenceValue = "second", tt.second
				if tt.goal != 0 {
					second.Goal = tt.goal
				}
				asked.Metrics = append(asked.Metrics, second)
			})
			f := frontsOf(s)
			for i := range 16 {
				m := enginetest.ErrorAt(0, 0.1+0.01*float64(i))
				m.Metrics["second"] = &dparetov1.MetricValue{Value: new(0.5 - 0.03*float64(i))}
				s.Complete(t, s.AskRun(t), m)
				front, err := f.GetFront(t.Context(), &dparetov1.GetFrontRequest{Name: "studies/runs", Kind: dparetov1.FrontKind_FRONT_KIND_OBSERVED})
				require.NoError(t, err)
				got := warnings(t, front.GetFront())
				if i == 0 && got != nil || i == 15 && !slices.Equal(got, tt.want) {
					t.Errorf("%d trials: warnings %q, want %q", i+1, got, tt.want)
				}
			}
		})
	}
}

// A warning names the trials whose values lie far from all others, and they are not on the front.
func TestOutlierWarning(t *testing.T) {
	s := enginetest.With(t, enginetest.Random())
	s.Runs(t, func(asked *dparetov1.StudySpec) {
		asked.CheckpointParameter = ""
		asked.Metrics = asked.GetMetrics()[1:]
		asked.Metrics[0].Transform = dparetov1.Transform_TRANSFORM_IDENTITY
		second := proto.CloneOf(asked.GetMetrics()[0])
		second.Id = "second"
		asked.Metrics = append(asked.Metrics, second)
	})
	for i := range 12 {
		m := enginetest.ErrorAt(0, 0.1+0.01*float64(i))
		value := 0.5 - 0.03*float64(i)
		if i == 3 || i == 8 {
			value = 1e30
		}
		m.Metrics["second"] = &dparetov1.MetricValue{Value: &value}
		s.Complete(t, s.AskRun(t), m)
	}
	f := New(Options{Studies: s.Studies, Histories: s.Histories, Background: s.Background, Engine: s.Engine, Pool: s.Pool})
	resp, err := f.GetFront(t.Context(), &dparetov1.GetFrontRequest{Name: "studies/runs", Kind: dparetov1.FrontKind_FRONT_KIND_POSTERIOR})
	require.NoError(t, err)
	if h := resp.GetFront().GetHypervolume(); !(h > 0 && h < 1) {
		t.Errorf("hypervolume %g", h)
	}
	var messages []string
	for _, w := range resp.GetFront().GetWarnings() {
		if w.GetCode() == "OUTLIER" {
			messages = append(messages, w.GetMessage())
		}
	}
	if len(messages) != 1 || !strings.HasPrefix(messages[0], "second is far from all other values in trials 4, 9:") {
		t.Errorf("warnings %q", messages)
	}
	for _, p := range resp.GetFront().GetPoints() {
		if p.GetTrial() == resource.TrialName("runs", 4) || p.GetTrial() == resource.TrialName("runs", 9) {
			t.Errorf("%s is on the front", p.GetTrial())
		}
	}
	answer, err := f.QueryFront(t.Context(), &dparetov1.QueryFrontRequest{Name: "studies/runs", Bounds: map[string]float64{"second": 2}})
	require.NoError(t, err)
	if !slices.ContainsFunc(answer.GetWarnings(), func(w *dparetov1.Warning) bool { return w.GetMessage() == messages[0] }) {
		t.Errorf("warnings of a recommendation: %v", answer.GetWarnings())
	}
}

// Where a computed constraint has no value a configuration is on no front, although 0
// would be within the bounds.
func TestConstraintsWithoutValue(t *testing.T) {
	for x, points := range map[float64]int{0.25: 0, 0.75: 1} {
		s := enginetest.With(t, enginetest.At(x, 64))
		most := 1.0
		s.Runs(t, func(asked *dparetov1.StudySpec) {
			asked.CheckpointParameter = ""
			asked.Metrics = []*dparetov1.MetricSpec{asked.GetMetrics()[1], {
				Id: "c", Role: dparetov1.MetricRole_METRIC_ROLE_CONSTRAINT, Transform: dparetov1.Transform_TRANSFORM_IDENTITY,
				Bounds: &dparetov1.MetricBounds{Max: &most},
				Source: &dparetov1.MetricSpec_Computed{Computed: &dparetov1.ComputedSource{
					Function: &dparetov1.ComputedSource_Expression{Expression: "math.log(x - 0.5)"},
				}},
			}}
		})
		s.Complete(t, s.AskRun(t), enginetest.ErrorAt(0, 0.5))
		f := frontsOf(s)
		for _, kind := range measuredKinds {
			resp, err := f.GetFront(t.Context(), &dparetov1.GetFrontRequest{Name: "studies/runs", Kind: kind})
			require.NoError(t, err)
			if got := len(resp.GetFront().GetPoints()); got != points || (resp.GetFront().GetHypervolume() > 0) != (points > 0) {
				t.Errorf("%v at x = %g: %v", kind, x, resp.GetFront())
			}
		}
	}
}

// A final measurement may be of an earlier step than the last: the measurements of a run are in
// the order of its steps.
func TestFinalMeasurementOnTheWay(t *testing.T) {
	s := enginetest.With(t, enginetest.At(0.25, 64))
	s.Runs(t, enginetest.Checkpoints)
	for _, step := range []int64{10, 1} {
		trial := s.AskRun(t)
		s.Report(t, trial, enginetest.ErrorAt(1, 0.5), enginetest.ErrorAt(60, 0.3))
		s.Complete(t, trial, enginetest.ErrorAt(step, 0.1))
	}
	r, err := frontsOf(s).Results(t.Context(), "runs", false)
	require.NoError(t, err)
	if m := r.Measurements[2]; len(r.Measurements) != 5 || m.Step != 60 || !m.Last || r.Measurements[1].Last {
		t.Errorf("measurements %v", r.Measurements)
	}
}
