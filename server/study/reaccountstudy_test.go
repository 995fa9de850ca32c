package study_test

import (
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/servertest"
)

// all returns the study and its trials as they are now.
func all(f *servertest.Fixture, study string) (*dparetov1.Study, []*dparetov1.Trial) {
	f.T.Helper()
	resp, err := f.Studies.GetStudy(f.T.Context(), &dparetov1.GetStudyRequest{Name: study})
	require.NoError(f.T, err)
	trials, err := f.Studies.ListTrials(f.T.Context(), &dparetov1.ListTrialsRequest{Parent: study, PageSize: 1000})
	require.NoError(f.T, err)
	return resp.GetStudy(), trials.GetTrials()
}

// Another accountant and δ give every trial, at every step, the value that ComputeEpsilon
// gives; the way back restores everything.
func TestReaccountStudy(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.SGDSpec()
	spec.DisableEarlyStopping = true
	spec.Budget = &dparetov1.Budget{MaxStagnantTrials: 50}
	study := f.Create("sgd", spec)
	for i := range 6 {
		trial := f.One(study, "w")
		last := trial.GetParameters()["epochs"].GetIntValue()
		m := servertest.Measurement(1, 0.5)
		// A worker's own value by the published accountant.
		own := trial.GetComputedMetrics()["epsilon"].GetValue()
		require.NoError(t, require.ErrOf(f.Studies.AddMeasurement(t.Context(), &dparetov1.AddMeasurementRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: m,
		})))
		final := servertest.Measurement(last, 0.5-0.02*float64(i))
		final.Metrics["epsilon"] = &dparetov1.MetricValue{Value: &own}
		if last == 1 || i == 5 {
			continue // stays active
		}
		require.NoError(t, require.ErrOf(f.Studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(),
			Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: final},
		})))
	}
	before, trials := all(f, study)
	frontBefore := f.Front(study, dparetov1.FrontKind_FRONT_KIND_POSTERIOR)
	tight := proto.CloneOf(spec.GetMetrics()[0].GetComputed().GetPrivacy())
	tight.Accountant, tight.Conversion, tight.Delta = dparetov1.Accountant_ACCOUNTANT_EXACT, dparetov1.Conversion_CONVERSION_UNSPECIFIED, 1e-6

	dry := f.Reaccount(study, tight, true)
	same, sameTrials := all(f, study)
	if diff := cmp.Diff(before, same, protocmp.Transform()); diff != "" {
		t.Errorf("validate_only changed the study:\n%s", diff)
	}
	if diff := cmp.Diff(trials, sameTrials, protocmp.Transform()); diff != "" {
		t.Errorf("validate_only changed trials:\n%s", diff)
	}
	done := f.Reaccount(study, tight, false)
	if diff := cmp.Diff(dry, done, protocmp.Transform(), protocmp.IgnoreFields(done, "revision")); diff != "" {
		t.Errorf("(-dry +done)\n%s", diff)
	}
	after, changed := all(f, study)
	if after.GetEtag() == before.GetEtag() || after.GetRevision() != done.GetRevision() || done.GetRevision() <= before.GetRevision() ||
		!proto.Equal(after.GetSpec().GetMetrics()[0].GetComputed().GetPrivacy(), tight) || int64(len(trials)) != done.GetTrials() {
		t.Errorf("study %v after %v", after, done)
	}
	client := dparetov1.NewPrivacyServiceClient(f.Conn)
	for i, trial := range changed {
		if trial.GetRevision() <= before.GetRevision() || trial.GetEtag() == trials[i].GetEtag() || trial.GetState() != trials[i].GetState() {
			t.Errorf("trial %v was %v", trial, trials[i])
		}
		last := trial.GetParameters()["epochs"].GetIntValue()
		lengths := []int64{1, last}
		want, err := client.ComputeEpsilon(t.Context(), &dparetov1.ComputeEpsilonRequest{Privacy: tight, Parameters: trial.GetParameters(), Lengths: lengths})
		require.NoError(t, err)
		check := func(value *dparetov1.MetricValue, k int) {
			t.Helper()
			// The RPC adds the lower bound, which trials do not carry.
			lower := protocmp.IgnoreFields(value.GetPrivacy(), "epsilon_lower")
			if diff := cmp.Diff(want.GetGuarantees()[k], value.GetPrivacy(), protocmp.Transform(), lower); diff != "" || value.GetValue() != want.GetGuarantees()[k].GetEpsilon() {
				t.Errorf("trial %d, %d epochs (-want +got):\n%s", i+1, lengths[k], diff)
			}
		}
		check(trial.GetComputedMetrics()["epsilon"], 1)
		check(trial.GetMeasurements()[0].GetMetrics()["epsilon"], 0)
		differs := slices.ContainsFunc(trial.GetWarnings(), func(w *dparetov1.Warning) bool { return w.GetCode() == "REPORT_DIFFERS" })
		if final := trial.GetFinalMeasurement(); final != nil {
			check(final.GetMetrics()["epsilon"], 1)
			if final.GetMetrics()["epsilon"].GetReported() != trials[i].GetComputedMetrics()["epsilon"].GetValue() || !differs {
				t.Errorf("the worker's own value: %v", trial)
			}
		} else if differs {
			t.Errorf("a warning without a report: %v", trial)
		}
	}
	if s := done.GetBefore(); s.GetAccountants()["ACCOUNTANT_RDP"] != done.GetTrials() || s.GetLargestEpsilon() < s.GetMedianEpsilon() {
		t.Errorf("before: %v", s)
	}
	if s := done.GetAfter(); s.GetAccountants()["ACCOUNTANT_EXACT"] != done.GetTrials() || !(s.GetLargestEpsilon() < done.GetBefore().GetLargestEpsilon()) ||
		s.GetSmallestEpsilon() > s.GetMedianEpsilon() {
		t.Errorf("after: %v", s)
	}
	// Fronts, suggestions and the ledger follow, now and after a restart.
	front := f.Front(study, dparetov1.FrontKind_FRONT_KIND_POSTERIOR)
	if front.GetHypervolume() <= frontBefore.GetHypervolume() {
		t.Errorf("hypervolume %g, before %g", front.GetHypervolume(), frontBefore.GetHypervolume())
	}
	if next := f.One(study, "new"); next.GetComputedMetrics()["epsilon"].GetPrivacy().GetDelta() != 1e-6 {
		t.Errorf("a new trial: %v", next)
	}
	ledger := f.Ledger(study, 0)
	if ledger.GetComposed().GetDelta() != 1e-6 {
		t.Errorf("ledger %v", ledger)
	}
	f.Restart()
	if diff := cmp.Diff(ledger, f.Ledger(study, 0), protocmp.Transform()); diff != "" {
		t.Errorf("the ledger after a restart:\n%s", diff)
	}

	f.Reaccount(study, done.GetBefore().GetPrivacy(), false)
	restored, back := all(f, study)
	if diff := cmp.Diff(before.GetSpec(), restored.GetSpec(), protocmp.Transform()); diff != "" {
		t.Errorf("restored spec:\n%s", diff)
	}
	if diff := cmp.Diff(trials, back[:len(trials)], protocmp.Transform(), protocmp.IgnoreFields(trials[0], "revision", "etag")); diff != "" {
		t.Errorf("restored trials:\n%s", diff)
	}
}

func TestReaccountRefuses(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("sgd", servertest.SGDSpec())
	good := servertest.SGDSpec().GetMetrics()[0].GetComputed().GetPrivacy()
	bad := proto.CloneOf(good)
	bad.GetDpSgd().BatchSize = "batch"
	certain := proto.CloneOf(good)
	certain.Delta = 2
	client := dparetov1.NewPrivacyServiceClient(f.Conn)
	for field, req := range map[string]*dparetov1.ReaccountStudyRequest{
		"name":                      {Name: "sgd", Metric: "epsilon", Privacy: good},
		"metric":                    {Name: study, Privacy: good},
		"metric: \"error\"":         {Name: study, Metric: "error", Privacy: good},
		"privacy: must be set":      {Name: study, Metric: "epsilon"},
		"privacy.dp_sgd.batch_size": {Name: study, Metric: "epsilon", Privacy: bad},
		"privacy.delta":             {Name: study, Metric: "epsilon", Privacy: certain},
	} {
		_, err := client.ReaccountStudy(t.Context(), req)
		servertest.WantCode(t, err, codes.InvalidArgument, field)
	}
	_, err := client.ReaccountStudy(t.Context(), &dparetov1.ReaccountStudyRequest{Name: study, Metric: "epsilon", Privacy: good, Etag: "other"})
	servertest.WantCode(t, err, codes.FailedPrecondition, "etag")
	_, err = client.ReaccountStudy(t.Context(), &dparetov1.ReaccountStudyRequest{Name: "studies/none", Metric: "epsilon", Privacy: good})
	servertest.WantCode(t, err, codes.NotFound, "studies/none")
}

// The runs of a study stay what they were: what was drawn in lots of a fixed size is not
// Poisson sampled afterwards, and noise does not become more by another adjacency.
func TestReaccountKeepsTheTrainer(t *testing.T) {
	f := servertest.Start(t)
	client := dparetov1.NewPrivacyServiceClient(f.Conn)
	refused := func(study string, privacy *dparetov1.PrivacySpec, field string) {
		t.Helper()
		_, err := client.ReaccountStudy(t.Context(), &dparetov1.ReaccountStudyRequest{Name: study, Metric: "epsilon", Privacy: privacy})
		servertest.WantCode(t, err, codes.InvalidArgument, field)
	}
	spec := servertest.SGDSpec()
	privacy := spec.GetMetrics()[0].GetComputed().GetPrivacy()
	study := f.Create("fixed-size", spec)
	f.One(study, "w")
	poisson := proto.CloneOf(privacy)
	poisson.GetDpSgd().Sampling, poisson.GetDpSgd().Convention = dparetov1.Sampling_SAMPLING_POISSON, dparetov1.Convention_CONVENTION_OPACUS
	refused(study, poisson, "privacy.dp_sgd.sampling")
	f.Reaccount(study, privacy, false)

	privacy.GetDpSgd().Sampling, privacy.GetDpSgd().Convention = dparetov1.Sampling_SAMPLING_POISSON, dparetov1.Convention_CONVENTION_ROUNDED
	privacy.Adjacency = dparetov1.Adjacency_ADJACENCY_ADD_REMOVE
	study = f.Create("poisson", spec)
	trial := f.One(study, "w")
	added := trial.GetComputedMetrics()["epsilon"].GetValue()
	replaced := proto.CloneOf(privacy)
	replaced.Adjacency = dparetov1.Adjacency_ADJACENCY_REPLACE_ONE
	refused(study, replaced, "privacy.dp_sgd.noise_multiplier")
	replaced.GetDpSgd().NoiseMultiplier = "double(math.sqrt(variance)) / 2.0"
	f.Reaccount(study, replaced, false)
	// To replace a record is to remove one and to add one.
	if _, trials := all(f, study); trials[0].GetComputedMetrics()["epsilon"].GetValue() <= added {
		t.Errorf("ε = %g where a record is replaced, %g where it is removed", trials[0].GetComputedMetrics()["epsilon"].GetValue(), added)
	}
	refused(study, func() *dparetov1.PrivacySpec {
		s := proto.CloneOf(replaced)
		s.Adjacency = dparetov1.Adjacency_ADJACENCY_ADD_REMOVE
		return s
	}(), "privacy.dp_sgd.noise_multiplier")
	f.Reaccount(study, privacy, false)
	if _, trials := all(f, study); trials[0].GetComputedMetrics()["epsilon"].GetValue() != added {
		t.Errorf("not restored: %v", trials[0])
	}
}

// No reader ever sees a study of which only some trials are re-accounted, while workers go
// on.
func TestReaccountingIsAtomic(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("gaussian", servertest.GaussianSpec())
	for range 50 {
		require.NoError(t, require.ErrOf(f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{
			Parent: study, Trial: &dparetov1.Trial{Parameters: servertest.Sigma(10), FinalMeasurement: servertest.Measurement(0, 0.5)},
		})))
	}
	deltas := []float64{1e-5, 1e-6}
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				resp, err := f.Studies.ListTrials(t.Context(), &dparetov1.ListTrialsRequest{Parent: study, PageSize: 1000})
				if err != nil {
					t.Error(err)
					return
				}
				var seen []float64
				for _, trial := range resp.GetTrials() {
					if d := trial.GetComputedMetrics()["epsilon"].GetPrivacy().GetDelta(); !slices.Contains(seen, d) {
						seen = append(seen, d)
					}
				}
				if len(seen) > 1 {
					t.Errorf("trials with δ of %v", seen)
				}
			}
		})
	}
	readers.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			resp, err := f.Studies.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: study, WorkerId: "w"})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := f.Studies.CompleteTrial(t.Context(), servertest.Completion(resp.GetTrials()[0], 0.5)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for i := range 10 {
		spec := servertest.GaussianSpec().GetMetrics()[0].GetComputed().GetPrivacy()
		spec.Delta = deltas[(i+1)%2]
		f.Reaccount(study, spec, false)
	}
	close(done)
	readers.Wait()
	_, trials := all(f, study)
	for _, trial := range trials {
		g := trial.GetComputedMetrics()["epsilon"].GetPrivacy()
		if g.GetDelta() != 1e-5 || math.Abs(servertest.GaussianDelta(1/trial.GetParameters()["sigma"].GetDoubleValue(), g.GetEpsilon())-1e-5) > 1e-11 {
			t.Errorf("%v", trial)
		}
	}
}
