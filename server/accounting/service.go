package accounting

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/pause"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/meter"
	"github.com/dpareto/dpareto/server/expression"
	"github.com/dpareto/dpareto/server/invalid"
)

// MaxLengths is the largest number of lengths in a request.
const MaxLengths = 10_000

// Limits of requests.
const (
	maxEpsilons   = 1000
	maxParameters = 100

	// estimatedFrom is the number of lengths from whose work the work for all lengths is estimated.
	estimatedFrom = 5
)

// variableName is the form of the names of variables, as of a study's parameters.
var variableName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)

// MaxWork is the largest number of operations of one call to a server (see [meter.Work]): about
// two seconds of a processor.
const MaxWork = 1 << 27

// Service implements the methods of PrivacyService that need no study. Its zero value
// is ready to use.
type Service struct {
	// MaxWork is the largest number of operations of a call (see [meter.Work]), 0 for no limit.
	// A call that would take more is refused with INVALID_ARGUMENT, which names the field.
	MaxWork int64
}

// work returns the work of a call.
func (s Service) work(ctx context.Context) *meter.Work {
	return &meter.Work{Limit: s.MaxWork, Pause: func() error { return pause.Check(ctx) }}
}

// ComputeEpsilon implements PrivacyService.
func (s Service) ComputeEpsilon(ctx context.Context, req *dparetov1.ComputeEpsilonRequest) (*dparetov1.ComputeEpsilonResponse, error) {
	var fields invalid.Fields
	variables, environment := bind(&fields, req.GetParameters(), nil)
	for i, length := range req.GetLengths() {
		if length < 1 {
			fields.Addf(fmt.Sprintf("lengths[%d]", i), "must be at least 1, is %d", length)
		}
	}
	if n := len(req.GetLengths()); n > MaxLengths {
		fields.Addf("lengths", "must hold at most %d lengths, holds %d", MaxLengths, n)
	}
	if n := len(req.GetEpsilons()); n > maxEpsilons {
		fields.Addf("epsilons", "must hold at most %d values, holds %d", maxEpsilons, n)
	}
	if !fields.Empty() {
		return nil, fields.Err()
	}
	spec := req.GetPrivacy()
	if len(req.GetEpsilons()) > 0 {
		var err error
		if spec, err = withoutDelta(req); err != nil {
			return nil, err
		}
	}
	function := Compile("privacy", &fields, environment, spec)
	if function != nil && len(req.GetLengths()) > 0 && function.mechanism.withLength == nil {
		fields.Addf("lengths", "are only for mechanisms with a length: dp_sgd")
	}
	if !fields.Empty() {
		return nil, fields.Err()
	}
	work := s.work(ctx)
	function.accountant = privacy.Within(function.accountant, work)
	first, err := function.mechanism.evaluate(variables)
	if err != nil {
		return nil, fieldsOf(err)
	}
	response := &dparetov1.ComputeEpsilonResponse{Derived: first.derived}
	switch {
	case len(req.GetEpsilons()) > 0:
		response.Guarantees, err = function.deltas(ctx, first, req.GetEpsilons())
	case len(req.GetLengths()) > 0:
		response.Guarantees, err = function.trajectory(ctx, work, variables, req.GetLengths())
	default:
		var g *dparetov1.PrivacyGuarantee
		g, err = function.guarantee(first)
		if response.Guarantees = []*dparetov1.PrivacyGuarantee{g}; err == nil {
			advise(work, first, response)
		}
	}
	if err != nil {
		return nil, fieldsOf(err)
	}
	return response, nil
}

// withoutDelta returns the spec of a request for δ: with some δ, as every spec needs.
func withoutDelta(req *dparetov1.ComputeEpsilonRequest) (*dparetov1.PrivacySpec, error) {
	var fields invalid.Fields
	for i, epsilon := range req.GetEpsilons() {
		if !(epsilon >= 0) || math.IsInf(epsilon, 1) {
			fields.Addf(fmt.Sprintf("epsilons[%d]", i), "must be finite and not negative, is %g", epsilon)
		}
	}
	if req.GetPrivacy().GetDelta() != 0 {
		fields.Addf("privacy.delta", "must be unset where epsilons are given, is %g", req.GetPrivacy().GetDelta())
	}
	if len(req.GetLengths()) > 0 {
		fields.Addf("lengths", "must be unset where epsilons are given")
	}
	if req.GetPrivacy().GetAccountant() == dparetov1.Accountant_ACCOUNTANT_PURE {
		fields.Addf("privacy.accountant", "cannot be ACCOUNTANT_PURE, whose delta is 0")
	}
	if !fields.Empty() || req.GetPrivacy() == nil {
		return nil, fields.Err()
	}
	spec := proto.CloneOf(req.GetPrivacy())
	spec.Delta = 0.5
	return spec, nil
}

// trajectory returns the guarantee of every length. The curve is computed once. If a few lengths,
// evenly spread, suggest that all of them take too much work, it refuses.
func (f *Function) trajectory(ctx context.Context, work *meter.Work, variables map[string]any, lengths []int64) ([]*dparetov1.PrivacyGuarantee, error) {
	all := make([]*dparetov1.PrivacyGuarantee, len(lengths))
	compute := func(i int) error {
		if err := pause.Check(ctx); err != nil || all[i] != nil {
			return err
		}
		r, err := f.mechanism.withLength(variables, lengths[i])
		if err != nil {
			return err
		}
		all[i], err = f.guarantee(r)
		return err
	}
	var curve int64 // work that only the first length takes
	for k := range estimatedFrom {
		if err := compute(k * (len(lengths) - 1) / (estimatedFrom - 1)); err != nil {
			return nil, err
		}
		if k == 0 {
			curve = work.Done()
		}
	}
	if err := work.Admits(further(work, curve, len(lengths))); err != nil {
		return nil, invalid.Field("lengths", "hold %d lengths: %v", len(lengths), err)
	}
	for i := range lengths {
		if err := compute(i); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// further estimates the work of the lengths that are not computed yet.
func further(work *meter.Work, curve int64, lengths int) int64 {
	return (work.Done() - curve) / (estimatedFrom - 1) * int64(max(0, lengths-estimatedFrom))
}

// deltas returns the guarantee with the least δ for every ε.
func (f *Function) deltas(ctx context.Context, r evaluated, epsilons []float64) ([]*dparetov1.PrivacyGuarantee, error) {
	curve, err := f.curve(r.mechanism)
	if err != nil {
		return nil, err
	}
	all := make([]*dparetov1.PrivacyGuarantee, len(epsilons))
	for i, epsilon := range epsilons {
		if err := pause.Check(ctx); err != nil {
			return nil, err
		}
		g, err := privacy.Delta(curve, r.runs, epsilon)
		if err != nil {
			return nil, err
		}
		all[i] = f.message(g, r)
	}
	return all, nil
}

// bind returns the values of parameters and an environment that declares them, and
// further ones without a value.
func bind(fields *invalid.Fields, parameters map[string]*dparetov1.Value, further []expression.Variable) (map[string]any, *expression.Environment) {
	values := make(map[string]any, len(parameters))
	declared := further
	if n := len(parameters); n > maxParameters {
		fields.Addf("parameters", "must hold at most %d values, holds %d", maxParameters, n)
		return nil, nil
	}
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		field := fmt.Sprintf("parameters[%q]", name)
		if !variableName.MatchString(name) || expression.Reserved(name) {
			fields.Addf(field, "is not a valid name of a variable")
			continue
		}
		variable := expression.Variable{Name: name}
		switch kind := parameters[name].GetKind().(type) {
		case *dparetov1.Value_DoubleValue:
			if x := kind.DoubleValue; math.IsNaN(x) || math.IsInf(x, 0) {
				fields.Addf(field+".double_value", "must be finite, is %g", x)
			}
			variable.Type, values[name] = expression.Double, kind.DoubleValue
		case *dparetov1.Value_IntValue:
			variable.Type, values[name] = expression.Int, kind.IntValue
		case *dparetov1.Value_StringValue:
			variable.Type, values[name] = expression.String, kind.StringValue
		default:
			fields.Addf(field+".kind", "one of double_value, int_value and string_value must be set")
			continue
		}
		declared = append(declared, variable)
	}
	environment, err := expression.NewEnvironment(declared)
	if err != nil {
		fields.Addf("parameters", "%v", err)
	}
	return values, environment
}

// fieldsOf turns what package privacy says about the values of privacy into an answer.
func fieldsOf(err error) error { return fieldsBelow("privacy", err) }

// fieldsBelow turns what package privacy says about the values of a spec at a path into an answer.
func fieldsBelow(path string, err error) error {
	if found := privacy.FieldErrors(err); len(found) > 0 {
		var fields invalid.Fields
		for _, fe := range found {
			fields.Addf(join(path, fe.Field), "%s", fe.Message)
		}
		return fields.Err()
	}
	if unsupported, ok := errors.AsType[*privacy.UnsupportedError](err); ok {
		return invalid.Field(join(path, "accountant"), "cannot account %s: %s", unsupported.Mechanism, unsupported.Reason)
	}
	if work, ok := errors.AsType[*meter.LimitError](err); ok {
		return invalid.Field(path, "%v, the limit of a call; `dpareto privacy` computes it locally without a limit", work)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return status.FromContextError(err).Err()
	}
	return err
}
