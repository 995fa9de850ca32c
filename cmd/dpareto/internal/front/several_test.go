package front_test

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/internal/require"
)

// Studies of the same objectives are printed one below the other, and drawn over each other.
func TestSeveralFronts(t *testing.T) {
	const small = "--trainer sparse-vector --trials 8"
	clitest.RunStudy(t, "svt", small, 2)
	clitest.Must(t, clitest.Succeed(t, "study init --id other "+small)+"\n  seed: 2\n", "study", "create", "-")
	clitest.Succeed(t, "agent --workers 1 --seed 2 --study other")
	clitest.Must(t, clitest.Succeed(t, "study init --id sgd --trainer dp-sgd --set generated=true --trials 1")+"\n  seed: 1\n", "study", "create", "-")

	renamed := strings.ReplaceAll(clitest.Succeed(t, "study init --id renamed --trainer dp-sgd --trials 1"), "id: error", "id: mistakes")
	clitest.Must(t, renamed, "study", "create", "-")

	rows := func(line string) (table [][]string) {
		table, err := csv.NewReader(strings.NewReader(clitest.Succeed(t, line+" -o csv"))).ReadAll()
		require.NoError(t, err)
		return table
	}
	both := rows("front svt other --kind observed --plot fronts.svg")
	at := 1
	for _, study := range []string{"svt", "other"} {
		alone := rows("front " + study + " --kind observed")
		for _, row := range alone[1:] {
			for column, name := range alone[0] {
				if got := both[at][slices.Index(both[0], name)]; got != row[column] {
					t.Errorf("%s of point %d of %s: %q, want %q", name, at, study, got, row[column])
				}
			}
			if both[at][0] != study {
				t.Errorf("row %d is of %q, want %s", at, both[at][0], study)
			}
			at++
		}
	}
	if at != len(both) || both[0][0] != "study" {
		t.Errorf("%d rows, want %d; columns %v", len(both), at, both[0])
	}

	text := clitest.Succeed(t, "front svt other --plot fronts.png --kind observed --all --wide")
	for _, want := range []string{"svt: observed front", "other: observed front", "study", "pure (δ = 0)", "noise_scale"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	var fronts map[string]struct {
		Points []any `json:"points"`
	}
	if err := json.Unmarshal([]byte(clitest.Succeed(t, "front svt other --kind observed -o json")), &fronts); err != nil || len(fronts["svt"].Points)+len(fronts["other"].Points) != at-1 {
		t.Errorf("JSON %+v: %v", fronts, err)
	}
	history := rows("front svt other --over-time --plot time.svg")
	if len(history) != 17 || history[1][0] != "svt" || history[16][0] != "other" {
		t.Errorf("%d rows over time", len(history))
	}
	clitest.Succeed(t, "front svt --kind observed --spread --plot spread.svg")
	for name, wants := range map[string][]string{
		"fronts.svg": {"Fronts of svt, other", "observed fronts", "pure (δ = 0)", "svt", "other"},
		"time.svg":   {"hypervolume", "svt", "other", "pure (δ = 0)"},
		"spread.svg": {"band: fronts of the best", "pure (δ = 0)"},
	} {
		picture, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, want := range wants {
			if !strings.Contains(string(picture), want) {
				t.Errorf("no %q in %s", want, name)
			}
		}
		if strings.Count(string(picture), "pure (δ = 0)") != 1 {
			t.Errorf("%s says more than once what ε means", name)
		}
	}

	// Where ε does not mean the same, the picture says what each means.
	clitest.Succeed(t, "front svt sgd --kind observed --plot mixed.svg")
	if picture, err := os.ReadFile("mixed.svg"); err != nil || !strings.Contains(string(picture), "svt: ε of one run, pure (δ = 0)") || !strings.Contains(string(picture), "sgd: ε of one run, δ = ") {
		t.Errorf("mixed.svg does not say what ε means: %v", err)
	}
	if _, stderr := clitest.Fail(t, command.ExitFailure, "front svt renamed"); !strings.Contains(stderr, "study renamed has other objectives (minimize epsilon, minimize mistakes) than study svt (minimize epsilon, minimize error)") {
		t.Error(stderr)
	}
	for line, want := range map[string]string{
		"front svt other svt":                "study svt is given twice",
		"front svt other --remeasure 1":      "--remeasure takes one study",
		"front svt --spread":                 "--spread needs --plot",
		"front svt --spread --over-time":     "--spread needs --plot",
		"front":                              "requires at least 1 arg",
		"front svt other --plot picture.pdf": ".svg, .png",
	} {
		if _, stderr := clitest.Fail(t, command.ExitUsage, line); !strings.Contains(stderr, want) {
			t.Errorf("%s: %s", line, stderr)
		}
	}
}
