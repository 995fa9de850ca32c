package trials

import (
	"slices"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// A filter is split where AND joins it at its outside, never within quotes, parentheses or beside an OR.
func TestConditions(t *testing.T) {
	for filter, want := range map[string][]string{
		"":                                     nil,
		"a = 1":                                {"a = 1"},
		"a = 1 AND b < 2":                      {"a = 1", "b < 2"},
		`note:"x AND y" AND b < 2`:             {`note:"x AND y"`, "b < 2"},
		`note:"x\" AND y" AND b < 2`:           {`note:"x\" AND y"`, "b < 2"},
		"(a = 1 AND c = 2) AND b < 2":          {"(a = 1 AND c = 2)", "b < 2"},
		"a = 1 AND b < 2 OR c = 3":             {"a = 1 AND b < 2 OR c = 3"},
		"(a = 1 OR c = 3) AND b < 2 AND d = 4": {"(a = 1 OR c = 3)", "b < 2", "d = 4"},
	} {
		if got := conditions(filter); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", filter, got, want)
		}
	}
}

// A refused filter leads to one with known fields; what cannot be meant leads nowhere.
func TestMeant(t *testing.T) {
	spec := &dparetov1.StudySpec{
		Parameters: []*dparetov1.ParameterSpec{{Id: "epochs"}, {Id: "learning_rate"}},
		Metrics:    []*dparetov1.MetricSpec{{Id: "error"}},
	}
	for filter, want := range map[string]string{
		"error < 0.1":                            "metrics.error < 0.1",
		"metrics.eror < 0.1 AND epochs >= 3":     "metrics.error < 0.1 AND parameters.epochs >= 3",
		"parameters.lerning_rate < 1":            "parameters.learning_rate < 1",
		`note:"error" AND numbr > 1`:             `note:"error" AND number > 1`,
		"metrics.error < 0.1 AND labels.error:*": "",
		"something_else > 1":                     "",
	} {
		got := ""
		if made := meant(spec, "/studies/s/trials", &trialsQuery{Filter: filter, Order: newestFirst}); made != nil {
			got = made.Text
		}
		if got != want {
			t.Errorf("%s: %q, want %q", filter, got, want)
		}
	}
}
