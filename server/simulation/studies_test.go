package simulation

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// The studies and ledgers of a history.
const (
	open    = "studies/open"    // an ordinary study
	fixed   = "studies/fixed"   // a fixed design, to be released from
	private = "studies/private" // with private_mode, which is deleted and created again

	tests    = "ledgers/tests"    // records that fixed and private are tested on
	training = "ledgers/training" // records that private is trained on

	records = 1000 // of both ledgers
	lease   = 10 * time.Second
	trials  = 6 // that open begins with
)

// baseSpec is what the studies have in common: one parameter, a computed cost and a measured error.
func baseSpec() *dparetov1.StudySpec {
	reference, worst := 10.0, 1.0
	return &dparetov1.StudySpec{
		Parameters: []*dparetov1.ParameterSpec{{
			Id: "sigma", Scale: dparetov1.Scale_SCALE_LOG,
			Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Min: 1, Max: 32}},
		}},
		Metrics: []*dparetov1.MetricSpec{
			{
				Id: "cost", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE,
				Transform: dparetov1.Transform_TRANSFORM_LOG, ReferenceValue: &reference,
				Source: &dparetov1.MetricSpec_Computed{Computed: &dparetov1.ComputedSource{
					Function: &dparetov1.ComputedSource_Expression{Expression: "4.0 / sigma"},
				}},
			},
			{
				Id: "error", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE,
				Transform: dparetov1.Transform_TRANSFORM_LOGIT, ReferenceValue: &worst,
				Source: &dparetov1.MetricSpec_Reported{Reported: new(dparetov1.ReportedSource)},
			},
		},
		Algorithm:            &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_RANDOM},
		Seed:                 new(uint64),
		Lease:                &dparetov1.LeasePolicy{Duration: durationpb.New(lease), MaxAttempts: 4},
		DisableEarlyStopping: true,
	}
}

// openSpec is a study of a random design.
func openSpec() *dparetov1.StudySpec {
	spec := baseSpec()
	spec.Budget = &dparetov1.Budget{MaxTrials: trials}
	return spec
}

// fixedSpec is a study whose design is fixed before any result can be read. Its leases are so long
// that nobody loses one.
func fixedSpec() *dparetov1.StudySpec {
	spec := baseSpec()
	spec.Algorithm.Name = dparetov1.Algorithm_ALGORITHM_QUASI_RANDOM
	spec.Budget = &dparetov1.Budget{MaxTrials: 2}
	spec.Metrics[1].GetReported().SampleSize = records
	spec.TestLedger = tests
	spec.Lease.Duration = durationpb.New(24 * time.Hour)
	return spec
}

// privateSpec is a study that publishes with noise, and pays from ledgers if it names them.
func privateSpec(paid bool) *dparetov1.StudySpec {
	spec := baseSpec()
	spec.Metrics[0].GetComputed().Function = &dparetov1.ComputedSource_Privacy{Privacy: &dparetov1.PrivacySpec{
		Mechanism: &dparetov1.PrivacySpec_Gaussian{Gaussian: &dparetov1.GaussianMechanism{Sensitivity: "1", StandardDeviation: "sigma"}},
		Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE, Delta: 1e-6,
	}}
	spec.Budget = &dparetov1.Budget{MaxTrials: 3}
	spec.PrivateMode = &dparetov1.PrivateModeSpec{TestSetSize: records, TestEpsilon: 1, TrainEpsilon: 20, Delta: 1e-6, TrainingShards: 2}
	if paid {
		spec.TestLedger, spec.TrainLedger = tests, training
	}
	return spec
}

// newLedger is a ledger that pays for two private studies and a few releases.
func newLedger(epsilon float64) *dparetov1.Ledger {
	return &dparetov1.Ledger{Records: records, Epsilon: epsilon, Delta: 1e-4, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE}
}

// measured returns a measurement of one error.
func measured(step int64, value float64) *dparetov1.Measurement {
	return &dparetov1.Measurement{Step: step, Metrics: map[string]*dparetov1.MetricValue{"error": {Runs: []float64{value}}}}
}

// errorOf returns the one error of a measurement of an ordinary study.
func errorOf(m *dparetov1.Measurement) float64 {
	if runs := m.GetMetrics()["error"].GetRuns(); len(runs) > 0 {
		return runs[0]
	}
	return -1
}
