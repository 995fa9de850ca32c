package history_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/enginetest"
	"github.com/dpareto/dpareto/server/history"
	"github.com/dpareto/dpareto/server/resource"
)

// difference compares trials, but for the encoding of measurements, which is not unique.
func difference(want, got *history.History) string {
	return cmp.Diff(want.Trials, got.Trials, cmp.AllowUnexported(history.Measurement{}),
		cmpopts.IgnoreTypes([]byte(nil)), cmpopts.EquateNaNs(), cmpopts.EquateEmpty())
}

// A history that grows from call to call is the one that a new server reads, whatever happens to the
// study, and those of earlier calls stay as they are.
func TestHistoryIsThatOfTheStore(t *testing.T) {
	s := enginetest.With(t, enginetest.Random())
	s.Runs(t, enginetest.Checkpoints)
	rng := rand.New(rand.NewPCG(1, 2))
	var held []*dparetov1.Trial
	type earlier struct{ kept, read *history.History }
	var before []earlier
	for range 200 {
		anyTrial := resource.TrialName("runs", 1+rng.Int64N(int64(len(held)+30)))
		switch op := rng.IntN(9); {
		case op < 2 || len(held) == 0:
			held = append(held, s.AskRun(t))
		case op == 7: // any trial that no worker holds
			_, _ = s.DeleteTrial(t.Context(), &dparetov1.DeleteTrialRequest{Name: anyTrial})
		case op == 8:
			_, _ = s.UpdateTrial(t.Context(), &dparetov1.UpdateTrialRequest{
				Trial: &dparetov1.Trial{Name: anyTrial, Note: "n"}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"note"}},
			})
		default:
			i := rng.IntN(len(held))
			trial := held[i]
			last := trial.GetParameters()["epochs"].GetIntValue()
			if op == 2 {
				_, _ = s.AddMeasurement(t.Context(), &dparetov1.AddMeasurementRequest{
					Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: enginetest.ErrorAt(1+rng.Int64N(last), rng.Float64()),
				})
				break
			}
			held = slices.Delete(held, i, i+1)
			req := &dparetov1.CompleteTrialRequest{Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken()}
			switch op {
			case 3:
				req.Outcome = &dparetov1.CompleteTrialRequest_Infeasible{Infeasible: &dparetov1.Infeasible{Reason: "r"}}
			case 4:
				req.Outcome = &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: "r", Retryable: rng.IntN(2) == 0}}
			default:
				req.Outcome = &dparetov1.CompleteTrialRequest_Measurement{Measurement: enginetest.ErrorAt(0, rng.Float64())}
			}
			require.NoError(t, require.ErrOf(s.CompleteTrial(t.Context(), req)))
		}
		got, err := s.Histories.Read(t.Context(), "runs")
		require.NoError(t, err)
		fresh := s.Fresh(t)
		want, err := fresh.Histories.Read(t.Context(), "runs")
		fresh.Close()
		require.NoError(t, err)
		if d := difference(want, got); d != "" {
			t.Fatal(d)
		}
		before = append(before, earlier{got, want})
	}
	if n := len(before[len(before)-1].read.Runs()); n < 20 {
		t.Errorf("only %d runs succeeded", n)
	}
	for _, e := range before {
		if d := difference(e.read, e.kept); d != "" {
			t.Fatalf("an earlier history has changed: %s", d)
		}
	}
}
