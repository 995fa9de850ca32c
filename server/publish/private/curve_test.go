package private_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/servertest"
)

// scoredEpochs are the scored steps of runs of curveSpec, by their lengths.
var scoredEpochs = map[int64][]int64{
	4: {1, 2, 3, 4}, 5: {1, 2, 3, 4, 5}, 6: {1, 2, 3, 4, 6}, 7: {1, 2, 3, 4, 7}, 8: {1, 2, 3, 5, 8},
	9: {1, 2, 3, 5, 9}, 10: {1, 2, 3, 6, 10}, 11: {1, 2, 3, 6, 11}, 12: {1, 2, 3, 6, 12}, 13: {1, 2, 4, 7, 13},
	14: {1, 2, 4, 7, 14}, 15: {1, 2, 4, 8, 15}, 16: {1, 2, 4, 8, 16}, 17: {1, 2, 4, 8, 17}, 18: {1, 2, 4, 9, 18},
	19: {1, 2, 4, 9, 19}, 20: {1, 2, 4, 9, 20},
}

func epochsOf(trial *dparetov1.Trial) int64 { return trial.GetParameters()["epochs"].GetIntValue() }

// report reports the error at a step of a run.
func report(f *servertest.Fixture, trial *dparetov1.Trial, step int64, value float64) error {
	f.T.Helper()
	_, err := f.Studies.AddMeasurement(f.T.Context(), &dparetov1.AddMeasurementRequest{
		Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: servertest.Measurement(step, value),
	})
	return err
}

// curve reports the error at every epoch of a run and completes it.
func curve(f *servertest.Fixture, trial *dparetov1.Trial, value func(epoch int64) float64) *dparetov1.Trial {
	f.T.Helper()
	for epoch := int64(1); epoch <= epochsOf(trial); epoch++ {
		require.NoError(f.T, report(f, trial, epoch, value(epoch)))
	}
	return f.Tell(trial, value(epochsOf(trial)))
}

// keptOf returns the values that the store keeps of a trial, by step, and their deviations.
func keptOf(t *testing.T, trial *dparetov1.Trial) map[int64]float64 {
	t.Helper()
	kept := make(map[int64]float64)
	all := trial.GetMeasurements()
	if trial.GetFinalMeasurement() != nil {
		all = append(slices.Clone(all), trial.GetFinalMeasurement())
	}
	for _, m := range all {
		value := m.GetMetrics()["error"].GetValue()
		if before, isKnown := kept[m.GetStep()]; isKnown && before != value {
			t.Errorf("%s has the values %g and %g at step %d", trial.GetName(), before, value, m.GetStep())
		}
		kept[m.GetStep()] = value
	}
	return kept
}

// areaOf returns the hypervolume of points (ε, error) below (10, 1), by adding up strips.
func areaOf(points [][2]float64) float64 {
	points = slices.DeleteFunc(slices.Clone(points), func(p [2]float64) bool { return p[0] >= 10 || p[1] >= 1 })
	slices.SortFunc(points, func(a, b [2]float64) int { return int(math.Copysign(1, a[0]-b[0])) })
	area, best := 0.0, 1.0
	for i, p := range points {
		best = min(best, p[1])
		right := 10.0
		if i+1 < len(points) {
			right = points[i+1][0]
		}
		area += (right - p[0]) * (1 - best)
	}
	return area
}

// The best curve is released whole: a point for every scored state with its own ε and its noisy value, of
// the candidate whose noisy values have the largest hypervolume. A restart in the middle of a run, a failed
// run and runs that end early change nothing of that.
func TestCurveOfRandomStopping(t *testing.T) {
	f := servertest.Start(t)
	const trials = 6
	study := f.WithTrials("curves", servertest.CurveSpec(0), trials)
	sigma := f.Study(study).GetPublication().GetNoiseStandardDeviation()
	for n := range trials {
		trial := f.One(study, "w")
		value := func(epoch int64) float64 { return 0.6 - 0.05*float64(n) - 0.01*float64(epoch) }
		switch n {
		case 1:
			require.NoError(t, require.ErrOf(f.Studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
				Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(),
				Outcome: &dparetov1.CompleteTrialRequest_Infeasible{Infeasible: &dparetov1.Infeasible{Reason: "diverged"}},
			})))
		case 2: // reports nothing on the way, as a worker may that knows no checkpoints
			f.Tell(trial, value(epochsOf(trial)))
		case 3:
			for epoch := int64(1); epoch <= 3; epoch++ {
				require.NoError(t, report(f, trial, epoch, value(epoch)))
			}
			f.Restart()
			for epoch := int64(3); epoch <= epochsOf(trial); epoch++ {
				require.NoError(t, report(f, trial, epoch, value(epoch)))
			}
			f.Tell(trial, value(epochsOf(trial)))
		default:
			curve(f, trial, value)
		}
		if _, err := f.ReleaseBest(study); n < trials-1 && status.Code(err) != codes.FailedPrecondition {
			t.Errorf("before the end: %v", err)
		}
	}
	_, exported := f.Exported(study)
	var best *dparetov1.Trial
	largest := -1.0
	for _, record := range exported {
		trial := record.GetTrial()
		if trial.GetFinalMeasurement() == nil {
			continue
		}
		var points [][2]float64
		for _, m := range append(slices.Clone(trial.GetMeasurements()), trial.GetFinalMeasurement()) {
			points = append(points, [2]float64{m.GetMetrics()["epsilon"].GetValue(), m.GetMetrics()["error"].GetValue()})
		}
		if area := areaOf(points); area > largest {
			best, largest = trial, area
		}
	}
	release, err := f.ReleaseBest(study)
	require.NoError(t, err)
	kept := keptOf(t, best)
	if len(release.GetPoints()) != len(kept) {
		t.Fatalf("%d points, want %d", len(release.GetPoints()), len(kept))
	}
	var before float64
	for i, point := range release.GetPoints() {
		step := point.GetParameters()["epochs"].GetIntValue()
		if want := scoredEpochs[epochsOf(best)]; len(kept) == len(want) && step != want[i] {
			t.Errorf("point %d is at epoch %d, want %d", i, step, want[i])
		}
		if point.GetValues()["error"] != kept[step] || point.GetStandardDeviations()["error"] != sigma || point.GetRun() != 1 {
			t.Errorf("released %v, want the value %g", point, kept[step])
		}
		g, err := dparetov1.NewPrivacyServiceClient(f.Conn).ComputeEpsilon(t.Context(), &dparetov1.ComputeEpsilonRequest{
			Privacy: f.Study(study).GetSpec().GetMetrics()[0].GetComputed().GetPrivacy(), Parameters: point.GetParameters(),
		})
		require.NoError(t, err)
		if want := g.GetGuarantees()[0].GetEpsilon(); point.GetValues()["epsilon"] != want || !(want > before) {
			t.Errorf("ε at epoch %d is %g, want %g", step, point.GetValues()["epsilon"], want)
		}
		before = point.GetValues()["epsilon"]
		beaten := slices.ContainsFunc(release.GetPoints()[:i], func(p *dparetov1.ReleasedPoint) bool { return p.GetValues()["error"] <= kept[step] })
		if point.GetOnFront() == beaten {
			t.Errorf("epoch %d is on the front: %t", step, point.GetOnFront())
		}
	}
	if !strings.Contains(release.GetMechanism(), "hypervolume") || release.GetStudyRevision() != 0 ||
		!proto.Equal(release.GetGuarantee(), f.Study(study).GetPublication().GetTest()) ||
		!proto.Equal(release.GetTrainingGuarantee(), f.Study(study).GetPublication().GetTrain()) {
		t.Errorf("release %v", release)
	}
}

// Noise is drawn once for each scored step: whatever is reported again, by whatever call and with whatever
// value, changes nothing, and steps that are not scored leave no trace.
func TestNoiseOfCurves(t *testing.T) {
	t.Parallel()
	f := servertest.Start(t)
	const trials, score = 30, 0.4321987654321
	study := f.WithTrials("curves", servertest.CurveSpec(0), trials)
	sigma := f.Study(study).GetPublication().GetNoiseStandardDeviation()
	count, sum, squares := 0, 0.0, 0.0
	for range trials {
		trial := f.One(study, "w")
		for _, again := range []float64{0, 0, 0.1, -0.2} {
			for epoch := int64(1); epoch <= epochsOf(trial); epoch++ {
				require.NoError(t, report(f, trial, epoch, score+again))
			}
			if again == 0 {
				count++
			}
		}
		done := f.Tell(trial, score-0.3)
		kept := keptOf(t, done)
		steps := scoredEpochs[epochsOf(trial)]
		if len(kept) != len(steps) || len(done.GetMeasurements()) != len(steps) {
			t.Fatalf("a run of %d epochs keeps %v", epochsOf(trial), kept)
		}
		for _, step := range steps {
			sum += kept[step] - score
			squares += (kept[step] - score) * (kept[step] - score)
		}
		count += len(steps) - 2
	}
	n := float64(count)
	if mean := sum / n; math.Abs(mean) > 5*sigma/math.Sqrt(n) {
		t.Errorf("mean of the noise %g", mean)
	}
	if sd := math.Sqrt(squares / n); math.Abs(sd/sigma-1) > 5/math.Sqrt(2*n) {
		t.Errorf("standard deviation of the noise %g, want %g", sd, sigma)
	}
	if text := servertest.Lines(t, f.Export(study)); strings.Contains(text, "0.43219876") {
		t.Error("the export holds a value without noise")
	}
}

// A run that ends between scored steps ends with its last scored value, and one that has none cannot succeed.
func TestCurveEndsEarly(t *testing.T) {
	f := servertest.Start(t)
	s := servertest.CurveSpec(0)
	s.Parameters[0].GetIntegerDomain().Min = 19
	study := f.WithTrials("curves", s, 3)
	end := func(trial *dparetov1.Trial, step int64) (*dparetov1.Trial, error) {
		req := servertest.Completion(trial, 0.25)
		req.GetMeasurement().Step = step
		resp, err := f.Studies.CompleteTrial(t.Context(), req)
		return resp.GetTrial(), err
	}
	trial := f.One(study, "w")
	_, err := end(trial, 5)
	servertest.WantCode(t, err, codes.FailedPrecondition, "step 5")
	for epoch := int64(1); epoch <= 5; epoch++ {
		require.NoError(t, report(f, trial, epoch, 0.5))
	}
	done, err := end(trial, 5)
	if err != nil || done.GetFinalMeasurement().GetStep() != 4 || len(keptOf(t, done)) != 3 {
		t.Errorf("%v, %v", done, err)
	}
	last := f.One(study, "w")
	for epoch := int64(1); epoch <= 3; epoch++ {
		require.NoError(t, report(f, last, epoch, 0.5))
	}
	resp, err := f.Studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
		Name: last.GetName(), LeaseToken: last.GetLease().GetToken(), Outcome: &dparetov1.CompleteTrialRequest_UseLastMeasurement{UseLastMeasurement: new(dparetov1.UseLastMeasurement)},
	})
	if err != nil || resp.GetTrial().GetFinalMeasurement().GetStep() != 2 {
		t.Errorf("%v, %v", resp, err)
	}
	if err := report(f, f.One(study, "w"), 7, math.NaN()); status.Code(err) != codes.InvalidArgument {
		t.Errorf("NaN at a step that is not scored: %v", err)
	}
}

// A portfolio is scored by the hypervolume of the union of its curves, of which one may be missing, and
// released with all of them.
func TestPortfolioOfRandomStopping(t *testing.T) {
	t.Parallel()
	f := servertest.Start(t)
	s := servertest.CurveSpec(2)
	s.RandomStopping.TestSetSize, s.RandomStopping.TestEpsilon, s.TestLedger = 0, 0, ""
	study := f.WithTrials("portfolios", s, 6)
	// The best single run is in the second portfolio; the union of the third is the best.
	errors := map[int64]func(epoch int64) float64{
		1: func(int64) float64 { return 0.5 },
		2: func(int64) float64 { return 0.5 },
		3: func(int64) float64 { return 0.2 },
		5: func(epoch int64) float64 { return 0.3 - 0.005*float64(min(epoch, 3)) },
		6: func(epoch int64) float64 { return 0.1 + 0.1/float64(epoch) },
	}
	var runs []*dparetov1.Trial
	for n := int64(1); n <= 6; n++ {
		trial := f.One(study, "w")
		if trial.GetNumber() == 4 {
			require.NoError(t, require.ErrOf(f.Studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
				Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(),
				Outcome: &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: "the machine broke"}},
			})))
			continue
		}
		runs = append(runs, curve(f, trial, errors[trial.GetNumber()]))
	}
	release, err := f.ReleaseBest(study)
	require.NoError(t, err)
	want := make(map[string]bool)
	for i, run := range runs[len(runs)-2:] {
		for step, value := range keptOf(t, run) {
			want[fmt.Sprintf("run %d, epoch %d: %g", i+1, step, value)] = true
		}
	}
	got := make(map[string]bool)
	for _, p := range release.GetPoints() {
		got[fmt.Sprintf("run %d, epoch %d: %g", p.GetRun(), p.GetParameters()["epochs"].GetIntValue(), p.GetValues()["error"])] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("released (-want +got):\n%s", diff)
	}
	if !slices.IsSortedFunc(release.GetPoints(), func(a, b *dparetov1.ReleasedPoint) int {
		return int(math.Copysign(1, a.GetValues()["epsilon"]-b.GetValues()["epsilon"]))
	}) {
		t.Error("the points are not in rising order of ε")
	}
}

// The release depends on other candidates through the choice alone: neither their values, nor their
// number, nor the order of the candidates change what is released of the best.
func TestCurveDependsOnTheChoiceAlone(t *testing.T) {
	t.Parallel()
	f := servertest.Start(t)
	study := f.WithTrials("portfolios", servertest.CurveSpec(2), 6)
	for range 6 {
		trial := f.One(study, "w")
		level := 0.6
		if trial.GetNumber() == 3 || trial.GetNumber() == 4 {
			level = 0.1
		}
		curve(f, trial, func(epoch int64) float64 { return level - 0.001*float64(epoch) })
	}
	text := servertest.Lines(t, f.Export(study))
	release, err := f.ReleaseBest(study)
	if err != nil || release.GetPoints()[0].GetValues()["error"] > 0.4 {
		t.Fatalf("%v, %v", release, err)
	}
	released := func(records []*dparetov1.ExportedRecord) []*dparetov1.ReleasedPoint {
		copied := servertest.Start(t)
		copied.OpenLedgers(t.Context(), records[0].GetStudy().GetStudy().GetSpec())
		copied.Place(records)
		again, err := copied.ReleaseBest(study)
		require.NoError(t, err)
		return again.GetPoints()
	}
	// exchange gives a trial the outcome and the parameters of another.
	exchange := func(a, b *dparetov1.Trial) {
		a.Parameters, b.Parameters = b.GetParameters(), a.GetParameters()
		a.ComputedMetrics, b.ComputedMetrics = b.GetComputedMetrics(), a.GetComputedMetrics()
		a.Measurements, b.Measurements = b.GetMeasurements(), a.GetMeasurements()
		a.FinalMeasurement, b.FinalMeasurement = b.GetFinalMeasurement(), a.GetFinalMeasurement()
	}
	for name, change := range map[string]func([]*dparetov1.ExportedRecord) []*dparetov1.ExportedRecord{
		"as it was": func(r []*dparetov1.ExportedRecord) []*dparetov1.ExportedRecord { return r },
		"other values of others": func(r []*dparetov1.ExportedRecord) []*dparetov1.ExportedRecord {
			for _, i := range []int{1, 2, 5, 6} {
				trial := r[i].GetTrial().GetTrial()
				for _, m := range append(trial.GetMeasurements(), trial.GetFinalMeasurement()) {
					m.GetMetrics()["error"].Value = new(0.9 - 0.01*float64(m.GetStep()))
				}
			}
			return r
		},
		"fewer candidates": func(r []*dparetov1.ExportedRecord) []*dparetov1.ExportedRecord {
			study := r[0].GetStudy()
			study.RandomStopping.Trials, study.NextTrialNumber, study.CompletedTrials = 4, 5, 4
			study.Study.TrialCounts.Succeeded -= 2
			return r[:5]
		},
		"another order": func(r []*dparetov1.ExportedRecord) []*dparetov1.ExportedRecord {
			for _, pair := range [][2]int{{3, 5}, {4, 6}} {
				exchange(r[pair[0]].GetTrial().GetTrial(), r[pair[1]].GetTrial().GetTrial())
			}
			return r
		},
	} {
		if diff := cmp.Diff(release.GetPoints(), released(change(servertest.Parse(t, text))), protocmp.Transform()); diff != "" {
			t.Errorf("%s: other points are released (-want +got):\n%s", name, diff)
		}
	}
}

// What is released must be a curve of a mechanism that covers all of its points.
func TestCurveIsValidated(t *testing.T) {
	f := servertest.Start(t)
	value := dparetov1.RandomStoppingRelease_RANDOM_STOPPING_RELEASE_BEST_VALUE
	for name, tc := range map[string]struct {
		change func(*dparetov1.StudySpec)
		fields []string
	}{
		"no checkpoints": {func(s *dparetov1.StudySpec) { s.CheckpointParameter = "" }, []string{"checkpoint_parameter"}},
		"a value": {func(s *dparetov1.StudySpec) { s.RandomStopping.Release = value }, []string{
			"checkpoint_parameter", "random_stopping.curve_points", "random_stopping.portfolio",
		}},
		"unknown":       {func(s *dparetov1.StudySpec) { s.RandomStopping.Release = 7 }, []string{"random_stopping.release"}},
		"many runs":     {func(s *dparetov1.StudySpec) { s.RandomStopping.Portfolio = 101 }, []string{"random_stopping.portfolio"}},
		"negative runs": {func(s *dparetov1.StudySpec) { s.RandomStopping.Portfolio = -1 }, []string{"random_stopping.portfolio"}},
		"many points":   {func(s *dparetov1.StudySpec) { s.RandomStopping.CurvePoints = 1001 }, []string{"random_stopping.curve_points"}},
		"last state only": {func(s *dparetov1.StudySpec) {
			s.Metrics[0].GetComputed().GetPrivacy().Mechanism = &dparetov1.PrivacySpec_Gaussian{Gaussian: &dparetov1.GaussianMechanism{Sensitivity: "1.0", StandardDeviation: "10.0"}}
		}, []string{"random_stopping.release"}},
		"correlated noise": {func(s *dparetov1.StudySpec) {
			s.Metrics[0].GetComputed().GetPrivacy().Mechanism = &dparetov1.PrivacySpec_DpFtrl{DpFtrl: &dparetov1.DpFtrlMechanism{
				Steps: "10 * epochs", Separation: "10", NoiseMultiplier: "10.0", Matrix: dparetov1.NoiseMatrix_NOISE_MATRIX_TREE,
			}}
		}, nil},
		"a part of it the last state only": {func(s *dparetov1.StudySpec) {
			p := s.GetMetrics()[0].GetComputed().GetPrivacy()
			p.Mechanism = &dparetov1.PrivacySpec_Composition{Composition: &dparetov1.CompositionMechanism{Parts: []*dparetov1.CompositionMechanism_Part{
				{Mechanism: &dparetov1.PrivacySpec{Mechanism: p.GetMechanism()}},
				{Mechanism: &dparetov1.PrivacySpec{Mechanism: &dparetov1.PrivacySpec_Gaussian{Gaussian: &dparetov1.GaussianMechanism{Sensitivity: "1.0", StandardDeviation: "10.0"}}}},
			}}}
		}, []string{"random_stopping.release"}},
		"ε is no objective": {func(s *dparetov1.StudySpec) {
			s.Metrics[0].Role, s.Metrics[0].Transform, s.Metrics[0].ReferenceValue = dparetov1.MetricRole_METRIC_ROLE_TRACKED, 0, nil
			s.Metrics[0].Goal = 0
		}, []string{"random_stopping.release"}},
	} {
		s := servertest.CurveSpec(2)
		tc.change(s)
		_, err := f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "bad", Study: &dparetov1.Study{Spec: s}})
		for i := range tc.fields {
			tc.fields[i] = "study.spec." + strings.TrimPrefix(tc.fields[i], "study.spec.")
		}
		if diff := cmp.Diff(tc.fields, servertest.Violated(err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%v", name, diff, err)
		}
	}
}
