package spending_test

import (
	"errors"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/servertest"
	"github.com/dpareto/dpareto/server/store"
)

// A measurement, final or not, has as many runs as the trial has replicates, or means of them with
// their standard errors.
func TestRunsAreOfReplicates(t *testing.T) {
	const runs, value = `measurement.metrics["error"].runs`, `measurement.metrics["error"].value`
	for _, tt := range []struct {
		name       string
		replicates int32
		error      *dparetov1.MetricValue
		field      string // violated, "" for none
		text       string
	}{
		{"one run", 1, &dparetov1.MetricValue{Runs: []float64{0.5}}, "", ""},
		{"one value", 1, &dparetov1.MetricValue{Value: new(0.5)}, "", ""},
		{"one value with the error of its evaluation", 1, &dparetov1.MetricValue{Value: new(0.5), StandardError: new(0.01)}, "", ""},
		{"two metrics taken for runs", 1, &dparetov1.MetricValue{Runs: []float64{0.5, 3.1}}, runs, "must hold as many values as the trial has replicates, 1, holds 2"},
		{"all runs", 3, &dparetov1.MetricValue{Runs: []float64{0.5, 0.6, 0.7}}, "", ""},
		{"fewer runs", 3, &dparetov1.MetricValue{Runs: []float64{0.5, 0.6}}, runs, "must hold as many values as the trial has replicates, 3, holds 2"},
		{"more runs", 3, &dparetov1.MetricValue{Runs: []float64{0.5, 0.6, 0.7, 0.8}}, runs, "3, holds 4"},
		{"a bare value", 3, &dparetov1.MetricValue{Value: new(0.5)}, value, "has 1 run, but the trial requires 3 replicates"},
		{"a mean", 3, &dparetov1.MetricValue{Value: new(0.5), StandardError: new(0.1)}, "", ""},
		{"an exact mean", 3, &dparetov1.MetricValue{Value: new(0.5), StandardError: new(0.0)}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := servertest.Start(t)
			spec := servertest.SGDSpec()
			spec.Replicates = tt.replicates
			trial := f.One(f.Create("sgd", spec), "w")
			metrics := map[string]*dparetov1.MetricValue{"error": tt.error, "epsilon": {Value: new(1.0)}} // the worker's own ε is of no run
			_, added := f.Studies.AddMeasurement(t.Context(), &dparetov1.AddMeasurementRequest{
				Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: &dparetov1.Measurement{Step: 1, Metrics: metrics},
			})
			_, completed := f.Studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
				Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(),
				Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: &dparetov1.Measurement{Metrics: metrics}},
			})
			for _, err := range []error{added, completed} {
				if tt.field == "" {
					if err != nil {
						t.Error(err)
					}
					continue
				}
				servertest.WantCode(t, err, codes.InvalidArgument, tt.text)
				if got := servertest.Violated(err); !slices.Equal(got, []string{tt.field}) {
					t.Errorf("violated fields %q, want %q", got, tt.field)
				}
			}
		})
	}
}

// A result from elsewhere is of as many runs as it has, which the ledger charges; all of its metrics
// have as many.
func TestRunsOfImportedResults(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.ChoiceSpec()
	spec.Replicates = 3
	study := f.Create("choices", spec)
	add := func(loss, seconds *dparetov1.MetricValue) (*dparetov1.Trial, error) {
		resp, err := f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{
			Parameters:       map[string]*dparetov1.Value{"optimizer": servertest.TextValue("sgd"), "noise": servertest.DoubleValue(1)},
			FinalMeasurement: &dparetov1.Measurement{Metrics: map[string]*dparetov1.MetricValue{"error": loss, "seconds": seconds}},
		}})
		return resp.GetTrial(), err
	}
	one := &dparetov1.MetricValue{Value: new(2.0)}
	mean := &dparetov1.MetricValue{Value: new(0.5), StandardError: new(0.1)}
	runs := func(x ...float64) *dparetov1.MetricValue { return &dparetov1.MetricValue{Runs: x} }
	for _, tt := range []struct {
		name          string
		loss, seconds *dparetov1.MetricValue
		want          int32 // replicates, 0 if it is refused
	}{
		{"single values", &dparetov1.MetricValue{Value: new(0.5)}, one, 1},
		{"one run", runs(0.5), one, 1},
		{"five runs", runs(0.1, 0.2, 0.3, 0.4, 0.5), runs(1, 2, 3, 4, 5), 5},
		{"five runs and a mean", runs(0.1, 0.2, 0.3, 0.4, 0.5), mean, 5},
		{"means", mean, mean, 3}, // of the study's replicates, as far as is known
		{"a mean and a single value", mean, one, 0},
		{"five runs and a single value", runs(0.1, 0.2, 0.3, 0.4, 0.5), one, 0},
		{"five runs and two", runs(0.1, 0.2, 0.3, 0.4, 0.5), runs(1, 2), 0},
	} {
		trial, err := add(tt.loss, tt.seconds)
		if tt.want == 0 {
			if got := servertest.Violated(err); len(got) != 1 {
				t.Errorf("%s: violated fields %q", tt.name, got)
			}
		} else if err != nil || trial.GetReplicates() != tt.want {
			t.Errorf("%s: %d replicates, %v, want %d", tt.name, trial.GetReplicates(), err, tt.want)
		}
	}
	records := f.Export(study)
	records[1].GetTrial().GetTrial().Replicates = 2
	require.NoError(t, require.ErrOf(f.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: study})))
	_, err := f.ImportRecords(records)
	servertest.WantCode(t, err, codes.InvalidArgument, "has 1 run, but the trial requires 2 replicates")
}

// The ledger charges all runs that a stored trial reported, also beyond its replicates.
func TestLedgerChargesRunsBeyondReplicates(t *testing.T) {
	for _, where := range []struct {
		name string
		add  func(trial *dparetov1.Trial, m *dparetov1.Measurement)
		want int64
	}{
		{"final measurement", func(trial *dparetov1.Trial, m *dparetov1.Measurement) { trial.FinalMeasurement = m }, 5},
		{"measurement on the way", func(trial *dparetov1.Trial, m *dparetov1.Measurement) {
			trial.Measurements = []*dparetov1.Measurement{m}
		}, 5},
		{"past attempt", func(trial *dparetov1.Trial, m *dparetov1.Measurement) {
			trial.Attempt++
			trial.PastAttempts = []*dparetov1.Attempt{{Number: 1, Measurements: []*dparetov1.Measurement{m}}}
		}, 10},
	} {
		t.Run(where.name, func(t *testing.T) {
			f := servertest.Start(t)
			study := f.Create("sgd", servertest.SGDSpec())
			f.Tell(f.One(study, "w"), 0.5)
			require.NoError(t, f.Records.Update(t.Context(), store.In(store.StudyScope("sgd")), func(tx *store.Tx) error {
				record, err := tx.Trial("sgd", 1)
				if err != nil {
					return err
				}
				m := proto.CloneOf(record.GetTrial().GetFinalMeasurement())
				m.Step = 1
				m.Metrics["error"].Runs = []float64{0.1, 0.2, 0.3, 0.4, 0.5}
				where.add(record.GetTrial(), m)
				return errors.Join(tx.PutParts("sgd", record), tx.PutTrial("sgd", record))
			}))
			if got := f.Ledger(study, 0).GetRuns(); got != where.want {
				t.Errorf("%d runs, want %d", got, where.want)
			}
		})
	}
}
