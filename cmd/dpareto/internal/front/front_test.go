package front_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/clients/go/trainer/sparsevector"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/front"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/studyfile"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

// readFront reads a front as JSON.
func readFront(t *testing.T, line string) *dparetov1.Front {
	t.Helper()
	front := new(dparetov1.Front)
	require.NoError(t, studyfile.Decode([]byte(clitest.Succeed(t, line+" --output json")), front))
	return front
}

// remeasures reads a comparison of a front with fresh runs.
func remeasures(t *testing.T, line string) *front.Comparison {
	t.Helper()
	r := new(front.Comparison)
	require.NoError(t, json.Unmarshal([]byte(clitest.Succeed(t, line+" --output json")), r))
	return r
}

const initSVT = "--trainer sparse-vector --trials 20"

func TestFrontRemeasure(t *testing.T) {
	clitest.RunStudy(t, "svt", initSVT, 30)
	front := readFront(t, "front svt")
	trials := strings.Count(clitest.Succeed(t, "trial list svt -o csv"), "\n") - 1
	r := remeasures(t, "front svt --remeasure 4 --points 3 --workers 1 --seed 5")
	if r.Study != "svt" || r.Kind != "posterior" || len(r.Points) != 3 || r.FrontPoints != len(front.GetPoints()) ||
		r.FrontHypervolume != front.GetHypervolume() || !(0 < r.ClaimedHypervolume && r.ClaimedHypervolume < r.FrontHypervolume) {
		t.Errorf("comparison %+v", r)
	}
	// The values that are shown are not those that chose: fresh runs are new trials.
	var seen []string
	for _, p := range r.Points {
		v := p.Values["error"]
		exact := sparsevector.ExpectedError(int64(p.Parameters["cutoff"].(float64)), p.Parameters["noise_scale"].(float64))
		if p.Runs != 4*30 || v.Remeasured == nil || v.StandardError == nil {
			t.Fatalf("point %+v", p)
		}
		if math.Abs(*v.Remeasured-exact) > 5*(*v.StandardError)+1e-9 {
			t.Errorf("error %v ± %v, expected %v", *v.Remeasured, *v.StandardError, exact)
		}
		if p.Values["epsilon"].Remeasured != nil {
			t.Error("ε was measured")
		}
		seen = append(seen, p.Replicates...)
	}
	slices.Sort(seen)
	if seen = slices.Compact(seen); len(seen) != 12 || slices.Contains(seen, r.Points[0].Trial) {
		t.Errorf("replicates %v", seen)
	}
	if got := strings.Count(clitest.Succeed(t, "trial list svt -o csv"), "\n") - 1; got != trials+12 {
		t.Errorf("%d trials, want %d and 12", got, trials)
	}
	// They improve what the front knows of its configurations.
	after := readFront(t, "front svt --kind observed")
	pooled := slices.ContainsFunc(after.GetPoints(), func(p *dparetov1.FrontPoint) bool { return len(p.GetTrials()) == 5 })
	if !pooled {
		t.Error("no configuration of the front has the runs of its replicates")
	}

	text := clitest.Succeed(t, "front svt --kind observed --remeasure 1 --points 2 --workers 1 --seed 5")
	for _, want := range []string{"observed front", "2 of its points: hypervolume claimed", "error_remeasured", "pure (δ = 0)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	comma := clitest.Succeed(t, "front svt --remeasure 1 --points 2 --workers 1 --seed 5 --output csv")
	if !strings.HasPrefix(comma, "epsilon,error_claimed,error_lower,error_upper,error_remeasured,error_se,") || strings.Count(comma, "\n") != 3 {
		t.Errorf("CSV\n%s", comma)
	}
}

// The same seeds give the same comparison.
func TestRemeasureIsRepeatable(t *testing.T) {
	var results []string
	for range 2 {
		t.Run("", func(t *testing.T) {
			clitest.RunStudy(t, "svt", initSVT, 30)
			results = append(results, clitest.Succeed(t, "front svt --remeasure 2 --points 2 --workers 1 --seed 5 -o json"))
		})
	}
	if len(results) != 2 || results[0] != results[1] {
		t.Errorf("two results\n%s\n%s", results[0], results[1])
	}
}

// A point of the way of a run is run again up to its step.
func TestRemeasureCheckpoints(t *testing.T) {
	clitest.RunStudy(t, "sgd", "--trainer dp-sgd --set generated=true --set train_rows=2000 --trials 8", 1)
	r := remeasures(t, "front sgd --kind observed --remeasure 2 --points 3 --workers 1 --seed 5")
	if len(r.Points) != 3 {
		t.Fatalf("comparison %+v", r)
	}
	onTheWay := false
	trials := clitest.Succeed(t, "trial list sgd -o json")
	var listed []struct {
		Name       string `json:"name"`
		Original   string `json:"replicate_of"`
		Parameters struct {
			Epochs int64 `json:"epochs"`
		} `json:"parameters"`
		Final struct {
			Step int64 `json:"step"`
		} `json:"final_measurement"`
	}
	require.NoError(t, json.Unmarshal([]byte(trials), &listed))
	for _, p := range r.Points {
		if p.Runs != 2 || p.Step == 0 || int64(p.Parameters["epochs"].(float64)) != p.Step {
			t.Errorf("point %+v", p)
		}
		for _, trial := range listed {
			step := trial.Final.Step
			if slices.Contains(p.Replicates, trial.Name) && (trial.Original != p.Trial || step != trial.Parameters.Epochs || step != p.Step) {
				t.Errorf("replicate %+v of %+v", trial, p)
			}
			onTheWay = onTheWay || (trial.Name == p.Trial && step != p.Step)
		}
	}
	if !onTheWay {
		t.Error("no point is on the way of its trial: the test shows little")
	}
	header, _, _ := strings.Cut(clitest.Succeed(t, "front sgd --over-time -o csv"), "\n")
	if header != "trials,trial,runs,epochs,hypervolume" {
		t.Errorf("columns %q", header)
	}
}

// Without agents the time runs out: what is there is shown, and what is missing is said.
func TestRemeasureTimeout(t *testing.T) {
	clitest.RunStudy(t, "svt", initSVT, 30)
	stdout, stderr, code := clitest.Invoke(t, "", strings.Fields("front svt --remeasure 2 --points 2 --timeout 1ms")...)
	if code != command.ExitFailure || !strings.Contains(stderr, "0 of 4 replicates") || !strings.Contains(stdout, "0 of them run again so far: hypervolume claimed 0, re-measured 0") {
		t.Errorf("exit code %d: %s\n%s", code, stderr, stdout)
	}
	if got := strings.Count(clitest.Succeed(t, "trial list svt -o csv"), ",queued,"); got != 4 {
		t.Errorf("%d trials are queued, want 4", got)
	}
}

func TestFrontUsage(t *testing.T) {
	for flags, want := range map[string]string{
		"--remeasure 0":                  "--remeasure must be at least 1, is 0",
		"--remeasure -1":                 "--remeasure must be at least 1, is -1",
		"--remeasure 1 --points 0":       "--points must be at least 1, is 0",
		"--remeasure 1 --workers -1":     "--workers must be at least 0, is -1",
		"--remeasure 1 --timeout -1s":    "--timeout must be at least 0, is -1s",
		"--remeasure 1 --over-time":      "cannot be used together",
		"--remeasure 1 --plot front.svg": "--plot",
		"--over-time --plot front.pdf":   "front.pdf",
		"--color-by model":               "give --plot",
		"--kind luckiest":                "observed, posterior, best or worst",
	} {
		_, stderr, code := clitest.Invoke(t, "", strings.Fields("front svt "+flags)...)
		if code != command.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d: %s", flags, code, stderr)
		}
	}
}

// The commands of docs/reference/running-studies.md that read a front work as they stand there.
func TestDocumentedFrontCommands(t *testing.T) {
	text := clitest.Document(t, "docs/reference/running-studies.md")
	clitest.RunStudy(t, "svt", initSVT, 30)
	commands := 0
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "    dpareto front "); ok {
			commands++
			clitest.Succeed(t, "front "+rest)
		}
	}
	if commands < 5 {
		t.Errorf("%d commands", commands)
	}
	for _, picture := range []string{"front.svg", "hypervolume.svg"} {
		if _, err := os.Stat(picture); err != nil {
			t.Error(err)
		}
	}
}
