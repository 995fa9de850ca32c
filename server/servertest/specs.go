package servertest

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

// SVTError is an error that falls as the noise falls: a fraction of 10 queries.
func SVTError(noise float64) float64 { return math.Round(10*noise/(1+noise)) / 10 }

// Attributes returns attributes with the values of a map.
func Attributes(t testing.TB, values map[string]any) map[string]*structpb.Value {
	t.Helper()
	out, err := structpb.NewStruct(values)
	require.NoError(t, err)
	return out.GetFields()
}

// WithConstant is a sparse vector study with a result at ε = 0.
func WithConstant(spec *dparetov1.StudySpec, epsilon, errorRate float64) *dparetov1.StudySpec {
	spec.ConstantPoints = append(spec.ConstantPoints, &dparetov1.ConstantPoint{
		Id: "majority", DisplayName: "always predict no", Values: map[string]float64{"epsilon": epsilon, "error": errorRate},
	})
	return spec
}

// curveRecords is the number of test records of curveSpec.
const curveRecords = 2000

// CurveSpec is a study with random stopping that releases curves, of runs of 4 to 20 epochs, with five values
// each at most.
func CurveSpec(portfolio int32) *dparetov1.StudySpec {
	s := SGDSpec()
	s.Seed = nil
	s.Parameters = s.GetParameters()[:1]
	s.Parameters[0].GetIntegerDomain().Min, s.Parameters[0].GetIntegerDomain().Max = 4, 20
	privacy := s.GetMetrics()[0].GetComputed().GetPrivacy()
	privacy.GetDpSgd().BatchSize, privacy.GetDpSgd().NoiseMultiplier = "100", "4.0"
	s.Metrics[1].GetReported().SampleSize = curveRecords
	s.RandomStopping = &dparetov1.RandomStoppingSpec{
		MeanTrials: 10, Distribution: &dparetov1.RandomStoppingSpec_Eta{Eta: 1}, Metric: "error",
		TestSetSize: curveRecords, TestEpsilon: 1,
		Release: dparetov1.RandomStoppingRelease_RANDOM_STOPPING_RELEASE_CURVE, CurvePoints: 5, Portfolio: portfolio, Listed: 6,
	}
	return WithLedgers(s)
}

// SubsetSpec is a study that tunes the learning rate of DP-SGD on a share of n records, in lots of a
// size and with a number of steps, and then makes 1,270 steps on all with lots of 256: a mean of
// 32 candidates by the geometric distribution.
func SubsetSpec(n int64, share float64, lot, steps int64) *dparetov1.StudySpec {
	s := GaussianSpec()
	s.Seed = nil
	integer := func(id string, tuned, final int64) *dparetov1.ParameterSpec {
		low, high := min(tuned, final), max(tuned, final)
		p := &dparetov1.ParameterSpec{
			Id: id, Scale: dparetov1.Scale_SCALE_LOG,
			Domain: &dparetov1.ParameterSpec_IntegerDomain{IntegerDomain: &dparetov1.IntegerDomain{Min: low, Max: high}},
			Design: &dparetov1.DesignDistribution{
				Distribution: &dparetov1.DesignDistribution_Uniform{Uniform: new(dparetov1.UniformDistribution)},
				AcceptMin:    new(max(float64(low), float64(tuned)-0.4)), AcceptMax: new(min(float64(high), float64(tuned)+0.4)),
			},
		}
		return p
	}
	s.Parameters = []*dparetov1.ParameterSpec{
		{
			Id: "rate", Scale: dparetov1.Scale_SCALE_LOG,
			Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Min: 0.01, Max: 10}},
		},
		integer("lot", lot, 256), integer("steps", steps, 1270),
	}
	s.Metrics[0].GetComputed().Function = &dparetov1.ComputedSource_Privacy{Privacy: &dparetov1.PrivacySpec{
		Mechanism: &dparetov1.PrivacySpec_DpSgd{DpSgd: &dparetov1.DpSgdMechanism{
			Sampling:    dparetov1.Sampling_SAMPLING_FIXED_SIZE,
			DatasetSize: strconv.FormatInt(int64(math.Round(share*float64(n))), 10), BatchSize: "lot", NoiseMultiplier: "4.0",
			Length: &dparetov1.DpSgdMechanism_Steps{Steps: "steps"},
		}},
		Delta: 1e-6, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
	}}
	s.RandomStopping = &dparetov1.RandomStoppingSpec{
		MeanTrials: 32, Metric: "error", Listed: 20, SubsetShare: share,
		FinalRun: &dparetov1.FinalRunSpec{
			DatasetSize: n,
			Values: map[string]*dparetov1.Value{
				"lot":   {Kind: &dparetov1.Value_IntValue{IntValue: 256}},
				"steps": {Kind: &dparetov1.Value_IntValue{IntValue: 1270}},
			},
		},
	}
	return WithLedgers(s)
}

// Methods returns all methods of the contract by name, service and all.
func Methods() map[string]protoreflect.MethodDescriptor {
	all := make(map[string]protoreflect.MethodDescriptor)
	for _, file := range []protoreflect.FileDescriptor{
		dparetov1.File_dpareto_v1_study_service_proto,
		dparetov1.File_dpareto_v1_front_service_proto,
		dparetov1.File_dpareto_v1_privacy_service_proto,
		dparetov1.File_dpareto_v1_release_service_proto,
		dparetov1.File_dpareto_v1_admin_service_proto,
		dparetov1.File_dpareto_v1_analysis_service_proto,
	} {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				method := service.Methods().Get(j)
				all[string(service.Name())+"."+string(method.Name())] = method
			}
		}
	}
	return all
}

// fullStudy is the request that FullRequest returns.
const fullStudy = `{
  "studyId": "full",
  "study": {
    "displayName": "full", "description": "d", "labels": {"k": "v"},
    "spec": {
      "parameters": [
        {"id": "epochs", "integerDomain": {"min": 1, "max": 64}, "scale": "SCALE_LOG", "design": {"uniform": {}, "acceptMin": 1, "acceptMax": 64}, "gridLevels": 3},
        {"id": "lot", "integerDomain": {"min": 8, "max": 512}, "scale": "SCALE_LOG", "design": {"normal": {"mean": 128, "standardDeviation": 64}}},
        {"id": "rate", "doubleDomain": {"min": 0.001, "max": 1}, "scale": "SCALE_LOG", "design": {"shiftedExponential": {"rate": 10, "shift": 0.001}}},
        {"id": "noise", "doubleDomain": {"min": 0.1, "max": 16}, "scale": "SCALE_LOG", "design": {"logUniform": {}}},
        {"id": "depth", "discreteDomain": {"values": [1, 2, 4]}, "scale": "SCALE_LINEAR"},
        {"id": "optimizer", "categoricalDomain": {"categories": ["sgd", "adam"]}},
        {"id": "beta", "doubleDomain": {"min": 0, "max": 1}, "scale": "SCALE_LINEAR", "condition": {"parent": "optimizer", "values": [{"stringValue": "adam"}]}}
      ],
      "metrics": [
        {"id": "epsilon", "role": "METRIC_ROLE_OBJECTIVE", "goal": "GOAL_MINIMIZE", "transform": "TRANSFORM_LOG", "referenceValue": 10,
         "computed": {"privacy": {"dpSgd": {"sampling": "SAMPLING_FIXED_SIZE", "datasetSize": "30956", "batchSize": "lot", "noiseMultiplier": "noise", "epochs": "epochs"},
           "delta": 1e-5, "adjacency": "ADJACENCY_REPLACE_ONE", "accountant": "ACCOUNTANT_RDP", "conversion": "CONVERSION_IMPROVED"}, "reportTolerance": 0.01}},
        {"id": "error", "role": "METRIC_ROLE_OBJECTIVE", "goal": "GOAL_MINIMIZE", "transform": "TRANSFORM_LOGIT", "referenceValue": 1, "reported": {"sampleSize": 1605}, "unit": "ratio"},
        {"id": "size", "role": "METRIC_ROLE_CONSTRAINT", "transform": "TRANSFORM_IDENTITY", "computed": {"expression": "depth * 100.0"}, "bounds": {"min": 1, "max": 1000}},
        {"id": "seconds", "role": "METRIC_ROLE_TRACKED", "reported": {}}
      ],
      "parameterConstraints": ["lot * epochs < 40000"],
      "checkpointParameter": "epochs",
      "replicates": 2,
      "algorithm": {"name": "ALGORITHM_RANDOM", "initialTrials": 5},
      "budget": {"maxTrials": 100, "maxDuration": "3600s", "maxStagnantTrials": 50, "maxParallelTrials": 10},
      "lease": {"duration": "60s", "maxAttempts": 3},
      "seed": 1,
      "cost": {"metric": "seconds"},
      "trainer": {"name": "dp-sgd", "settings": {"dataset": "adult"}}
    }
  }
}`

// FullRequest is a valid request with nearly every field of a spec set.
func FullRequest(t testing.TB) *dparetov1.CreateStudyRequest {
	t.Helper()
	req := new(dparetov1.CreateStudyRequest)
	require.NoError(t, protojson.Unmarshal([]byte(fullStudy), req))
	return req
}

// Value returns a parameter's value.
func Value(v any) *dparetov1.Value {
	switch v := v.(type) {
	case float64:
		return &dparetov1.Value{Kind: &dparetov1.Value_DoubleValue{DoubleValue: v}}
	case int64:
		return &dparetov1.Value{Kind: &dparetov1.Value_IntValue{IntValue: v}}
	case string:
		return &dparetov1.Value{Kind: &dparetov1.Value_StringValue{StringValue: v}}
	default:
		return new(dparetov1.Value)
	}
}

// FullParameters is a configuration of fullStudy.
func FullParameters() map[string]*dparetov1.Value {
	return map[string]*dparetov1.Value{
		"epochs": Value(int64(4)), "lot": Value(int64(128)), "rate": Value(0.1), "noise": Value(1.0),
		"depth": Value(2.0), "optimizer": Value("adam"), "beta": Value(0.9),
	}
}

// GaussianSpec is a study of the Gaussian mechanism with sensitivity 1, at δ = 1e-5.
func GaussianSpec() *dparetov1.StudySpec {
	spec := SVTSpec()
	spec.Parameters = []*dparetov1.ParameterSpec{{
		Id: "sigma", Scale: dparetov1.Scale_SCALE_LOG,
		Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Min: 0.5, Max: 100}},
	}}
	spec.Metrics[0].GetComputed().Function = &dparetov1.ComputedSource_Privacy{Privacy: &dparetov1.PrivacySpec{
		Mechanism: &dparetov1.PrivacySpec_Gaussian{Gaussian: &dparetov1.GaussianMechanism{Sensitivity: "1", StandardDeviation: "sigma"}},
		Delta:     1e-5,
		Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
	}}
	return spec
}

// GaussianDelta is δ of a mechanism that is μ-GDP at ε (Balle and Wang 2018, Theorem 8).
func GaussianDelta(mu, epsilon float64) float64 {
	phi := func(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) }
	return phi(mu/2-epsilon/mu) - math.Exp(epsilon)*phi(-mu/2-epsilon/mu)
}

// Sigma is a configuration of GaussianSpec.
func Sigma(x float64) map[string]*dparetov1.Value {
	return map[string]*dparetov1.Value{"sigma": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: x}}}
}

// PrivateSpec is a study with private_mode of a Gaussian mechanism of sensitivity 1. Its filter
// is Gaussian.
func PrivateSpec(trials int64, trainEpsilon float64) *dparetov1.StudySpec {
	spec := SVTSpec()
	spec.Parameters = []*dparetov1.ParameterSpec{{
		Id: "sigma", Scale: dparetov1.Scale_SCALE_LOG,
		Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Min: 1, Max: 32}},
	}}
	privacy := spec.GetMetrics()[0].GetComputed().GetPrivacy()
	privacy.Mechanism = &dparetov1.PrivacySpec_Gaussian{Gaussian: &dparetov1.GaussianMechanism{Sensitivity: "1", StandardDeviation: "sigma"}}
	privacy.Delta, privacy.Accountant = 1e-6, dparetov1.Accountant_ACCOUNTANT_UNSPECIFIED
	spec.GetMetrics()[1].GetReported().SampleSize = 0
	spec.Budget = &dparetov1.Budget{MaxTrials: trials}
	spec.PrivateMode = &dparetov1.PrivateModeSpec{TestSetSize: 10_000, TestEpsilon: 1, TrainEpsilon: trainEpsilon, Delta: 1e-6}
	return WithLedgers(spec)
}

// WithLedgers names the ledgers of a study that pays when it is created (see OpenLedgers).
func WithLedgers(spec *dparetov1.StudySpec) *dparetov1.StudySpec {
	if records := testSetSize(spec); records > 0 {
		spec.TestLedger = fmt.Sprintf("ledgers/test-of-%d", records)
	}
	spec.TrainLedger = "ledgers/train-" + strings.ReplaceAll(strings.ToLower(trainAdjacency(spec).String()), "_", "-")
	return spec
}

// testSetSize returns the number of test records that a study protects, 0 if it protects none.
func testSetSize(spec *dparetov1.StudySpec) int64 {
	return max(spec.GetPrivateMode().GetTestSetSize(), spec.GetRandomStopping().GetTestSetSize())
}

// trainAdjacency returns the adjacency of the study's first privacy metric.
func trainAdjacency(spec *dparetov1.StudySpec) dparetov1.Adjacency {
	for _, m := range spec.GetMetrics() {
		if p := m.GetComputed().GetPrivacy(); p.GetAdjacency() != dparetov1.Adjacency_ADJACENCY_UNSPECIFIED {
			return p.GetAdjacency()
		}
	}
	return dparetov1.Adjacency_ADJACENCY_REPLACE_ONE
}

// WithCheckpoints adds a number of epochs to a private study, and room for values on the
// way.
func WithCheckpoints(spec *dparetov1.StudySpec, values int64) *dparetov1.StudySpec {
	spec.Parameters = append(spec.Parameters, &dparetov1.ParameterSpec{
		Id: "epochs", Scale: dparetov1.Scale_SCALE_LINEAR,
		Domain: &dparetov1.ParameterSpec_IntegerDomain{IntegerDomain: &dparetov1.IntegerDomain{Min: 4, Max: 8}},
	})
	spec.GetMetrics()[0].GetComputed().GetPrivacy().GetGaussian().StandardDeviation = "sigma / math.sqrt(double(epochs))"
	spec.CheckpointParameter = "epochs"
	spec.PrivateMode.MaxValues = values
	return spec
}

// SparseEpsilon is ε of the sparse vector technique (Avent et al. 2020, Algorithm 1).
func SparseEpsilon(cutoff int64, noise float64) float64 {
	c := 2 * float64(cutoff)
	return (1 + math.Cbrt(c)) * (1 + math.Cbrt(c*c)) / noise
}

// SparseError is an error that falls with ε, and is smallest at a cutoff of 10.
func SparseError(cutoff int64, noise float64) float64 {
	return 0.1 + 0.8/(1+SparseEpsilon(cutoff, noise)) + 0.0005*float64((cutoff-10)*(cutoff-10))
}

// Sparse is a configuration of the sparse vector study.
func Sparse(cutoff int64, noise float64) map[string]*dparetov1.Value {
	return map[string]*dparetov1.Value{
		"cutoff":      {Kind: &dparetov1.Value_IntValue{IntValue: cutoff}},
		"noise_scale": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: noise}},
	}
}

// SparseSpec is SVTSpec with many queries, whose errors have little noise.
func SparseSpec() *dparetov1.StudySpec {
	spec := SVTSpec()
	spec.Metrics[1].GetReported().SampleSize = 20_000
	return spec
}

// SearchSpec is a study with random stopping, of Gaussian mechanisms.
func SearchSpec(mean, eta float64) *dparetov1.StudySpec {
	s := GaussianSpec()
	s.Seed = nil
	s.RandomStopping = &dparetov1.RandomStoppingSpec{
		MeanTrials: mean, Distribution: &dparetov1.RandomStoppingSpec_Eta{Eta: eta}, Metric: "error", Listed: 20,
	}
	return WithLedgers(s)
}

// Single gives a spec a single cost, the cost of a μ-GDP mechanism, at δ = 1e-6.
func Single(s *dparetov1.StudySpec, mu string) *dparetov1.StudySpec {
	p := s.GetMetrics()[0].GetComputed().GetPrivacy()
	p.GetGaussian().Sensitivity, p.GetGaussian().StandardDeviation = mu, "sigma/sigma"
	p.Delta = 1e-6
	return s
}

// NoisySpec is a study with protected test records.
func NoisySpec() *dparetov1.StudySpec {
	s := SearchSpec(10, 1)
	s.RandomStopping.TestSetSize, s.RandomStopping.TestEpsilon = 50, 1
	s.Metrics[1].GetReported().SampleSize = 50
	return WithLedgers(s)
}

// TestRecords is the number of test records in these tests.
const TestRecords = 1000

// FixedSpec is a study of a random design of so many trials.
func FixedSpec(trials int64, ledger string) *dparetov1.StudySpec {
	spec := SVTSpec()
	spec.Budget = &dparetov1.Budget{MaxTrials: trials}
	spec.Metrics[1].GetReported().SampleSize = TestRecords
	spec.TestLedger = ledger
	return spec
}

// SVTSpec is a study of the sparse vector technique.
func SVTSpec() *dparetov1.StudySpec {
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

// SGDSpec is a study of DP-SGD with checkpoints.
func SGDSpec() *dparetov1.StudySpec {
	spec := SVTSpec()
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

// Measurement is a measurement of errors of runs.
func Measurement(step int64, errors ...float64) *dparetov1.Measurement {
	return &dparetov1.Measurement{Step: step, Metrics: map[string]*dparetov1.MetricValue{"error": {Runs: errors}}}
}

// Completion completes a trial with errors of runs.
func Completion(trial *dparetov1.Trial, errors ...float64) *dparetov1.CompleteTrialRequest {
	return &dparetov1.CompleteTrialRequest{
		Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(),
		Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: Measurement(0, errors...)},
	}
}

// DoubleValue is the value of a parameter that is a number.
func DoubleValue(x float64) *dparetov1.Value {
	return &dparetov1.Value{Kind: &dparetov1.Value_DoubleValue{DoubleValue: x}}
}

// IntValue is the value of a parameter that is a whole number.
func IntValue(x int64) *dparetov1.Value {
	return &dparetov1.Value{Kind: &dparetov1.Value_IntValue{IntValue: x}}
}

// TextValue is the value of a parameter that is a category.
func TextValue(x string) *dparetov1.Value {
	return &dparetov1.Value{Kind: &dparetov1.Value_StringValue{StringValue: x}}
}

// ChoiceSpec is a study over the optimiser too, with constraints of both kinds and a
// measured cost. width stands before its parent, and exists under two conditions.
func ChoiceSpec() *dparetov1.StudySpec {
	spec := SVTSpec()
	double := func(id string, lo, hi float64, condition *dparetov1.Condition) *dparetov1.ParameterSpec {
		return &dparetov1.ParameterSpec{
			Id: id, Scale: dparetov1.Scale_SCALE_LOG, Condition: condition,
			Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Min: lo, Max: hi}},
		}
	}
	adam := &dparetov1.Condition{Parent: "optimizer", Values: []*dparetov1.Value{TextValue("adam"), TextValue("lamb")}}
	spec.Parameters = []*dparetov1.ParameterSpec{
		{
			Id: "width", Scale: dparetov1.Scale_SCALE_LINEAR,
			Domain:    &dparetov1.ParameterSpec_DiscreteDomain{DiscreteDomain: &dparetov1.DiscreteDomain{Values: []float64{16, 64}}},
			Condition: &dparetov1.Condition{Parent: "layers", Values: []*dparetov1.Value{IntValue(1), IntValue(2)}},
		},
		{
			Id: "layers", Scale: dparetov1.Scale_SCALE_LINEAR,
			Domain:    &dparetov1.ParameterSpec_IntegerDomain{IntegerDomain: &dparetov1.IntegerDomain{Max: 2}},
			Condition: proto.CloneOf(adam),
		},
		{
			Id:     "optimizer",
			Domain: &dparetov1.ParameterSpec_CategoricalDomain{CategoricalDomain: &dparetov1.CategoricalDomain{Categories: []string{"sgd", "adam", "lamb"}}},
		},
		double("noise", 0.1, 10, nil),
		double("beta", 0.5, 1, adam),
	}
	privacy := spec.GetMetrics()[0].GetComputed().GetPrivacy()
	privacy.Mechanism = &dparetov1.PrivacySpec_Laplace{Laplace: &dparetov1.LaplaceMechanism{
		Sensitivity: "1", Scale: "optimizer == 'sgd' ? noise : noise * beta",
	}}
	most := 100.0
	spec.Metrics = append(spec.Metrics, &dparetov1.MetricSpec{
		Id: "seconds", Role: dparetov1.MetricRole_METRIC_ROLE_CONSTRAINT, Transform: dparetov1.Transform_TRANSFORM_LOG,
		Bounds: &dparetov1.MetricBounds{Max: &most},
		Source: &dparetov1.MetricSpec_Reported{Reported: &dparetov1.ReportedSource{}},
	})
	spec.ParameterConstraints = []string{"optimizer != 'lamb' || layers < 2 || width < 64.0", "noise < 5.0"}
	spec.Cost = &dparetov1.CostSpec{Measure: &dparetov1.CostSpec_Metric{Metric: "seconds"}}
	return spec
}

// ChoiceMeasurement is a result that takes long for wide networks.
func ChoiceMeasurement(trial *dparetov1.Trial) *dparetov1.Measurement {
	values := trial.GetParameters()
	seconds := 1 + 2*values["width"].GetDoubleValue()
	loss := 0.5 / (1 + float64(values["layers"].GetIntValue()))
	return &dparetov1.Measurement{Metrics: map[string]*dparetov1.MetricValue{
		"error":   {Value: &loss},
		"seconds": {Value: &seconds},
	}}
}
