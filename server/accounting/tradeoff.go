package accounting

import (
	"context"
	"fmt"
	"slices"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/server/invalid"
)

// The largest numbers of false positive rates and of priors in a request.
const (
	maxRates  = 1000
	maxPriors = 100
)

// defaultRates suffice for a picture, with linear axes and with logarithmic ones.
var defaultRates = []float64{
	0, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07,
	0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1,
}

// ComputeTradeoff implements PrivacyService. Once it has the guarantee, it spends at most the rest of
// its work on the curve, which holds, above the trade-off function, wherever the work ends.
func (s Service) ComputeTradeoff(ctx context.Context, req *dparetov1.ComputeTradeoffRequest) (*dparetov1.ComputeTradeoffResponse, error) {
	var fields invalid.Fields
	variables, environment := bind(&fields, req.GetParameters(), nil)
	rates := req.GetFalsePositiveRates()
	if len(rates) > maxRates {
		fields.Addf("false_positive_rates", "must hold at most %d values, holds %d", maxRates, len(rates))
	}
	for i, rate := range rates {
		if !(rate >= 0 && rate <= 1) {
			fields.Addf(fmt.Sprintf("false_positive_rates[%d]", i), "must be in [0, 1], is %g", rate)
		}
	}
	if n := len(req.GetPriors()); n > maxPriors {
		fields.Addf("priors", "must hold at most %d values, holds %d", maxPriors, n)
	}
	for i, prior := range req.GetPriors() {
		if !(prior > 0 && prior < 1) {
			fields.Addf(fmt.Sprintf("priors[%d]", i), "must be in (0, 1), is %g", prior)
		}
	}
	if !fields.Empty() {
		return nil, fields.Err()
	}
	if len(rates) == 0 {
		rates = slices.Clone(defaultRates)
	}
	function := Compile("privacy", &fields, environment, req.GetPrivacy())
	if function == nil {
		return nil, fields.Err()
	}
	function.accountant = privacy.Within(function.accountant, s.work(ctx))
	response, err := function.tradeoff(variables, rates, req.GetPriors())
	if err != nil {
		return nil, fieldsOf(err)
	}
	return response, nil
}

// tradeoff bounds the true positive rates for false positive rates, and the errors of guesses for priors.
func (f *Function) tradeoff(variables map[string]any, rates, priors []float64) (*dparetov1.ComputeTradeoffResponse, error) {
	r, err := f.mechanism.evaluate(variables)
	if err != nil {
		return nil, err
	}
	curve, err := f.curve(r.mechanism)
	if err != nil {
		return nil, err
	}
	g, err := curve.Epsilon(r.runs, f.spec.GetDelta())
	if err != nil {
		return nil, err
	}
	bounds, err := privacy.NewTradeoff(curve, g, rates, priors)
	if err != nil {
		return nil, err
	}
	response := &dparetov1.ComputeTradeoffResponse{
		Guarantee: f.message(g, r), ExactProfile: bounds.Attained,
		Advantage: bounds.Advantage, BayesErrors: bounds.BayesErrors, Mu: bounds.Mu, MuRegret: bounds.MuRegret,
	}
	for i, rate := range rates {
		response.Points = append(response.Points, &dparetov1.TradeoffPoint{FalsePositiveRate: rate, TruePositiveRate: bounds.TruePositiveRates[i]})
	}
	return response, nil
}
