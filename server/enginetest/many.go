package enginetest

import (
	"math"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/proto"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/store"
)

// Run is a study with one complete run, as a server has written them. It makes the study one of many
// runs, faster than calls could.
type Run struct {
	id    string
	study *storev1.StudyRecord
	trial *storev1.TrialRecord
	rng   *rand.Rand
}

// ReadRun reads a study with metrics "epsilon", computed from a parameter "noise_scale" or
// "variance", and "error", reported, and its trial, which has succeeded. The run gets a measurement at
// each step up to its last.
func ReadRun(t testing.TB, records *store.Store, studyID string, number int64) *Run {
	t.Helper()
	r := &Run{id: studyID, rng: rand.New(rand.NewPCG(1, 2))}
	require.NoError(t, records.View(t.Context(), func(tx *store.ReadTx) (err error) {
		if r.study, err = tx.Study(studyID); err != nil {
			return err
		}
		r.trial, err = tx.Trial(studyID, number)
		return err
	}))
	trial := r.trial.GetTrial()
	for step := int64(1); step < trial.GetFinalMeasurement().GetStep(); step++ {
		m := proto.CloneOf(trial.GetFinalMeasurement())
		m.Step = step
		trial.Measurements = append(trial.Measurements, m)
	}
	return r
}

// Fill makes the study one of so many different runs.
func (r *Run) Fill(t testing.TB, records *store.Store, trials int64) {
	t.Helper()
	const batch = 5000
	base := r.study.GetStudy().GetRevision()
	for from := int64(1); from <= trials; from += batch {
		to := min(from+batch-1, trials)
		require.NoError(t, records.Update(t.Context(), store.In(store.StudyScope(r.id)), func(tx *store.Tx) error {
			r.study.NextTrialNumber, r.study.CompletedTrials = to+1, to
			r.study.Study.TrialCounts = &dparetov1.TrialCounts{Succeeded: to}
			r.study.Study.Revision = base + to
			if err := tx.PutStudy(r.id, r.study); err != nil {
				return err
			}
			for number := from; number <= to; number++ {
				record := r.vary(number)
				record.GetTrial().Revision = base + number
				if err := tx.PutTrial(r.id, record); err != nil {
					return err
				}
			}
			return nil
		}))
	}
}

// vary returns the run with another configuration and other values: the error falls with ε, and
// scatters.
func (r *Run) vary(number int64) *storev1.TrialRecord {
	record := proto.CloneOf(r.trial)
	record.CompletionOrder = number
	trial := record.GetTrial()
	trial.Name, trial.Number = resource.TrialName(r.id, number), number
	noise := math.Exp(math.Log(0.1) + r.rng.Float64()*math.Log(1000))
	for _, id := range []string{"noise_scale", "variance"} {
		if _, ok := trial.GetParameters()[id]; ok {
			trial.Parameters[id] = &dparetov1.Value{Kind: &dparetov1.Value_DoubleValue{DoubleValue: noise}}
		}
	}
	all := append([]*dparetov1.Measurement{trial.GetFinalMeasurement()}, trial.GetMeasurements()...)
	for _, m := range all {
		epsilon := 5 / noise * math.Sqrt(float64(1+m.GetStep()))
		failure := 1 / (1 + math.Exp(math.Log(epsilon)+0.5*r.rng.NormFloat64()))
		m.Metrics["epsilon"].Value, m.Metrics["epsilon"].Privacy.Epsilon = &epsilon, epsilon
		m.Metrics["error"].Value, m.Metrics["error"].Runs = &failure, []float64{failure}
		m.Metrics["error"].Min, m.Metrics["error"].Max = &failure, &failure
	}
	return record
}
