package study_test

import (
	"fmt"
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

func TestUpdateStudy(t *testing.T) {
	f := servertest.Start(t)
	name := f.Create("s", servertest.SGDSpec())
	before := f.Study(name)
	f.Clock.Advance(time.Minute)

	asked := proto.CloneOf(before)
	asked.DisplayName, asked.Description = "A study", "It is changed."
	asked.Labels = map[string]string{"team": "privacy"}
	asked.Spec.Budget = &dparetov1.Budget{MaxTrials: 3, MaxParallelTrials: 2}
	asked.Spec.Lease = &dparetov1.LeasePolicy{Duration: durationpb.New(time.Hour)}
	asked.Spec.DisableEarlyStopping = true
	asked.Spec.Metrics[1].Unit = "ratio"

	// Only what the mask names changes.
	after, err := f.Update(asked, "display_name", "spec.budget.max_trials")
	require.NoError(t, err)
	want := proto.CloneOf(before)
	want.DisplayName, want.Spec.Budget = "A study", &dparetov1.Budget{MaxTrials: 3}
	output := protocmp.IgnoreFields(want, "etag", "revision", "update_time")
	if d := cmp.Diff(want, after, protocmp.Transform(), output); d != "" {
		t.Error(d)
	}
	if after.GetRevision() != before.GetRevision()+1 || after.GetEtag() == before.GetEtag() ||
		after.GetUpdateTime().AsTime().Sub(before.GetUpdateTime().AsTime()) != time.Minute {
		t.Errorf("revision %d, etag %s, time %v", after.GetRevision(), after.GetEtag(), after.GetUpdateTime().AsTime())
	}

	// Another etag than that of the study is refused.
	_, err = f.Update(asked, "description")
	servertest.WantCode(t, err, codes.FailedPrecondition, "etag")

	// All at once; the same again changes nothing.
	asked.Etag = after.GetEtag()
	after, err = f.Update(asked, "*")
	require.NoError(t, err)
	if d := cmp.Diff(asked, after, protocmp.Transform(), output); d != "" {
		t.Error(d)
	}
	again, err := f.Update(after, "*")
	require.NoError(t, err)
	if d := cmp.Diff(after, again, protocmp.Transform()); d != "" {
		t.Errorf("the same update again: %s", d)
	}
	f.Restart()
	if d := cmp.Diff(after, f.Study(name), protocmp.Transform()); d != "" {
		t.Errorf("after a restart: %s", d)
	}

	// The new lease and budget hold.
	resp := f.Ask(name, "w", 5)
	if n := len(resp.GetTrials()); n != 2 || resp.GetEndReason() != dparetov1.EndReason_END_REASON_PARALLELISM {
		t.Errorf("%d trials, %v", n, resp.GetEndReason())
	}
	if lease := resp.GetTrials()[0].GetLease().GetExpireTime().AsTime().Sub(f.Clock.Now()); lease != time.Hour {
		t.Errorf("lease of %v", lease)
	}
	// A mask that names what is absent empties it.
	after, err = f.Update(&dparetov1.Study{Name: name}, "labels", "spec.budget", "spec.lease.duration")
	if err != nil || after.GetLabels() != nil || after.GetSpec().GetBudget() != nil || after.GetSpec().GetLease().GetDuration() != nil {
		t.Errorf("%v, %v", after, err)
	}
}

func TestUpdateStudyInvalid(t *testing.T) {
	f := servertest.Start(t)
	name := f.Create("s", servertest.ChoiceSpec())
	f.One(name, "w")
	for _, test := range []struct {
		mask   string
		change func(*dparetov1.Study)
		text   string
		fields []string
	}{
		{"", nil, "must name", []string{"update_mask"}},
		{"nonsense", nil, `"nonsense" is not a field`, []string{"update_mask"}},
		{"state", nil, "cannot be changed", []string{"update_mask"}},
		{"uid", nil, "only display_name, description, labels, spec can", []string{"update_mask"}},
		{"labels.team", nil, "is below labels, which is set as a whole", []string{"update_mask"}},
		{"spec.parameters.id", nil, "is below spec.parameters", []string{"update_mask"}},
		{"spec.budget.nonsense", nil, "is not a field", []string{"update_mask"}},
		{"*,labels", nil, "is not a field", []string{"update_mask"}},
		{"display_name", func(s *dparetov1.Study) { s.DisplayName = strings.Repeat("x", 201) }, "at most 200", []string{"study.display_name"}},
		{"labels", func(s *dparetov1.Study) { s.Labels = map[string]string{"": "x"} }, "key", []string{"study.labels"}},
		{"spec.budget", func(s *dparetov1.Study) { s.Spec.Budget = &dparetov1.Budget{MaxTrials: -1} }, "budget", []string{"study.spec.budget.max_trials"}},
		{"spec.algorithm", func(s *dparetov1.Study) { s.Spec.Algorithm.Name = dparetov1.Algorithm_ALGORITHM_GRID }, "cannot be changed", []string{"study.spec.algorithm.name"}},
		{"spec.seed", func(s *dparetov1.Study) { s.Spec.Seed = nil }, "cannot be changed", []string{"study.spec.seed"}},
		{"spec.metrics", func(s *dparetov1.Study) { *s.Spec.Metrics[1].ReferenceValue = 2 }, "cannot be changed", []string{"study.spec.metrics[1].reference_value"}},
		{"spec.metrics", func(s *dparetov1.Study) { s.Spec.Metrics = s.GetSpec().GetMetrics()[:2] }, "cannot be changed", []string{"study.spec.metrics"}},
		{"spec.parameter_constraints", func(s *dparetov1.Study) { s.Spec.ParameterConstraints = nil }, "cannot be changed", []string{"study.spec.parameter_constraints"}},
		{"spec.parameters", func(s *dparetov1.Study) { s.Spec.Parameters = s.GetSpec().GetParameters()[1:] }, "cannot be changed", []string{"study.spec.parameters"}},
		{"spec.parameters", func(s *dparetov1.Study) {
			s.Spec.Parameters[parameter(s, "noise")].GetDoubleDomain().Min *= 2
			s.Spec.Parameters[parameter(s, "noise")].Scale = dparetov1.Scale_SCALE_LINEAR
		}, "can only grow", []string{"study.spec.parameters[3].double_domain.min", "study.spec.parameters[3].scale"}},
		{"spec.parameters", func(s *dparetov1.Study) { s.Spec.Parameters[parameter(s, "layers")].GetIntegerDomain().Max-- }, "must be at least 2, is 1", []string{"study.spec.parameters[1].integer_domain.max"}},
		{"spec.parameters", func(s *dparetov1.Study) { s.Spec.Parameters[parameter(s, "width")].GetDiscreteDomain().Values[0] /= 2 }, "as before", []string{"study.spec.parameters[0].discrete_domain.values"}},
		{"spec.parameters", func(s *dparetov1.Study) {
			s.Spec.Parameters[parameter(s, "optimizer")].GetCategoricalDomain().Categories[0] = "rmsprop"
		}, "as before", nil},
		{"spec.parameters", func(s *dparetov1.Study) {
			s.Spec.Parameters[parameter(s, "layers")].Domain = s.GetSpec().GetParameters()[parameter(s, "width")].GetDomain()
		}, "cannot be changed", []string{"study.spec.parameters[1].discrete_domain", "study.spec.parameters[1].integer_domain"}},
		{"spec.parameters", func(s *dparetov1.Study) { // with more layers than two there is no width
			s.Spec.Parameters[parameter(s, "layers")].GetIntegerDomain().Max++
		}, "refers to width, which has no value here", []string{"study.spec.parameter_constraints[0]"}},
		{"spec.parameters", func(s *dparetov1.Study) {
			s.Spec.Parameters[parameter(s, "noise")].GetDoubleDomain().Min = -1
		}, "must be positive on a log scale", []string{"study.spec.parameters[3].double_domain.min"}},
		{"spec", func(s *dparetov1.Study) { s.Spec = nil }, "cannot be changed", nil},
		{"spec.parameters", func(s *dparetov1.Study) { // where there is another optimizer there is no beta
			domain := s.GetSpec().GetParameters()[parameter(s, "optimizer")].GetCategoricalDomain()
			domain.Categories = slices.Insert(domain.GetCategories(), 0, "rmsprop")
		}, "where optimizer = rmsprop", []string{"study.spec.metrics[0].computed.privacy.laplace.scale"}},
	} {
		asked := f.Study(name)
		before := proto.CloneOf(asked)
		if test.change != nil {
			test.change(asked)
		}
		var mask []string
		if test.mask != "" {
			mask = []string{test.mask}
		}
		_, err := f.Update(asked, mask...)
		servertest.WantCode(t, err, codes.InvalidArgument, test.text)
		if got := servertest.Violated(err); test.fields != nil && !slices.Equal(got, test.fields) {
			t.Errorf("mask %s: violated fields %q, want %q", test.mask, got, test.fields)
		}
		if d := cmp.Diff(before, f.Study(name), protocmp.Transform()); d != "" {
			t.Errorf("a refused update changed %s", d)
		}
	}
	_, err := f.Update(&dparetov1.Study{Name: "studies/none"}, "labels")
	servertest.WantCode(t, err, codes.NotFound, "studies/none")
	_, err = f.Update(&dparetov1.Study{Name: "none"}, "labels")
	servertest.WantCode(t, err, codes.InvalidArgument, "study.name")
}

// parameter returns the index of a parameter.
func parameter(s *dparetov1.Study, id string) int {
	return slices.IndexFunc(s.GetSpec().GetParameters(), func(p *dparetov1.ParameterSpec) bool { return p.GetId() == id })
}

// In a space that has grown all trials so far are what they were, and suggestions come
// from what is new, too, whatever the server had kept of the old one.
func TestUpdateSpace(t *testing.T) {
	for _, algorithm := range []dparetov1.Algorithm{
		dparetov1.Algorithm_ALGORITHM_RANDOM, dparetov1.Algorithm_ALGORITHM_QUASI_RANDOM,
		dparetov1.Algorithm_ALGORITHM_GRID, dparetov1.Algorithm_ALGORITHM_DEFAULT,
	} {
		t.Run(algorithm.String(), func(t *testing.T) {
			f := servertest.Start(t)
			asked := servertest.ChoiceSpec()
			asked.Algorithm.Name = algorithm
			asked.GetMetrics()[0].GetComputed().GetPrivacy().GetLaplace().Scale = "noise" // exists with every optimizer
			name := f.Create("s", asked)
			const count = 12
			var before []*dparetov1.Trial
			for i := range count {
				trial := f.One(name, "w")
				resp, err := f.Studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
					Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(),
					Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: servertest.ChoiceMeasurement(trial)},
				})
				if err != nil {
					t.Fatal(i, err)
				}
				before = append(before, resp.GetTrial())
			}
			held := f.One(name, "held")
			study := f.Study(name)
			for _, p := range study.GetSpec().GetParameters() {
				switch domain := p.GetDomain().(type) {
				case *dparetov1.ParameterSpec_DoubleDomain:
					domain.DoubleDomain.Min /= 2
				case *dparetov1.ParameterSpec_IntegerDomain:
					domain.IntegerDomain.Min--
				case *dparetov1.ParameterSpec_DiscreteDomain:
					domain.DiscreteDomain.Values = slices.Insert(domain.DiscreteDomain.GetValues(), 1, domain.DiscreteDomain.GetValues()[0]+1)
				case *dparetov1.ParameterSpec_CategoricalDomain:
					// What was the first category is the second.
					domain.CategoricalDomain.Categories = slices.Insert(domain.CategoricalDomain.GetCategories(), 0, "momentum")
				}
			}
			require.NoError(t, require.ErrOf(f.Update(study, "spec.parameters")))
			for _, trial := range before {
				if d := cmp.Diff(trial, f.Trial(trial.GetName()), protocmp.Transform()); d != "" {
					t.Error(d)
				}
			}
			for _, kind := range []dparetov1.FrontKind{dparetov1.FrontKind_FRONT_KIND_OBSERVED, dparetov1.FrontKind_FRONT_KIND_POSTERIOR} {
				for _, p := range f.Front(name, kind).GetPoints() {
					if d := cmp.Diff(f.Trial(p.GetTrial()).GetParameters(), p.GetParameters(), protocmp.Transform()); d != "" {
						t.Error(d)
					}
				}
			}
			if _, err := f.Studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
				Name: held.GetName(), LeaseToken: held.GetLease().GetToken(),
				Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: servertest.ChoiceMeasurement(held)},
			}); err != nil {
				t.Errorf("a trial from before: %v", err)
			}
			if _, err := f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: name, Trial: &dparetov1.Trial{ReplicateOf: before[0].GetName()}}); err != nil {
				t.Errorf("a replicate of a trial from before: %v", err)
			}
			outside := 0
			for round := range 2 {
				for _, trial := range f.Ask(name, fmt.Sprint("new", round), 10).GetTrials() {
					values := trial.GetParameters()
					if values["optimizer"].GetStringValue() == "momentum" || values["layers"].GetIntValue() < 0 || values["noise"].GetDoubleValue() < 0.1 {
						outside++
					}
				}
				f.Restart()
			}
			if outside == 0 {
				t.Error("nothing is suggested from what is new")
			}
			if d := cmp.Diff(before[0], f.Trial(before[0].GetName()), protocmp.Transform()); d != "" {
				t.Error(d)
			}
		})
	}
}

// A prior study may have a smaller space than the study.
func TestUpdatePrior(t *testing.T) {
	f := servertest.Start(t)
	f.Create("prior", servertest.SVTSpec())
	asked := servertest.SVTSpec()
	asked.PriorStudies = []string{"studies/prior"}
	asked.Parameters[0].GetIntegerDomain().Max = 29
	_, err := f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "narrow", Study: &dparetov1.Study{Spec: asked}})
	servertest.WantCode(t, err, codes.InvalidArgument, "cannot be a prior: parameter cutoff is")
	asked.Parameters[0].GetIntegerDomain().Max = 31
	f.Create("wide", asked)
}

func TestUpdateTrial(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("s", servertest.SVTSpec())
	before := f.Tell(f.One(study, "w"), 0.5)
	update := func(trial *dparetov1.Trial, paths ...string) (*dparetov1.Trial, error) {
		resp, err := f.Studies.UpdateTrial(t.Context(), &dparetov1.UpdateTrialRequest{Trial: trial, UpdateMask: &fieldmaskpb.FieldMask{Paths: paths}})
		return resp.GetTrial(), err
	}
	asked := proto.CloneOf(before)
	asked.Labels, asked.Note, asked.State = map[string]string{"k": "v"}, "why", dparetov1.TrialState_TRIAL_STATE_QUEUED
	after, err := update(asked, "note")
	require.NoError(t, err)
	want := proto.CloneOf(before)
	want.Note = "why"
	changes := protocmp.IgnoreFields(want, "etag", "revision")
	if d := cmp.Diff(want, after, protocmp.Transform(), changes); d != "" {
		t.Error(d)
	}
	if after.GetRevision() <= before.GetRevision() || after.GetEtag() == before.GetEtag() {
		t.Errorf("revision %d, etag %s", after.GetRevision(), after.GetEtag())
	}
	_, err = update(asked, "labels")
	servertest.WantCode(t, err, codes.FailedPrecondition, "etag")
	asked.Etag = ""
	if after, err = update(asked, "*"); err != nil || after.GetLabels()["k"] != "v" {
		t.Errorf("%v, %v", after, err)
	}
	again, err := update(asked, "*")
	if d := cmp.Diff(after, again, protocmp.Transform()); d != "" || err != nil {
		t.Error(d, err)
	}
	f.Restart()
	if d := cmp.Diff(after, f.Trial(before.GetName()), protocmp.Transform()); d != "" {
		t.Error(d)
	}
	_, err = update(asked, "state")
	servertest.WantCode(t, err, codes.InvalidArgument, "only labels, note, attributes, artifacts can")
	asked.Note = strings.Repeat("x", 10_001)
	_, err = update(asked, "note")
	servertest.WantCode(t, err, codes.InvalidArgument, "trial.note")
	asked.Name = "studies/s/trials/9"
	_, err = update(asked, "labels")
	servertest.WantCode(t, err, codes.NotFound, "trials/9")
}

// A paused study hands nothing out, takes results, and goes on where it stopped.
func TestPauseAndResume(t *testing.T) {
	f := servertest.Start(t)
	name := f.Create("s", servertest.SVTSpec())
	trial := f.One(name, "w")
	pause := func() *dparetov1.Study {
		t.Helper()
		resp, err := f.Studies.PauseStudy(t.Context(), &dparetov1.PauseStudyRequest{Name: name})
		require.NoError(t, err)
		return resp.GetStudy()
	}
	paused := pause()
	if paused.GetState() != dparetov1.StudyState_STUDY_STATE_PAUSED {
		t.Errorf("state %v", paused.GetState())
	}
	if d := cmp.Diff(paused, pause(), protocmp.Transform()); d != "" {
		t.Errorf("paused again: %s", d)
	}
	f.Restart()
	if resp := f.Ask(name, "v", 1); len(resp.GetTrials()) != 0 || resp.GetEndReason() != dparetov1.EndReason_END_REASON_PAUSED {
		t.Errorf("a paused study gave %v", resp)
	}
	f.Tell(trial, 0.5)
	resume := func() *dparetov1.Study {
		t.Helper()
		resp, err := f.Studies.ResumeStudy(t.Context(), &dparetov1.ResumeStudyRequest{Name: name})
		require.NoError(t, err)
		return resp.GetStudy()
	}
	resumed := resume()
	if resumed.GetState() != dparetov1.StudyState_STUDY_STATE_ACTIVE || resumed.GetEtag() == paused.GetEtag() {
		t.Errorf("resumed: %v", resumed)
	}
	if d := cmp.Diff(resumed, resume(), protocmp.Transform()); d != "" {
		t.Errorf("resumed again: %s", d)
	}
	if n := f.One(name, "v").GetNumber(); n != 2 {
		t.Errorf("trial %d after the pause", n)
	}
	_, err := f.Studies.PauseStudy(t.Context(), &dparetov1.PauseStudyRequest{Name: "studies/none"})
	servertest.WantCode(t, err, codes.NotFound, "studies/none")

	// A study whose budget is spent is complete, but can be paused and resumed, and goes on
	// with a larger budget.
	study := f.Study(name)
	study.Spec.Budget = &dparetov1.Budget{MaxTrials: 2}
	require.NoError(t, require.ErrOf(f.Update(study, "spec.budget")))
	f.Tell(f.One(name, "v"), 0.4)
	if got := f.Study(name).GetState(); got != dparetov1.StudyState_STUDY_STATE_COMPLETED {
		t.Errorf("state %v", got)
	}
	pause()
	if got := resume().GetState(); got != dparetov1.StudyState_STUDY_STATE_COMPLETED {
		t.Errorf("state %v", got)
	}
	study.Etag, study.Spec.Budget.MaxTrials = "", 3
	if after, err := f.Update(study, "spec.budget"); err != nil || after.GetState() != dparetov1.StudyState_STUDY_STATE_ACTIVE {
		t.Errorf("%v, %v", after, err)
	}
	f.One(name, "v")
}
