package study_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/servertest"
	"github.com/dpareto/dpareto/server/store"
)

func TestCreateStudy(t *testing.T) {
	f := servertest.Start(t)
	request := &dparetov1.CreateStudyRequest{StudyId: "svt", Study: &dparetov1.Study{DisplayName: "SVT", Spec: servertest.SVTSpec()}}
	resp, err := f.Studies.CreateStudy(t.Context(), request)
	require.NoError(t, err)
	study := resp.GetStudy()
	if study.GetName() != "studies/svt" || study.GetUid() == "" || study.GetEtag() == "" || study.GetRevision() != 1 ||
		study.GetState() != dparetov1.StudyState_STUDY_STATE_ACTIVE || !study.GetCreateTime().AsTime().Equal(f.Clock.Now()) {
		t.Errorf("created %v", study)
	}

	t.Run("again", func(t *testing.T) {
		again, err := f.Studies.CreateStudy(t.Context(), request)
		require.NoError(t, err)
		if diff := cmp.Diff(study, again.GetStudy(), protocmp.Transform()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("another spec", func(t *testing.T) {
		other := proto.CloneOf(request)
		other.Study.Spec.Parameters[0].GetIntegerDomain().Max = 31
		other.Study.Spec.Replicates = 5
		_, err := f.Studies.CreateStudy(t.Context(), other)
		servertest.WantCode(t, err, codes.AlreadyExists, "parameters[0].integer_domain.max, replicates")
	})
	t.Run("validate only", func(t *testing.T) {
		other := proto.CloneOf(request)
		other.Study.Spec.Replicates, other.ValidateOnly = 5, true
		_, err := f.Studies.CreateStudy(t.Context(), other)
		servertest.WantCode(t, err, codes.AlreadyExists, "replicates")
		require.NoError(t, require.ErrOf(f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{
			StudyId: "dry", Study: &dparetov1.Study{Spec: servertest.SVTSpec()}, ValidateOnly: true,
		})))
		_, err = f.Studies.GetStudy(t.Context(), &dparetov1.GetStudyRequest{Name: "studies/dry"})
		servertest.WantCode(t, err, codes.NotFound, "studies/dry")
	})
	t.Run("restart", func(t *testing.T) {
		f.Restart()
		got, err := f.Studies.GetStudy(t.Context(), &dparetov1.GetStudyRequest{Name: study.GetName()})
		require.NoError(t, err)
		if diff := cmp.Diff(study, got.GetStudy(), protocmp.Transform()); diff != "" {
			t.Error(diff)
		}
	})
}

// Every bad spec is refused by the names of all its bad fields.
func TestCreateStudyInvalid(t *testing.T) {
	f := servertest.Start(t)
	nan := math.NaN()
	for name, test := range map[string]struct {
		change func(*dparetov1.CreateStudyRequest)
		fields []string
	}{
		"id":            {func(r *dparetov1.CreateStudyRequest) { r.StudyId = "Bad_Id" }, []string{"study_id"}},
		"path trick":    {func(r *dparetov1.CreateStudyRequest) { r.StudyId = "a/../b" }, []string{"study_id"}},
		"name":          {func(r *dparetov1.CreateStudyRequest) { r.Study.Name = "studies/other" }, []string{"study.name"}},
		"no study":      {func(r *dparetov1.CreateStudyRequest) { r.Study = nil }, []string{"study.spec"}},
		"no spec":       {func(r *dparetov1.CreateStudyRequest) { r.Study.Spec = nil }, []string{"study.spec"}},
		"empty spec":    {func(r *dparetov1.CreateStudyRequest) { r.Study.Spec = &dparetov1.StudySpec{} }, []string{"study.spec.metrics", "study.spec.parameters"}},
		"no domain":     {func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Parameters[0].Domain = nil }, []string{"study.spec.parameters[0].domain"}},
		"no scale":      {func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Parameters[0].Scale = 0 }, []string{"study.spec.parameters[0].scale"}},
		"unknown scale": {func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Parameters[0].Scale = 99 }, []string{"study.spec.parameters[0].scale"}},
		"empty range":   {func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Parameters[0].GetIntegerDomain().Max = 1 }, []string{"study.spec.parameters[0].integer_domain.max"}},
		"huge integer": {func(r *dparetov1.CreateStudyRequest) {
			r.Study.Spec.Parameters[0].GetIntegerDomain().Max = math.MaxInt64
		}, []string{"study.spec.parameters[0].integer_domain.max"}},
		"nan bound":    {func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Parameters[1].GetDoubleDomain().Max = nan }, []string{"study.spec.parameters[1].double_domain.max"}},
		"log of zero":  {func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Parameters[1].GetDoubleDomain().Min = 0 }, []string{"study.spec.parameters[1].double_domain.min"}},
		"duplicate id": {func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Metrics[1].Id = "cutoff" }, []string{"study.spec.metrics[1].id"}},
		"reserved id":  {func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Parameters[0].Id = "in" }, []string{"study.spec.parameters[0].id"}},
		"no objective": {func(r *dparetov1.CreateStudyRequest) {
			for _, m := range r.GetStudy().GetSpec().GetMetrics() {
				m.Role, m.ReferenceValue = dparetov1.MetricRole_METRIC_ROLE_TRACKED, nil
				m.Goal, m.Transform = 0, 0
				if m.GetReported() != nil {
					m.GetReported().SampleSize = 0
				}
			}
		}, []string{"study.spec.metrics"}},
		"no reference of a computed metric": {func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Metrics[0].ReferenceValue = nil }, []string{"study.spec.metrics[0].reference_value"}},
		"no reference of a published method": {func(r *dparetov1.CreateStudyRequest) {
			r.Study.Spec.Metrics[1].ReferenceValue, r.Study.Spec.Algorithm.Name = nil, dparetov1.Algorithm_ALGORITHM_DPARETO
		}, []string{"study.spec.metrics[1].reference_value"}},
		"huge reference": {func(r *dparetov1.CreateStudyRequest) {
			m := r.GetStudy().GetSpec().GetMetrics()[1]
			*m.ReferenceValue, m.Transform, m.GetReported().SampleSize = 1e101, dparetov1.Transform_TRANSFORM_IDENTITY, 0
		}, []string{"study.spec.metrics[1].reference_value"}},
		"wide log scale": {func(r *dparetov1.CreateStudyRequest) {
			r.Study.Spec.Parameters[1].GetDoubleDomain().Min, r.Study.Spec.Parameters[1].GetDoubleDomain().Max = 1e-300, 1e300
		}, []string{"study.spec.parameters[1].double_domain.max"}},
		"nan reference": {func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Metrics[1].ReferenceValue = &nan }, []string{"study.spec.metrics[1].reference_value"}},
		"unknown noise": {func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Metrics[1].GetReported().Noise = 99 }, []string{"study.spec.metrics[1].reported.noise"}},
		"noise of a tracked metric": {func(r *dparetov1.CreateStudyRequest) {
			r.Study.Spec.Metrics = append(r.Study.Spec.Metrics, &dparetov1.MetricSpec{
				Id: "loss", Role: dparetov1.MetricRole_METRIC_ROLE_TRACKED,
				Source: &dparetov1.MetricSpec_Reported{Reported: &dparetov1.ReportedSource{Noise: dparetov1.Noise_NOISE_NONE}},
			})
		}, []string{"study.spec.metrics[2].reported.noise"}},
		"replicates without noise": {func(r *dparetov1.CreateStudyRequest) {
			r.Study.Spec.Replicates = 2
			r.Study.Spec.Metrics[1].GetReported().Noise = dparetov1.Noise_NOISE_NONE
		}, []string{"study.spec.replicates"}},
		"no goal":      {func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Metrics[0].Goal = 0 }, []string{"study.spec.metrics[0].goal"}},
		"no transform": {func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Metrics[0].Transform = 0 }, []string{"study.spec.metrics[0].transform"}},
		"no source":    {func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Metrics[1].Source = nil }, []string{"study.spec.metrics[1].source"}},
		"bad expression": {func(r *dparetov1.CreateStudyRequest) {
			r.Study.Spec.Metrics[0].GetComputed().GetPrivacy().GetSparseVector().Cutoff = "cutof"
		}, []string{"study.spec.metrics[0].computed.privacy.sparse_vector.cutoff"}},
		"mistyped expression": {func(r *dparetov1.CreateStudyRequest) {
			r.Study.Spec.Metrics[0].GetComputed().GetPrivacy().GetSparseVector().Cutoff = "noise_scale"
		}, []string{"study.spec.metrics[0].computed.privacy.sparse_vector.cutoff"}},
		"impossible everywhere": {func(r *dparetov1.CreateStudyRequest) {
			r.Study.Spec.Metrics[0].GetComputed().GetPrivacy().GetSparseVector().NoiseScale = "-noise_scale"
		}, []string{"study.spec.metrics[0].computed"}},
		"delta of a pure mechanism": {func(r *dparetov1.CreateStudyRequest) {
			r.Study.Spec.Metrics[0].GetComputed().GetPrivacy().Delta = 1e-5
		}, []string{"study.spec.metrics[0].computed.privacy.delta"}},
		"no adjacency": {func(r *dparetov1.CreateStudyRequest) {
			r.Study.Spec.Metrics[0].GetComputed().GetPrivacy().Adjacency = 0
		}, []string{"study.spec.metrics[0].computed.privacy.adjacency"}},
		"unknown algorithm": {func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Algorithm.Name = 99 }, []string{"study.spec.algorithm.name"}},
		"unknown goal":      {func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Metrics[0].Goal = 99 }, []string{"study.spec.metrics[0].goal"}},
		"goal of a tracked metric": {func(r *dparetov1.CreateStudyRequest) {
			r.Study.Spec.Metrics = append(r.Study.Spec.Metrics, &dparetov1.MetricSpec{
				Id: "loss", Role: dparetov1.MetricRole_METRIC_ROLE_TRACKED, Goal: dparetov1.Goal_GOAL_MINIMIZE,
				Source: &dparetov1.MetricSpec_Reported{Reported: &dparetov1.ReportedSource{}},
			})
		}, []string{"study.spec.metrics[2].goal"}},
		"too many objectives": {func(r *dparetov1.CreateStudyRequest) {
			for i := range 4 {
				m := proto.CloneOf(r.GetStudy().GetSpec().GetMetrics()[1])
				m.Id = fmt.Sprintf("error%d", i)
				r.Study.Spec.Metrics = append(r.Study.Spec.Metrics, m)
			}
		}, []string{"study.spec.metrics"}},
		"too many dimensions": {func(r *dparetov1.CreateStudyRequest) {
			names := make([]string, 600)
			for i := range names {
				names[i] = fmt.Sprint("c", i)
			}
			r.Study.Spec.Parameters = append(r.Study.Spec.Parameters, &dparetov1.ParameterSpec{
				Id:     "model",
				Domain: &dparetov1.ParameterSpec_CategoricalDomain{CategoricalDomain: &dparetov1.CategoricalDomain{Categories: names}},
			})
		}, []string{"study.spec.parameters"}},
		"empty accepted range": {func(r *dparetov1.CreateStudyRequest) {
			lo := 100.0
			r.Study.Spec.Parameters[1].Design = &dparetov1.DesignDistribution{
				Distribution: &dparetov1.DesignDistribution_Uniform{Uniform: &dparetov1.UniformDistribution{}}, AcceptMin: &lo,
			}
		}, []string{"study.spec.parameters[1].design.accept_max"}},
		"negative rate": {func(r *dparetov1.CreateStudyRequest) {
			r.Study.Spec.Parameters[1].Design = &dparetov1.DesignDistribution{
				Distribution: &dparetov1.DesignDistribution_ShiftedExponential{ShiftedExponential: &dparetov1.ShiftedExponentialDistribution{Rate: -1}},
			}
		}, []string{"study.spec.parameters[1].design.shifted_exponential.rate"}},
		"delta of one": {func(r *dparetov1.CreateStudyRequest) {
			r.Study.Spec = servertest.SGDSpec()
			r.Study.Spec.Metrics[0].GetComputed().GetPrivacy().Delta = 1
		}, []string{"study.spec.metrics[0].computed.privacy.delta"}},
		"pure accountant of DP-SGD": {func(r *dparetov1.CreateStudyRequest) {
			r.Study.Spec = servertest.SGDSpec()
			p := r.GetStudy().GetSpec().GetMetrics()[0].GetComputed().GetPrivacy()
			p.Accountant, p.Conversion, p.Delta = dparetov1.Accountant_ACCOUNTANT_PURE, 0, 0
		}, []string{"study.spec.metrics[0].computed.privacy.accountant"}},
		"two faults": {func(r *dparetov1.CreateStudyRequest) {
			r.Study.Spec.Replicates = -1
			r.Study.Spec.Lease = &dparetov1.LeasePolicy{Duration: durationpb.New(1)}
		}, []string{"study.spec.lease.duration", "study.spec.replicates"}},
		"the published acquisition of another algorithm": {func(r *dparetov1.CreateStudyRequest) {
			r.Study.Spec.Algorithm = &dparetov1.AlgorithmSpec{PublishedAcquisition: true}
		}, []string{"study.spec.algorithm.published_acquisition"}},
		"checkpoint of another kind": {func(r *dparetov1.CreateStudyRequest) {
			r.Study.Spec.CheckpointParameter = "noise_scale"
		}, []string{"study.spec.checkpoint_parameter"}},
		"unknown checkpoint": {func(r *dparetov1.CreateStudyRequest) {
			r.Study.Spec.CheckpointParameter = "epochs"
		}, []string{"study.spec.checkpoint_parameter"}},
		"design outside of the domain": {func(r *dparetov1.CreateStudyRequest) {
			hi := 1000.0
			r.Study.Spec.Parameters[1].Design = &dparetov1.DesignDistribution{
				Distribution: &dparetov1.DesignDistribution_Uniform{Uniform: &dparetov1.UniformDistribution{}}, AcceptMax: &hi,
			}
		}, []string{"study.spec.parameters[1].design.accept_max"}},
		"design without a distribution": {func(r *dparetov1.CreateStudyRequest) {
			r.Study.Spec.Parameters[1].Design = &dparetov1.DesignDistribution{}
		}, []string{"study.spec.parameters[1].design.distribution"}},
		"convention of fixed-size lots": {func(r *dparetov1.CreateStudyRequest) {
			r.Study.Spec = servertest.SGDSpec()
			r.Study.Spec.Metrics[0].GetComputed().GetPrivacy().GetDpSgd().Convention = dparetov1.Convention_CONVENTION_OPACUS
		}, []string{"study.spec.metrics[0].computed.privacy.dp_sgd.convention"}},
	} {
		t.Run(name, func(t *testing.T) {
			request := &dparetov1.CreateStudyRequest{StudyId: "bad", Study: &dparetov1.Study{Spec: servertest.SVTSpec()}}
			test.change(request)
			_, err := f.Studies.CreateStudy(t.Context(), request)
			servertest.WantCode(t, err, codes.InvalidArgument, "")
			if got := servertest.Violated(err); !slices.Equal(slices.Compact(got), slices.Compact(test.fields)) {
				t.Errorf("violated fields %q, want %q (%v)", got, test.fields, err)
			}
		})
	}
}

// What this version does not support is refused by name, never ignored.
func TestUnimplemented(t *testing.T) {
	f := servertest.Start(t)
	unknown := &dparetov1.CreateStudyRequest{StudyId: "later", Study: &dparetov1.Study{Spec: servertest.SVTSpec()}}
	unknown.GetStudy().ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.VarintType), 1))
	_, err := f.Studies.CreateStudy(t.Context(), unknown)
	servertest.WantCode(t, err, codes.Unimplemented, "study.(an unknown field for this version of the server)")
}

func TestListStudies(t *testing.T) {
	f := servertest.Start(t)
	var want []string
	for i := range 5 {
		want = append(want, f.Create(fmt.Sprintf("s%d", i), servertest.SVTSpec()))
	}
	var got []string
	token := ""
	for pages := 1; ; pages++ {
		resp, err := f.Studies.ListStudies(t.Context(), &dparetov1.ListStudiesRequest{PageSize: 2, PageToken: token})
		require.NoError(t, err)
		for _, study := range resp.GetStudies() {
			got = append(got, study.GetName())
		}
		if token = resp.GetNextPageToken(); token == "" {
			if pages != 3 {
				t.Errorf("%d pages, want 3", pages)
			}
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("studies %v, want %v", got, want)
	}
	_, err := f.Studies.ListStudies(t.Context(), &dparetov1.ListStudiesRequest{PageToken: "bad"})
	servertest.WantCode(t, err, codes.InvalidArgument, "page_token")
	_, err = f.Studies.ListStudies(t.Context(), &dparetov1.ListStudiesRequest{PageSize: -1})
	servertest.WantCode(t, err, codes.InvalidArgument, "page_size")
}

func TestDeleteStudy(t *testing.T) {
	f := servertest.Start(t)
	name := f.Create("gone", servertest.SVTSpec())
	before, err := f.Studies.GetStudy(t.Context(), &dparetov1.GetStudyRequest{Name: name})
	require.NoError(t, err)
	etag := before.GetStudy().GetEtag()
	f.Tell(f.One(name, "w"), 0.5)
	_, err = f.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: name, Etag: "stale"})
	servertest.WantCode(t, err, codes.FailedPrecondition, "etag")
	require.NoError(t, require.ErrOf(f.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: name})))
	_, err = f.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: name})
	servertest.WantCode(t, err, codes.NotFound, name)
	_, err = f.Studies.GetTrial(t.Context(), &dparetov1.GetTrialRequest{Name: name + "/trials/1"})
	servertest.WantCode(t, err, codes.NotFound, name)
	// The name is free for another study, with numbers from 1 and other etags.
	f.Create("gone", servertest.SGDSpec())
	_, err = f.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: name, Etag: etag})
	servertest.WantCode(t, err, codes.FailedPrecondition, "etag")
	if trial := f.One(name, "w"); trial.GetNumber() != 1 {
		t.Errorf("first trial of the new study has number %d", trial.GetNumber())
	}
}

func TestServerInfo(t *testing.T) {
	f := servertest.Start(t)
	info, err := f.Admin.GetServerInfo(t.Context(), &dparetov1.GetServerInfoRequest{})
	require.NoError(t, err)
	if info.GetVersion() != "test" || len(info.GetAlgorithms()) == 0 || info.GetStoreFormat() != store.Format {
		t.Errorf("info %v", info)
	}
}

// The name of a study and its spec are judged together.
func TestViolationsOfAStudyAndItsSpec(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.SVTSpec()
	spec.Budget = &dparetov1.Budget{MaxTrials: -1}
	_, err := f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{
		StudyId: "no id", Study: &dparetov1.Study{DisplayName: strings.Repeat("x", 1000), Spec: spec},
	})
	for _, field := range []string{"study_id", "study.display_name", "study.spec.budget.max_trials"} {
		servertest.WantCode(t, err, codes.InvalidArgument, field+": ")
	}
}
