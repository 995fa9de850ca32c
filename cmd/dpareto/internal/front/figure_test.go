package front

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/internal/plot"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

func category(name string) *dparetov1.Value {
	return &dparetov1.Value{Kind: &dparetov1.Value_StringValue{StringValue: name}}
}

func TestColorBy(t *testing.T) {
	categorical := func(id string, categories ...string) *dparetov1.ParameterSpec {
		return &dparetov1.ParameterSpec{Id: id, Domain: &dparetov1.ParameterSpec_CategoricalDomain{
			CategoricalDomain: &dparetov1.CategoricalDomain{Categories: categories},
		}}
	}
	study := exampleStudy(t)
	study.Spec.Parameters = append(study.Spec.GetParameters(), categorical("model", "svm", "mlp", "lr"), categorical("activation", "relu", "tanh"),
		categorical("many", "a", "b", "c", "d", "e", "f", "g"))
	point := func(epsilon float64, beyond bool, parameters map[string]*dparetov1.Value) *dparetov1.FrontPoint {
		values := map[string]*dparetov1.FrontValue{"epsilon": {Value: epsilon}, "error": {Value: 0.2 / epsilon}}
		return &dparetov1.FrontPoint{Values: values, BeyondReference: beyond, Parameters: parameters}
	}
	front := &dparetov1.Front{Objectives: []string{"epsilon", "error"}, Points: []*dparetov1.FrontPoint{
		point(0.1, true, map[string]*dparetov1.Value{"model": category("svm")}),
		point(1, false, map[string]*dparetov1.Value{"model": category("mlp"), "activation": category("tanh")}),
		point(2, false, map[string]*dparetov1.Value{"model": category("lr")}),
		point(3, false, map[string]*dparetov1.Value{"model": category("mlp"), "activation": category("relu")}),
	}}
	for id, want := range map[string]struct {
		points []int
		groups []string
	}{
		"":           {[]int{0, 0, 0}, nil},
		"model":      {[]int{1, 2, 1}, []string{"svm (0)", "mlp (2)", "lr (1)", "no model (0)"}},
		"activation": {[]int{1, 2, 0}, []string{"relu (1)", "tanh (1)", "no activation (1)"}},
	} {
		f := Figure(study, front, nil)
		require.NoError(t, colorBy(f, study.GetSpec(), front, id))
		groups := make([]int, len(f.Front))
		for i, p := range f.Front {
			groups[i] = p.Group
		}
		if !slices.Equal(groups, want.points) || !slices.Equal(f.Groups, want.groups) {
			t.Errorf("%s: groups %v of %q, want %v of %q", id, groups, f.Groups, want.points, want.groups)
		}
	}
	for id, want := range map[string]string{
		"epochs": `--color-by: must be one of the study's categorical parameters model, activation, many, is "epochs"`,
		"many":   "--color-by many: it has 7 categories, and a picture has colours for 6",
	} {
		if err := colorBy(new(plot.Figure), study.GetSpec(), front, id); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if err := colorBy(new(plot.Figure), exampleStudy(t).GetSpec(), front, "model"); err == nil || !strings.Contains(err.Error(), "has no categorical parameters") {
		t.Errorf("error %v", err)
	}
	// The table has the categories, and nothing where a condition does not hold.
	rows := table(study.GetSpec(), front, false)
	column := slices.Index(rows.Columns, "activation")
	for i, want := range []any{nil, "tanh", nil, "relu"} {
		if got := rows.Rows[i][column]; got != want {
			t.Errorf("activation of row %d is %v, want %v", i, got, want)
		}
	}
}
