package server_test

import (
	"math"
	"testing"

	"google.golang.org/grpc/codes"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// importTrial adds a completed trial of the sparse vector study with a cutoff of 4.
func (f *fixture) importTrial(study string, noise float64, errors ...float64) *dparetov1.Trial {
	f.t.Helper()
	resp, err := f.studies.CreateTrial(f.t.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{
		Parameters: map[string]*dparetov1.Value{
			"cutoff":      {Kind: &dparetov1.Value_IntValue{IntValue: 4}},
			"noise_scale": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: noise}},
		},
		FinalMeasurement: measurement(0, errors...),
	}})
	if err != nil {
		f.t.Fatal(err)
	}
	return resp.GetTrial()
}

func (f *fixture) front(study string, kind dparetov1.FrontKind) *dparetov1.Front {
	f.t.Helper()
	resp, err := f.fronts.GetFront(f.t.Context(), &dparetov1.GetFrontRequest{Name: study, Kind: kind})
	if err != nil {
		f.t.Fatal(err)
	}
	return resp.GetFront()
}

// svtEpsilon is ε of a cutoff of 4, whose (2C)^(1/3) is 2: (1+2)(1+4)/b.
func svtEpsilon(noise float64) float64 { return 15 / noise }

func TestObservedFront(t *testing.T) {
	f := start(t)
	study := f.create("svt", svtSpec())
	if front := f.front(study, dparetov1.FrontKind_FRONT_KIND_OBSERVED); len(front.GetPoints()) != 0 || front.GetHypervolume() != 0 {
		t.Errorf("front of an empty study: %v", front)
	}
	a := f.importTrial(study, 15, 0.5)  // ε = 1
	b := f.importTrial(study, 3, 0.2)   // ε = 5
	f.importTrial(study, 2.5, 0.3)      // ε = 6, dominated
	f.importTrial(study, 0.5, 0.1)      // ε = 30, outside of the box
	tie := f.importTrial(study, 3, 0.2) // ties b
	front := f.front(study, dparetov1.FrontKind_FRONT_KIND_OBSERVED)
	// (10-1)(1-0.5) + (10-5)(0.5-0.2)
	if want := 9*0.5 + 5*0.3; math.Abs(front.GetHypervolume()-want) > 1e-12 {
		t.Errorf("hypervolume %g, want %g", front.GetHypervolume(), want)
	}
	var names []string
	for _, p := range front.GetPoints() {
		names = append(names, p.GetTrial())
	}
	if len(names) != 4 || names[0] != a.GetName() || names[1] != b.GetName() || names[2] != tie.GetName() {
		t.Errorf("points %v", names)
	}
	p := front.GetPoints()[0]
	if math.Abs(p.GetValues()["epsilon"].GetValue()-svtEpsilon(15)) > 1e-12 || p.GetValues()["error"].GetObserved() != 0.5 ||
		p.GetPrivacy().GetAdjacency() == dparetov1.Adjacency_ADJACENCY_UNSPECIFIED || p.GetValues()["epsilon"].Observed != nil {
		t.Errorf("point %v", p)
	}
	if len(front.GetWarnings()) == 0 {
		t.Error("the observed front does not warn of selection bias")
	}
	_, err := f.fronts.GetFront(t.Context(), &dparetov1.GetFrontRequest{Name: study})
	wantCode(t, err, codes.InvalidArgument, "kind")
}

func TestBestAndWorstFront(t *testing.T) {
	f := start(t)
	study := f.create("svt", svtSpec())
	f.importTrial(study, 15, 0.4, 0.5, 0.6) // ε = 1
	for kind, want := range map[dparetov1.FrontKind]float64{
		dparetov1.FrontKind_FRONT_KIND_OBSERVED: 9 * 0.5,
		dparetov1.FrontKind_FRONT_KIND_BEST:     9 * 0.6,
		dparetov1.FrontKind_FRONT_KIND_WORST:    9 * 0.4,
	} {
		if got := f.front(study, kind).GetHypervolume(); math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: hypervolume %g, want %g", kind, got, want)
		}
	}
}

// The posterior front uses the neighbours of a lucky measurement to doubt it.
func TestPosteriorFront(t *testing.T) {
	f := start(t)
	study := f.create("svt", svtSpec())
	if front := f.front(study, dparetov1.FrontKind_FRONT_KIND_POSTERIOR); len(front.GetPoints()) != 0 || len(front.GetWarnings()) == 0 {
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
		f.importTrial(study, 15/epsilon, mean-0.03, mean+0.03)
	}
	observed, posterior := f.front(study, dparetov1.FrontKind_FRONT_KIND_OBSERVED), f.front(study, dparetov1.FrontKind_FRONT_KIND_POSTERIOR)
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
	f := start(t)
	study := f.create("sgd", sgdSpec())
	trial := f.one(study, "w")
	last := trial.GetParameters()["epochs"].GetIntValue()
	if last < 3 {
		t.Fatalf("the first trial has %d epochs; choose another seed", last)
	}
	for step := int64(1); step <= last; step++ {
		if _, err := f.studies.AddMeasurement(t.Context(), &dparetov1.AddMeasurementRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: measurement(step, 1/float64(1+step)),
		}); err != nil {
			t.Fatal(err)
		}
	}
	f.tell(trial, 1/float64(1+last))
	all := f.front(study, dparetov1.FrontKind_FRONT_KIND_OBSERVED)
	if int64(len(all.GetPoints())) != last {
		t.Errorf("%d points, want %d", len(all.GetPoints()), last)
	}
	for i, p := range all.GetPoints() {
		if p.GetStep() != int64(i+1) || p.GetParameters()["epochs"].GetIntValue() != p.GetStep() {
			t.Errorf("point %d: step %d, epochs %d", i, p.GetStep(), p.GetParameters()["epochs"].GetIntValue())
		}
	}
	resp, err := f.fronts.GetFront(t.Context(), &dparetov1.GetFrontRequest{Name: study, Kind: dparetov1.FrontKind_FRONT_KIND_OBSERVED, FinalOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(resp.GetFront().GetPoints()); n != 1 {
		t.Errorf("final_only: %d points", n)
	}
	if p := f.front(study, dparetov1.FrontKind_FRONT_KIND_POSTERIOR); p.GetCandidates() != min(last, 6) {
		t.Errorf("posterior front of %d candidates, want the 6 that the model is fitted to", p.GetCandidates())
	}
}

func TestListHypervolumes(t *testing.T) {
	f := start(t)
	study := f.create("svt", svtSpec())
	for _, noise := range []float64{3, 2.5, 15} {
		f.importTrial(study, noise, 0.5)
	}
	resp, err := f.fronts.ListHypervolumes(t.Context(), &dparetov1.ListHypervolumesRequest{Name: study})
	if err != nil {
		t.Fatal(err)
	}
	want := []float64{5 * 0.5, 5 * 0.5, 9 * 0.5}
	if len(resp.GetPoints()) != len(want) {
		t.Fatalf("%d points", len(resp.GetPoints()))
	}
	for i, p := range resp.GetPoints() {
		if math.Abs(p.GetHypervolume()-want[i]) > 1e-12 || p.GetCompletedTrials() != int64(i+1) {
			t.Errorf("point %v, want hypervolume %g", p, want[i])
		}
	}
	if last, front := resp.GetPoints()[2].GetHypervolume(), f.front(study, dparetov1.FrontKind_FRONT_KIND_OBSERVED); math.Abs(last-front.GetHypervolume()) > 1e-12 {
		t.Errorf("last hypervolume %g, front %g", last, front.GetHypervolume())
	}
}
