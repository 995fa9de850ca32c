package server_test

import (
	"math"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/accounting"
)

// The published accountant and the tight one on a run of Avent et al., over the wire.
func TestPrivacyService(t *testing.T) {
	f := start(t)
	client := dparetov1.NewPrivacyServiceClient(f.conn)
	spec := sgdSpec().GetMetrics()[0].GetComputed().GetPrivacy()
	spec.GetDpSgd().NoiseMultiplier = "sigma"
	parameters := map[string]*dparetov1.Value{
		"lot_size": {Kind: &dparetov1.Value_IntValue{IntValue: 128}},
		"epochs":   {Kind: &dparetov1.Value_IntValue{IntValue: 10}},
		"sigma":    {Kind: &dparetov1.Value_DoubleValue{DoubleValue: 1}},
	}
	request := &dparetov1.ComputeEpsilonRequest{Privacy: spec, Parameters: parameters}
	published, err := client.ComputeEpsilon(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if g := published.GetGuarantees()[0]; math.Abs(g.GetEpsilon()-2.143129) > 1e-6 || g.GetOrder() != 9 || g.GetSteps() != 2420 {
		t.Errorf("published accountant: %v", g)
	}
	spec.Accountant, spec.Conversion = dparetov1.Accountant_ACCOUNTANT_UNSPECIFIED, dparetov1.Conversion_CONVERSION_UNSPECIFIED
	tight, err := client.ComputeEpsilon(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
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
	wantCode(t, err, codes.InvalidArgument, "privacy: must be set")
}

// A study without a choice of accountant has the tightest, and shows the lower bound
// and what is wrong with its sampler on the study and on every trial.
func TestStudyWithTightAccountant(t *testing.T) {
	f := start(t)
	spec := sgdSpec()
	privacy := spec.GetMetrics()[0].GetComputed().GetPrivacy()
	privacy.Accountant, privacy.Conversion = dparetov1.Accountant_ACCOUNTANT_UNSPECIFIED, dparetov1.Conversion_CONVERSION_UNSPECIFIED
	privacy.GetDpSgd().TrainerSampling = dparetov1.Sampling_SAMPLING_SHUFFLED
	name := f.create("tight", spec)
	study, err := f.studies.GetStudy(t.Context(), &dparetov1.GetStudyRequest{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	isMismatch := func(w *dparetov1.Warning) bool { return w.GetCode() == accounting.WarnSamplingMismatch }
	if !slices.ContainsFunc(study.GetStudy().GetWarnings(), isMismatch) {
		t.Errorf("warnings of the study: %v", study.GetStudy().GetWarnings())
	}
	trial := f.ask(name, "w", 1).GetTrials()[0]
	g := trial.GetComputedMetrics()["epsilon"].GetPrivacy()
	if g.GetAccountant() != dparetov1.Accountant_ACCOUNTANT_EXACT || !(g.GetEpsilonLower() > 0 && g.GetEpsilonLower() < g.GetEpsilon()) || !slices.ContainsFunc(g.GetWarnings(), isMismatch) {
		t.Errorf("guarantee of the trial: %v", g)
	}
}

// The Rényi accountant says where it is no use.
func TestStudyWarnsOfLooseBounds(t *testing.T) {
	f := start(t)
	spec := sgdSpec() // noise multipliers from 0.32
	study, err := f.studies.GetStudy(t.Context(), &dparetov1.GetStudyRequest{Name: f.create("loose", spec)})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(study.GetStudy().GetWarnings(), func(w *dparetov1.Warning) bool { return w.GetCode() == "LOOSE_BOUND" }) {
		t.Errorf("warnings %v", study.GetStudy().GetWarnings())
	}
}
