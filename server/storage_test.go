package server_test

import (
	"testing"

	"google.golang.org/grpc/codes"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/limit"
)

// stored returns how many bytes the records of the store take.
func (f *fixture) stored() (bytes int64) {
	f.t.Helper()
	counts, err := f.records.Counts(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	for _, c := range counts {
		bytes += c.Bytes
	}
	return bytes
}

// randomSpec is a study whose suggestions cost nothing and that has no budget.
func randomSpec() *dparetov1.StudySpec {
	spec := svtSpec()
	spec.Algorithm, spec.Budget = &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_RANDOM}, nil
	return spec
}

// Small requests for many trials do not fill the disk.
func TestOpenTrialsAreBounded(t *testing.T) {
	f := startWith(t, func(o *server.Options) { o.Limits = limit.Limits{OpenTrialsPerStudy: 100} })
	f.create("svt", randomSpec())
	before := f.stored()
	ask := func(count int32) ([]*dparetov1.Trial, error) {
		resp, err := f.studies.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/svt", WorkerId: "w", Count: count, Resume: new(false)})
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
	wantCode(t, last, codes.ResourceExhausted, "max-open-trials-per-study")
	if grown := f.stored() - before; len(trials) != 100 || grown > 100*1000 {
		t.Errorf("%d trials, the store has grown by %d bytes", len(trials), grown)
	}
	f.tell(trials[0], 0.5)
	if more, err := ask(1); err != nil || len(more) != 1 {
		t.Errorf("after a completion: %v, %v", more, err)
	}
}

// A study that is too large takes no more trials and measurements, but results.
func TestBytesOfAStudyAreBounded(t *testing.T) {
	f := startWith(t, func(o *server.Options) { o.Limits = limit.Limits{StudyBytes: 8000} })
	f.create("svt", randomSpec())
	trial := f.one("studies/svt", "w")
	ctx := t.Context()
	var err error
	for step := int64(1); err == nil && step < 2000; step++ {
		_, err = f.studies.AddMeasurement(ctx, &dparetov1.AddMeasurementRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: measurement(step, 0.5),
		})
	}
	wantCode(t, err, codes.ResourceExhausted, "max-study-bytes")
	if size := f.stored(); size > 9000 {
		t.Errorf("the store has %d bytes", size)
	}
	_, err = f.studies.SuggestTrials(ctx, &dparetov1.SuggestTrialsRequest{Parent: "studies/svt", WorkerId: "v"})
	wantCode(t, err, codes.ResourceExhausted, "max-study-bytes")
	f.tell(trial, 0.5)
}
