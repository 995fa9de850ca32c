package dpareto

import (
	"context"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// QueryFront returns the configuration that makes one objective as good as bounds on the
// others allow: for example the smallest error with {"epsilon": 1}, or the smallest ε
// with {"error": 0.2}. A bound is the largest value of an objective to minimise, the
// smallest one of an objective to maximise. Measured objectives meet it with the given
// probability in (0, 1), or 0.5 for 0.
//
// If the answer's reachable is false, nothing meets the bounds and the answer is the
// nearest configuration. An answer without trials has never been run.
func (s *Study) QueryFront(ctx context.Context, bounds map[string]float64, confidence float64) (*dparetov1.QueryFrontResponse, error) {
	resp, err := s.client.Fronts.QueryFront(ctx, &dparetov1.QueryFrontRequest{Name: s.name, Bounds: bounds, Confidence: confidence})
	if err != nil {
		return nil, newCallError(ctx, "query the front of "+s.name, err)
	}
	return resp, nil
}

// Predict returns the predictions of the study's model for configurations, at most 1000,
// in their order: the measured objectives with intervals, computed metrics exactly.
func (s *Study) Predict(ctx context.Context, configurations ...map[string]*dparetov1.Value) ([]*dparetov1.ConfigurationPrediction, error) {
	request := &dparetov1.PredictMetricsRequest{Name: s.name}
	for _, parameters := range configurations {
		request.Configurations = append(request.Configurations, &dparetov1.Configuration{Parameters: parameters})
	}
	resp, err := s.client.Fronts.PredictMetrics(ctx, request)
	if err != nil {
		return nil, newCallError(ctx, "predict metrics of "+s.name, err)
	}
	return resp.GetPredictions(), nil
}

// AskWithin asks for trials that meet conditions, one for each: parameters with fixed
// values, upper bounds of computed metrics. Unlike Ask it does not wait. The trials come
// in the order of their conditions; if one is missing the second result says why.
func (s *Study) AskWithin(ctx context.Context, workerID string, conditions ...*dparetov1.SuggestionCondition) ([]*Trial, dparetov1.EndReason, error) {
	resp, err := s.client.Studies.SuggestTrials(ctx, &dparetov1.SuggestTrialsRequest{
		Parent: s.name, Count: int32(len(conditions)), WorkerId: workerID, Conditions: conditions,
	})
	if err != nil {
		return nil, 0, newCallError(ctx, "ask for trials of "+s.name, err)
	}
	trials := make([]*Trial, len(resp.GetTrials()))
	for i, trial := range resp.GetTrials() {
		trials[i] = newTrial(s, trial)
	}
	return trials, resp.GetEndReason(), nil
}

// PrivacyLedger returns what all runs of the study cost together at δ, or at the metric's
// δ for 0.
func (s *Study) PrivacyLedger(ctx context.Context, delta float64) (*dparetov1.GetPrivacyLedgerResponse, error) {
	resp, err := s.client.Privacy.GetPrivacyLedger(ctx, &dparetov1.GetPrivacyLedgerRequest{Name: s.name, Delta: delta})
	if err != nil {
		return nil, newCallError(ctx, "read the privacy ledger of "+s.name, err)
	}
	return resp, nil
}

// Reaccount recomputes a privacy metric of all trials under another spec, without
// training. validateOnly returns the result and changes nothing.
func (s *Study) Reaccount(ctx context.Context, metric string, privacy *dparetov1.PrivacySpec, validateOnly bool) (*dparetov1.ReaccountStudyResponse, error) {
	resp, err := s.client.Privacy.ReaccountStudy(ctx, &dparetov1.ReaccountStudyRequest{
		Name: s.name, Metric: metric, Privacy: privacy, ValidateOnly: validateOnly,
	})
	if err != nil {
		return nil, newCallError(ctx, "account "+s.name+" again", err)
	}
	return resp, nil
}
