package ledger_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/servertest"
)

// These tests try to change, after a look at results, whatever the guarantee of a release takes as
// fixed in advance: the table of docs/explanation/fixed-in-advance.md.

// finish runs a study to its end.
func finish(f *servertest.Fixture, study string) {
	f.T.Helper()
	for {
		resp := f.Ask(study, "w", 1)
		if len(resp.GetTrials()) == 0 {
			return
		}
		f.Tell(resp.GetTrials()[0], 0.25)
	}
}

// Somebody looks at the exact error of the first trial, .3000 or .3001 as one test record decides,
// and adds two trials to the design if it is the larger one. The number of configurations that a
// release of ε = 0.01 names would tell which of the two datasets it was.
func TestPeekAndExtend(t *testing.T) {
	f := servertest.Start(t)
	ledger := f.NewLedger("l", 1)
	release := func(id string, first float64) (*dparetov1.Release, error) {
		f.Clock.Advance(time.Second)
		spec := servertest.FixedSpec(2, ledger)
		spec.Algorithm.Name = dparetov1.Algorithm_ALGORITHM_QUASI_RANDOM
		study := f.Create(id, spec)
		f.Tell(f.One(study, "w"), first)
		if f.Trial(study + "/trials/1").GetFinalMeasurement().GetMetrics()["error"].GetValue() > 0.30005 {
			require.NoError(t, f.Respec(study, func(s *dparetov1.StudySpec) { s.Budget.MaxTrials = 4 }))
		}
		finish(f, study)
		resp, err := f.Releases().ReleaseBest(t.Context(), &dparetov1.ReleaseBestRequest{Name: study, Metric: "error", Epsilon: 0.01})
		return resp.GetRelease(), err
	}
	if got, err := release("smaller", 0.3000); err != nil || got.GetMechanism() != "permute-and-flip among 2 configurations" || len(got.GetWarnings()) > 0 {
		t.Errorf("as it was planned: %v, %v", got, err)
	}
	const why = "studies/larger: budget.max_trials changed after the first trial, at 20"
	got, err := release("larger", 0.3001)
	if err == nil {
		t.Fatalf("%q with ε = 0.01: the other dataset gives 2 configurations", got.GetMechanism())
	}
	servertest.WantCode(t, err, codes.FailedPrecondition, why)

	// The study remembers, over a restart and a move, and its runs count as adaptive.
	f.Restart()
	records := f.Export("studies/larger")
	require.NoError(t, require.ErrOf(f.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: "studies/larger"})))
	require.NoError(t, require.ErrOf(f.ImportRecords(records)))
	_, err = f.Releases().ReleaseFront(t.Context(), &dparetov1.ReleaseFrontRequest{Name: "studies/larger", Epsilon: 0.01, Delta: 1e-7})
	servertest.WantCode(t, err, codes.FailedPrecondition, why)
	if !f.Ledger("studies/larger", 0).GetAdaptive() || f.Ledger("studies/smaller", 0).GetAdaptive() {
		t.Error("the runs of the extended study, and of no other, were chosen adaptively")
	}
	if n := len(f.Charges(ledger)); n != 1 {
		t.Errorf("%d charges", n)
	}
	// Another study in its place could follow from the look as well.
	later, err := release("later", 0.3000)
	if err != nil || len(later.GetWarnings()) != 1 || later.GetWarnings()[0].GetCode() != "EARLIER_RESULTS" || !strings.Contains(later.GetWarnings()[0].GetMessage(), "2 other studies of ledgers/l, such as studies/larger") {
		t.Errorf("a later study: %v, %v", later, err)
	}
	// The ledger remembers studies that were deleted, over a restart, and knows one that comes back.
	deleteStudies := func(names ...string) {
		t.Helper()
		for _, name := range names {
			require.NoError(t, require.ErrOf(f.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: name})))
		}
	}
	says := func(id, want string) {
		t.Helper()
		got, err := release(id, 0.3000)
		if err != nil || len(got.GetWarnings()) != 1 || got.GetWarnings()[0].GetCode() != "EARLIER_RESULTS" || !strings.Contains(got.GetWarnings()[0].GetMessage(), want) {
			t.Errorf("%s: %v, %v", id, got.GetWarnings(), err)
		}
	}
	deleteStudies("studies/larger", "studies/smaller", "studies/later")
	f.Restart()
	says("afterwards", "3 other studies of ledgers/l, such as studies/smaller (deleted, of the same design), had trials")
	require.NoError(t, require.ErrOf(f.ImportRecords(records)))
	says("again", "4 other studies of ledgers/l, such as studies/afterwards, had trials")
	records[0].GetStudy().GetStudy().DesignChange = new(dparetov1.DesignChange)
	if _, err := servertest.Start(t).ImportRecords(records); !slices.Contains(servertest.Violated(err), "record.study.study.design_change") {
		t.Errorf("an import of an empty change: %v", err)
	}
}

// lookTest is a change after a look at the first result of a fixed design of four trials.
type lookTest struct {
	spec   func(*dparetov1.StudySpec)                      // of the study; nil: as it is
	change func(f *servertest.Fixture, study string) error // what is done after the look
	refuse string                                          // why nothing is released; "" if the release goes on
	says   string                                          // in an assumption or warning of the release, where nothing can be checked
	adjust func(*dparetov1.ReleaseBestRequest)             // of the release that is asked for
	count  int                                             // of candidates; 0: four, of the same configurations as without the change
}

// looks are all ways to change a fixed design that the API has.
func looks() map[string]lookTest {
	spec := func(change func(*dparetov1.StudySpec)) func(*servertest.Fixture, string) error {
		return func(f *servertest.Fixture, study string) error { return f.Respec(study, change) }
	}
	all := map[string]lookTest{
		"more trials":  {change: spec(func(s *dparetov1.StudySpec) { s.Budget.MaxTrials = 6 }), refuse: "budget.max_trials changed after the first trial"},
		"fewer trials": {change: spec(func(s *dparetov1.StudySpec) { s.Budget.MaxTrials = 1 }), refuse: "budget.max_trials changed after the first trial"},
		"more trials, undone": {change: func(f *servertest.Fixture, study string) error {
			if err := f.Respec(study, func(s *dparetov1.StudySpec) { s.Budget.MaxTrials = 6 }); err != nil {
				return err
			}
			return f.Respec(study, func(s *dparetov1.StudySpec) { s.Budget.MaxTrials = 4 })
		}, refuse: "budget.max_trials changed after the first trial"},
		"stop when stagnant":            {change: spec(func(s *dparetov1.StudySpec) { s.Budget.MaxStagnantTrials = 2 }), refuse: "budget.max_stagnant_trials changed after the first trial"},
		"wider range":                   {change: spec(func(s *dparetov1.StudySpec) { s.Parameters[1].GetDoubleDomain().Max = 1000 }), refuse: "parameters[1].double_domain.max changed after the first trial"},
		"wider range, in whole numbers": {change: spec(func(s *dparetov1.StudySpec) { s.Parameters[0].GetIntegerDomain().Max = 31 }), refuse: "parameters[0].integer_domain.max changed after the first trial"},
		"more levels of a grid": {
			spec:   func(s *dparetov1.StudySpec) { s.Algorithm.Name = dparetov1.Algorithm_ALGORITHM_GRID },
			change: spec(func(s *dparetov1.StudySpec) { s.Parameters[0].GetIntegerDomain().Max = 99 }), refuse: "parameters[0].integer_domain.max changed after the first trial",
		},
		"another accounting of a constraint": {
			spec: constrained,
			change: func(f *servertest.Fixture, study string) error {
				privacy := proto.CloneOf(f.Study(study).GetSpec().GetMetrics()[2].GetComputed().GetPrivacy())
				privacy.Delta, privacy.Accountant = 1e-6, dparetov1.Accountant_ACCOUNTANT_UNSPECIFIED
				_, err := dparetov1.NewPrivacyServiceClient(f.Conn).ReaccountStudy(f.T.Context(), &dparetov1.ReaccountStudyRequest{Name: study, Metric: "bounded", Privacy: privacy})
				return err
			},
			refuse: "metrics[2].computed.privacy.accountant, metrics[2].computed.privacy.delta changed after the first trial",
		},
		"one's own configuration": {change: func(f *servertest.Fixture, study string) error { return bring(f, study, nil) }, refuse: "a user chose or conditioned the configuration"},
		"one's own result": {change: func(f *servertest.Fixture, study string) error {
			return bring(f, study, servertest.Measurement(0, 0.1))
		}, refuse: "a user chose or conditioned the configuration"},
		"a condition": {change: func(f *servertest.Fixture, study string) error {
			resp := f.AskFor(study, "w", &dparetov1.SuggestionCondition{FixedParameters: map[string]*dparetov1.Value{"cutoff": {Kind: &dparetov1.Value_IntValue{IntValue: 3}}}})
			f.Tell(resp.GetTrials()[0], 0.25)
			return nil
		}, refuse: "a user chose or conditioned the configuration"},
		"a repetition": {change: func(f *servertest.Fixture, study string) error {
			_, err := f.Studies.CreateTrial(f.T.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{ReplicateOf: study + "/trials/1"}})
			return err
		}, refuse: "a user chose or conditioned the configuration"},
		"a deleted trial": {change: func(f *servertest.Fixture, study string) error {
			_, err := f.Studies.DeleteTrial(f.T.Context(), &dparetov1.DeleteTrialRequest{Name: study + "/trials/1"})
			return err
		}, refuse: "trial 1 was deleted"},
		"a stopped run": {change: func(f *servertest.Fixture, study string) error {
			trial := f.One(study, "w")
			if _, err := f.Studies.StopTrial(f.T.Context(), &dparetov1.StopTrialRequest{Name: trial.GetName()}); err != nil {
				return err
			}
			f.Tell(trial, 0.25)
			return nil
		}, refuse: "trial 2 was stopped on request"},
		"a run given back": {change: func(f *servertest.Fixture, study string) error {
			trial := f.One(study, "w")
			_, err := f.Studies.ReleaseTrial(f.T.Context(), &dparetov1.ReleaseTrialRequest{Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken()})
			return err
		}, refuse: "trial 2 was handed out more than once"},
		"a run tried again": {change: func(f *servertest.Fixture, study string) error {
			return fail(f, f.One(study, "w"), true)
		}, refuse: "trial 2 was handed out more than once"},
		"a run that fell silent": {change: func(f *servertest.Fixture, study string) error {
			f.One(study, "w")
			f.Clock.Advance(time.Hour)
			return nil
		}, refuse: "trial 2 was handed out more than once"},
		"a release before the end": {change: func(f *servertest.Fixture, study string) error {
			_, err := f.Studies.PauseStudy(f.T.Context(), &dparetov1.PauseStudyRequest{Name: study})
			return err
		}, refuse: "is not complete"},

		// Harmless: the configurations, and their number, stay what they were.
		"a pause": {change: func(f *servertest.Fixture, study string) error {
			if _, err := f.Studies.PauseStudy(f.T.Context(), &dparetov1.PauseStudyRequest{Name: study}); err != nil {
				return err
			}
			_, err := f.Studies.ResumeStudy(f.T.Context(), &dparetov1.ResumeStudyRequest{Name: study})
			return err
		}},
		"words": {change: func(f *servertest.Fixture, study string) error {
			s := f.Study(study)
			s.DisplayName, s.Description, s.Labels = "a", "b", map[string]string{"c": "d"}
			if _, err := f.Update(s, "display_name", "description", "labels"); err != nil {
				return err
			}
			_, err := f.Studies.UpdateTrial(f.T.Context(), &dparetov1.UpdateTrialRequest{
				Trial: &dparetov1.Trial{Name: study + "/trials/1", Note: "the best"}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"note"}},
			})
			return err
		}},
		"a unit":         {change: spec(func(s *dparetov1.StudySpec) { s.Metrics[1].Unit = "ratio" })},
		"a deadline":     {change: spec(func(s *dparetov1.StudySpec) { s.Budget.MaxDuration = durationpb.New(time.Hour) })},
		"parallel runs":  {change: spec(func(s *dparetov1.StudySpec) { s.Budget.MaxParallelTrials = 1 })},
		"leases":         {change: spec(func(s *dparetov1.StudySpec) { s.Lease = &dparetov1.LeasePolicy{MaxAttempts: 1} })},
		"early stopping": {change: spec(func(s *dparetov1.StudySpec) { s.DisableEarlyStopping = true })},
		"another accounting of an objective": {change: func(f *servertest.Fixture, study string) error {
			privacy := proto.CloneOf(f.Study(study).GetSpec().GetMetrics()[0].GetComputed().GetPrivacy())
			privacy.Delta, privacy.Accountant = 1e-6, dparetov1.Accountant_ACCOUNTANT_UNSPECIFIED
			f.Reaccount(study, privacy, false)
			return nil
		}},

		// What the server cannot check is an assumption of the release.
		"a failure": {
			change: func(f *servertest.Fixture, study string) error { return fail(f, f.One(study, "w"), false) },
			says:   "no trial failed, or was found infeasible, because of a test record", count: 3,
		},
		"a bound": {
			change: func(*servertest.Fixture, string) error { return nil },
			adjust: func(r *dparetov1.ReleaseBestRequest) { r.AtMost = map[string]float64{"epsilon": 1} },
			says:   "with which metric, bounds, ledger, epsilon and delta, was decided without looking at results", count: 1,
		},
		"a ledger": {
			spec: func(s *dparetov1.StudySpec) { s.TestLedger = "" },
			change: func(f *servertest.Fixture, study string) error {
				return f.Respec(study, func(s *dparetov1.StudySpec) { s.TestLedger = strings.Replace(study, "studies/s", "ledgers/l", 1) })
			},
			says: "with which metric, bounds, ledger, epsilon and delta, was decided without looking at results",
		},
		"another study": {
			change: func(f *servertest.Fixture, study string) error {
				records := f.Export(study)
				if _, err := f.Studies.DeleteStudy(f.T.Context(), &dparetov1.DeleteStudyRequest{Name: study}); err != nil {
					return err
				}
				f.Clock.Advance(time.Second)
				f.Create(strings.TrimPrefix(study, "studies/"), records[0].GetStudy().GetStudy().GetSpec())
				return nil
			},
			says: "its design follows from no other study, import or earlier copy of them",
		},
	}
	return all
}

// constrained adds a constraint on an ε to a spec.
func constrained(s *dparetov1.StudySpec) {
	bounded := proto.CloneOf(s.GetMetrics()[0])
	bounded.Id, bounded.Role, bounded.Goal, bounded.ReferenceValue = "bounded", dparetov1.MetricRole_METRIC_ROLE_CONSTRAINT, 0, nil
	bounded.Bounds = &dparetov1.MetricBounds{Max: new(1e6)}
	s.Metrics = append(s.Metrics, bounded)
}

// bring creates a trial with a configuration of one's own.
func bring(f *servertest.Fixture, study string, result *dparetov1.Measurement) error {
	_, err := f.Studies.CreateTrial(f.T.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{
		Parameters: f.Trial(study + "/trials/1").GetParameters(), FinalMeasurement: result,
	}})
	return err
}

// fail completes a trial as failed.
func fail(f *servertest.Fixture, trial *dparetov1.Trial, retryable bool) error {
	_, err := f.Studies.CompleteTrial(f.T.Context(), &dparetov1.CompleteTrialRequest{
		Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(),
		Outcome: &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: "disk", Retryable: retryable}},
	})
	return err
}

func TestFixedDesignIsFixedInAdvance(t *testing.T) {
	f := servertest.Start(t)
	looked := func(number int, change func(*dparetov1.StudySpec)) string {
		spec := servertest.FixedSpec(4, f.NewLedger(fmt.Sprintf("l-%d", number), 1))
		spec.Algorithm.Name = dparetov1.Algorithm_ALGORITHM_QUASI_RANDOM
		if change != nil {
			change(spec)
		}
		study := f.Create(fmt.Sprintf("s-%d", number), spec)
		f.Tell(f.One(study, "w"), 0.3)
		return study
	}
	planned := looked(0, nil)
	finish(f, planned)
	n := 0
	for name, test := range looks() {
		n++
		study := looked(n, test.spec)
		if err := test.change(f, study); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		finish(f, study)
		best := &dparetov1.ReleaseBestRequest{Name: study, Metric: "error", Epsilon: 0.01}
		if test.adjust != nil {
			test.adjust(best)
		}
		released, err := f.Releases().ReleaseBest(t.Context(), best)
		_, frontErr := f.Releases().ReleaseFront(t.Context(), &dparetov1.ReleaseFrontRequest{Name: study, Epsilon: 0.01, Delta: 1e-9})
		if test.refuse != "" {
			servertest.WantCode(t, err, codes.FailedPrecondition, test.refuse)
			servertest.WantCode(t, frontErr, codes.FailedPrecondition, test.refuse)
			continue
		}
		if err != nil || frontErr != nil {
			t.Errorf("%s: %v, %v", name, err, frontErr)
			continue
		}
		r := released.GetRelease()
		if said := fmt.Sprint(r.GetAssumptions()); !strings.Contains(said, test.says) {
			t.Errorf("%s: the release assumes\n%s", name, said)
		}
		if test.count == 0 {
			test.count = 4
			for i, trial := range f.AllTrials(study) {
				if diff := cmp.Diff(f.AllTrials(planned)[i].GetParameters(), trial.GetParameters(), protocmp.Transform()); diff != "" {
					t.Errorf("%s: trial %d (-planned +run):\n%s", name, i+1, diff)
				}
			}
		}
		if want := fmt.Sprintf("permute-and-flip among %d configurations", test.count); r.GetMechanism() != want {
			t.Errorf("%s: %s, want %s", name, r.GetMechanism(), want)
		}
	}
}

// What is part of a design and cannot change at all, before or after a look.
func TestSpecsOfFixedDesigns(t *testing.T) {
	f := servertest.Start(t)
	f.NewLedger("m", 1)
	study := f.Create("s", servertest.FixedSpec(4, f.NewLedger("l", 1)))
	for field, change := range map[string]func(*dparetov1.StudySpec){
		"algorithm.name":                   func(s *dparetov1.StudySpec) { s.Algorithm.Name = dparetov1.Algorithm_ALGORITHM_DEFAULT },
		"seed":                             func(s *dparetov1.StudySpec) { s.Seed = proto.Uint64(7) },
		"parameter_constraints":            func(s *dparetov1.StudySpec) { s.ParameterConstraints = []string{"cutoff < 9"} },
		"parameters[0].integer_domain.max": func(s *dparetov1.StudySpec) { s.Parameters[0].GetIntegerDomain().Max = 9 },
		"parameters[0].grid_levels":        func(s *dparetov1.StudySpec) { s.Parameters[0].GridLevels = 3 },
		"parameters[1].scale":              func(s *dparetov1.StudySpec) { s.Parameters[1].Scale = dparetov1.Scale_SCALE_LINEAR },
		"checkpoint_parameter":             func(s *dparetov1.StudySpec) { s.CheckpointParameter = "cutoff" },
		"replicates":                       func(s *dparetov1.StudySpec) { s.Replicates = 2 },
		"prior_studies":                    func(s *dparetov1.StudySpec) { s.PriorStudies = []string{"studies/other"} },
		"test_ledger":                      func(s *dparetov1.StudySpec) { s.TestLedger = "ledgers/m" },
		"metrics[1].goal":                  func(s *dparetov1.StudySpec) { s.Metrics[1].Goal = dparetov1.Goal_GOAL_MAXIMIZE },
		"metrics[1].reported.sample_size":  func(s *dparetov1.StudySpec) { s.Metrics[1].GetReported().SampleSize = 999 },
		"metrics[1].reference_value":       func(s *dparetov1.StudySpec) { s.Metrics[1].ReferenceValue = new(0.4) },
		"metrics":                          constrained,
	} {
		servertest.WantCode(t, f.Respec(study, change), codes.InvalidArgument, "study.spec."+field)
	}
}

// private_mode and random_stopping: what their theorems fix in advance is refused as a change, or
// paid for again.
func TestPublicationsAreFixedInAdvance(t *testing.T) {
	f := servertest.StartSeeded(t, 1)
	ledgers := map[string]*dparetov1.Ledger{
		"test":   {Records: 10_000, Epsilon: 1, Delta: 1e-4, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE},
		"train":  {Records: 30_000, Epsilon: 20, Delta: 1e-4, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE},
		"search": {Records: 30_000, Epsilon: 3, Delta: 1e-4, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE},
	}
	for id, l := range ledgers {
		require.NoError(t, require.ErrOf(f.Releases().CreateLedger(t.Context(), &dparetov1.CreateLedgerRequest{LedgerId: id, Ledger: l})))
	}
	noisy := servertest.PrivateSpec(4, 20)
	noisy.TestLedger, noisy.TrainLedger = "ledgers/test", "ledgers/train"
	secret := servertest.Single(servertest.SearchSpec(10, 1), "0.25")
	secret.TrainLedger = "ledgers/search"
	private, search := f.Create("private", noisy), f.Create("search", secret)
	f.Tell(f.One(private, "w"), 0.3)
	f.Tell(f.One(search, "w"), 0.3)
	guaranteed := f.Study(private).GetPublication()

	for field, change := range map[string]func(*dparetov1.StudySpec){
		"private_mode.test_set_size":   func(s *dparetov1.StudySpec) { s.PrivateMode.TestSetSize = 9999 },
		"private_mode.test_epsilon":    func(s *dparetov1.StudySpec) { s.PrivateMode.TestEpsilon = 2 },
		"private_mode.train_epsilon":   func(s *dparetov1.StudySpec) { s.PrivateMode.TrainEpsilon = 30 },
		"private_mode.delta":           func(s *dparetov1.StudySpec) { s.PrivateMode.Delta = 1e-5 },
		"private_mode.max_values":      func(s *dparetov1.StudySpec) { s.PrivateMode.MaxValues = 5 },
		"private_mode.training_shards": func(s *dparetov1.StudySpec) { s.PrivateMode.TrainingShards = 2 },
		"budget.max_trials":            func(s *dparetov1.StudySpec) { s.Budget.MaxTrials = 5 },
		"replicates":                   func(s *dparetov1.StudySpec) { s.Replicates = 2 },
		"test_ledger":                  func(s *dparetov1.StudySpec) { s.TestLedger = "ledgers/search" },
		"train_ledger":                 func(s *dparetov1.StudySpec) { s.TrainLedger = "ledgers/search" },
	} {
		servertest.WantCode(t, f.Respec(private, change), codes.InvalidArgument, "study.spec."+field)
	}
	for field, change := range map[string]func(*dparetov1.StudySpec){
		"random_stopping.mean_trials": func(s *dparetov1.StudySpec) { s.RandomStopping.MeanTrials = 20 },
		"random_stopping.eta": func(s *dparetov1.StudySpec) {
			s.RandomStopping.Distribution = &dparetov1.RandomStoppingSpec_Eta{Eta: 0}
		},
		"parameters[0].double_domain.max": func(s *dparetov1.StudySpec) { s.Parameters[0].GetDoubleDomain().Max = 1000 },
		"budget.max_trials":               func(s *dparetov1.StudySpec) { s.Budget = &dparetov1.Budget{MaxTrials: 1} },
		"train_ledger":                    func(s *dparetov1.StudySpec) { s.TrainLedger = "ledgers/train" },
	} {
		servertest.WantCode(t, f.Respec(search, change), codes.InvalidArgument, "study.spec."+field)
	}
	privacy := dparetov1.NewPrivacyServiceClient(f.Conn)
	for name, call := range map[string]func() error{
		"studies/private has private_mode": func() error {
			_, err := privacy.ReaccountStudy(t.Context(), &dparetov1.ReaccountStudyRequest{Name: private, Metric: "epsilon"})
			return err
		},
		"it takes results only from trials that it handed out": func() error {
			return bring(f, private, servertest.Measurement(0, 0.1))
		},
		"shows only its best trial": func() error {
			_, err := f.Studies.DeleteTrial(t.Context(), &dparetov1.DeleteTrialRequest{Name: search + "/trials/1"})
			return err
		},
		"studies/search shows only its best trial": func() error {
			_, err := f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: search, Trial: &dparetov1.Trial{Parameters: servertest.Sigma(3)}})
			return err
		},
		"with random_stopping the guarantee depends on everything else staying secret": func() error {
			_, err := privacy.ReaccountStudy(t.Context(), &dparetov1.ReaccountStudyRequest{
				Name: search, Metric: "epsilon", Privacy: f.Study(search).GetSpec().GetMetrics()[0].GetComputed().GetPrivacy(),
			})
			return err
		},
		"studies/search shows only its best trial (see ReleaseBest)": func() error {
			_, err := f.Studies.StopTrial(t.Context(), &dparetov1.StopTrialRequest{Name: search + "/trials/1"})
			return err
		},
		"is not completed": func() error { _, err := f.ReleaseBest(search); return err },
	} {
		servertest.WantCode(t, call(), codes.FailedPrecondition, name)
	}

	// Harmless with private_mode: a filter charges what a configuration costs, whatever decided it.
	require.NoError(t, f.Respec(private, func(s *dparetov1.StudySpec) { s.Parameters[0].GetDoubleDomain().Max = 64; s.Budget.MaxTrials = 3 }))
	finish(f, private)
	now := f.Study(private)
	if p := now.GetPublication(); now.GetDesignChange() != nil || p.GetTest().GetEpsilon() != guaranteed.GetTest().GetEpsilon() || !proto.Equal(p.GetTrain(), guaranteed.GetTrain()) ||
		!(p.GetSpent().GetTrain().GetEpsilon() <= 20 && p.GetSpent().GetTest().GetEpsilon() <= 1) {
		t.Errorf("after a wider domain: %v", now)
	}

	// Deleting a study gives nothing back: creating it again costs again.
	for study, spec := range map[string]*dparetov1.StudySpec{private: noisy, search: secret} {
		id := strings.TrimPrefix(study, "studies/")
		require.NoError(t, require.ErrOf(f.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: study})))
		resp, err := f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: id, Study: &dparetov1.Study{Spec: spec}})
		if spec.GetRandomStopping() != nil { // priced after its creation
			require.NoError(t, err)
			if reason := f.Settled(study).GetStateReason(); !strings.Contains(reason, "the budget of ledgers/search does not pay for the study") {
				t.Errorf("created: %v, %v", resp, err)
			}
		} else {
			servertest.WantCode(t, err, codes.ResourceExhausted, "exceeds the remaining budget of ledgers/")
		}
		spec.TestLedger, spec.TrainLedger = "", ""
		_, err = f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: id + "-2", Study: &dparetov1.Study{Spec: spec}})
		servertest.WantCode(t, err, codes.InvalidArgument, "study.spec.train_ledger: must be set with")
	}
	for id := range ledgers {
		if n := len(f.Charges("ledgers/" + id)); n != 1 {
			t.Errorf("ledgers/%s has %d charges", id, n)
		}
	}
}

// A filter composes charges that were chosen by earlier releases, but its budget, its δ and the
// number and adjacency of its records are fixed.
func TestLedgersAreFixedInAdvance(t *testing.T) {
	f := servertest.Start(t)
	ledger := f.NewLedger("l", 1)
	spend := func(utilities ...float64) (*dparetov1.SelectPrivatelyResponse, error) {
		return f.Releases().SelectPrivately(t.Context(), &dparetov1.SelectPrivatelyRequest{
			Utilities: utilities, Sensitivity: 1.0 / servertest.TestRecords, Epsilon: 0.9, Ledger: ledger, RequestId: "one",
		})
	}
	first, err := spend(0, 1)
	require.NoError(t, err)
	for field, change := range map[string]func(*dparetov1.Ledger){
		"epsilon":   func(l *dparetov1.Ledger) { l.Epsilon = 2 },
		"delta":     func(l *dparetov1.Ledger) { l.Delta = 1e-4 },
		"records":   func(l *dparetov1.Ledger) { l.Records = 10 * servertest.TestRecords },
		"adjacency": func(l *dparetov1.Ledger) { l.Adjacency = dparetov1.Adjacency_ADJACENCY_ADD_REMOVE },
	} {
		l := &dparetov1.Ledger{Records: servertest.TestRecords, Epsilon: 1, Delta: 1e-5, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE}
		change(l)
		_, err := f.Releases().CreateLedger(t.Context(), &dparetov1.CreateLedgerRequest{LedgerId: "l", Ledger: l})
		servertest.WantCode(t, err, codes.AlreadyExists, "fields that differ: "+field)
	}
	// The same request with other utilities is answered by what was drawn for the first ones.
	again, err := spend(1, 0)
	if err != nil || !proto.Equal(first, again) {
		t.Errorf("asked again: %v, %v", again, err)
	}
	for _, needs := range []string{
		"the candidates were fixed before anyone saw the data",
		"was decided without looking at the utilities",
	} {
		if said := fmt.Sprint(first.GetRelease().GetAssumptions()); !strings.Contains(said, needs) {
			t.Errorf("the release assumes\n%s", said)
		}
	}
	if l := f.GetLedger(ledger); l.GetCharges() != 1 || math.Abs(l.GetSpent().GetEpsilon()-0.9) > 1e-9 {
		t.Errorf("the ledger is %v", l)
	}
	for method := range servertest.Methods() {
		if strings.Contains(method, "Ledger") && (strings.Contains(method, "Delete") || strings.Contains(method, "Update")) {
			t.Errorf("%s changes a ledger", method)
		}
	}
}

// Somebody creates a study, looks at the results of another, and changes the design of the first one
// before it has a trial: each study is what it was from its first trial on.
func TestPeekElsewhere(t *testing.T) {
	f := servertest.Start(t)
	ledger := f.NewLedger("l", 1)
	design := servertest.FixedSpec(2, ledger)
	design.Algorithm.Name = dparetov1.Algorithm_ALGORITHM_QUASI_RANDOM
	create := func(id string) string {
		f.Clock.Advance(time.Second)
		return f.Create(id, design)
	}
	release := func(study, want string) {
		t.Helper()
		resp, err := f.Releases().ReleaseBest(t.Context(), &dparetov1.ReleaseBestRequest{Name: study, Metric: "error", Epsilon: 0.01})
		require.NoError(t, err)
		if w := resp.GetRelease().GetWarnings(); len(w) != 1 || w[0].GetCode() != "EARLIER_RESULTS" || !strings.Contains(w[0].GetMessage(), want) {
			t.Errorf("%s: warnings %v, want one of %s", study, w, want)
		}
		if said := resp.GetRelease().GetAssumptions()[0].GetText(); !strings.Contains(said, "when the study got its first trial") {
			t.Errorf("%s assumes that %s", study, said)
		}
	}
	waiting, open := create("waiting"), create("open")
	f.Tell(f.One(open, "w"), 0.3001)
	f.Clock.Advance(time.Second)
	require.NoError(t, f.Respec(waiting, func(s *dparetov1.StudySpec) { s.Budget.MaxTrials = 4 }))
	finish(f, waiting)
	release(waiting, "1 other studies of ledgers/l, such as studies/open")

	// A study and a trial that were deleted were seen, too.
	require.NoError(t, require.ErrOf(f.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: waiting})))
	require.NoError(t, require.ErrOf(f.Studies.DeleteTrial(t.Context(), &dparetov1.DeleteTrialRequest{Name: open + "/trials/1"})))
	later := create("later")
	finish(f, later)
	release(later, "2 other studies of ledgers/l, such as studies/open")
}
