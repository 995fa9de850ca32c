package private

import (
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/study"
)

// noisy is the part of a policy that keeps only noisy values of a worker's statements about the
// data. It keeps no hash of a value either: with few possible values a hash reveals the value.
// Repeated requests are recognised by trial, token and step.
type noisy struct{ study.Ordinary }

// Redact implements study.Policy.
func (noisy) Redact(req study.Identified) study.Identified {
	step := func(m *dparetov1.Measurement) *dparetov1.Measurement {
		return &dparetov1.Measurement{Step: m.GetStep()}
	}
	switch r := req.(type) {
	case *dparetov1.AddMeasurementRequest:
		return &dparetov1.AddMeasurementRequest{Name: r.GetName(), LeaseToken: r.GetLeaseToken(), RequestId: r.GetRequestId(), Measurement: step(r.GetMeasurement())}
	case *dparetov1.ReleaseTrialRequest:
		return &dparetov1.ReleaseTrialRequest{Name: r.GetName(), LeaseToken: r.GetLeaseToken(), RequestId: r.GetRequestId()}
	case *dparetov1.StopTrialRequest:
		return &dparetov1.StopTrialRequest{Name: r.GetName(), RequestId: r.GetRequestId()}
	case *dparetov1.CompleteTrialRequest:
		redacted := &dparetov1.CompleteTrialRequest{Name: r.GetName(), LeaseToken: r.GetLeaseToken(), RequestId: r.GetRequestId(), Outcome: r.GetOutcome()}
		switch outcome := r.GetOutcome().(type) {
		case *dparetov1.CompleteTrialRequest_Measurement:
			redacted.Outcome = &dparetov1.CompleteTrialRequest_Measurement{Measurement: step(outcome.Measurement)}
		case *dparetov1.CompleteTrialRequest_Infeasible:
			redacted.Outcome = &dparetov1.CompleteTrialRequest_Infeasible{Infeasible: new(dparetov1.Infeasible)}
		case *dparetov1.CompleteTrialRequest_Failure:
			redacted.Outcome = &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Retryable: outcome.Failure.GetRetryable()}}
		}
		return redacted
	default:
		return req
	}
}
