package spec

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers"
	"github.com/dpareto/dpareto/suggest/restrict"
	"github.com/dpareto/dpareto/suggest/space"
)

// Designers find the few configurations within a bound on ε when lots hold most of the data:
// an epoch has one step or two, where the smooth stand-in of the objective interpolates.
func TestBoundWithLargeLots(t *testing.T) {
	const text = `{
		"parameters": [
			{"id": "epochs", "scale": "SCALE_LOG", "integer_domain": {"min": 1, "max": 2}},
			{"id": "lot", "scale": "SCALE_LOG", "integer_domain": {"min": 50, "max": 1000}},
			{"id": "noise", "scale": "SCALE_LOG", "double_domain": {"min": 4, "max": 8}}
		],
		"metrics": [
			{"id": "error", "role": "METRIC_ROLE_OBJECTIVE", "goal": "GOAL_MINIMIZE", "transform": "TRANSFORM_LOGIT", "reference_value": 1, "reported": {}},
			{"id": "epsilon", "role": "METRIC_ROLE_OBJECTIVE", "goal": "GOAL_MINIMIZE", "transform": "TRANSFORM_LOG", "reference_value": 10, "computed": {"privacy":
				{"dp_sgd":{"sampling":"SAMPLING_FIXED_SIZE","dataset_size":"1000","batch_size":"lot","noise_multiplier":"noise","epochs":"epochs"},"delta":1e-5,"adjacency":"ADJACENCY_REPLACE_ONE"}}}
		],
		"algorithm": {"name": "ALGORITHM_RANDOM"}
	}`
	m := new(dparetov1.StudySpec)
	require.NoError(t, protojson.Unmarshal([]byte(text), m))
	s, err := Compile("spec", m)
	require.NoError(t, err)
	epsilon := s.Problem.Objectives[1].Known
	h := new(suggest.History)
	for i := range 8 {
		q := space.Point{float64(1 + i/4), 100 * float64(1+i), 4 + float64(i)/2}
		h.Evaluations = append(h.Evaluations, suggest.Evaluation{Point: q, Values: []float64{0.1 + 0.05*float64(i%3), epsilon(q)}})
	}
	for _, name := range []string{"random", "default"} {
		designer, ok := designers.ByName(name, designers.Options{InitialPoints: 4})
		if !ok {
			t.Fatal(name)
		}
		for _, lot := range []float64{690} {
			bound := 1.05 * epsilon(space.Point{1, lot, 8})
			asked := new(dparetov1.SuggestionCondition)
			require.NoError(t, protojson.Unmarshal(fmt.Appendf(nil, `{"fixed_parameters":{"lot":{"int_value":"%g"}},"at_most":{"epsilon":%.17g}}`, lot, bound), asked))
			c, err := s.Condition("condition", asked)
			require.NoError(t, err)
			found, err := restrict.Within(designer, c).Suggest(t.Context(), s.Problem, h, suggest.Request{Count: 1, Seed: 3, Number: 13})
			if err != nil || len(found) != 1 || !c.Holds(found[0].Point) {
				t.Errorf("%s, lots of %g, ε at most %g: %v, %v", name, lot, bound, found, err)
			}
		}
	}
}
