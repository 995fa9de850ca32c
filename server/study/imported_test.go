package study_test

import (
	"math"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/servertest"
)

// A trial from elsewhere brings its curve, and how it ended; checking it changes nothing.
func TestImportedOutcomes(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("sgd", servertest.SGDSpec())
	add := func(change func(*dparetov1.Trial), onlyCheck bool) (*dparetov1.Trial, error) {
		trial := &dparetov1.Trial{Parameters: map[string]*dparetov1.Value{"epochs": servertest.IntValue(8), "lot_size": servertest.IntValue(64), "variance": servertest.DoubleValue(1)}}
		change(trial)
		resp, err := f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: trial, ValidateOnly: onlyCheck})
		return resp.GetTrial(), err
	}
	curve := []*dparetov1.Measurement{servertest.Measurement(1, 0.5, 0.4), servertest.Measurement(4, 0.3, 0.2)}
	for _, tt := range []struct {
		name   string
		change func(*dparetov1.Trial)
		want   dparetov1.TrialState
	}{
		{"curve", func(trial *dparetov1.Trial) {
			trial.Measurements, trial.FinalMeasurement = curve, servertest.Measurement(8, 0.2, 0.1)
		}, dparetov1.TrialState_TRIAL_STATE_SUCCEEDED},
		{"infeasible", func(trial *dparetov1.Trial) {
			trial.State, trial.StateReason = dparetov1.TrialState_TRIAL_STATE_INFEASIBLE, "diverged"
		}, dparetov1.TrialState_TRIAL_STATE_INFEASIBLE},
		{"failed on the way", func(trial *dparetov1.Trial) {
			trial.State, trial.StateReason, trial.Measurements = dparetov1.TrialState_TRIAL_STATE_FAILED, "power", curve
		}, dparetov1.TrialState_TRIAL_STATE_FAILED},
	} {
		before := f.Study(study)
		if _, err := add(tt.change, true); err != nil {
			t.Errorf("%s: check: %v", tt.name, err)
		}
		if after := f.Study(study); !proto.Equal(before, after) {
			t.Errorf("%s: checking changed the study: %v", tt.name, after)
		}
		trial, err := add(tt.change, false)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		var asked dparetov1.Trial
		tt.change(&asked)
		if trial.GetState() != tt.want || trial.GetStateReason() != asked.GetStateReason() || trial.GetOrigin() != dparetov1.TrialOrigin_TRIAL_ORIGIN_IMPORTED {
			t.Errorf("%s: %v", tt.name, trial)
		}
		if len(trial.GetMeasurements()) != len(asked.GetMeasurements()) {
			t.Errorf("%s: %d measurements", tt.name, len(trial.GetMeasurements()))
		}
		for i, m := range trial.GetMeasurements() {
			if m.GetStep() != curve[i].GetStep() || trial.GetReplicates() != 2 || !slices.Equal(m.GetMetrics()["error"].GetRuns(), curve[i].GetMetrics()["error"].GetRuns()) || m.GetMetrics()["epsilon"].GetValue() <= 0 {
				t.Errorf("%s: measurement %v", tt.name, m)
			}
		}
	}
	// Runs that failed elsewhere may have used the data, too.
	if got := f.Ledger(study, 0).GetRuns(); got != 5 {
		t.Errorf("the ledger has %d runs, want 2 + 1 + 2", got)
	}
	for field, change := range map[string]func(*dparetov1.Trial){
		"trial.final_measurement": func(trial *dparetov1.Trial) { trial.State = dparetov1.TrialState_TRIAL_STATE_SUCCEEDED },
		"trial.state_reason":      func(trial *dparetov1.Trial) { trial.State = dparetov1.TrialState_TRIAL_STATE_INFEASIBLE },
		"trial.measurements":      func(trial *dparetov1.Trial) { trial.Measurements = curve },
		"trial.measurements[1].step": func(trial *dparetov1.Trial) {
			trial.Measurements, trial.FinalMeasurement = []*dparetov1.Measurement{curve[1], curve[0]}, servertest.Measurement(8, 0.2, 0.1)
		},
		`trial.measurements[1].metrics["error"].runs`: func(trial *dparetov1.Trial) {
			trial.Measurements, trial.FinalMeasurement = []*dparetov1.Measurement{curve[0], servertest.Measurement(2, 0.2)}, servertest.Measurement(8, 0.2, 0.1)
		},
	} {
		for _, onlyCheck := range []bool{true, false} {
			_, err := add(change, onlyCheck)
			servertest.WantCode(t, err, codes.InvalidArgument, "")
			if got := servertest.Violated(err); !slices.Equal(got, []string{field}) {
				t.Errorf("violated fields %q, want %q", got, field)
			}
		}
	}
	private := f.Create("private", servertest.PrivateSpec(4, 1))
	_, err := f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: private, Trial: &dparetov1.Trial{
		Parameters: map[string]*dparetov1.Value{"sigma": servertest.DoubleValue(1)}, State: dparetov1.TrialState_TRIAL_STATE_INFEASIBLE, StateReason: "x",
	}})
	servertest.WantCode(t, err, codes.FailedPrecondition, "takes outcomes only from trials that it handed out")
}

// A number that misses its domain by the last digit is the bound; one that misses it by more is refused.
func TestRoundedParameters(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("choices", servertest.ChoiceSpec())
	add := func(noise, width float64) (*dparetov1.Trial, error) {
		resp, err := f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{Parameters: map[string]*dparetov1.Value{
			"optimizer": servertest.TextValue("adam"), "layers": servertest.IntValue(1), "beta": servertest.DoubleValue(math.Nextafter(1, 2)), "noise": servertest.DoubleValue(noise), "width": servertest.DoubleValue(width),
		}}})
		return resp.GetTrial(), err
	}
	trial, err := add(math.Nextafter(0.1, 0), math.Nextafter(64, 0))
	require.NoError(t, err)
	for name, want := range map[string]float64{"noise": 0.1, "width": 64, "beta": 1} {
		if got := trial.GetParameters()[name].GetDoubleValue(); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	inside := math.Nextafter(0.1, 1)
	if trial, err := add(inside, math.Nextafter(16, 17)); err != nil || trial.GetParameters()["noise"].GetDoubleValue() != inside || trial.GetParameters()["width"].GetDoubleValue() != 16 {
		t.Errorf("inside: %v, %v", trial, err)
	}
	_, err = add(math.Nextafter(math.Nextafter(0.1, 0), 0), 64)
	servertest.WantCode(t, err, codes.InvalidArgument, "is not in the parameter's domain, from 0.1 to ")
	_, err = add(1, 63)
	servertest.WantCode(t, err, codes.InvalidArgument, "63 is not in the parameter's domain, [16 64]")
	_, err = add(math.NaN(), 64)
	servertest.WantCode(t, err, codes.InvalidArgument, "is not in the parameter's domain")
}
