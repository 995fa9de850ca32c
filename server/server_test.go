package server_test

import (
	"context"
	"errors"
	"math"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/clock/clocktest"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/fault"
	"github.com/dpareto/dpareto/server/store/opentest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a server on a store in a file, with clients. restart stops it, as a
// crash after the last acknowledged write would, and starts another on the file.
type fixture struct {
	t       testing.TB
	clock   *clocktest.Manual
	path    string
	studies dparetov1.StudyServiceClient
	fronts  dparetov1.FrontServiceClient
	admin   dparetov1.AdminServiceClient
	records *store.Store
	conn    *grpc.ClientConn
	server  *server.Server
	stop    func()

	shared    bool                  // one of several servers on a store
	unlocked  bool                  // on one whose locks everybody gets at once
	gate      *gate                 // nil for none
	configure func(*server.Options) // nil for nothing
	dial      []grpc.DialOption
}

func start(t testing.TB) *fixture {
	t.Helper()
	return startWith(t, nil)
}

// startWith starts a server with other options, and connects with further ones.
func startWith(t testing.TB, configure func(*server.Options), dial ...grpc.DialOption) *fixture {
	t.Helper()
	f := &fixture{
		t:         t,
		clock:     clocktest.NewManual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
		path:      filepath.Join(t.TempDir(), "dpareto.db"),
		configure: configure,
		dial:      dial,
	}
	f.serve()
	t.Cleanup(func() { f.stop() })
	return f
}

func (f *fixture) serve() {
	f.t.Helper()
	db := opentest.Open(f.t, f.path)
	// Every function of an update runs twice: it must be able to bear that.
	kv := fault.Twice(db)
	switch {
	case f.shared: // the clock of the database counts
		kv = replica{db.(store.Shared), db, f.gate, f.unlocked}
	case f.gate != nil:
		kv = gated{kv, f.gate}
	}
	records, err := store.New(context.Background(), kv)
	if err != nil {
		f.t.Fatal(err)
	}
	f.records = records
	o := server.Options{Store: records, Version: "test", Clock: f.clock}
	if f.configure != nil {
		f.configure(&o)
	}
	s := server.New(o)
	f.server = s
	g := s.GRPC()
	listener := bufconn.Listen(1 << 20)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := g.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) { // before it began
			f.t.Error(err)
		}
	})
	f.conn, err = grpc.NewClient("passthrough:///bufconn", append(f.dial,
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		f.t.Fatal(err)
	}
	f.studies = dparetov1.NewStudyServiceClient(f.conn)
	f.fronts = dparetov1.NewFrontServiceClient(f.conn)
	f.admin = dparetov1.NewAdminServiceClient(f.conn)
	f.stop = sync.OnceFunc(func() {
		if err := f.conn.Close(); err != nil {
			f.t.Error(err)
		}
		g.Stop()
		serving.Wait()
		s.Close()
		for _, fault := range records.Check(context.Background()) {
			f.t.Errorf("store: %v", fault)
		}
		if err := db.Close(); err != nil {
			f.t.Error(err)
		}
	})
}

// gate holds what a server writes to a study outside of calls: the end of a preparation.
type gate struct {
	scope   store.Scope
	once    sync.Once
	reached chan struct{} // closed when something waits
	opened  chan struct{} // to be closed by the test
}

func newGate(study string) *gate {
	return &gate{scope: store.StudyScope(study), reached: make(chan struct{}), opened: make(chan struct{})}
}

// pass waits at the gate, if there is one, until it is open or ctx ends.
func (g *gate) pass(ctx context.Context, scopes store.Scopes) error {
	if g == nil || grpc.ServerTransportStreamFromContext(ctx) != nil || !slices.Contains(scopes, g.scope) {
		return nil
	}
	g.once.Do(func() { close(g.reached) })
	select {
	case <-g.opened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// gated is a store in a file with a gate.
type gated struct {
	fault.FileKV

	gate *gate
}

// Update implements store.KV.
func (g gated) Update(ctx context.Context, scopes store.Scopes, fn func(store.ReadWriter) error) error {
	if err := g.gate.pass(ctx, scopes); err != nil {
		return err
	}
	return g.FileKV.Update(ctx, scopes, fn)
}

// hold restarts the server with a gate before a study.
func (f *fixture) hold(study string) {
	f.t.Helper()
	f.gate = newGate(study)
	f.restart()
}

func (f *fixture) restart() {
	f.t.Helper()
	f.stop()
	f.serve()
}

// svtSpec is a study of the sparse vector technique.
func svtSpec() *dparetov1.StudySpec {
	reference, errorReference := 10.0, 1.0
	return &dparetov1.StudySpec{
		Parameters: []*dparetov1.ParameterSpec{
			{
				Id: "cutoff", Scale: dparetov1.Scale_SCALE_LINEAR,
				Domain: &dparetov1.ParameterSpec_IntegerDomain{IntegerDomain: &dparetov1.IntegerDomain{Min: 1, Max: 30}},
			},
			{
				Id: "noise_scale", Scale: dparetov1.Scale_SCALE_LOG,
				Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Min: 0.01, Max: 100}},
			},
		},
		Metrics: []*dparetov1.MetricSpec{
			{
				Id: "epsilon", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE,
				Transform: dparetov1.Transform_TRANSFORM_LOG, ReferenceValue: &reference,
				Source: &dparetov1.MetricSpec_Computed{Computed: &dparetov1.ComputedSource{
					Function: &dparetov1.ComputedSource_Privacy{Privacy: &dparetov1.PrivacySpec{
						Mechanism: &dparetov1.PrivacySpec_SparseVector{SparseVector: &dparetov1.SparseVectorMechanism{
							Cutoff: "cutoff", NoiseScale: "noise_scale",
						}},
						Adjacency:  dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
						Accountant: dparetov1.Accountant_ACCOUNTANT_PURE,
					}},
				}},
			},
			{
				Id: "error", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE,
				Transform: dparetov1.Transform_TRANSFORM_LOGIT, ReferenceValue: &errorReference,
				Source: &dparetov1.MetricSpec_Reported{Reported: &dparetov1.ReportedSource{SampleSize: 10}},
			},
		},
		Algorithm: &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_RANDOM},
		Seed:      new(uint64),
	}
}

// sgdSpec is a study of DP-SGD with checkpoints.
func sgdSpec() *dparetov1.StudySpec {
	spec := svtSpec()
	integer := func(id string, lo, hi int64) *dparetov1.ParameterSpec {
		return &dparetov1.ParameterSpec{
			Id: id, Scale: dparetov1.Scale_SCALE_LOG,
			Domain: &dparetov1.ParameterSpec_IntegerDomain{IntegerDomain: &dparetov1.IntegerDomain{Min: lo, Max: hi}},
		}
	}
	spec.Parameters = []*dparetov1.ParameterSpec{
		integer("epochs", 1, 64),
		integer("lot_size", 8, 512),
		{
			Id: "variance", Scale: dparetov1.Scale_SCALE_LOG,
			Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Min: 0.1, Max: 256}},
		},
	}
	privacy := spec.GetMetrics()[0].GetComputed().GetPrivacy()
	privacy.Mechanism = &dparetov1.PrivacySpec_DpSgd{DpSgd: &dparetov1.DpSgdMechanism{
		Sampling: dparetov1.Sampling_SAMPLING_FIXED_SIZE, DatasetSize: "30956", BatchSize: "lot_size",
		NoiseMultiplier: "math.sqrt(variance)", Length: &dparetov1.DpSgdMechanism_Epochs{Epochs: "epochs"},
	}}
	privacy.Accountant = dparetov1.Accountant_ACCOUNTANT_RDP
	privacy.Conversion = dparetov1.Conversion_CONVERSION_CLASSIC
	privacy.Delta = 1e-5
	spec.Metrics[1].GetReported().SampleSize = 1605
	spec.CheckpointParameter = "epochs"
	return spec
}

// create creates a study, and the ledgers that it pays when it is created, and returns its name.
func (f *fixture) create(id string, spec *dparetov1.StudySpec) string {
	f.t.Helper()
	f.openLedgers(f.t.Context(), spec)
	resp, err := f.studies.CreateStudy(f.t.Context(), &dparetov1.CreateStudyRequest{
		StudyId: id, Study: &dparetov1.Study{Spec: spec},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	if resp.GetStudy().GetState() == dparetov1.StudyState_STUDY_STATE_PREPARING {
		f.settled(resp.GetStudy().GetName())
	}
	return resp.GetStudy().GetName()
}

// ask asks for trials.
func (f *fixture) ask(study, worker string, count int32) *dparetov1.SuggestTrialsResponse {
	f.t.Helper()
	resp, err := f.studies.SuggestTrials(f.t.Context(), &dparetov1.SuggestTrialsRequest{
		Parent: study, WorkerId: worker, Count: count,
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return resp
}

// one asks for one trial.
func (f *fixture) one(study, worker string) *dparetov1.Trial {
	f.t.Helper()
	resp := f.ask(study, worker, 1)
	if len(resp.GetTrials()) != 1 {
		f.t.Fatalf("%d trials, end reason %s", len(resp.GetTrials()), resp.GetEndReason())
	}
	return resp.GetTrials()[0]
}

// measurement is a measurement of errors of runs.
func measurement(step int64, errors ...float64) *dparetov1.Measurement {
	return &dparetov1.Measurement{Step: step, Metrics: map[string]*dparetov1.MetricValue{"error": {Runs: errors}}}
}

// completion completes a trial with errors of runs.
func completion(trial *dparetov1.Trial, errors ...float64) *dparetov1.CompleteTrialRequest {
	return &dparetov1.CompleteTrialRequest{
		Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(),
		Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: measurement(0, errors...)},
	}
}

// tell completes a trial.
func (f *fixture) tell(trial *dparetov1.Trial, errors ...float64) *dparetov1.Trial {
	f.t.Helper()
	resp, err := f.studies.CompleteTrial(f.t.Context(), completion(trial, errors...))
	if err != nil {
		f.t.Fatal(err)
	}
	return resp.GetTrial()
}

// trial reads a trial.
func (f *fixture) trial(name string) *dparetov1.Trial {
	f.t.Helper()
	resp, err := f.studies.GetTrial(f.t.Context(), &dparetov1.GetTrialRequest{Name: name})
	if err != nil {
		f.t.Fatal(err)
	}
	return resp.GetTrial()
}

// wantCode checks the code of an error and that its text names something.
func wantCode(t testing.TB, err error, code codes.Code, text string) {
	t.Helper()
	if status.Code(err) != code || !strings.Contains(err.Error(), text) {
		t.Errorf("error %v, want code %s and the text %q", err, code, text)
	}
}

// violated returns the fields named by an INVALID_ARGUMENT error.
func violated(err error) []string {
	var fields []string
	for _, detail := range status.Convert(err).Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok {
			for _, v := range bad.GetFieldViolations() {
				fields = append(fields, v.GetField())
			}
		}
	}
	slices.Sort(fields)
	return fields
}

// finite reports whether a value is set and finite.
func finite(v *dparetov1.MetricValue) bool {
	return v.Value != nil && !math.IsInf(v.GetValue(), 0) && !math.IsNaN(v.GetValue())
}
