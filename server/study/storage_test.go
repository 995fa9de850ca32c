package study_test

import (
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/limit"
	"github.com/dpareto/dpareto/server/servertest"
)

// stored returns how many bytes the records of the store take.
func storedBytes(f *servertest.Fixture) (bytes int64) {
	f.T.Helper()
	counts, err := f.Records.Counts(f.T.Context())
	require.NoError(f.T, err)
	for _, c := range counts {
		bytes += c.Bytes
	}
	return bytes
}

// randomSpec is a study whose suggestions cost nothing and that has no budget.
func randomSpec() *dparetov1.StudySpec {
	spec := servertest.SVTSpec()
	spec.Algorithm, spec.Budget = &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_RANDOM}, nil
	return spec
}

// Small requests for many trials do not fill the disk.
func TestOpenTrialsAreBounded(t *testing.T) {
	f := servertest.StartWith(t, func(o *server.Options) { o.Limits = limit.Limits{OpenTrialsPerStudy: 100} })
	f.Create("svt", randomSpec())
	before := storedBytes(f)
	ask := func(count int32) ([]*dparetov1.Trial, error) {
		resp, err := f.Studies.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/svt", WorkerId: "w", Count: count, Resume: new(false)})
		return resp.GetTrials(), err
	}
	var trials []*dparetov1.Trial
	var last error
	for range 20 {
		var more []*dparetov1.Trial
		if more, last = ask(25); last == nil {
			trials = append(trials, more...)
		}
	}
	servertest.WantCode(t, last, codes.ResourceExhausted, "max-open-trials-per-study")
	if grown := storedBytes(f) - before; len(trials) != 100 || grown > 100*1000 {
		t.Errorf("%d trials, the store has grown by %d bytes", len(trials), grown)
	}
	f.Tell(trials[0], 0.5)
	if more, err := ask(1); err != nil || len(more) != 1 {
		t.Errorf("after a completion: %v, %v", more, err)
	}
}

// A study that is too large takes no more trials and measurements, but results.
func TestBytesOfAStudyAreBounded(t *testing.T) {
	f := servertest.StartWith(t, func(o *server.Options) { o.Limits = limit.Limits{StudyBytes: 8000} })
	f.Create("svt", randomSpec())
	trial := f.One("studies/svt", "w")
	ctx := t.Context()
	var err error
	for step := int64(1); err == nil && step < 2000; step++ {
		_, err = f.Studies.AddMeasurement(ctx, &dparetov1.AddMeasurementRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: servertest.Measurement(step, 0.5),
		})
	}
	servertest.WantCode(t, err, codes.ResourceExhausted, "max-study-bytes")
	if size := storedBytes(f); size > 9000 {
		t.Errorf("the store has %d bytes", size)
	}
	_, err = f.Studies.SuggestTrials(ctx, &dparetov1.SuggestTrialsRequest{Parent: "studies/svt", WorkerId: "v"})
	servertest.WantCode(t, err, codes.ResourceExhausted, "max-study-bytes")
	f.Tell(trial, 0.5)
}

// Answers that are kept for requests that change nothing, or nothing that matters, do not fill the
// disk either.
func TestKeptAnswersAreBounded(t *testing.T) {
	t.Parallel()
	f := servertest.StartWith(t, func(o *server.Options) { o.Limits = limit.Limits{StudyBytes: 60_000} })
	f.Create("svt", randomSpec())
	ctx := t.Context()
	trial, stopping := f.One("studies/svt", "w"), f.One("studies/svt", "v")
	for step := range int64(50) {
		must(f, add(f, trial, step+1, 0.5))
		must(f, add(f, stopping, step+1, 0.5))
	}
	f.Tell(trial, 0.5)
	absent := make(map[string]string)
	for i := range 200 {
		absent[fmt.Sprint("studies/svt/trials/", 1000+i)] = "none"
	}
	for i := range 100 {
		id := fmt.Sprint("request ", i)
		again := servertest.Completion(trial, 0.5)
		again.RequestId = id + " to complete"
		if resp, err := f.Studies.CompleteTrial(ctx, again); err != nil || resp.GetTrial().GetName() != trial.GetName() {
			t.Fatalf("%v, %v", resp, err)
		}
		require.NoError(t, require.ErrOf(f.Studies.StopTrial(ctx, &dparetov1.StopTrialRequest{Name: stopping.GetName(), RequestId: id + " to stop"})))
		require.NoError(t, require.ErrOf(f.Studies.UpdateTrial(ctx, &dparetov1.UpdateTrialRequest{
			Trial: &dparetov1.Trial{Name: trial.GetName()}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"note"}}, RequestId: id + " to note",
		})))
		resp, err := f.Studies.RenewLeases(ctx, &dparetov1.RenewLeasesRequest{Parent: "studies/svt", LeaseTokens: absent, RequestId: id + " to renew"})
		if err != nil || len(resp.GetResults()) != len(absent) {
			t.Fatalf("%v, %v", resp, err)
		}
	}
	if size := storedBytes(f); size > 150_000 {
		t.Errorf("the store has %d bytes", size)
	}
}

// Worker ids of a study do not fill the disk.
func TestWorkerIDsAreBounded(t *testing.T) {
	g := servertest.Guard(t, limit.Limits{StudyBytes: 20_000})
	spec := randomSpec()
	spec.Algorithm.Name = dparetov1.Algorithm_ALGORITHM_NSGA2 // which does not draw in the transaction that notes the id
	_, err := g.Studies.CreateStudy(g.As("admin"), &dparetov1.CreateStudyRequest{StudyId: "full", Study: &dparetov1.Study{Spec: spec}})
	require.NoError(t, err)
	ask := func(worker string) error {
		_, err := g.Studies.SuggestTrials(g.As("worker"), &dparetov1.SuggestTrialsRequest{Parent: "studies/full", WorkerId: worker})
		return err
	}
	err = nil
	for i := 0; err == nil && i < 100; i++ {
		err = ask(fmt.Sprintf("%0200d", i))
	}
	servertest.WantCode(t, err, codes.ResourceExhausted, "max-study-bytes")
	for i := range 50 {
		if again := ask(fmt.Sprintf("%0200d", 1000+i)); again == nil || again.Error() != err.Error() {
			t.Fatalf("%v, want %v: the study has grown", again, err)
		}
	}
}
