package specchange_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/engine"
	"github.com/dpareto/dpareto/server/enginetest"
	"github.com/dpareto/dpareto/suggest"
)

// violation returns the first field that an error names, and what it says of it.
func violation(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok && len(bad.GetFieldViolations()) > 0 {
			v := bad.GetFieldViolations()[0]
			return v.GetField() + ": " + v.GetDescription()
		}
	}
	return fmt.Sprint(err)
}

// A prior study must exist and mean the same.
func TestPriorStudiesAreChecked(t *testing.T) {
	s := enginetest.With(t, enginetest.Random())
	s.Runs(t, nil)
	for name, tc := range map[string]struct {
		change func(*dparetov1.StudySpec)
		want   string
	}{
		"missing":   {func(a *dparetov1.StudySpec) { a.PriorStudies = []string{"studies/none"} }, "prior_studies[0]: studies/none does not exist"},
		"malformed": {func(a *dparetov1.StudySpec) { a.PriorStudies = []string{"none"} }, "prior_studies[0]: "},
		"twice":     {func(a *dparetov1.StudySpec) { a.PriorStudies = []string{"studies/runs", "studies/runs"} }, "prior_studies[1]: studies/runs is listed twice"},
		"domain":    {func(a *dparetov1.StudySpec) { a.Parameters[0].GetDoubleDomain().Max = 0.5 }, "parameter x is"},
		"extra parameter": {func(a *dparetov1.StudySpec) {
			a.Parameters = append(a.Parameters, &dparetov1.ParameterSpec{Id: "a", Scale: dparetov1.Scale_SCALE_LINEAR, Domain: a.GetParameters()[0].GetDomain()})
		}, "parameter a does not exist there"},
		"another parameter's value": {func(a *dparetov1.StudySpec) {
			a.Parameters = append(a.Parameters,
				&dparetov1.ParameterSpec{Id: "a", Scale: dparetov1.Scale_SCALE_LINEAR, Domain: a.GetParameters()[0].GetDomain()},
				&dparetov1.ParameterSpec{Id: "b", Scale: dparetov1.Scale_SCALE_LINEAR, Domain: a.GetParameters()[0].GetDomain()})
			a.PriorValues = map[string]*dparetov1.Value{"b": number(0.5)}
		}, "parameter a does not exist there; prior_values can hold"},
		"fewer objectives": {func(a *dparetov1.StudySpec) { a.Metrics = a.GetMetrics()[:1] }, "objective error does not exist here"},
		"transform":        {func(a *dparetov1.StudySpec) { a.Metrics[1].Transform = dparetov1.Transform_TRANSFORM_LOGIT }, "objective error is"},
	} {
		for _, validateOnly := range []bool{false, true} {
			asked := enginetest.RunSpec()
			asked.PriorStudies = []string{"studies/runs"}
			tc.change(asked)
			_, err := s.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "next", Study: &dparetov1.Study{Spec: asked}, ValidateOnly: validateOnly})
			if got := violation(err); !strings.Contains(got, tc.want) || !strings.HasPrefix(got, "study.spec.prior_studies[") {
				t.Errorf("%s: %s, want %s", name, got, tc.want)
			}
		}
	}
}

// number returns the value of a double parameter.
func number(x float64) *dparetov1.Value {
	return &dparetov1.Value{Kind: &dparetov1.Value_DoubleValue{DoubleValue: x}}
}

// Values of parameters in prior studies are of those that a prior study lacks, and in their domains.
func TestPriorValuesAreChecked(t *testing.T) {
	s := enginetest.With(t, enginetest.Random())
	s.Runs(t, nil)
	create := func(change func(*dparetov1.StudySpec)) error {
		asked := enginetest.RunSpec()
		asked.Parameters = append(asked.GetParameters(), &dparetov1.ParameterSpec{Id: "clip", Scale: dparetov1.Scale_SCALE_LINEAR, Domain: asked.GetParameters()[0].GetDomain()})
		asked.PriorStudies = []string{"studies/runs"}
		asked.PriorValues = map[string]*dparetov1.Value{"clip": number(0.5)}
		change(asked)
		_, err := s.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "next", Study: &dparetov1.Study{Spec: asked}})
		return err
	}
	for name, tc := range map[string]struct {
		change func(*dparetov1.StudySpec)
		want   string
	}{
		"outside": {func(a *dparetov1.StudySpec) { a.PriorValues["clip"] = number(2) }, `study.spec.prior_values["clip"]: 2 is not in the parameter's domain`},
		"kind": {func(a *dparetov1.StudySpec) {
			a.PriorValues["clip"] = &dparetov1.Value{Kind: &dparetov1.Value_StringValue{StringValue: "x"}}
		}, `study.spec.prior_values["clip"]: must have a double_value`},
		"unknown":          {func(a *dparetov1.StudySpec) { a.PriorValues["other"] = number(0.5) }, `study.spec.prior_values["other"]: is not a parameter`},
		"not lacked":       {func(a *dparetov1.StudySpec) { a.PriorValues["x"] = number(0.5) }, `study.spec.prior_values["x"]: must not be set: all prior studies have this parameter`},
		"no prior studies": {func(a *dparetov1.StudySpec) { a.PriorStudies = nil }, "study.spec.prior_values: must be empty without prior_studies"},
		"missing":          {func(a *dparetov1.StudySpec) { a.PriorValues = nil }, "study.spec.prior_studies[0]: studies/runs cannot be a prior: parameter clip does not exist there"},
	} {
		if got := violation(create(tc.change)); !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
	require.NoError(t, create(func(*dparetov1.StudySpec) {}))
	err := create(func(a *dparetov1.StudySpec) { a.PriorValues["clip"] = number(0.25) })
	if status.Code(err) != codes.AlreadyExists || !strings.HasSuffix(status.Convert(err).Message(), "differ: prior_values") {
		t.Errorf("another value: %v", err)
	}
}

// whole returns the value of an integer parameter.
func whole(n int64) *dparetov1.Value {
	return &dparetov1.Value{Kind: &dparetov1.Value_IntValue{IntValue: n}}
}

// kind returns the value of a categorical parameter.
func kind(name string) *dparetov1.Value {
	return &dparetov1.Value{Kind: &dparetov1.Value_StringValue{StringValue: name}}
}

func where(parent string, values ...*dparetov1.Value) *dparetov1.Condition {
	return &dparetov1.Condition{Parent: parent, Values: values}
}

// layered returns a spec that also chooses up to most layers and their width, under conditions.
func layered(most int64, layers, width *dparetov1.Condition) *dparetov1.StudySpec {
	asked := enginetest.RunSpec()
	asked.Parameters = append(asked.GetParameters(),
		&dparetov1.ParameterSpec{
			Id: "layers", Scale: dparetov1.Scale_SCALE_LINEAR, Condition: layers,
			Domain: &dparetov1.ParameterSpec_IntegerDomain{IntegerDomain: &dparetov1.IntegerDomain{Min: 1, Max: most}},
		},
		&dparetov1.ParameterSpec{
			Id: "width", Scale: dparetov1.Scale_SCALE_LINEAR, Condition: width,
			Domain: &dparetov1.ParameterSpec_DiscreteDomain{DiscreteDomain: &dparetov1.DiscreteDomain{Values: []float64{0, 16, 64}}},
		},
		&dparetov1.ParameterSpec{
			Id: "rate", Scale: dparetov1.Scale_SCALE_LINEAR, Domain: asked.GetParameters()[0].GetDomain(),
			Condition: where("width", number(16)),
		})
	return asked
}

// withKind adds the parameter kind, which prior studies lack, if a value there is given.
func withKind(asked *dparetov1.StudySpec, there string) *dparetov1.StudySpec {
	asked.Parameters = append(asked.GetParameters(), &dparetov1.ParameterSpec{
		Id:     "kind",
		Domain: &dparetov1.ParameterSpec_CategoricalDomain{CategoricalDomain: &dparetov1.CategoricalDomain{Categories: []string{"linear", "net", "tree"}}},
	})
	if there != "" {
		asked.PriorValues = map[string]*dparetov1.Value{"kind": kind(there)}
	}
	return asked
}

// A study whose parameters exist at other configurations is no prior: its trials could not be read.
// Any other is one, however its conditions are written.
func TestPriorConditionsAreChecked(t *testing.T) {
	net := where("kind", kind("net"))
	for name, tc := range map[string]struct {
		prior, asked *dparetov1.StudySpec
		want         string // what is refused, "" if nothing
	}{
		"same":         {layered(3, nil, where("layers", whole(2), whole(3))), layered(3, nil, where("layers", whole(3), whole(2))), ""},
		"none":         {layered(2, nil, nil), layered(2, nil, nil), ""},
		"always holds": {layered(2, nil, nil), layered(2, nil, where("layers", whole(1), whole(2))), ""},
		"grown":        {layered(2, nil, where("layers", whole(2))), layered(3, nil, where("layers", whole(2), whole(3))), ""},
		"fewer": {
			layered(2, nil, nil), layered(2, nil, where("layers", whole(2))),
			"parameter width exists where layers = 2 here, and always there",
		},
		"more": {
			layered(3, nil, where("layers", whole(2))), layered(3, nil, where("layers", whole(3), whole(2))),
			"parameter width exists where layers is one of 2, 3 here, and where layers = 2 there",
		},
		"lost": {
			layered(2, nil, where("layers", whole(2))), layered(2, nil, nil),
			"parameter width exists always here, and where layers = 2 there",
		},
		"only where it grew": {
			layered(2, nil, nil), layered(3, nil, where("layers", whole(3))),
			"parameter width exists never here, and always there",
		},
		"another parent": {
			withKind(layered(2, nil, net), ""), withKind(layered(2, net, where("layers", whole(2))), ""),
			"parameter layers exists where kind = net here, and always there",
		},
		"above the parent": {
			withKind(layered(2, net, where("layers", whole(2))), ""), withKind(layered(2, net, where("layers", whole(1))), ""),
			"parameter width exists where kind = net and layers = 1 here, and where kind = net and layers = 2 there",
		},
		"both exist together":   {withKind(layered(2, net, net), ""), withKind(layered(2, net, where("layers", whole(1), whole(2))), ""), ""},
		"prior value":           {layered(2, nil, where("layers", whole(2))), withKind(layered(2, net, where("layers", whole(2))), "net"), ""},
		"prior value elsewhere": {layered(2, nil, nil), withKind(layered(2, net, nil), "tree"), "parameter layers exists never here, and always there"},
	} {
		t.Run(name, func(t *testing.T) {
			var learned *suggest.History
			s := enginetest.With(t, enginetest.Learning(&learned))
			s.Runs(t, func(prior *dparetov1.StudySpec) { prior.Parameters = tc.prior.GetParameters() })
			for range 30 { // reach each branch
				s.Complete(t, s.AskRun(t), enginetest.ErrorAt(0, 0.5))
			}
			tc.asked.PriorStudies = []string{"studies/runs"}
			resp, err := s.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "next", Study: &dparetov1.Study{Spec: tc.asked}})
			if tc.want != "" {
				if got := violation(err); got != "study.spec.prior_studies[0]: studies/runs cannot be a prior: "+tc.want {
					t.Errorf("%s, want %s", got, tc.want)
				}
				return
			}
			require.NoError(t, err)
			if _, err := engine.Propose(t.Context(), s.Engine, "next", resp.GetStudy().GetUid(), 1); err != nil || len(learned.Prior) != 30 {
				t.Errorf("%d evaluations of the prior study, %v", len(learned.Prior), err)
			}
		})
	}
}
