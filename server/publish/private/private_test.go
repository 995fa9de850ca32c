package private_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/internal/testsize"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/privacy/transcript"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/audit"
	"github.com/dpareto/dpareto/server/metrics"
	"github.com/dpareto/dpareto/server/servertest"
	"github.com/dpareto/dpareto/server/store"
)

// trainFilters are the filters that a study with private_mode can have.
var trainFilters = []dparetov1.TrainFilter{dparetov1.TrainFilter_TRAIN_FILTER_GAUSSIAN, dparetov1.TrainFilter_TRAIN_FILTER_RENYI}

// gaussianRunCost is what a run of the Gaussian mechanism costs a study with a filter: 1/σ² of μ², or
// α/(2σ²) of the Rényi divergence of its order.
func gaussianRunCost(filter dparetov1.TrainFilter, order, sigma float64) float64 {
	if filter == dparetov1.TrainFilter_TRAIN_FILTER_RENYI {
		return order / (2 * sigma * sigma)
	}
	return 1 / (sigma * sigma)
}

func seededEntropy(seed uint64) func(*server.Options) {
	return func(o *server.Options) { o.Entropy = noise.Seeded(seed) }
}

func TestPrivateModeRefused(t *testing.T) {
	f := servertest.Start(t)
	for name, test := range map[string]struct {
		change func(*dparetov1.StudySpec)
		fields []string
	}{
		"nothing set": {func(s *dparetov1.StudySpec) { s.PrivateMode = new(dparetov1.PrivateModeSpec) }, []string{
			"study.spec.private_mode.delta", "study.spec.private_mode.test_epsilon", "study.spec.private_mode.test_set_size", "study.spec.private_mode.train_epsilon",
		}},
		"no budget":   {func(s *dparetov1.StudySpec) { s.Budget = nil }, []string{"study.spec.budget.max_trials"}},
		"few values":  {func(s *dparetov1.StudySpec) { s.PrivateMode.MaxValues = 3 }, []string{"study.spec.private_mode.max_values"}},
		"many values": {func(s *dparetov1.StudySpec) { s.PrivateMode.MaxValues = 2e9 }, []string{"study.spec.private_mode.max_values"}},
		"many trials": {func(s *dparetov1.StudySpec) { s.Budget.MaxTrials = 2e9 }, []string{"study.spec.budget.max_trials"}},
		"infinite":    {func(s *dparetov1.StudySpec) { s.PrivateMode.TestEpsilon = math.Inf(1) }, []string{"study.spec.private_mode.test_epsilon"}},
		"vacuous noise": {func(s *dparetov1.StudySpec) {
			s.PrivateMode.TestEpsilon, s.PrivateMode.TestSetSize, s.PrivateMode.Delta = 1e-300, 1, 1e-9
		}, []string{"study.spec.private_mode.test_epsilon"}},
		"not a number": {func(s *dparetov1.StudySpec) { s.PrivateMode.Delta = math.NaN() }, []string{"study.spec.private_mode.delta"}},
		"shards":       {func(s *dparetov1.StudySpec) { s.PrivateMode.TrainingShards = -1 }, []string{"study.spec.private_mode.training_shards"}},
		"sample size":  {func(s *dparetov1.StudySpec) { s.Metrics[1].GetReported().SampleSize = 99 }, []string{"study.spec.metrics[1].reported.sample_size"}},
		"known noise": {func(s *dparetov1.StudySpec) {
			s.Metrics[1].GetReported().Noise = dparetov1.Noise_NOISE_KNOWN
		}, []string{"study.spec.metrics[1].reported.noise"}},
		"no mechanism": {func(s *dparetov1.StudySpec) {
			s.Metrics[0].GetComputed().Function = &dparetov1.ComputedSource_Expression{Expression: "sigma"}
		}, []string{"study.spec.metrics"}},
		"measured cost": {func(s *dparetov1.StudySpec) {
			s.Cost = &dparetov1.CostSpec{Measure: &dparetov1.CostSpec_Metric{Metric: "error"}}
		}, []string{"study.spec.cost.metric"}},
		"private priors":     {func(s *dparetov1.StudySpec) { s.PriorStudies = []string{"studies/earlier"} }, []string{"study.spec.private_mode.prior_studies_are_public"}},
		"private constants":  {func(s *dparetov1.StudySpec) { servertest.WithConstant(s, 0, 0.5) }, []string{"study.spec.private_mode.constant_points_are_public"}},
		"nothing affordable": {func(s *dparetov1.StudySpec) { s.PrivateMode.TrainEpsilon = 1e-6 }, []string{"study.spec.private_mode.train_epsilon"}},
	} {
		spec := servertest.PrivateSpec(4, 1)
		test.change(spec)
		_, err := f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "bad", Study: &dparetov1.Study{Spec: spec}})
		servertest.WantCode(t, err, codes.InvalidArgument, "")
		if got := servertest.Violated(err); !slices.Equal(got, test.fields) {
			t.Errorf("%s: violated fields %q, want %q (%v)", name, got, test.fields, err)
		}
	}
	loose := servertest.PrivateSpec(4, 1)
	loose.PrivateMode.TestEpsilon = 1e9
	_, err := f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "bad", Study: &dparetov1.Study{Spec: loose}})
	servertest.WantCode(t, err, codes.InvalidArgument, "study.spec.private_mode.test_epsilon: must be at most 1e+06, is 1e+09")
}

// A study with private_mode can have categories.
func TestPrivateModeWithCategories(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.PrivateSpec(4, 1000)
	spec.Parameters = append(spec.Parameters, &dparetov1.ParameterSpec{
		Id: "kind", Domain: &dparetov1.ParameterSpec_CategoricalDomain{CategoricalDomain: &dparetov1.CategoricalDomain{Categories: []string{"a", "b"}}},
	})
	f.Tell(f.Ask(f.Create("s", spec), "worker", 1).GetTrials()[0], 0.5)
}

// Where Poisson sampling follows from the number of records, what is published says that the
// number is public.
func TestPublicationsStateThePublicSize(t *testing.T) {
	t.Parallel()
	f := servertest.Start(t)
	random := servertest.SearchSpec(10, 1)
	for id, spec := range map[string]*dparetov1.StudySpec{"private": servertest.PrivateSpec(4, 1000), "random": random} {
		p := spec.GetMetrics()[0].GetComputed().GetPrivacy()
		p.Adjacency = dparetov1.Adjacency_ADJACENCY_ADD_REMOVE
		p.Mechanism = &dparetov1.PrivacySpec_DpSgd{DpSgd: &dparetov1.DpSgdMechanism{
			Sampling: dparetov1.Sampling_SAMPLING_POISSON, Convention: dparetov1.Convention_CONVENTION_OPACUS, DatasetSize: "1000", BatchSize: "300",
			NoiseMultiplier: "sigma", Length: &dparetov1.DpSgdMechanism_Epochs{Epochs: "1"},
		}}
		publication := f.Study(f.Create(id, spec)).GetPublication()
		for _, got := range [][]*dparetov1.Assumption{publication.GetAssumptions(), publication.GetTrain().GetAssumptions()} {
			if !show.IsSizePublic(got) {
				t.Errorf("%s: assumptions %q", id, got)
			}
		}
		ledger, err := f.Releases().GetLedger(t.Context(), &dparetov1.GetLedgerRequest{Name: spec.GetTrainLedger()})
		if got := ledger.GetLedger().GetSpent().GetAssumptions(); err != nil || !show.IsSizePublic(got) {
			t.Errorf("%s: what is spent of the ledger assumes %q (%v)", id, got, err)
		}
	}
}

// What is kept of a measurement is a noisy mean of clipped runs.
func TestPrivateModeKeepsNoiseOnly(t *testing.T) {
	t.Parallel()
	f := servertest.StartWith(t, seededEntropy(1))
	spec := servertest.PrivateSpec(400, 1000)
	spec.Replicates = 4
	study := f.Create("s", spec)
	sigma := f.Study(study).GetPublication().GetNoiseStandardDeviation()
	if want, _ := transcript.Noise(10_000, 400, 1, 1e-6); !(sigma >= want && sigma < want*(1+1e-6)) {
		t.Fatalf("noise %g, want %g", sigma, want)
	}
	var sum, squares float64
	const n = 300
	for range n {
		trial := f.One(study, "w")
		m := servertest.Measurement(0, 0.2, 0.4, 3, -5) // clipped: 0.2, 0.4, 1, 0
		m.Elapsed = durationpb.New(time.Second)
		m.Metrics["epsilon"] = &dparetov1.MetricValue{Value: new(0.7)}
		request := servertest.Completion(trial)
		request.Outcome = &dparetov1.CompleteTrialRequest_Measurement{Measurement: m}
		resp, err := f.Studies.CompleteTrial(t.Context(), request)
		require.NoError(t, err)
		final := resp.GetTrial().GetFinalMeasurement()
		value := final.GetMetrics()["error"]
		want := &dparetov1.MetricValue{Value: value.Value, StandardError: &sigma}
		if diff := cmp.Diff(want, value, protocmp.Transform()); diff != "" {
			t.Fatalf("kept value (-want +got):\n%s", diff)
		}
		if final.GetElapsed() != nil || final.GetMetrics()["epsilon"].Reported != nil {
			t.Fatalf("kept %v", final)
		}
		z := (value.GetValue() - 0.4) / sigma
		sum, squares = sum+z, squares+z*z
	}
	if mean := sum / n; math.Abs(mean) > 4/math.Sqrt(n) {
		t.Errorf("mean of the noise: %g standard deviations", mean)
	}
	if variance := squares / n; math.Abs(variance-1) > 4*math.Sqrt(2.0/n) {
		t.Errorf("variance of the noise: %g of that declared", variance)
	}
	spent := f.Study(study).GetPublication().GetSpent()
	if spent.GetValues() != n || spent.GetMaxValues() != 400 {
		t.Errorf("%d of %d values are spent", spent.GetValues(), spent.GetMaxValues())
	}
	if e := spent.GetTest().GetEpsilon(); !(e > 0.8 && e < 1) {
		t.Errorf("ε of the test records so far: %g", e)
	}
	ledger, err := dparetov1.NewPrivacyServiceClient(f.Conn).GetPrivacyLedger(t.Context(), &dparetov1.GetPrivacyLedgerRequest{Name: study})
	require.NoError(t, err)
	if diff := cmp.Diff(f.Study(study).GetPublication(), ledger.GetPublication(), protocmp.Transform()); diff != "" {
		t.Errorf("publication in the ledger (-study +ledger):\n%s", diff)
	}
}

// The whole of the declared test budget: ε of all values is at most the declared one, and
// nearly attained.
func TestPrivateModeTestBudgetIsTight(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("s", servertest.PrivateSpec(10, 5))
	for range 10 {
		f.Tell(f.One(study, "w"), 0.5)
	}
	resp := f.Ask(study, "w", 1)
	if len(resp.GetTrials()) > 0 || resp.GetStudyState() != dparetov1.StudyState_STUDY_STATE_COMPLETED {
		t.Errorf("after the last value: %v", resp)
	}
	if e := f.Study(study).GetPublication().GetSpent().GetTest().GetEpsilon(); !(e <= 1 && e > 1-1e-6) {
		t.Errorf("ε = %.12g of a declared 1", e)
	}
}

// Raw values and their hashes are nowhere: not in the store, its backups and exports, the
// log, the audit log, metrics or traces.
func TestPrivateModeLeaksNothing(t *testing.T) {
	var log, audits bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	counters := metrics.New("test")
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	f := servertest.StartWith(t, func(o *server.Options) {
		o.Logger, o.Metrics, o.TracerProvider, o.Audit = logger, counters, provider, audit.New(&audits, logger)
	})
	spec := servertest.WithCheckpoints(servertest.PrivateSpec(12, 20), 100)
	spec.Replicates = 2
	study := f.Create("s", spec)

	var needles [][]byte
	rng := rand.New(rand.NewPCG(7, 7))
	number := func(x float64) {
		needles = append(needles,
			binary.LittleEndian.AppendUint64(nil, math.Float64bits(x)), binary.BigEndian.AppendUint64(nil, math.Float64bits(x)),
			[]byte(strconv.FormatFloat(x, 'g', -1, 64)[:10]), []byte(strconv.FormatFloat(x, 'f', 8, 64)))
	}
	secret := func() float64 {
		x := 0.1 + 0.8*rng.Float64()
		number(x)
		return x
	}
	digest := func(request proto.Message) {
		for _, id := range []bool{true, false} {
			other := proto.Clone(request)
			if !id {
				other.ProtoReflect().Clear(other.ProtoReflect().Descriptor().Fields().ByName("request_id"))
			}
			b, err := proto.MarshalOptions{Deterministic: true}.Marshal(other)
			require.NoError(t, err)
			sum := sha256.Sum256(b)
			needles = append(needles, sum[:])
		}
	}
	secretMeasurement := func(step int64) *dparetov1.Measurement {
		a, b := secret(), secret()
		number((a + b) / 2)
		number(a/2 + b/2)
		elapsed := time.Duration(1e9 + rng.Int64N(1e9))
		needles = append(needles, []byte(strconv.Itoa(int(elapsed.Nanoseconds()%1e9))))
		m := servertest.Measurement(step, a, b)
		m.Elapsed = durationpb.New(elapsed)
		m.Metrics["epsilon"] = &dparetov1.MetricValue{Value: new(secret())}
		return m
	}
	words := func() string { return fmt.Sprintf("accuracy was %v", secret()) }
	call := func(request proto.Message, code codes.Code) {
		t.Helper()
		digest(request)
		for range 2 { // as a client that lost the answer
			_, err := f.Call(t.Context(), request)
			if status.Code(err) != code {
				t.Fatalf("%T: %v, want %v", request, err, code)
			}
			if err != nil {
				log.WriteString(err.Error()) // clients log what they get
			}
		}
	}
	for i := range 11 {
		trial := f.One(study, "w")
		id := fmt.Sprintf("id-%d", i)
		complete := servertest.Completion(trial)
		complete.RequestId = id
		if i%2 == 0 {
			for step := int64(1); step <= 2; step++ {
				call(&dparetov1.AddMeasurementRequest{
					Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: secretMeasurement(step), RequestId: fmt.Sprintf("%s-%d", id, step),
				}, codes.OK)
			}
		}
		switch i {
		case 3:
			complete.Outcome = &dparetov1.CompleteTrialRequest_Infeasible{Infeasible: &dparetov1.Infeasible{Reason: words()}}
		case 4:
			complete.Outcome = &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: words(), Retryable: true}}
		case 5:
			call(&dparetov1.ReleaseTrialRequest{Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Reason: words(), RequestId: id}, codes.OK)
			continue
		case 8: // and completed
			call(&dparetov1.StopTrialRequest{Name: trial.GetName(), Reason: words(), RequestId: id + "-stop"}, codes.OK)
			complete.Outcome = &dparetov1.CompleteTrialRequest_Measurement{Measurement: secretMeasurement(2)}
		case 9:
			call(&dparetov1.ReleaseTrialRequest{Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Reason: words(), RequestId: id}, codes.OK)
			call(&dparetov1.StopTrialRequest{Name: trial.GetName(), Reason: words(), RequestId: id + "-stop"}, codes.OK)
			continue
		case 6: // refused, and logged
			m := secretMeasurement(99)
			complete.Outcome = &dparetov1.CompleteTrialRequest_Measurement{Measurement: m}
			call(complete, codes.InvalidArgument)
			m = secretMeasurement(2)
			m.Metrics["error"].Value = new(secret())
			complete.Outcome = &dparetov1.CompleteTrialRequest_Measurement{Measurement: m}
			call(complete, codes.InvalidArgument)
			bad := secretMeasurement(2)
			bad.Metrics["error"].Runs[1] = math.Inf(1)
			complete.Outcome = &dparetov1.CompleteTrialRequest_Measurement{Measurement: bad}
			call(complete, codes.InvalidArgument)
			call(&dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{
				Parameters: trial.GetParameters(), FinalMeasurement: secretMeasurement(1),
			}, RequestId: id + "-import"}, codes.FailedPrecondition)
			continue
		case 7:
			complete.Outcome = &dparetov1.CompleteTrialRequest_UseLastMeasurement{}
			call(complete, codes.FailedPrecondition)
			continue
		default:
			complete.Outcome = &dparetov1.CompleteTrialRequest_Measurement{Measurement: secretMeasurement(int64(i % 3))}
		}
		call(complete, codes.OK)
	}
	trial := f.One(study, "w") // the one that was held last, whose token is old now
	require.NoError(t, require.ErrOf(f.Fronts.GetFront(t.Context(), &dparetov1.GetFrontRequest{Name: study, Kind: dparetov1.FrontKind_FRONT_KIND_OBSERVED})))

	places := map[string][]byte{"trial": []byte(trial.String()), "export": []byte(servertest.Lines(t, f.Export(study)))}
	for _, r := range f.Export(study) {
		b, err := proto.Marshal(r)
		require.NoError(t, err)
		places["exported records"] = append(places["exported records"], b...)
	}
	stream, err := f.Admin.BackupStore(t.Context(), new(dparetov1.BackupStoreRequest))
	for err == nil {
		var piece *dparetov1.BackupStoreResponse
		if piece, err = stream.Recv(); err == nil {
			places["backup"] = append(places["backup"], piece.GetData()...)
		}
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	scrape := httptest.NewRecorder()
	counters.Handler().ServeHTTP(scrape, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	places["metrics"] = scrape.Body.Bytes()
	f.Stop()
	if places["store"], err = os.ReadFile(f.Path); err != nil {
		t.Fatal(err)
	}
	places["log"], places["audit log"] = log.Bytes(), audits.Bytes()
	places["traces"] = fmt.Appendf(nil, "%+v", spans.GetSpans().Snapshots())
	for _, s := range spans.GetSpans() {
		places["traces"] = fmt.Appendf(places["traces"], "%v %v %v", s.Name, s.Attributes, s.Status)
	}
	for place, content := range places {
		if len(content) < 100 {
			t.Errorf("%s: only %d bytes were searched", place, len(content))
		}
		for i, needle := range needles {
			if bytes.Contains(content, needle) {
				t.Errorf("%s: holds needle %d, %q", place, i, needle)
			}
		}
	}
	if len(needles) < 200 {
		t.Errorf("only %d needles", len(needles))
	}
	if err := provider.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}

// The same needles are found in a study without private_mode, so that the search above is
// able to find them.
func TestRawValuesAreFoundWithoutPrivateMode(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("s", servertest.SVTSpec())
	trial := f.One(study, "w")
	const x = 0.31415926535
	request := servertest.Completion(trial, x)
	request.RequestId = "id"
	require.NoError(t, require.ErrOf(f.Studies.CompleteTrial(t.Context(), request)))
	other := proto.CloneOf(request)
	other.RequestId = ""
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(other)
	require.NoError(t, err)
	sum := sha256.Sum256(b)
	f.Stop()
	content, err := os.ReadFile(f.Path)
	require.NoError(t, err)
	for _, needle := range [][]byte{sum[:], binary.LittleEndian.AppendUint64(nil, math.Float64bits(x))} {
		if !bytes.Contains(content, needle) {
			t.Errorf("%q is not found", needle)
		}
	}
}

// The first report at a step, and the first outcome under a lease, count; repeating them
// costs nothing and gives the same noise, whatever the values.
func TestPrivateModeRepetitions(t *testing.T) {
	f := servertest.StartWith(t, seededEntropy(2))
	study := f.Create("s", servertest.WithCheckpoints(servertest.PrivateSpec(3, 20), 20))
	trial := f.One(study, "w")
	add := func(step int64, value float64) {
		t.Helper()
		_, err := f.Studies.AddMeasurement(t.Context(), &dparetov1.AddMeasurementRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: servertest.Measurement(step, value),
		})
		require.NoError(t, err)
	}
	values := func() int64 { return f.Study(study).GetPublication().GetSpent().GetValues() }
	add(2, 0.5)
	kept := f.Trial(trial.GetName()).GetMeasurements()[0]
	add(2, 0.5)
	add(2, 0.9)
	if got := f.Trial(trial.GetName()).GetMeasurements(); len(got) != 1 || !proto.Equal(got[0], kept) || values() != 1 {
		t.Errorf("after repetitions: %v, %d values", got, values())
	}
	complete := servertest.Completion(trial)
	complete.Outcome = &dparetov1.CompleteTrialRequest_Measurement{Measurement: servertest.Measurement(2, 0.7)}
	first, err := f.Studies.CompleteTrial(t.Context(), complete)
	require.NoError(t, err)
	if got := first.GetTrial().GetFinalMeasurement(); !proto.Equal(got.GetMetrics()["error"], kept.GetMetrics()["error"]) || values() != 1 {
		t.Errorf("final measurement %v, %d values", got, values())
	}
	complete.Outcome = &dparetov1.CompleteTrialRequest_Measurement{Measurement: servertest.Measurement(2, 0.1)}
	again, err := f.Studies.CompleteTrial(t.Context(), complete)
	if err != nil || !proto.Equal(first, again) || values() != 1 {
		t.Errorf("repeated completion: %v, %v", again, err)
	}
	complete.Outcome = &dparetov1.CompleteTrialRequest_Measurement{Measurement: servertest.Measurement(3, 0.1)}
	_, err = f.Studies.CompleteTrial(t.Context(), complete)
	servertest.WantCode(t, err, codes.FailedPrecondition, "never overwritten")

	// A late result of an earlier attempt is not that of the present one.
	trial = f.One(study, "slow")
	f.Clock.Advance(time.Hour)
	now := f.One(study, "quick")
	if now.GetNumber() != trial.GetNumber() {
		t.Fatalf("trial %d instead of %d", now.GetNumber(), trial.GetNumber())
	}
	late := servertest.Completion(trial)
	trial = now
	add(4, 0.2)
	late.Outcome = &dparetov1.CompleteTrialRequest_Measurement{Measurement: servertest.Measurement(4, 0.6)}
	resp, err := f.Studies.CompleteTrial(t.Context(), late)
	if err != nil || math.Abs(resp.GetTrial().GetFinalMeasurement().GetMetrics()["error"].GetValue()-0.6) > 0.1 || values() != 3 {
		t.Errorf("late result %v, %v; %d values", resp.GetTrial().GetFinalMeasurement(), err, values())
	}
}

// Values on the way leave enough for the final ones of all trials, also of those that
// nobody has asked for, and are shared among the trials.
func TestPrivateModeReservesFinalValues(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("s", servertest.WithCheckpoints(servertest.PrivateSpec(3, 20), 5))
	add := func(trial *dparetov1.Trial, step int64) error {
		_, err := f.Studies.AddMeasurement(t.Context(), &dparetov1.AddMeasurementRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: servertest.Measurement(step, 0.5),
		})
		return err
	}
	for i, kept := range []int{1, 1, 0} { // of 2 that are left
		trial := f.One(study, fmt.Sprint("w", i))
		end := trial.GetParameters()["epochs"].GetIntValue()
		got := 0
		for step := int64(1); step < end; step++ {
			if err := add(trial, step); err != nil {
				servertest.WantCode(t, err, codes.ResourceExhausted, "intermediate measurements")
				continue
			}
			if got++; step != int64(math.Round(math.Sqrt(float64(end)))) {
				t.Errorf("a run of %d epochs was measured at %d", end, step)
			}
		}
		if got != kept {
			t.Errorf("trial %d: %d intermediate measurements, want %d", i, got, kept)
		}
		f.Tell(trial, 0.5)
	}
	if spent := f.Study(study).GetPublication().GetSpent(); spent.GetValues() != 5 {
		t.Errorf("%d of 5 values", spent.GetValues())
	}
	without := f.Create("without", servertest.PrivateSpec(3, 20))
	trial := f.One(without, "a")
	servertest.WantCode(t, add(trial, 1), codes.FailedPrecondition, "no checkpoint parameter")
}

// The trial that would exceed the training budget is refused, what is suggested before
// keeps to what is left, and the study completes.
func TestPrivateModeTrainingBudget(t *testing.T) {
	for _, filter := range trainFilters {
		t.Run(filter.String(), func(t *testing.T) { testTrainingBudget(t, filter) })
	}
}

func testTrainingBudget(t *testing.T, filter dparetov1.TrainFilter) {
	t.Helper()
	for _, algorithm := range []dparetov1.Algorithm{
		dparetov1.Algorithm_ALGORITHM_RANDOM, dparetov1.Algorithm_ALGORITHM_QUASI_RANDOM, dparetov1.Algorithm_ALGORITHM_GRID, dparetov1.Algorithm_ALGORITHM_DEFAULT,
	} {
		f := servertest.Start(t)
		spec := servertest.PrivateSpec(1000, 1)
		spec.PrivateMode.TrainFilter = filter
		spec.Algorithm = &dparetov1.AlgorithmSpec{Name: algorithm, InitialTrials: 1000}
		spec.Parameters[0].GridLevels = 1000
		study := f.Create("s", spec)
		queued, err := f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{
			Parameters: map[string]*dparetov1.Value{"sigma": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: 1}}},
		}})
		require.NoError(t, err)
		var resp *dparetov1.SuggestTrialsResponse
		trials := 0
		for resp = f.Ask(study, "w", 1); len(resp.GetTrials()) > 0; resp = f.Ask(study, "w", 1) {
			f.Tell(resp.GetTrials()[0], 0.5)
			if trials++; trials > 900 {
				t.Fatalf("%v: %d trials", algorithm, trials)
			}
		}
		if resp.GetEndReason() != dparetov1.EndReason_END_REASON_PRIVACY_BUDGET_SPENT || resp.GetStudyState() != dparetov1.StudyState_STUDY_STATE_COMPLETED {
			t.Errorf("%v: %v", algorithm, resp)
		}
		if got := f.Trial(queued.GetTrial().GetName()); got.GetState() != dparetov1.TrialState_TRIAL_STATE_FAILED || got.GetAttempt() != 0 {
			t.Errorf("%v: the unaffordable trial is %v after %d attempts", algorithm, got.GetState(), got.GetAttempt())
		}
		spent := f.Study(study).GetPublication().GetSpent()
		sum := 0.0
		_, all := f.Exported(study)
		for _, trial := range all {
			if trial.GetTrial().GetAttempt() > 0 {
				sum += gaussianRunCost(filter, spent.GetOrder(), trial.GetTrial().GetParameters()["sigma"].GetDoubleValue())
			}
		}
		if got := spent.GetShardCosts()[0]; math.Abs(got-sum) > 1e-8*sum || got > spent.GetTrainBudget() {
			t.Errorf("%v: charged %g, the trials cost %g, the budget is %g", algorithm, got, sum, spent.GetTrainBudget())
		}
		if left := spent.GetTrainBudget() - sum; left > 1.2*gaussianRunCost(filter, spent.GetOrder(), 32) {
			t.Errorf("%v: %g of %g is left", algorithm, left, spent.GetTrainBudget())
		}
		if e := spent.GetTrain().GetEpsilon(); !(e <= 1 && e > 0.9) {
			t.Errorf("%v: ε = %g of a declared 1", algorithm, e)
		}
		if trials < 3 && algorithm != dparetov1.Algorithm_ALGORITHM_GRID { // which begins with the costliest
			t.Errorf("%v: %d trials", algorithm, trials)
		}
	}
}

// Of 10 epochs with fixed-size lots of 256 of 32,561 records and σ = 4, a study with ε = 4 runs 115,
// which is what the filter of package privacy admits, by the filter that is the default for it. With
// the Rényi filter it was 102.
func TestPrivateModeRuns(t *testing.T) {
	t.Parallel()
	for filter, want := range map[dparetov1.TrainFilter]int{
		dparetov1.TrainFilter_TRAIN_FILTER_UNSPECIFIED: 115, dparetov1.TrainFilter_TRAIN_FILTER_GAUSSIAN: 115, dparetov1.TrainFilter_TRAIN_FILTER_RENYI: 102,
	} {
		f := servertest.Start(t)
		spec := servertest.PrivateSpec(200, 4)
		spec.Algorithm = &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_RANDOM}
		spec.PrivateMode.TrainFilter = filter
		p := spec.GetMetrics()[0].GetComputed().GetPrivacy()
		p.Adjacency = dparetov1.Adjacency_ADJACENCY_REPLACE_ONE
		p.Mechanism = &dparetov1.PrivacySpec_DpSgd{DpSgd: &dparetov1.DpSgdMechanism{
			Sampling: dparetov1.Sampling_SAMPLING_FIXED_SIZE, DatasetSize: "32561", BatchSize: "256", NoiseMultiplier: "4",
			Length: &dparetov1.DpSgdMechanism_Steps{Steps: "1270"},
		}}
		study := f.Create("s", servertest.WithLedgers(spec))
		runs := 0
		for resp := f.Ask(study, "w", 1); len(resp.GetTrials()) > 0; resp = f.Ask(study, "w", 1) {
			f.Tell(resp.GetTrials()[0], 0.5)
			runs++
		}
		if runs != want {
			t.Errorf("%v: %d runs, want %d", filter, runs, want)
		}
	}
}

// A study takes the filter that admits more of its runs: for those known by their Rényi divergences
// only, that is the Rényi filter.
func TestPrivateModeFilterOfSpec(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.PrivateSpec(4, 1)
	if g := f.Study(f.Create("gaussian", spec)).GetPublication().GetTrain(); g.GetAccountant() != dparetov1.Accountant_ACCOUNTANT_GDP || g.GetOrder() != 0 {
		t.Errorf("a Gaussian mechanism has %v", g)
	}
	spec.GetMetrics()[0].GetComputed().GetPrivacy().Mechanism = &dparetov1.PrivacySpec_ZeroConcentrated{ZeroConcentrated: &dparetov1.ZeroConcentratedMechanism{Rho: "0.5 / (sigma * sigma)"}}
	if g := f.Study(f.Create("concentrated", spec)).GetPublication().GetTrain(); g.GetAccountant() != dparetov1.Accountant_ACCOUNTANT_RDP || !(g.GetOrder() > 1) {
		t.Errorf("a mechanism known by its divergences has %v", g)
	}
	spec.PrivateMode.TrainFilter = dparetov1.TrainFilter_TRAIN_FILTER_GAUSSIAN
	spec.GetMetrics()[0].GetComputed().GetPrivacy().GetZeroConcentrated().Rho = "1000.0"
	_, err := f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "none", Study: &dparetov1.Study{Spec: spec}})
	servertest.WantCode(t, err, codes.InvalidArgument, "study.spec.private_mode.train_filter: must be TRAIN_FILTER_RENYI or unset")
	spec.PrivateMode.TrainFilter = 99
	_, err = f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "none", Study: &dparetov1.Study{Spec: spec}})
	servertest.WantCode(t, err, codes.InvalidArgument, "private_mode.train_filter: is unknown: 99")
}

// Whatever happens, neither budget is exceeded, and what every hand-out and every value
// cost is there after a crash.
func TestPrivateModeFilters(t *testing.T) {
	for seed := range uint64(testsize.Pick(2, 30)) {
		rng := rand.New(rand.NewPCG(seed, 11))
		f := servertest.Start(t)
		spec := servertest.WithCheckpoints(servertest.PrivateSpec(30, 0.5+4*rng.Float64()), 60)
		spec.Replicates = 1 + rng.Int32N(3)
		filter := trainFilters[seed%2]
		spec.PrivateMode.TrainFilter = filter
		spec.PrivateMode.TrainingShards = 1 + rng.Int32N(4)
		spec.Lease = &dparetov1.LeasePolicy{MaxAttempts: 4}
		study := f.Create("s", spec)
		hold := make(map[string]*dparetov1.Trial)
		attempts, cost := int64(0), make([]float64, spec.GetPrivateMode().GetTrainingShards())
		check := func() {
			t.Helper()
			record, trials := f.Exported(study)
			terms := record.GetPrivateMode()
			sums, n, values, shown := make([]float64, len(cost)), int64(0), int64(0), int64(0)
			for _, trial := range trials {
				values += trial.GetPrivateMode().GetValues()
				shown += int64(len(trial.GetTrial().GetMeasurements()))
				for _, c := range trial.GetPrivateMode().GetCharges() {
					n++
					sigma, epochs := trial.GetTrial().GetParameters()["sigma"].GetDoubleValue(), trial.GetTrial().GetParameters()["epochs"].GetIntValue()
					want := float64(int64(spec.GetReplicates())*epochs) * gaussianRunCost(filter, terms.GetOrder(), sigma)
					if math.Abs(c.GetCost()-want) > 1e-8*want {
						t.Fatalf("seed %d: a hand-out was charged %g, costs %g", seed, c.GetCost(), want)
					}
					sums[c.GetShard()] += want
				}
			}
			for k, sum := range sums {
				if got := terms.GetShardCosts()[k]; math.Abs(got-sum) > 1e-8*(1+sum) || sum > terms.GetTrainBudget()*(1+1e-12) {
					t.Fatalf("seed %d: shard %d was charged %g, costs %g of %g", seed, k, got, sum, terms.GetTrainBudget())
				}
				cost[k] = sum
			}
			if terms.GetValues() != values || values < shown || terms.GetValues()+terms.GetReservedValues() > terms.GetMaxValues() || n < attempts {
				t.Fatalf("seed %d: %d values, %d of trials, %d shown, %d reserved; %d hand-outs, %d seen", seed,
					terms.GetValues(), values, shown, terms.GetReservedValues(), n, attempts)
			}
		}
		for range 120 {
			worker := fmt.Sprintf("w%d", rng.IntN(4))
			trial := hold[worker]
			switch op := rng.IntN(10); {
			case op < 3:
				resp := f.Ask(study, worker, 1)
				for _, trial := range resp.GetTrials() {
					attempts++
					hold[worker] = trial
				}
			case trial == nil:
			case op < 6:
				request := &dparetov1.AddMeasurementRequest{Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: servertest.Measurement(1+rng.Int64N(4), slices.Repeat([]float64{rng.Float64()}, int(spec.GetReplicates()))...)}
				for range 1 + rng.IntN(2) {
					_, _ = f.Studies.AddMeasurement(t.Context(), request)
				}
			case op == 6:
				request := servertest.Completion(trial, slices.Repeat([]float64{rng.Float64()}, int(spec.GetReplicates()))...)
				for range 1 + rng.IntN(2) {
					_, err := f.Studies.CompleteTrial(t.Context(), request)
					if got := f.Trial(trial.GetName()).GetState(); err != nil && got != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED && got != dparetov1.TrialState_TRIAL_STATE_FAILED {
						t.Fatalf("seed %d: a result was lost: %v, the trial is %v", seed, err, got)
					}
				}
				delete(hold, worker)
			case op == 7:
				_, _ = f.Studies.ReleaseTrial(t.Context(), &dparetov1.ReleaseTrialRequest{Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken()})
			case op == 8:
				f.Clock.Advance(time.Hour)
			default:
				f.Restart()
			}
			check()
		}
		f.Stop()
	}
}

// Shards take turns, and each has the whole budget.
func TestPrivateModeShards(t *testing.T) {
	f := servertest.Start(t)
	trials := func(shards int32) int {
		spec := servertest.PrivateSpec(1000, 1)
		spec.PrivateMode.TrainingShards = shards
		study := f.Create(fmt.Sprintf("s%d", shards), spec)
		n, seen := 0, make(map[int32]int)
		for resp := f.Ask(study, "w", 1); len(resp.GetTrials()) > 0; resp = f.Ask(study, "w", 1) {
			seen[resp.GetTrials()[0].GetTrainingShard()]++
			f.Tell(resp.GetTrials()[0], 0.5)
			n++
		}
		if len(seen) != int(shards) {
			t.Errorf("%d shards: used %v", shards, seen)
		}
		return n
	}
	if one, four := trials(1), trials(4); four <= 2*one {
		t.Errorf("%d trials on one shard, %d on four", one, four)
	}
}

// Neither an update nor another account loosens what was declared.
func TestPrivateModeIsFixed(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("s", servertest.PrivateSpec(4, 1))
	change := func(change func(*dparetov1.StudySpec)) error {
		s := f.Study(study)
		change(s.GetSpec())
		_, err := f.Update(s, "spec")
		return err
	}
	for field, c := range map[string]func(*dparetov1.StudySpec){
		"private_mode.test_epsilon":    func(s *dparetov1.StudySpec) { s.PrivateMode.TestEpsilon = 2 },
		"private_mode.train_epsilon":   func(s *dparetov1.StudySpec) { s.PrivateMode.TrainEpsilon = 2 },
		"private_mode.max_values":      func(s *dparetov1.StudySpec) { s.PrivateMode.MaxValues = 5 },
		"private_mode.training_shards": func(s *dparetov1.StudySpec) { s.PrivateMode.TrainingShards = 5 },
		"private_mode":                 func(s *dparetov1.StudySpec) { s.PrivateMode = nil },
		"budget.max_trials":            func(s *dparetov1.StudySpec) { s.Budget.MaxTrials = 5 },
		"budget":                       func(s *dparetov1.StudySpec) { s.Budget = nil },
	} {
		servertest.WantCode(t, change(c), codes.InvalidArgument, field)
	}
	require.NoError(t, change(func(s *dparetov1.StudySpec) { s.Budget.MaxTrials = 2 }))
	require.NoError(t, change(func(s *dparetov1.StudySpec) { s.Budget.MaxTrials = 4 }))
	if n := f.Study(study).GetPublication().GetSpent().GetMaxValues(); n != 4 {
		t.Errorf("%d values", n)
	}
	_, err := dparetov1.NewPrivacyServiceClient(f.Conn).ReaccountStudy(t.Context(), &dparetov1.ReaccountStudyRequest{
		Name: study, Metric: "epsilon", Privacy: f.Study(study).GetSpec().GetMetrics()[0].GetComputed().GetPrivacy(),
	})
	servertest.WantCode(t, err, codes.FailedPrecondition, "private_mode")
	again, err := f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "s", Study: &dparetov1.Study{Spec: servertest.PrivateSpec(4, 1)}})
	if err != nil || again.GetStudy().GetPublication() == nil {
		t.Errorf("created again: %v, %v", again, err)
	}
	rehearsed, err := f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "new", ValidateOnly: true, Study: &dparetov1.Study{Spec: servertest.PrivateSpec(4, 1)}})
	if err != nil || rehearsed.GetStudy().GetPublication().GetTest().GetEpsilon() != 1 {
		t.Errorf("rehearsed: %v, %v", rehearsed, err)
	}
}

// The whole of both budgets is charged to the ledgers when a study is created; a second study finds nothing left.
func TestPrivateModeLedgers(t *testing.T) {
	f := servertest.Start(t)
	releases := dparetov1.NewReleaseServiceClient(f.Conn)
	for id, l := range map[string]*dparetov1.Ledger{
		"test":  {Records: 10_000, Epsilon: 1.2, Delta: 1e-5, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE},
		"other": {Records: 9_999, Epsilon: 10, Delta: 1e-5, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE},
		"train": {Records: 30_000, Epsilon: 2, Delta: 1e-5, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE},
	} {
		require.NoError(t, require.ErrOf(releases.CreateLedger(t.Context(), &dparetov1.CreateLedgerRequest{LedgerId: id, Ledger: l})))
	}
	spec := servertest.PrivateSpec(4, 1.5)
	spec.TestLedger, spec.TrainLedger = "ledgers/other", "ledgers/train"
	_, err := f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "s", Study: &dparetov1.Study{Spec: spec}})
	servertest.WantCode(t, err, codes.FailedPrecondition, "test_ledger")
	spec.TestLedger = "ledgers/test"
	study := f.Create("s", spec)
	spent := func(id string) float64 {
		t.Helper()
		resp, err := releases.GetLedger(t.Context(), &dparetov1.GetLedgerRequest{Name: "ledgers/" + id})
		require.NoError(t, err)
		return resp.GetLedger().GetSpent().GetEpsilon()
	}
	if a, b := spent("test"), spent("train"); a < 1 || a > 1.2 || b < 1.5 || b > 2 {
		t.Errorf("the ledgers were charged %g and %g", a, b)
	}
	_, err = f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "second", Study: &dparetov1.Study{Spec: spec}})
	servertest.WantCode(t, err, codes.ResourceExhausted, "_ledger")
	f.Tell(f.One(study, "w"), 0.5)
}

// What is released of a private study is computed from the noisy values, costs nothing
// more, and says what it guarantees.
func TestPrivateModeReleases(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("s", servertest.PrivateSpec(6, 20))
	for i := range 6 {
		f.Tell(f.One(study, "w"), 0.2+0.05*float64(i))
	}
	publication := f.Study(study).GetPublication()
	resp, err := dparetov1.NewReleaseServiceClient(f.Conn).ReleaseFront(t.Context(), &dparetov1.ReleaseFrontRequest{Name: study})
	require.NoError(t, err)
	r := resp.GetRelease()
	if !proto.Equal(r.GetGuarantee(), publication.GetTest()) || !proto.Equal(r.GetTrainingGuarantee(), publication.GetTrain()) ||
		len(r.GetPoints()) == 0 || r.GetNoiseStandardDeviation() != publication.GetNoiseStandardDeviation() {
		t.Errorf("release %v", r)
	}
}

// More runs than were charged are refused: each costs the training records what one costs.
func TestPrivateModeRefusesRunsThatAreNotPaid(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.WithCheckpoints(servertest.PrivateSpec(4, 20), 20)
	spec.Replicates = 2
	study := f.Create("s", spec)
	trial := f.One(study, "w")
	charged := f.Study(study).GetPublication().GetSpent().GetShardCosts()[0]
	_, err := f.Studies.AddMeasurement(t.Context(), &dparetov1.AddMeasurementRequest{
		Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: servertest.Measurement(1, 0.2, 0.3, 0.4),
	})
	servertest.WantCode(t, err, codes.InvalidArgument, `measurement.metrics["error"].runs: must hold as many values as the trial has replicates, 2, holds 3`)
	complete := servertest.Completion(trial, 0.2, 0.3, 0.4)
	_, err = f.Studies.CompleteTrial(t.Context(), complete)
	servertest.WantCode(t, err, codes.InvalidArgument, `measurement.metrics["error"].runs: must hold as many values as the trial has replicates, 2, holds 3`)
	f.Tell(trial, 0.2, 0.3)
	spent := f.Study(study).GetPublication().GetSpent()
	if got := spent.GetShardCosts()[0]; got != charged || spent.GetValues() != 1 {
		t.Errorf("charged %g after %g, %d values", got, charged, spent.GetValues())
	}
}

// Shards compose in parallel where a neighbouring data set differs in one of them alone.
func TestPrivateModeShardsOfAddRemove(t *testing.T) {
	f := servertest.Start(t)
	for adjacency, want := range map[dparetov1.Adjacency]bool{
		dparetov1.Adjacency_ADJACENCY_ADD_REMOVE: true, dparetov1.Adjacency_ADJACENCY_REPLACE_ONE: false,
	} {
		spec := servertest.PrivateSpec(4, 20)
		spec.PrivateMode.TrainingShards = 2
		spec.Metrics[0].GetComputed().GetPrivacy().Adjacency = adjacency
		servertest.WithLedgers(spec)
		p := f.Study(f.Create(fmt.Sprintf("s%d", adjacency), spec)).GetPublication()
		if p.GetTrain().GetAdjacency() != adjacency {
			t.Errorf("adjacency %v, want %v", p.GetTrain().GetAdjacency(), adjacency)
		}
		if got := strings.Contains(fmt.Sprint(p.GetAssumptions()), "leaves every other record in its shard"); got != want {
			t.Errorf("%v: assumed %v", adjacency, p.GetAssumptions())
		}
	}
}

// A checkpoint parameter is of no use where the number of values leaves none for the way, and
// the study says so.
func TestPrivateModeWithoutValuesOnTheWay(t *testing.T) {
	f := servertest.Start(t)
	for name, tt := range map[string]struct {
		values int64
		want   bool
	}{"default": {0, true}, "least": {3, true}, "more": {4, false}} {
		warnings := f.Study(f.Create(name, servertest.WithCheckpoints(servertest.PrivateSpec(3, 4), tt.values))).GetWarnings()
		got := slices.ContainsFunc(warnings, func(w *dparetov1.Warning) bool { return w.GetCode() == "NO_VALUES_ON_THE_WAY" })
		if got != tt.want {
			t.Errorf("%s: warnings %v, want one: %v", name, warnings, tt.want)
		}
	}
}

// A large study that another server is deleting is gone, although the index still has trials of it.
func TestSuggestWhileDeleted(t *testing.T) {
	t.Parallel()
	f := servertest.Start(t)
	study := f.Create("p", servertest.PrivateSpec(4, 1000))
	f.One(study, "w")
	require.NoError(t, f.Records.Update(t.Context(), store.In(store.StudyScope("p")), func(tx *store.Tx) error {
		first, err := tx.Trial("p", 1)
		if err != nil {
			return err
		}
		for n := range int64(6000) {
			record := proto.CloneOf(first)
			record.Trial.Number, record.Trial.Revision = n+2, n+100
			if err := tx.PutTrial("p", record); err != nil {
				return err
			}
		}
		return tx.DeleteStudy("p")
	}))
	_, err := f.Studies.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: study, WorkerId: "w"})
	servertest.WantCode(t, err, codes.NotFound, study)
	require.NoError(t, f.Records.DropImport(t.Context(), "p"))
}
