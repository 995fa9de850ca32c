package server_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server/servertest"
)

// The published accountant and the tight one on a run of Avent et al., over the wire.
func TestPrivacyService(t *testing.T) {
	t.Parallel()
	f := servertest.Start(t)
	client := dparetov1.NewPrivacyServiceClient(f.Conn)
	spec := servertest.SGDSpec().GetMetrics()[0].GetComputed().GetPrivacy()
	spec.GetDpSgd().NoiseMultiplier = "sigma"
	parameters := map[string]*dparetov1.Value{
		"lot_size": {Kind: &dparetov1.Value_IntValue{IntValue: 128}},
		"epochs":   {Kind: &dparetov1.Value_IntValue{IntValue: 10}},
		"sigma":    {Kind: &dparetov1.Value_DoubleValue{DoubleValue: 1}},
	}
	request := &dparetov1.ComputeEpsilonRequest{Privacy: spec, Parameters: parameters}
	published, err := client.ComputeEpsilon(t.Context(), request)
	require.NoError(t, err)
	if g := published.GetGuarantees()[0]; math.Abs(g.GetEpsilon()-2.535565) > 1e-6 || g.GetOrder() != 9 || g.GetSteps() != 2420 {
		t.Errorf("published accountant: %v", g)
	}
	spec.Accountant, spec.Conversion = dparetov1.Accountant_ACCOUNTANT_UNSPECIFIED, dparetov1.Conversion_CONVERSION_UNSPECIFIED
	tight, err := client.ComputeEpsilon(t.Context(), request)
	require.NoError(t, err)
	g := tight.GetGuarantees()[0]
	if ratio := published.GetGuarantees()[0].GetEpsilon() / g.GetEpsilon(); !(ratio > 1.4 && ratio < 2) || g.GetAccountant() != dparetov1.Accountant_ACCOUNTANT_EXACT {
		t.Errorf("tight accountant: %v", g)
	}
	delete(parameters, "sigma")
	calibrated, err := client.CalibrateMechanism(t.Context(), &dparetov1.CalibrateMechanismRequest{
		Privacy: spec, Parameters: parameters, SolveFor: "sigma", Min: 0.1, Max: 100, TargetEpsilon: g.GetEpsilon(),
	})
	if err != nil || math.Abs(calibrated.GetValue().GetDoubleValue()-1) > 1e-7 {
		t.Errorf("calibrated: %v, %v", calibrated, err)
	}
	_, err = client.ComputeEpsilon(t.Context(), &dparetov1.ComputeEpsilonRequest{})
	servertest.WantCode(t, err, codes.InvalidArgument, "privacy: must be set")
}

// A study without a choice of accountant has the tightest. Its trials carry no lower bound, which
// may take longer than ε.
func TestStudyWithTightAccountant(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.SGDSpec()
	privacy := spec.GetMetrics()[0].GetComputed().GetPrivacy()
	privacy.Accountant, privacy.Conversion = dparetov1.Accountant_ACCOUNTANT_UNSPECIFIED, dparetov1.Conversion_CONVERSION_UNSPECIFIED
	trial := f.Ask(f.Create("tight", spec), "w", 1).GetTrials()[0]
	g := trial.GetComputedMetrics()["epsilon"].GetPrivacy()
	if g.GetAccountant() != dparetov1.Accountant_ACCOUNTANT_EXACT || g.EpsilonLower != nil || !(g.GetEpsilon() > 0) {
		t.Errorf("guarantee of the trial: %v", g)
	}
}

// A worker that trains with Opacus reports another ε than a study of rounded epochs computes,
// where lots do not divide the data. The trial's warning has both.
func TestReportUnderAnotherConvention(t *testing.T) {
	t.Parallel()
	f := servertest.Start(t)
	spec := servertest.SGDSpec()
	privacy := spec.GetMetrics()[0].GetComputed().GetPrivacy()
	privacy.Adjacency, privacy.Accountant, privacy.Conversion = dparetov1.Adjacency_ADJACENCY_ADD_REMOVE, 0, 0
	dpsgd := privacy.GetDpSgd()
	dpsgd.Sampling, dpsgd.DatasetSize = dparetov1.Sampling_SAMPLING_POISSON, "600"
	parameters := map[string]*dparetov1.Value{
		"epochs":   {Kind: &dparetov1.Value_IntValue{IntValue: 10}},
		"lot_size": {Kind: &dparetov1.Value_IntValue{IntValue: 401}},
		"variance": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: 4}},
	}
	values := make(map[dparetov1.Convention]float64)
	for _, convention := range []dparetov1.Convention{dparetov1.Convention_CONVENTION_OPACUS, dparetov1.Convention_CONVENTION_ROUNDED} {
		dpsgd.Convention = convention
		study := f.Create(strings.ReplaceAll(strings.ToLower(convention.String()), "_", "-"), spec)
		require.NoError(t, require.ErrOf(f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{Parameters: parameters}})))
		trial := f.One(study, "w")
		values[convention] = trial.GetComputedMetrics()["epsilon"].GetValue()
		if g := trial.GetComputedMetrics()["epsilon"].GetPrivacy(); !show.IsSizePublic(g.GetAssumptions()) {
			t.Errorf("%v: assumptions %q", convention, g.GetAssumptions())
		}
		own := values[dparetov1.Convention_CONVENTION_OPACUS]
		request := servertest.Completion(trial, 0.5)
		request.GetMeasurement().Step = 10
		request.GetMeasurement().Metrics["epsilon"] = &dparetov1.MetricValue{Value: &own}
		done, err := f.Studies.CompleteTrial(t.Context(), request)
		require.NoError(t, err)
		warnings := done.GetTrial().GetWarnings()
		if convention == dparetov1.Convention_CONVENTION_OPACUS {
			if len(warnings) != 0 {
				t.Errorf("warnings %v", warnings)
			}
			continue
		}
		if len(warnings) != 1 || warnings[0].GetCode() != "REPORT_DIFFERS" ||
			!strings.Contains(warnings[0].GetMessage(), fmt.Sprintf("%g", own)) || !strings.Contains(warnings[0].GetMessage(), fmt.Sprintf("%g", values[convention])) {
			t.Errorf("warnings %v, want %g and %g", warnings, own, values[convention])
		}
	}
	// 20 steps with probability 1/2, and 10 with probability 401/600.
	if ratio := values[dparetov1.Convention_CONVENTION_OPACUS] / values[dparetov1.Convention_CONVENTION_ROUNDED]; ratio < 1.05 {
		t.Errorf("ε of Opacus is %g times that of rounded epochs", ratio)
	}
}

// The Rényi accountant says where it is no use.
func TestStudyWarnsOfLooseBounds(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.SGDSpec() // noise multipliers from 0.32
	study, err := f.Studies.GetStudy(t.Context(), &dparetov1.GetStudyRequest{Name: f.Create("loose", spec)})
	require.NoError(t, err)
	if !slices.ContainsFunc(study.GetStudy().GetWarnings(), func(w *dparetov1.Warning) bool { return w.GetCode() == "LOOSE_BOUND" }) {
		t.Errorf("warnings %v", study.GetStudy().GetWarnings())
	}
}
