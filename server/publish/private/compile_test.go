package private

import (
	"slices"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/spec"
)

// All violations of what a spec says about publishing are reported at once, whether or not the rest of the
// spec is valid.
func TestViolationsOfPublishing(t *testing.T) {
	private := slotsSpec()
	private.PrivateMode.TestEpsilon, private.TestLedger, private.TrainLedger = -1, "", ""
	trials := slotsSpec()
	trials.Budget.MaxTrials = -1
	slot := slotsSpec()
	slot.PrivateMode.Slots[0].Parameters["nowhere"] = slot.GetPrivateMode().GetSlots()[0].GetParameters()["sigma"]
	many := slotsSpec()
	many.Budget.MaxTrials = 6
	both := answers(&dparetov1.RandomStoppingSpec{MeanTrials: -1, Metric: "answer", CurvePoints: 3})
	both.PrivateMode = new(dparetov1.PrivateModeSpec)
	constant := answers(&dparetov1.RandomStoppingSpec{MeanTrials: 10, Metric: "answer"})
	constant.ConstantPoints = []*dparetov1.ConstantPoint{{Id: "none", Values: map[string]float64{"epsilon": 0, "answer": 0}}}
	constant.GetMetrics()[1].GetReported().Noise = dparetov1.Noise_NOISE_KNOWN
	for name, tc := range map[string]struct {
		asked  *dparetov1.StudySpec
		record *storev1.StudyRecord
		want   []string
	}{
		"private_mode":    {private, nil, []string{"private_mode.test_epsilon", "test_ledger", "train_ledger"}},
		"a budget":        {trials, nil, []string{"budget.max_trials", "budget.max_trials"}},
		"a slot":          {slot, nil, []string{`private_mode.slots[0].parameters["nowhere"]`}},
		"a stored study":  {many, &storev1.StudyRecord{PrivateMode: &storev1.PrivateModeRecord{MaxValues: 5}}, []string{"budget.max_trials"}},
		"random_stopping": {both, nil, []string{"random_stopping", "random_stopping.curve_points", "random_stopping.mean_trials"}},
		"a front":         {constant, nil, []string{"constant_points", "metrics[1].reported.noise"}},
	} {
		for _, isSound := range []bool{true, false} {
			asked, want := proto.CloneOf(tc.asked), slices.Clone(tc.want)
			if !isSound {
				asked.Replicates, want = -1, append(want, "replicates")
				if name == "a slot" {
					want = []string{"replicates"} // slots are compared with the mechanism of a valid study
				}
			}
			var fields invalid.Fields
			compiled := spec.CompileInto(&fields, specPath, asked, true)
			Policies(nil, nil)(nil, asked).Compile(&fields, asked, compiled, tc.record)
			var got []string
			for _, detail := range status.Convert(fields.Err()).Details() {
				if bad, ok := detail.(*errdetails.BadRequest); ok {
					for _, v := range bad.GetFieldViolations() {
						got = append(got, v.GetField()[len(specPath)+1:])
					}
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%s, the rest is sound: %t: %v\ngot  %q\nwant %q", name, isSound, fields.Err(), got, want)
			}
		}
	}
}
