package front

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/enginetest"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest/pareto"
)

// insertRuns completes runs of studies/runs with one intermediate measurement each. Some repeat a
// configuration.
func insertRuns(t *testing.T, s *enginetest.Service, rng *rand.Rand, n int) {
	t.Helper()
	require.NoError(t, s.Change(t.Context(), "runs", new(study.Request), func(c *study.Change) error {
		for range n {
			point := []float64{float64(rng.IntN(40)) / 40, float64(2 + rng.IntN(6))}
			if err := enginetest.Insert(c, point, enginetest.ErrorAt(1, 0.5+rng.Float64()/2), enginetest.ErrorAt(0, rng.Float64())); err != nil {
				return err
			}
		}
		return nil
	}))
}

// The configurations beside a front are the rest of what was measured, or an ordered sample of it.
func TestOthers(t *testing.T) {
	s := enginetest.With(t, enginetest.Random())
	s.Runs(t, enginetest.Checkpoints)
	insertRuns(t, s, rand.New(rand.NewPCG(3, 4)), 60)
	f := New(Options{Studies: s.Studies, Histories: s.Histories, Engine: s.Engine, Background: s.Background, Pool: s.Pool})
	r, err := f.Results(t.Context(), "runs", false)
	require.NoError(t, err)
	type place struct {
		trial string
		step  int64
	}
	places := make(map[place]int) // configurations
	for c := range r.Configurations {
		first := &r.Measurements[r.Configurations[c].Measurements[0]]
		places[place{resource.TrialName("runs", first.Trial), first.Step}] = c
	}
	for _, kind := range append(slices.Clone(measuredKinds), dparetov1.FrontKind_FRONT_KIND_POSTERIOR) {
		for _, limit := range []int32{0, 1, 7, maxOthers} {
			req := &dparetov1.GetFrontRequest{Name: "studies/runs", Kind: kind, MaxOthers: limit}
			resp, err := f.GetFront(t.Context(), req)
			require.NoError(t, err)
			again, err := f.GetFront(t.Context(), req)
			require.NoError(t, err)
			if d := gocmp.Diff(resp, again, protocmp.Transform()); d != "" {
				t.Errorf("%v, %d: another answer: %s", kind, limit, d)
			}
			front := resp.GetFront()
			seen := make(map[int]bool)
			for _, p := range front.GetPoints() {
				seen[places[place{p.GetTrial(), p.GetStep()}]] = true
			}
			rest := len(r.Configurations) - len(seen)
			if got := len(front.GetOthers()); got != min(int(limit), rest) || rest < 20 {
				t.Errorf("%v: %d others of %d, at most %d", kind, got, rest, limit)
			}
			previous := -1
			for _, o := range front.GetOthers() {
				c, ok := places[place{o.GetTrial(), o.GetStep()}]
				if !ok || seen[c] || c <= previous {
					t.Errorf("%v: %v is configuration %d after %d; on the front or before: %t", kind, o, c, previous, seen[c])
				}
				previous = c
				checkOther(t, r, c, kind, o)
			}
		}
	}
}

// checkOther compares a point beside a front with the measurements of its configuration.
func checkOther(t *testing.T, r *Results, c int, kind dparetov1.FrontKind, o *dparetov1.MeasuredPoint) {
	t.Helper()
	var errors []float64
	intermediate := true
	for _, k := range r.Configurations[c].Measurements {
		m := &r.Measurements[k]
		errors = append(errors, m.Message().GetMetrics()["error"].GetValue())
		intermediate = intermediate && m.Step == 1 // all runs are longer
	}
	sum := 0.0
	for _, e := range errors {
		sum += e
	}
	want := map[dparetov1.FrontKind]float64{
		dparetov1.FrontKind_FRONT_KIND_OBSERVED:  sum / float64(len(errors)),
		dparetov1.FrontKind_FRONT_KIND_POSTERIOR: sum / float64(len(errors)),
		dparetov1.FrontKind_FRONT_KIND_BEST:      slices.Min(errors),
		dparetov1.FrontKind_FRONT_KIND_WORST:     slices.Max(errors),
	}[kind]
	point := r.Configurations[c].Point
	if got := o.GetValues(); len(got) != 2 || math.Abs(got["error"]-want) > 1e-12 || math.Abs(got["loss"]-point[0]*point[1]) > 1e-12 {
		t.Errorf("%v: values %v, want error %g at %v", kind, got, want, point)
	}
	if o.GetIntermediate() != intermediate {
		t.Errorf("%v: intermediate %t", o, o.GetIntermediate())
	}
}

func TestOthersRange(t *testing.T) {
	s := enginetest.With(t, enginetest.Random())
	s.Runs(t, nil)
	for _, n := range []int32{-1, maxOthers + 1} {
		_, err := frontsOf(s).GetFront(t.Context(), &dparetov1.GetFrontRequest{
			Name: "studies/runs", Kind: dparetov1.FrontKind_FRONT_KIND_OBSERVED, MaxOthers: n,
		})
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("max_others %d: %v", n, err)
		}
	}
}

// The hypervolume after each trial is the one of the front of the trials until then.
func TestMeasuredTrace(t *testing.T) {
	for _, constant := range []bool{false, true} {
		testMeasuredTrace(t, constant)
	}
}

func testMeasuredTrace(t *testing.T, constant bool) {
	t.Helper()
	s := enginetest.With(t, enginetest.Random())
	s.Runs(t, func(asked *dparetov1.StudySpec) {
		enginetest.Checkpoints(asked)
		if constant {
			asked.ConstantPoints = []*dparetov1.ConstantPoint{{Id: "none", Values: make(map[string]float64)}}
			for _, m := range asked.GetMetrics() {
				if m.ReferenceValue != nil {
					asked.ConstantPoints[0].Values[m.GetId()] = 0.3 * m.GetReferenceValue()
				}
			}
		}
	})
	insertRuns(t, s, rand.New(rand.NewPCG(5, 6)), 400)
	f := frontsOf(s)
	r, err := f.Results(t.Context(), "runs", false)
	require.NoError(t, err)
	for _, kind := range measuredKinds {
		_, ends := trialPoints(r)
		fell := false
		trace := r.measuredTrace(kind, ends)
		for k, got := range trace {
			costs := r.problem.ConstantCosts()
			for _, c := range r.Configurations {
				n, _ := slices.BinarySearchFunc(c.Measurements, ends[k], cmp.Compare[int])
				if n > 0 {
					costs = append(costs, r.Cost(r.value(c.Measurements[:n], kind)))
				}
			}
			if want := pareto.Hypervolume(costs, r.problem.ReferenceCosts()); math.Abs(got-want) > 1e-12 {
				t.Fatalf("%v: %g after trial %d, want %g", kind, got, k+1, want)
			}
			fell = fell || k > 0 && got < trace[k-1]
		}
		if kind != dparetov1.FrontKind_FRONT_KIND_BEST && !fell {
			t.Errorf("%v: no configuration on the front was measured again", kind)
		}
	}
}
