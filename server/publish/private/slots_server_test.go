package private_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/servertest"
)

// slotOf is a number of slots of the Gaussian mechanism of privateSpec.
func slotOf(sigma float64, count int64) *dparetov1.Slot {
	return &dparetov1.Slot{Parameters: map[string]*dparetov1.Value{"sigma": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: sigma}}}, Count: count}
}

// slotSpec declares 3 runs with σ = 4 and 4 with σ = 8: together they are Gaussian DP with
// μ² = 3/16 + 4/64 = 1/4, ε = 2.2541 at δ = 1e-6.
func slotSpec() *dparetov1.StudySpec {
	spec := servertest.PrivateSpec(20, 3)
	spec.PrivateMode.Slots = []*dparetov1.Slot{slotOf(4, 3), slotOf(8, 4)}
	return spec
}

// Every trial takes a slot that dominates it, the cheapest of those that are left; the engine suggests
// nothing else; and the study ends with its last slot.
func TestPrivateModeSlots(t *testing.T) {
	for _, algorithm := range []dparetov1.Algorithm{
		dparetov1.Algorithm_ALGORITHM_RANDOM, dparetov1.Algorithm_ALGORITHM_QUASI_RANDOM, dparetov1.Algorithm_ALGORITHM_DEFAULT,
	} {
		f := servertest.Start(t)
		spec := slotSpec()
		spec.Algorithm = &dparetov1.AlgorithmSpec{Name: algorithm}
		study := f.Create("s", spec)
		queued, err := f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{
			Parameters: map[string]*dparetov1.Value{"sigma": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: 3.9}}},
		}})
		require.NoError(t, err)
		guarantee := f.Study(study).GetPublication().GetTrain()
		if e := guarantee.GetEpsilon(); math.Abs(e-2.2541) > 1e-3 || guarantee.GetAccountant() != dparetov1.Accountant_ACCOUNTANT_EXACT {
			t.Errorf("the guarantee is %v, want ε = 2.2541", guarantee)
		}
		left := []int{3, 4}
		var resp *dparetov1.SuggestTrialsResponse
		for resp = f.Ask(study, "w", 1); len(resp.GetTrials()) > 0; resp = f.Ask(study, "w", 1) {
			trial := resp.GetTrials()[0]
			switch sigma := trial.GetParameters()["sigma"].GetDoubleValue(); {
			case sigma >= 8 && left[1] > 0:
				left[1]--
			case sigma >= 4:
				left[0]--
			default:
				t.Errorf("%v: σ = %g has no slot", algorithm, sigma)
			}
			f.Tell(trial, 0.5)
			var used []int64
			for _, use := range f.Study(study).GetPublication().GetSpent().GetSlots() {
				used = append(used, use.GetUsed()...)
			}
			if want := []int64{int64(3 - left[0]), int64(4 - left[1])}; !slices.Equal(used, want) {
				t.Fatalf("%v: used slots %v, want %v", algorithm, used, want)
			}
		}
		if left[0] != 0 || left[1] != 0 || resp.GetEndReason() != dparetov1.EndReason_END_REASON_PRIVACY_BUDGET_SPENT {
			t.Errorf("%v: ended with %v slots, %v", algorithm, left, resp.GetEndReason())
		}
		if got := f.Trial(queued.GetTrial().GetName()); got.GetState() != dparetov1.TrialState_TRIAL_STATE_FAILED || got.GetAttempt() != 0 {
			t.Errorf("%v: the trial without a slot is %v after %d attempts", algorithm, got.GetState(), got.GetAttempt())
		}
		if spent := f.Study(study).GetPublication().GetSpent().GetTrain().GetEpsilon(); math.Abs(spent-guarantee.GetEpsilon()) > 1e-9 {
			t.Errorf("%v: spent ε = %g of %g", algorithm, spent, guarantee.GetEpsilon())
		}
		f.Stop()
	}
}

// A retried trial takes a slot for every attempt, shards have their own, and a restart forgets none.
func TestPrivateModeSlotsAreCharged(t *testing.T) {
	f := servertest.Start(t)
	spec := slotSpec()
	spec.PrivateMode.Slots[1].Count = 1
	spec.PrivateMode.TrainingShards = 2
	study := f.Create("s", spec)
	hands := 0
	for resp := f.Ask(study, "w", 1); len(resp.GetTrials()) > 0; resp = f.Ask(study, "w", 1) {
		hands++
		if trial := resp.GetTrials()[0]; hands%2 == 1 {
			require.NoError(t, require.ErrOf(f.Studies.ReleaseTrial(t.Context(), &dparetov1.ReleaseTrialRequest{Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken()})))
			f.Restart()
		} else {
			f.Tell(trial, 0.5)
		}
		if hands > 8 {
			break
		}
	}
	if hands != 8 {
		t.Errorf("%d hand-outs for 8 slots", hands)
	}
}

func TestPrivateModeSlotsRefused(t *testing.T) {
	f := servertest.Start(t)
	for i, tt := range []struct {
		change func(*dparetov1.StudySpec)
		want   string
	}{
		{func(s *dparetov1.StudySpec) { s.PrivateMode.TrainEpsilon = 2 }, "private_mode.slots: cost ε = 2.25"},
		{func(s *dparetov1.StudySpec) { s.PrivateMode.TrainFilter = dparetov1.TrainFilter_TRAIN_FILTER_GAUSSIAN }, "private_mode.train_filter: must be unset with slots"},
		{func(s *dparetov1.StudySpec) { s.PrivateMode.Slots[1].Count = 0 }, "private_mode.slots[1].count: must be in [1, 1000000], is 0"},
		{func(s *dparetov1.StudySpec) { s.PrivateMode.Slots[1].Parameters = nil }, "private_mode.slots[1].parameters: do not give the run"},
		{func(s *dparetov1.StudySpec) { s.PrivateMode.Slots[0] = slotOf(0.5, 1) }, `private_mode.slots[0].parameters["sigma"]: 0.5 is not in the parameter's domain`},
		{func(s *dparetov1.StudySpec) {
			s.PrivateMode.Slots[0].Parameters["noise"] = s.GetPrivateMode().GetSlots()[0].GetParameters()["sigma"]
		}, `private_mode.slots[0].parameters["noise"]: is not a parameter`},
		{func(s *dparetov1.StudySpec) {
			s.Metrics[0].GetComputed().GetPrivacy().Mechanism = &dparetov1.PrivacySpec_ZeroConcentrated{ZeroConcentrated: &dparetov1.ZeroConcentratedMechanism{Rho: "0.5 / (sigma * sigma)"}}
		}, "private_mode.slots: have no price"},
	} {
		spec := slotSpec()
		tt.change(spec)
		_, err := f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: fmt.Sprintf("s%d", i), Study: &dparetov1.Study{Spec: spec}})
		servertest.WantCode(t, err, codes.InvalidArgument, tt.want)
	}
}

// A trial that takes too long to compare with a slot is refused one, and fails; the slot stays unused for
// what its parameters alone show to be dominated.
func TestPrivateModeSlotsCostlyTrial(t *testing.T) {
	t.Parallel()
	f := servertest.Start(t)
	spec := servertest.PrivateSpec(5, 1000)
	for id, most := range map[string]int64{"lot": 2000, "steps": 30} {
		spec.Parameters = append(spec.Parameters, &dparetov1.ParameterSpec{Id: id, Scale: dparetov1.Scale_SCALE_LINEAR,
			Domain: &dparetov1.ParameterSpec_IntegerDomain{IntegerDomain: &dparetov1.IntegerDomain{Min: 1, Max: most}}})
	}
	p := spec.GetMetrics()[0].GetComputed().GetPrivacy()
	p.Adjacency = dparetov1.Adjacency_ADJACENCY_REPLACE_ONE
	p.Mechanism = &dparetov1.PrivacySpec_DpSgd{DpSgd: &dparetov1.DpSgdMechanism{Sampling: dparetov1.Sampling_SAMPLING_FIXED_SIZE,
		DatasetSize: "10000", BatchSize: "lot", NoiseMultiplier: "sigma", Length: &dparetov1.DpSgdMechanism_Steps{Steps: "steps"}}}
	run := func(sigma float64, lot, steps int64) map[string]*dparetov1.Value {
		return map[string]*dparetov1.Value{
			"sigma": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: sigma}},
			"lot":   {Kind: &dparetov1.Value_IntValue{IntValue: lot}},
			"steps": {Kind: &dparetov1.Value_IntValue{IntValue: steps}},
		}
	}
	spec.PrivateMode.Slots = []*dparetov1.Slot{{Parameters: run(2.46, 1595, 4), Count: 1}}
	study := f.Create("s", servertest.WithLedgers(spec))
	var names []string
	for _, parameters := range []map[string]*dparetov1.Value{run(1.036, 30, 25), run(2.5, 1500, 4)} { // the slot dominates both
		created, err := f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{Parameters: parameters}})
		require.NoError(t, err)
		names = append(names, created.GetTrial().GetName())
	}
	if trial := f.One(study, "w"); trial.GetName() != names[1] {
		t.Errorf("got %s, want the second trial", trial.GetName())
	}
	costly, err := f.Studies.GetTrial(t.Context(), &dparetov1.GetTrialRequest{Name: names[0]})
	require.NoError(t, err)
	if state := costly.GetTrial().GetState(); state != dparetov1.TrialState_TRIAL_STATE_FAILED {
		t.Errorf("the costly trial is %v", state)
	}
}

// The filter of a study says when slots would cost less: few steps with little noise have a heavy tail.
func TestPrivateModeWarnsOfCostlyFilter(t *testing.T) {
	f := servertest.Start(t)
	for sampling, want := range map[string]bool{"600/1.0/109": true, "256/4.0/1270": false} {
		parts := strings.Split(sampling, "/")
		spec := servertest.PrivateSpec(4, 8)
		p := spec.GetMetrics()[0].GetComputed().GetPrivacy()
		p.Adjacency = dparetov1.Adjacency_ADJACENCY_REPLACE_ONE
		p.Mechanism = &dparetov1.PrivacySpec_DpSgd{DpSgd: &dparetov1.DpSgdMechanism{
			Sampling: dparetov1.Sampling_SAMPLING_FIXED_SIZE, DatasetSize: "32561", BatchSize: parts[0], NoiseMultiplier: parts[1],
			Length: &dparetov1.DpSgdMechanism_Steps{Steps: parts[2]},
		}}
		spec.PrivateMode.TrainFilter = dparetov1.TrainFilter_TRAIN_FILTER_GAUSSIAN
		study := f.Study(f.Create("s"+parts[0], servertest.WithLedgers(spec)))
		got := slices.ContainsFunc(study.GetWarnings(), func(w *dparetov1.Warning) bool {
			return w.GetCode() == "SLOTS_COST_LESS" && strings.Contains(w.GetMessage(), "private_mode.slots")
		})
		if got != want {
			t.Errorf("%s: warnings %v", sampling, study.GetWarnings())
		}
	}
}

// A study says when the noise on its values hides them.
func TestLargeNoiseWarns(t *testing.T) {
	f := servertest.Start(t)
	search := servertest.SearchSpec(10, 1)
	search.RandomStopping.TestEpsilon, search.RandomStopping.Delta = 1.5567, 1e-6
	mode := servertest.PrivateSpec(4, 8)
	for id, tc := range map[string]struct {
		spec *dparetov1.StudySpec
		size *int64
	}{"search": {search, &search.RandomStopping.TestSetSize}, "mode": {mode, &mode.PrivateMode.TestSetSize}} {
		for records, want := range map[int64]bool{3: true, 500: false} {
			*tc.size = records
			if id == "search" {
				search.Metrics[1].GetReported().SampleSize = float64(records)
			}
			study := f.Study(f.Create(fmt.Sprint(id, records), servertest.WithLedgers(proto.CloneOf(tc.spec))))
			got := slices.ContainsFunc(study.GetWarnings(), func(w *dparetov1.Warning) bool { return w.GetCode() == "LARGE_TEST_NOISE" })
			if got != want {
				t.Errorf("%s of %d records: warnings %v", id, records, study.GetWarnings())
			}
		}
	}
}
