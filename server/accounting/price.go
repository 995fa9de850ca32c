package accounting

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/price"
	"github.com/dpareto/dpareto/server/expression"
	"github.com/dpareto/dpareto/server/invalid"
)

// Defaults of PriceSearch.
const (
	defaultEta         = 1 // the geometric distribution
	defaultSubsetShare = 0.1
)

// defaultPortfolios are the sizes of portfolios that a table has by default.
var defaultPortfolios = []int64{2, 4, 8}

// priceWork is how many times the work of one ε the table of prices may take, without the search for
// the runs that a budget affords, which has its own limit.
const priceWork = 4

// PriceSearch implements PrivacyService.
func (s Service) PriceSearch(ctx context.Context, req *dparetov1.PriceSearchRequest) (*dparetov1.PriceSearchResponse, error) {
	search, run, err := searchOf(req)
	if err != nil {
		return nil, err
	}
	work := s.work(ctx)
	work.Limit *= priceWork
	ways, err := search.Prices(work)
	if err != nil {
		return nil, searchError(err)
	}
	response := new(dparetov1.PriceSearchResponse)
	for _, w := range ways {
		response.Ways = append(response.Ways, priceMessage(search, run, w))
	}
	return response, nil
}

// searchOf returns the search of a request, and the mechanism of one run.
func searchOf(req *dparetov1.PriceSearchRequest) (*price.Search, *oneRun, error) {
	var fields invalid.Fields
	variables, environment := bind(&fields, req.GetParameters(), nil)
	if !fields.Empty() {
		return nil, nil, fields.Err()
	}
	run, err := runOf("privacy", environment, variables, req.GetPrivacy())
	if err != nil {
		return nil, nil, err
	}
	search := &price.Search{
		Run: run.part(), Delta: req.GetPrivacy().GetDelta(), Runs: req.GetRuns(), Eta: defaultEta, MaxRuns: req.GetMaxRuns(),
		Budget: req.GetBudget(), Portfolios: req.GetPortfolios(), CoversStates: run.function.CoversCheckpoints(),
	}
	switch d := req.GetDistribution().(type) {
	case *dparetov1.PriceSearchRequest_Eta:
		search.Eta = d.Eta
	case *dparetov1.PriceSearchRequest_Poisson:
		search.Poisson = true
	default:
	}
	if len(search.Portfolios) == 0 {
		search.Portfolios = defaultPortfolios
	}
	if search.Subset, err = subsetOf(req, run, environment, variables); err != nil {
		return nil, nil, err
	}
	if search.Test, err = testOf(req); err != nil {
		return nil, nil, err
	}
	return search, run, nil
}

// oneRun is one run of a search, compiled and evaluated.
type oneRun struct {
	function  *Function
	evaluated evaluated
	variables map[string]any
}

func (r *oneRun) part() privacy.Part {
	return privacy.Part{Mechanism: r.evaluated.mechanism, Count: r.evaluated.runs}
}

// runOf compiles and evaluates the mechanism of one run.
func runOf(path string, environment *expression.Environment, variables map[string]any, spec *dparetov1.PrivacySpec) (*oneRun, error) {
	if a := spec.GetAccountant(); a != dparetov1.Accountant_ACCOUNTANT_UNSPECIFIED && a != dparetov1.Accountant_ACCOUNTANT_TIGHTEST {
		return nil, invalid.Field(path+".accountant", "must be unset or ACCOUNTANT_TIGHTEST: every way is accounted as tightly as possible, is %v", a)
	}
	if _, selection := spec.GetMechanism().(*dparetov1.PrivacySpec_RepeatedSelection); selection {
		return nil, invalid.Field(path+".repeated_selection", "must be one run: the search itself is the repeated selection")
	}
	var fields invalid.Fields
	function := Compile(path, &fields, environment, spec)
	if function == nil {
		return nil, fields.Err()
	}
	r, err := function.mechanism.evaluate(variables)
	if err != nil {
		return nil, fieldsBelow(path, err)
	}
	return &oneRun{function, r, variables}, nil
}

// subsetOf returns how a search on a subset runs, or nil for a mechanism that cannot.
func subsetOf(req *dparetov1.PriceSearchRequest, run *oneRun, environment *expression.Environment, variables map[string]any) (*price.Subset, error) {
	asked := req.GetSubsetShare() != 0 || req.GetSubsetBatchSize() != 0 || req.GetFinalRun() != nil
	if _, ok := run.evaluated.mechanism.(privacy.FixedSizeGaussian); !ok && !asked {
		return nil, nil
	}
	subset := &price.Subset{Share: req.GetSubsetShare(), BatchSize: req.GetSubsetBatchSize(), Final: run.part()}
	if subset.Share == 0 {
		subset.Share = defaultSubsetShare
	}
	var err error
	if subset.Epochs, err = run.epochs(); err != nil {
		return nil, fieldsOf(err)
	}
	if req.GetFinalRun() == nil {
		return subset, nil
	}
	spec := proto.CloneOf(req.GetFinalRun())
	if spec.GetDelta() != 0 || spec.GetAdjacency() != dparetov1.Adjacency_ADJACENCY_UNSPECIFIED {
		return nil, invalid.Field("final_run", "delta and adjacency must be unset: privacy sets them")
	}
	spec.Delta, spec.Adjacency = req.GetPrivacy().GetDelta(), req.GetPrivacy().GetAdjacency()
	final, err := runOf("final_run", environment, variables, spec)
	if err != nil {
		return nil, err
	}
	subset.Final = final.part()
	return subset, nil
}

// epochs returns the length of a run in passes over the data, or 0 if it is in steps.
func (r *oneRun) epochs() (int64, error) {
	d := r.function.mechanism.dpSGD
	if d == nil || d.unit != unitEpochs {
		return 0, nil
	}
	e := evaluation{variables: r.variables}
	epochs := e.integer(d.unit, d.length)
	return epochs, e.err
}

// testOf returns what protects the test records, or nil.
func testOf(req *dparetov1.PriceSearchRequest) (*price.Test, error) {
	test := &price.Test{Records: req.GetTestRecords(), Checkpoints: req.GetCheckpoints()}
	if test.Checkpoints == 0 {
		test.Checkpoints = 1
	}
	switch t := req.GetTest().(type) {
	case *dparetov1.PriceSearchRequest_TestNoise:
		test.Noise = t.TestNoise
	case *dparetov1.PriceSearchRequest_TestEpsilon:
		if test.Epsilon = t.TestEpsilon; test.Epsilon == 0 {
			return nil, invalid.Field("test_epsilon", "must be positive, is 0")
		}
	default:
		if req.GetTestRecords() != 0 || req.GetCheckpoints() != 0 {
			return nil, invalid.Field("test_noise", "must be set, or test_epsilon, with test_records or checkpoints")
		}
		return nil, nil
	}
	return test, nil
}

// searchError turns the errors of a search about its fields into an answer.
func searchError(err error) error {
	found := privacy.FieldErrors(err)
	if len(found) == 0 {
		if unsupported, ok := errors.AsType[*privacy.UnsupportedError](err); ok {
			return invalid.Field("privacy", "cannot be searched with, or composed with final_run: %s: %s", unsupported.Mechanism, unsupported.Reason)
		}
		return fieldsOf(err)
	}
	var fields invalid.Fields
	for _, fe := range found {
		field := fe.Field
		if field == "delta" {
			field = "privacy.delta"
		}
		fields.Addf(field, "%s", fe.Message)
	}
	return fields.Err()
}

// priceMessage converts the price of a way.
func priceMessage(search *price.Search, run *oneRun, w price.Way) *dparetov1.SearchPrice {
	message := &dparetov1.SearchPrice{
		Way: w.Name, Released: w.Released, Adaptive: w.Adaptive, MeanRuns: w.MeanRuns, RunsForBudget: w.RunsForBudget,
		Training: run.function.message(w.Training, run.evaluated),
	}
	if w.MaxRuns > 0 {
		message.MaxRuns = &w.MaxRuns
	}
	if search.Test != nil {
		message.Test = run.function.message(w.Test, evaluated{datasetSize: search.Test.Records})
		message.Test.Adjacency = dparetov1.Adjacency_ADJACENCY_REPLACE_ONE
		message.TestNoise = &w.TestNoise
	}
	return message
}
