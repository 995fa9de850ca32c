package private_test

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/tuning"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/limit"
	"github.com/dpareto/dpareto/server/servertest"
)

// The whole tuning is amplified by the subset and then composed with the final run: the totals of an
// independent program (numpy, the location bound on cells of 2e-6, as in package privacy).
func TestSubsetGuarantee(t *testing.T) {
	t.Parallel()
	f := servertest.Start(t)
	for i, tc := range []struct {
		share      float64
		lot, steps int64
		eps        float64
	}{{0.1, 26, 1250, 0.3311}, {0.1, 64, 510, 0.3599}, {0.05, 32, 510, 0.3257}, {0.2, 128, 510, 0.4300}} {
		p := f.Prepared("s"+strconv.Itoa(i), servertest.SubsetSpec(32561, tc.share, tc.lot, tc.steps)).GetPublication()
		g := p.GetTrain()
		if e := g.GetEpsilon(); math.Abs(e-tc.eps) > 1e-3*tc.eps {
			t.Errorf("%+v: epsilon %.5f", tc, e)
		}
		if e := p.GetFinalRun().GetEpsilon(); math.Abs(e-0.3037) > 1e-4 {
			t.Errorf("%+v: the final run alone %.5f", tc, e)
		}
		if g.GetDelta() != 1e-6 || g.GetAdjacency() != dparetov1.Adjacency_ADJACENCY_REPLACE_ONE ||
			!slices.ContainsFunc(g.GetAssumptions(), func(a *dparetov1.Assumption) bool {
				return strings.Contains(a.GetText(), "which records are in it stays secret")
			}) {
			t.Errorf("%v", g)
		}
	}
}

// With ever fewer records in the subset the final run alone is left. With nearly all of them the total
// is that of a tuning on all records and the final run.
func TestSubsetGuaranteeAtTheEnds(t *testing.T) {
	t.Parallel()
	f := servertest.Start(t)
	few := f.Prepared("few", servertest.SubsetSpec(1<<20, 1e-4, 26, 10)).GetPublication()
	if alone, all := few.GetFinalRun().GetEpsilon(), few.GetTrain().GetEpsilon(); !(all >= alone) || all > alone*1.01 {
		t.Errorf("the final run costs %g, with a tuning on few records %g", alone, all)
	}
	const n = 5000
	nearly := f.Prepared("nearly", servertest.SubsetSpec(n, 1-1.0/n, 26, 1250)).GetPublication()
	gamma, err := tuning.SelectionGamma(1, 32)
	require.NoError(t, err)
	search := tuning.RepeatedSelection{Base: privacy.FixedSizeGaussian{DatasetSize: n, BatchSize: 26, NoiseMultiplier: 4}, Steps: 1250, Eta: 1, Gamma: gamma}
	want, err := privacy.Epsilon(privacy.Tightest{}, privacy.Composition{
		{Mechanism: tuning.SubsetSampled{Base: search, SubsetSize: n, DatasetSize: n}, Count: 1},
		{Mechanism: privacy.FixedSizeGaussian{DatasetSize: n, BatchSize: 256, NoiseMultiplier: 4}, Count: 1270},
	}, 1, 1e-6)
	require.NoError(t, err)
	if e := nearly.GetTrain().GetEpsilon(); math.Abs(e-want.Epsilon) > 2e-3*want.Epsilon {
		t.Errorf("epsilon %g, want about %g", e, want.Epsilon)
	}
}

// Test records pay for the choice and for the value of the final run: two Gaussian values where the
// number of candidates is one.
func TestFinalRunNoise(t *testing.T) {
	f := servertest.Start(t)
	s := servertest.SubsetSpec(32561, 0.1, 26, 1250)
	s.RandomStopping.MeanTrials = 1
	s.RandomStopping.Distribution = &dparetov1.RandomStoppingSpec_Fixed{Fixed: new(dparetov1.FixedNumber)}
	s.RandomStopping.TestSetSize, s.RandomStopping.TestEpsilon = 500, 1.5
	s.Metrics[1].GetReported().SampleSize = 500
	p := f.Prepared("one", servertest.WithLedgers(s)).GetPublication()
	mu := math.Sqrt2 / (500 * p.GetNoiseStandardDeviation())
	if delta := servertest.GaussianDelta(mu, 1.5); !(delta <= 1e-6*(1+1e-6)) || delta < 0.98e-6 {
		t.Errorf("both values cost delta %g at epsilon 1.5", delta)
	}
	if p.GetTest().GetEpsilon() != 1.5 {
		t.Errorf("%v", p.GetTest())
	}
}

// rateOf returns the learning rate of a trial.
func rateOf(trial *dparetov1.Trial) float64 { return trial.GetParameters()["rate"].GetDoubleValue() }

// tune runs all candidates of a study, with the scores 0.5, 0.4, and so on, and returns them.
func tune(f *servertest.Fixture, study string, trials int) (candidates []*dparetov1.Trial) {
	f.T.Helper()
	for i := range trials {
		trial := f.One(study, "w")
		if trial.GetTrainingSubset() == nil {
			f.T.Fatalf("candidate without a subset: %v", trial)
		}
		f.Tell(trial, 0.5-float64(i)/100)
		candidates = append(candidates, trial)
	}
	return candidates
}

// All candidates get one secret subset. When they are done, a run on all records with the best of
// them follows, and only that is released, once it is done; a restart changes nothing.
func TestFinalRun(t *testing.T) {
	f := servertest.Start(t)
	f.Prepared("tuned", servertest.SubsetSpec(32561, 0.1, 26, 1250))
	study := f.WithTrials("tuned", servertest.SubsetSpec(32561, 0.1, 26, 1250), 4)
	unreleased := func(when string) {
		t.Helper()
		if _, err := f.ReleaseBest(study); err == nil {
			t.Errorf("%s: something is released", when)
		}
	}
	first := tune(f, study, 3)
	f.Restart()
	last := f.One(study, "w")
	unreleased("with one candidate left")
	if resp := f.Ask(study, "idle", 1); len(resp.GetTrials()) != 0 || resp.GetRetryAfter() == nil {
		t.Errorf("while the last candidate runs another worker gets %v", resp)
	}
	f.Tell(last, 0.9)
	unreleased("before the final run")
	key := first[0].GetTrainingSubset().GetKey()
	for _, trial := range append(first, last) {
		s := trial.GetTrainingSubset()
		if len(key) != 32 || !bytes.Equal(s.GetKey(), key) || s.GetSize() != 3256 || s.GetOf() != 32561 {
			t.Errorf("trial %d is for %v", trial.GetNumber(), s)
		}
		if lot := trial.GetParameters()["lot"].GetIntValue(); lot != 26 {
			t.Errorf("a candidate has lots of %d", lot)
		}
	}
	if state := f.Study(study).GetState(); state != dparetov1.StudyState_STUDY_STATE_ACTIVE {
		t.Errorf("before the final run the study is %v", state)
	}
	f.Restart()
	final := f.One(study, "other")
	unreleased("during the final run")
	if final.GetTrainingSubset() != nil || rateOf(final) != rateOf(first[2]) ||
		final.GetParameters()["lot"].GetIntValue() != 256 || final.GetParameters()["steps"].GetIntValue() != 1270 {
		t.Errorf("final run %v, the best is %v", final, first[2])
	}
	if e := final.GetComputedMetrics()["epsilon"].GetValue(); math.Abs(e-0.3037) > 1e-4 {
		t.Errorf("the final run is said to cost %g", e)
	}
	if e := last.GetComputedMetrics()["epsilon"].GetValue(); math.Abs(e-0.306) > 1e-3 {
		t.Errorf("a candidate is said to cost %g", e)
	}
	f.Tell(final, 0.25)
	release, err := f.ReleaseBest(study)
	require.NoError(t, err)
	point := release.GetPoints()[0]
	if len(release.GetPoints()) != 1 || !proto.Equal(point.GetParameters()["rate"], final.GetParameters()["rate"]) || point.GetParameters()["lot"].GetIntValue() != 256 ||
		point.GetValues()["error"] != 0.25 || math.Abs(point.GetValues()["epsilon"]-0.3037) > 1e-4 {
		t.Errorf("released %v", release)
	}
	if e := release.GetTrainingGuarantee().GetEpsilon(); math.Abs(e-0.3311) > 1e-3 || len(release.GetWarnings()) > 0 {
		t.Errorf("released with %v", release)
	}
	if resp := f.Ask(study, "w", 1); len(resp.GetTrials()) != 0 || resp.GetStudyState() != dparetov1.StudyState_STUDY_STATE_COMPLETED {
		t.Errorf("after the end: %v", resp)
	}
}

// The ledger is charged for both phases when the study is paid, before a trial is handed out.
func TestLedgerOfFinalRun(t *testing.T) {
	f := servertest.Start(t)
	study := f.Prepared("tuned", servertest.SubsetSpec(32561, 0.1, 26, 1250))
	resp, err := dparetov1.NewReleaseServiceClient(f.Conn).GetLedger(t.Context(), &dparetov1.GetLedgerRequest{Name: study.GetSpec().GetTrainLedger()})
	require.NoError(t, err)
	if got, want := resp.GetLedger().GetSpent().GetEpsilon(), study.GetPublication().GetTrain().GetEpsilon(); got < want || got > want*(1+1e-9) {
		t.Errorf("the ledger has spent %g, the study costs %g", got, want)
	}
}

// A final run is made once. One that fails, is given back or is lost is not made again, and nothing is
// released; and so it is if no candidate succeeded, when there is no final run at all.
func TestFinalRunIsMadeOnce(t *testing.T) {
	t.Parallel()
	f := servertest.Start(t)
	records := f.Export(f.Prepared("tuned", servertest.SubsetSpec(32561, 0.1, 26, 1250)).GetName())
	records[0].GetStudy().GetRandomStopping().Trials = 2
	require.NoError(t, require.ErrOf(f.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: "studies/tuned"})))
	for name, end := range map[string]func(f *servertest.Fixture, final *dparetov1.Trial) error{
		"failed": func(f *servertest.Fixture, final *dparetov1.Trial) error {
			_, err := f.Studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
				Name: final.GetName(), LeaseToken: final.GetLease().GetToken(),
				Outcome: &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: "the machine broke", Retryable: true}},
			})
			return err
		},
		"released": func(f *servertest.Fixture, final *dparetov1.Trial) error {
			_, err := f.Studies.ReleaseTrial(t.Context(), &dparetov1.ReleaseTrialRequest{Name: final.GetName(), LeaseToken: final.GetLease().GetToken()})
			return err
		},
		"lost": func(f *servertest.Fixture, _ *dparetov1.Trial) error {
			f.Clock.Advance(2 * time.Minute)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := servertest.Start(t)
			f.OpenLedgers(t.Context(), records[0].GetStudy().GetStudy().GetSpec())
			f.Place(records)
			tune(f, "studies/tuned", 2)
			require.NoError(t, end(f, f.One("studies/tuned", "w")))
			if resp := f.Ask("studies/tuned", "other", 1); len(resp.GetTrials()) != 0 || resp.GetStudyState() != dparetov1.StudyState_STUDY_STATE_COMPLETED {
				t.Errorf("asked again: %v", resp)
			}
			if release, err := f.ReleaseBest("studies/tuned"); err != nil || len(release.GetPoints()) != 0 {
				t.Errorf("released %v, %v", release, err)
			}
		})
	}
	t.Run("nothing to choose", func(t *testing.T) {
		f := servertest.Start(t)
		f.OpenLedgers(t.Context(), records[0].GetStudy().GetStudy().GetSpec())
		f.Place(records)
		if n := f.RunAll("studies/tuned", func(*dparetov1.Trial) float64 { return math.NaN() }); n != 2 {
			t.Errorf("%d trials", n)
		}
		if release, err := f.ReleaseBest("studies/tuned"); err != nil || len(release.GetPoints()) != 0 {
			t.Errorf("released %v, %v", release, err)
		}
	})
	t.Run("last candidate lost", func(t *testing.T) {
		f := servertest.Start(t)
		f.OpenLedgers(t.Context(), records[0].GetStudy().GetStudy().GetSpec())
		f.Place(records)
		best := tune(f, "studies/tuned", 1)[0]
		f.One("studies/tuned", "w")
		f.Clock.Advance(2 * time.Minute)
		if final := f.One("studies/tuned", "other"); final.GetTrainingSubset() != nil || rateOf(final) != rateOf(best) { // in the call that finds it lost
			t.Errorf("final run %v", final)
		}
	})
}

// What does not fit a tuning on a subset is refused by its field.
func TestSubsetIsValidated(t *testing.T) {
	f := servertest.Start(t)
	integer := func(x int64) *dparetov1.Value {
		return &dparetov1.Value{Kind: &dparetov1.Value_IntValue{IntValue: x}}
	}
	for name, tc := range map[string]struct {
		change func(*dparetov1.StudySpec)
		field  string
	}{
		"share of all":          {func(s *dparetov1.StudySpec) { s.RandomStopping.SubsetShare = 1 }, "subset_share"},
		"no share":              {func(s *dparetov1.StudySpec) { s.RandomStopping.SubsetShare = 0 }, "subset_share"},
		"NaN":                   {func(s *dparetov1.StudySpec) { s.RandomStopping.SubsetShare = math.NaN() }, "subset_share"},
		"no final run":          {func(s *dparetov1.StudySpec) { s.RandomStopping.FinalRun = nil }, "final_run"},
		"no records":            {func(s *dparetov1.StudySpec) { s.RandomStopping.FinalRun.DatasetSize = 0 }, "final_run.dataset_size"},
		"empty subset":          {func(s *dparetov1.StudySpec) { s.RandomStopping.SubsetShare = 1e-6 }, "final_run.dataset_size"},
		"another number":        {func(s *dparetov1.StudySpec) { s.RandomStopping.FinalRun.DatasetSize = 40000 }, "subset_share"},
		"mechanism of all":      {func(s *dparetov1.StudySpec) { dpSGD(s).DatasetSize = "32561" }, "subset_share"},
		"open cost":             {func(s *dparetov1.StudySpec) { delete(s.GetRandomStopping().GetFinalRun().GetValues(), "lot") }, "final_run.values"},
		"no values":             {func(s *dparetov1.StudySpec) { s.RandomStopping.FinalRun.Values = nil }, "final_run.values"},
		"unknown parameter":     {func(s *dparetov1.StudySpec) { s.RandomStopping.FinalRun.Values["depth"] = integer(1) }, `final_run.values["depth"]`},
		"outside of the domain": {func(s *dparetov1.StudySpec) { s.RandomStopping.FinalRun.Values["lot"] = integer(300) }, `final_run.values["lot"]`},
		"add and remove": {func(s *dparetov1.StudySpec) {
			dpSGD(s).Sampling, dpSGD(s).Convention = dparetov1.Sampling_SAMPLING_POISSON, dparetov1.Convention_CONVENTION_ROUNDED
			s.Metrics[0].GetComputed().GetPrivacy().Adjacency = dparetov1.Adjacency_ADJACENCY_ADD_REMOVE
		}, "subset_share"},
		"rates that say no number of records": {func(s *dparetov1.StudySpec) {
			dpSGD(s).Sampling, dpSGD(s).Convention = dparetov1.Sampling_SAMPLING_POISSON, dparetov1.Convention_CONVENTION_ROUNDED
			dpSGD(s).DatasetSize = "1000000"
		}, "subset_share"},
		"shuffled": {func(s *dparetov1.StudySpec) {
			dpSGD(s).Sampling, dpSGD(s).DatasetSize = dparetov1.Sampling_SAMPLING_SHUFFLED, "1000000"
		}, "subset_share"},
		"curve": {func(s *dparetov1.StudySpec) {
			s.RandomStopping.Release = dparetov1.RandomStoppingRelease_RANDOM_STOPPING_RELEASE_CURVE
		}, "release"},
		"portfolio": {func(s *dparetov1.StudySpec) { s.RandomStopping.Portfolio = 2 }, "portfolio"},
	} {
		s := servertest.SubsetSpec(32561, 0.1, 26, 1250)
		tc.change(s)
		_, err := f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "bad", Study: &dparetov1.Study{Spec: s}, ValidateOnly: true})
		if !slices.Contains(servertest.Violated(err), "study.spec.random_stopping."+tc.field) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A limit of trials does not keep the final run from being queued: a paid study ends.
func TestFinalRunAtTheLimit(t *testing.T) {
	f := servertest.StartWith(t, func(o *server.Options) { o.Limits = limit.Limits{TrialsPerStudy: 3} })
	f.Prepared("tuned", servertest.SubsetSpec(32561, 0.1, 26, 1250))
	study := f.WithTrials("tuned", servertest.SubsetSpec(32561, 0.1, 26, 1250), 3)
	tune(f, study, 3)
	f.Tell(f.One(study, "w"), 0.4)
	if release, err := f.ReleaseBest(study); err != nil || len(release.GetPoints()) != 1 {
		t.Errorf("released %v, %v", release, err)
	}
}

// dpSGD returns the mechanism of a spec's privacy metric.
func dpSGD(s *dparetov1.StudySpec) *dparetov1.DpSgdMechanism {
	return s.GetMetrics()[0].GetComputed().GetPrivacy().GetDpSgd()
}
