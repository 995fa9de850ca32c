package front_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/servertest"
)

// svtEpsilon is ε of a cutoff of 4, whose (2C)^(1/3) is 2: (1+2)(1+4)/b.
func svtEpsilon(noise float64) float64 { return 15 / noise }

func TestObservedFront(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("svt", servertest.SVTSpec())
	if front := f.Front(study, dparetov1.FrontKind_FRONT_KIND_OBSERVED); len(front.GetPoints()) != 0 || front.GetHypervolume() != 0 {
		t.Errorf("front of an empty study: %v", front)
	}
	a := f.ImportTrial(study, 15, 0.5)    // ε = 1
	b := f.ImportTrial(study, 3, 0.2)     // ε = 5
	f.ImportTrial(study, 2.5, 0.3)        // ε = 6, dominated
	f.ImportTrial(study, 0.5, 0.1)        // ε = 30, outside of the box
	again := f.ImportTrial(study, 3, 0.2) // b once more
	front := f.Front(study, dparetov1.FrontKind_FRONT_KIND_OBSERVED)
	// (10-1)(1-0.5) + (10-5)(0.5-0.2)
	if want := 9*0.5 + 5*0.3; math.Abs(front.GetHypervolume()-want) > 1e-12 {
		t.Errorf("hypervolume %g, want %g", front.GetHypervolume(), want)
	}
	var names []string
	for _, p := range front.GetPoints() {
		names = append(names, p.GetTrial())
	}
	if len(names) != 3 || names[0] != a.GetName() || names[1] != b.GetName() {
		t.Errorf("points %v", names)
	}
	if p := front.GetPoints()[1]; p.GetRuns() != 2 || !slices.Equal(p.GetTrials(), []string{b.GetName(), again.GetName()}) {
		t.Errorf("a configuration of two trials: %v", p)
	}
	p := front.GetPoints()[0]
	if math.Abs(p.GetValues()["epsilon"].GetValue()-svtEpsilon(15)) > 1e-12 || p.GetValues()["error"].GetObserved() != 0.5 ||
		p.GetPrivacy().GetAdjacency() == dparetov1.Adjacency_ADJACENCY_UNSPECIFIED || p.GetValues()["epsilon"].Observed != nil {
		t.Errorf("point %v", p)
	}
	if len(front.GetWarnings()) == 0 {
		t.Error("the observed front does not warn of selection bias")
	}
	_, err := f.Fronts.GetFront(t.Context(), &dparetov1.GetFrontRequest{Name: study})
	servertest.WantCode(t, err, codes.InvalidArgument, "kind")
}

func TestBestAndWorstFront(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("svt", servertest.SVTSpec())
	f.ImportTrial(study, 15, 0.4, 0.5, 0.6) // ε = 1
	for kind, want := range map[dparetov1.FrontKind]float64{
		dparetov1.FrontKind_FRONT_KIND_OBSERVED: 9 * 0.5,
		dparetov1.FrontKind_FRONT_KIND_BEST:     9 * 0.6,
		dparetov1.FrontKind_FRONT_KIND_WORST:    9 * 0.4,
	} {
		if got := f.Front(study, kind).GetHypervolume(); math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: hypervolume %g, want %g", kind, got, want)
		}
	}
}

// The posterior front uses the neighbours of a lucky measurement to doubt it.
func TestPosteriorFront(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("svt", servertest.SVTSpec())
	if front := f.Front(study, dparetov1.FrontKind_FRONT_KIND_POSTERIOR); len(front.GetPoints()) != 0 || len(front.GetWarnings()) == 0 {
		t.Errorf("front of an empty study: %v", front)
	}
	truth := func(epsilon float64) float64 { return 0.9 - 0.06*epsilon }
	for i := range 30 {
		epsilon := 1 + 0.3*float64(i)
		noise := 0.03 * math.Sin(17*float64(i))
		if i == 15 {
			noise = -0.09 // very lucky
		}
		mean := truth(epsilon) + noise
		f.ImportTrial(study, 15/epsilon, mean-0.03, mean+0.03)
	}
	observed, posterior := f.Front(study, dparetov1.FrontKind_FRONT_KIND_OBSERVED), f.Front(study, dparetov1.FrontKind_FRONT_KIND_POSTERIOR)
	if !(posterior.GetHypervolume() < observed.GetHypervolume()) {
		t.Errorf("hypervolume: posterior %g, observed %g", posterior.GetHypervolume(), observed.GetHypervolume())
	}
	for _, p := range posterior.GetPoints() {
		epsilon, value := p.GetValues()["epsilon"].GetValue(), p.GetValues()["error"]
		if math.Abs(value.GetValue()-truth(epsilon)) > 0.05 {
			t.Errorf("ε = %.2f: posterior error %.3f, truth %.3f (observed %.3f)", epsilon, value.GetValue(), truth(epsilon), value.GetObserved())
		}
		if !(value.GetLower() < value.GetValue() && value.GetValue() < value.GetUpper()) {
			t.Errorf("interval %v", value)
		}
	}
}

// Every measurement of a study with checkpoints is a point of the front.
func TestCheckpointsAreOnTheFront(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("sgd", servertest.SGDSpec())
	trial := f.One(study, "w")
	last := trial.GetParameters()["epochs"].GetIntValue()
	if last < 3 {
		t.Fatalf("the first trial has %d epochs; choose another seed", last)
	}
	for step := int64(1); step <= last; step++ {
		require.NoError(t, require.ErrOf(f.Studies.AddMeasurement(t.Context(), &dparetov1.AddMeasurementRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: servertest.Measurement(step, 1/float64(1+step)),
		})))
	}
	f.Tell(trial, 1/float64(1+last))
	all := f.Front(study, dparetov1.FrontKind_FRONT_KIND_OBSERVED)
	if int64(len(all.GetPoints())) != last {
		t.Errorf("%d points, want %d", len(all.GetPoints()), last)
	}
	for i, p := range all.GetPoints() {
		if p.GetStep() != int64(i+1) || p.GetParameters()["epochs"].GetIntValue() != p.GetStep() {
			t.Errorf("point %d: step %d, epochs %d", i, p.GetStep(), p.GetParameters()["epochs"].GetIntValue())
		}
	}
	resp, err := f.Fronts.GetFront(t.Context(), &dparetov1.GetFrontRequest{Name: study, Kind: dparetov1.FrontKind_FRONT_KIND_OBSERVED, FinalOnly: true})
	require.NoError(t, err)
	if n := len(resp.GetFront().GetPoints()); n != 1 {
		t.Errorf("final_only: %d points", n)
	}
	posterior := f.Front(study, dparetov1.FrontKind_FRONT_KIND_POSTERIOR)
	if n := posterior.GetCandidates(); n < 1 || n > last {
		t.Errorf("posterior front of %d candidates", n)
	}
	for _, p := range posterior.GetPoints() {
		if p.GetTrial() != trial.GetName() || p.GetValues()["error"].GetObserved() != 1/float64(1+p.GetStep()) {
			t.Errorf("posterior front: point %v", p)
		}
	}
}

func TestListHypervolumes(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("svt", servertest.SVTSpec())
	for _, noise := range []float64{3, 2.5, 15} {
		f.ImportTrial(study, noise, 0.5)
	}
	resp, err := f.Fronts.ListHypervolumes(t.Context(), &dparetov1.ListHypervolumesRequest{Name: study})
	require.NoError(t, err)
	want := []float64{5 * 0.5, 5 * 0.5, 9 * 0.5}
	if len(resp.GetPoints()) != len(want) {
		t.Fatalf("%d points", len(resp.GetPoints()))
	}
	for i, p := range resp.GetPoints() {
		if math.Abs(p.GetHypervolume()-want[i]) > 1e-12 || p.GetCompletedTrials() != int64(i+1) {
			t.Errorf("point %v, want hypervolume %g", p, want[i])
		}
	}
	if last, front := resp.GetPoints()[2].GetHypervolume(), f.Front(study, dparetov1.FrontKind_FRONT_KIND_OBSERVED); math.Abs(last-front.GetHypervolume()) > 1e-12 {
		t.Errorf("last hypervolume %g, front %g", last, front.GetHypervolume())
	}
}

// What the front says of runs: means over all trials of a configuration, their standard
// error, best and worst; what each point is worth; and the hypervolume of every kind.
func TestFrontOfReplicates(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.SVTSpec()
	spec.Replicates = 3
	study := f.Create("svt", spec)
	f.ImportTrial(study, 15, 0.4, 0.5, 0.6)        // ε = 1
	f.ImportTrial(study, 3, 0.1, 0.2, 0.3)         // ε = 5
	f.ImportTrial(study, 15.0/8, 0.1, 0.11, 0.12)  // ε = 8
	f.ImportTrial(study, 0.5, 0.05, 0.05, 0.05)    // ε = 30, outside of the box
	f.ImportTrial(study, 15, 0.5, 0.55, 0.6, 0.65) // the first again
	front := f.Front(study, dparetov1.FrontKind_FRONT_KIND_OBSERVED)
	near := func(name string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if len(front.GetPoints()) != 4 || front.GetCandidates() != 4 {
		t.Fatalf("%d points of %d", len(front.GetPoints()), front.GetCandidates())
	}
	first := front.GetPoints()[0]
	value := first.GetValues()["error"]
	// Runs 0.4, 0.5, 0.6, 0.5, 0.55, 0.6, 0.65: mean 3.8/7, variance (Σx² - 3.8²/7)/6.
	near("mean", value.GetObserved(), 3.8/7)
	near("standard error", value.GetStandardError(), math.Sqrt((2.105-3.8*3.8/7)/6/7))
	near("best", value.GetBest(), 0.4)
	near("worst", value.GetWorst(), 0.65)
	if first.GetRuns() != 7 || len(first.GetTrials()) != 2 {
		t.Errorf("runs %d of %v", first.GetRuns(), first.GetTrials())
	}
	m := 3.8 / 7
	near("hypervolume", front.GetHypervolume(), 9*(1-m)+5*(m-0.2)+2*(0.2-0.11))
	near("contribution of the first", first.GetContribution(), 4*(1-m))
	near("contribution of the second", front.GetPoints()[1].GetContribution(), 3*(m-0.2))
	near("contribution of the third", front.GetPoints()[2].GetContribution(), 2*(0.2-0.11))
	for i, p := range front.GetPoints() {
		if p.GetBeyondReference() != (i == 3) || p.GetKnee() != (i == 1) || (p.GetContribution() > 0) != (i < 3) {
			t.Errorf("point %d: %v", i, p)
		}
	}
	if e := first.GetValues()["epsilon"]; e.Observed != nil || e.StandardError != nil || e.Best != nil {
		t.Errorf("a computed objective has measurements: %v", e)
	}
	want := []*dparetov1.KindHypervolume{
		{Kind: dparetov1.FrontKind_FRONT_KIND_OBSERVED, Hypervolume: front.GetHypervolume()},
		{Kind: dparetov1.FrontKind_FRONT_KIND_BEST, Hypervolume: 9*0.6 + 5*0.3},
		{Kind: dparetov1.FrontKind_FRONT_KIND_WORST, Hypervolume: 9*0.35 + 5*0.35 + 2*0.18},
	}
	for i, h := range want {
		near(h.GetKind().String(), f.Front(study, h.GetKind()).GetHypervolume(), h.GetHypervolume())
		if got := front.GetHypervolumes(); len(got) != len(want) || got[i].GetKind() != h.GetKind() {
			t.Fatalf("hypervolumes %v", got)
		}
		near(h.GetKind().String(), front.GetHypervolumes()[i].GetHypervolume(), h.GetHypervolume())
	}
	posterior := f.Front(study, dparetov1.FrontKind_FRONT_KIND_POSTERIOR)
	if h := posterior.GetHypervolumes(); len(h) != 4 || h[1].GetKind() != posterior.GetKind() || h[1].GetHypervolume() != posterior.GetHypervolume() {
		t.Errorf("hypervolumes %v", h)
	}
	for _, p := range posterior.GetPoints() {
		if p.GetTrial() == first.GetTrial() {
			if diff := cmp.Diff(value, p.GetValues()["error"], protocmp.Transform(), protocmp.IgnoreFields(value, "value", "lower", "upper")); diff != "" {
				t.Errorf("observed by the posterior front (-want +got):\n%s", diff)
			}
		}
	}
	f.Restart()
	if diff := cmp.Diff(posterior, f.Front(study, dparetov1.FrontKind_FRONT_KIND_POSTERIOR), protocmp.Transform()); diff != "" {
		t.Errorf("after a restart (-before +after):\n%s", diff)
	}
}

// The hypervolume over time is that of the front that GetFront showed then.
func TestHypervolumesOverTime(t *testing.T) {
	kinds := []dparetov1.FrontKind{
		dparetov1.FrontKind_FRONT_KIND_OBSERVED, dparetov1.FrontKind_FRONT_KIND_BEST, dparetov1.FrontKind_FRONT_KIND_WORST,
	}
	f := servertest.Start(t)
	study := f.Create("sgd", servertest.SGDSpec())
	rng := rand.New(rand.NewPCG(3, 0))
	want := make(map[dparetov1.FrontKind][]float64)
	const trials = 40
	var steps int64
	for range trials {
		epochs := 1 + rng.Int64N(3)
		steps += 2 * epochs
		parameters := map[string]*dparetov1.Value{
			"epochs":   {Kind: &dparetov1.Value_IntValue{IntValue: epochs}},
			"lot_size": {Kind: &dparetov1.Value_IntValue{IntValue: 128}},
			"variance": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: 1 + float64(rng.IntN(4))}},
		}
		require.NoError(t, require.ErrOf(f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{
			Parameters: parameters, FinalMeasurement: servertest.Measurement(0, 0.1+0.2*rng.Float64(), 0.1+0.2*rng.Float64()),
		}})))
		for _, kind := range kinds {
			want[kind] = append(want[kind], f.Front(study, kind).GetHypervolume())
		}
	}
	list := func(kind dparetov1.FrontKind) []*dparetov1.HypervolumePoint {
		t.Helper()
		resp, err := f.Fronts.ListHypervolumes(t.Context(), &dparetov1.ListHypervolumesRequest{Name: study, Kind: kind})
		require.NoError(t, err)
		return resp.GetPoints()
	}
	for _, kind := range kinds {
		points := list(kind)
		if len(points) != trials {
			t.Fatalf("%s: %d points", kind, len(points))
		}
		for i, p := range points {
			if math.Abs(p.GetHypervolume()-want[kind][i]) > 1e-12 || p.GetCompletedTrials() != int64(i+1) || p.GetRuns() != int64(2*(i+1)) {
				t.Errorf("%s: %v, want hypervolume %v", kind, p, want[kind][i])
			}
		}
		if got := points[trials-1].GetSteps(); got != steps {
			t.Errorf("%s: %d steps, want %d", kind, got, steps)
		}
	}
	if falls := slices.ContainsFunc(want[kinds[0]][1:], func(h float64) bool { return h < slices.Max(want[kinds[0]]) }); !falls {
		t.Error("no repetition corrected the front: the test shows little")
	}

	posterior := list(dparetov1.FrontKind_FRONT_KIND_POSTERIOR)
	if len(posterior) != 20 || posterior[0].GetCompletedTrials() != 2 || posterior[19].GetCompletedTrials() != trials || posterior[19].GetSteps() != steps {
		t.Fatalf("posterior: %v", posterior)
	}
	if got, want := posterior[19].GetHypervolume(), f.Front(study, dparetov1.FrontKind_FRONT_KIND_POSTERIOR).GetHypervolume(); math.Abs(got-want) > 1e-12 {
		t.Errorf("posterior hypervolume %v at the end, want %v", got, want)
	}
	f.Restart()
	if diff := cmp.Diff(posterior, list(dparetov1.FrontKind_FRONT_KIND_POSTERIOR), protocmp.Transform()); diff != "" {
		t.Errorf("after a restart (-before +after):\n%s", diff)
	}
	_, err := f.Fronts.ListHypervolumes(t.Context(), &dparetov1.ListHypervolumesRequest{Name: study, Kind: 99})
	servertest.WantCode(t, err, codes.InvalidArgument, "kind")
}
