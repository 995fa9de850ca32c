package analyze_test

import (
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/internal/require"
)

// The sections on the fit and on the gain of further runs have what the server says.
func TestFitAndGain(t *testing.T) {
	clitest.RunStudy(t, "svt", "--trainer sparse-vector --trials 12", 30)
	text := clitest.Succeed(t, "study analyze svt --fit --gain 2")
	for _, want := range []string{"error: ", " of 12 measurements within their 90 % intervals, R²", "2 more runs are expected to gain", "need a larger budget"} {
		if !strings.Contains(strings.ReplaceAll(text, "\n", " "), want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	rows, err := csv.NewReader(strings.NewReader(clitest.Succeed(t, "study analyze svt --fit -o csv"))).ReadAll()
	if err != nil || len(rows) != 1+12 || strings.Join(rows[0], ",") != "section,metric,trial,step,observed,predicted,lower,upper,within" {
		t.Errorf("%q, %v", rows, err)
	}
	var answer struct {
		Gain struct {
			Hypervolume float64 `json:"hypervolume"`
			Points      []struct {
				Runs int     `json:"runs"`
				Cost float64 `json:"cost"`
			} `json:"points"`
			CostUnit string `json:"cost_unit"`
		} `json:"gain"`
	}
	require.NoError(t, json.Unmarshal([]byte(clitest.Succeed(t, "study analyze svt --gain 3 -o json")), &answer))
	if g := answer.Gain; len(g.Points) != 3 || g.Points[2].Runs != 3 || g.Points[2].Cost != 3 || g.CostUnit != "runs" || g.Hypervolume <= 0 {
		t.Errorf("%+v", answer)
	}
	clitest.Fail(t, command.ExitUsage, "study analyze svt --gain 0")
	if _, stderr := clitest.Fail(t, command.ExitUsage, "study analyze svt --gain 51"); !strings.Contains(stderr, "runs") {
		t.Error(stderr)
	}
}
