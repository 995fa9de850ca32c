package show

import (
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

func TestFeatures(t *testing.T) {
	const (
		metrics = `"metrics": [{"id": "error"}, {"id": "eps", "computed": {"privacy": {"dp_sgd": {"dataset_size": "100"}}}}]`
		end     = " to dp_sgd of metric eps to need fewer runs"
		off     = "off; add learning_rate and clipping_norm" + end
	)
	for text, want := range map[string]string{
		`{` + metrics + `}`: "",
		`{"algorithm": {"name": 1}, "metrics": [{"id": "error"}]}`:                                                                                  "",
		`{"algorithm": {"name": 2}, ` + metrics + `}`:                                                                                               "",
		`{"algorithm": {"name": 1}, "random_stopping": {}, ` + metrics + `}`:                                                                        "",
		`{"algorithm": {"name": 1}, ` + metrics + `}`:                                                                                               off,
		`{"algorithm": {"name": 1}, "parameters": [{"id": "LR"}, {"id": "max_grad_norm"}], ` + metrics + `}`:                                        "off; add learning_rate: LR and clipping_norm: max_grad_norm" + end,
		`{"algorithm": {"name": 1}, "parameters": [{"id": "lr"}, {"id": "learning_rate"}, {"id": "clip"}], ` + metrics + `}`:                        off,
		`{"algorithm": {"name": 1}, "parameters": [{"id": "lr", "condition": {"parent": "o"}}, {"id": "clip"}], ` + metrics + `}`:                   off,
		`{"algorithm": {"name": 1, "dp_sgd_features": {"disabled": true}}, ` + metrics + `}`:                                                        "off",
		`{"algorithm": {"name": 1, "dp_sgd_features": {"learning_rate": "lr", "clipping_norm": "1.0"}}, ` + metrics + `}`:                           "on: learning rate lr, clipping norm 1.0",
		`{"algorithm": {"name": 1, "dp_sgd_features": {"learning_rate": "lr", "clipping_norm": "C", "optimizer": 2, "without_public_runs": true}}}`: "on: learning rate lr, clipping norm C, normalized gradients, without public runs",
	} {
		spec := new(dparetov1.StudySpec)
		require.NoError(t, protojson.Unmarshal([]byte(text), spec))
		if got := Features(spec); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
