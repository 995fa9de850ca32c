package privacy_test

import (
	"math"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/internal/show"
)

// exampleRun is one run of DP-SGD with ε = 0.3037.
const exampleRun = " --mechanism dp-sgd --sampling fixed-size --dataset-size 32561 --batch-size 256 --noise-multiplier 4 --epochs 10 --delta 1e-6"

// noisyTrials is the way that is for DP-SGD alone.
const noisyTrials = "trials with 10 times the noise, one run"

// TestSearch compares with an independent program (numpy): composition, the location bound, filters,
// and the amplification of a search on a subset.
func TestSearch(t *testing.T) {
	reports := make(map[string]clitest.Report)
	for runs, want := range map[string]map[string]float64{
		"64": {
			"one run, no search": 0.3037, "all shown, fixed beforehand": 2.870, "all shown, adaptive, Gaussian filter": 2.876,
			"all shown, adaptive, Rényi filter": 3.076, "best of exactly so many": 1.880, "best of K, logarithmic": 0.515,
			"best of K, geometric": 0.577, "best of K, Poisson": 1.572, noisyTrials: 0.3810,
		},
		"32": {
			"best of exactly so many": 1.492, "best of K, logarithmic": 0.486, "best of K, geometric": 0.533, "best curve of K, geometric": 0.533,
			"best of K, geometric, capped": 0.5332, "best of K, Poisson": 1.074, "best of K on 10 %, geometric; one run on all": 0.3310,
		},
		"3": {"all shown, adaptive, Gaussian filter": 0.547},
	} {
		r := clitest.RunReport(t, "privacy search --runs "+runs+exampleRun)
		reports[runs] = r
		for way, epsilon := range want {
			if got := r.Value(t, "ways", "way", way, "epsilon").(float64); math.Abs(got-epsilon) > 2e-3 {
				t.Errorf("%s runs, %s: ε = %.5f, want %.4f", runs, way, got, epsilon)
			}
			if r.Value(t, "ways", "way", way, "delta") != 1e-6 || r.Value(t, "ways", "way", way, "adjacency") != "replace_one" {
				t.Errorf("%s: a row without δ and adjacency", way)
			}
			if adaptive := r.Value(t, "ways", "way", way, "adaptive") == "yes"; adaptive != (strings.Contains(way, "filter") || way == noisyTrials) {
				t.Errorf("%s: adaptive %v", way, adaptive)
			}
		}
	}
	r := reports["32"]
	if most := r.Value(t, "ways", "way", "best of K, geometric, capped", "max_runs"); most != 128.0 {
		t.Errorf("at most %v runs", most)
	}
	for _, assumption := range []string{"number of candidates", "filter admits every run", "subset is drawn uniformly", "fresh batch", "largest number of trials"} {
		if !r.Says(assumption) {
			t.Errorf("no word of %q: %v", assumption, r.Sections)
		}
	}
	larger := clitest.RunReport(t, "privacy search --subset-batch-size 64 --runs 32"+exampleRun)
	if got := larger.Value(t, "ways", "way", "best of K on 10 %, geometric; one run on all", "epsilon").(float64); math.Abs(got-0.3598) > 1e-3 {
		t.Errorf("lots of 64 on the subset: ε = %.4f, want 0.3598", got)
	}
	if lower := r.Value(t, "ways", "way", "all shown, fixed beforehand", "epsilon_lower").(float64); !(lower > 1.7 && lower < 1.960) {
		t.Errorf("an attack shows %.4f of 1.960", lower)
	}
}

// TestSearchOfOtherShape: flags that are not the defaults, and the test records.
func TestSearchOfOtherShape(t *testing.T) {
	const run = "privacy search --runs 8" + exampleRun
	r := clitest.RunReport(t, run+" --distribution 0.5 --max-runs 10 --portfolios 3,5 --test-records 16281 --test-noise 0.005 --checkpoints 10")
	if got := r.Value(t, "ways", "way", "best of K, η = 0.5, capped", "max_runs"); got != 10.0 {
		t.Errorf("at most %v runs", got)
	}
	curve := r.Value(t, "ways", "way", "best curve of K, η = 0.5", "test_epsilon").(float64)
	if best := r.Value(t, "ways", "way", "best of K, η = 0.5", "test_epsilon").(float64); !(best < curve) {
		t.Errorf("one score costs %.4f, ten %.4f", best, curve)
	}
	if got := r.Value(t, "ways", "way", "one run, no search", "test_epsilon").(float64); math.Abs(got-0.1445) > 1e-4 { // an independent program
		t.Errorf("ten scores of a run cost %.4f, want 0.1445", got)
	}
	if n := len(r.Rows(t, "ways")); n != 15 { // 6 of one or all runs, 4 distributions, the cap, the curve, 2 portfolios and the subset
		t.Errorf("%d rows", n)
	}
	if !r.Says("16281 test records") {
		t.Error("no word of the test records")
	}
	noise := clitest.RunReport(t, run+" --distribution poisson --test-records 16281 --test-epsilon 1")
	for _, row := range noise.Rows(t, "ways") {
		if epsilon := row["test_epsilon"].(float64); !(epsilon <= 1 && epsilon > 0.999 && row["test_noise"].(float64) > 0) {
			t.Errorf("%v: noise %v has ε = %v, want 1", row["way"], row["test_noise"], epsilon)
		}
		if row["way"] == "best of K, Poisson, capped" {
			t.Error("a cap on the Poisson distribution")
		}
	}
	silent := clitest.RunReport(t, "privacy search --runs 8"+exampleRun+" --final-run mechanism=gaussian,sensitivity=1,standard-deviation=1e6")
	if got := silent.Value(t, "ways", "way", "best of K on 10 %, geometric; one run on all", "epsilon").(float64); !(got > 0.01 && got < 0.07) {
		t.Errorf("the search on a tenth alone costs %.4f", got)
	}
}

// TestSearchBudget: so many runs cost at most the budget, and 2 % more of them, or one more, cost more.
func TestSearchBudget(t *testing.T) {
	r := clitest.RunReport(t, "privacy search --budget 1"+exampleRun)
	for way, want := range map[string]float64{"all shown, fixed beforehand": 9, "all shown, adaptive, Gaussian filter": 9, "all shown, adaptive, Rényi filter": 8} {
		if got := r.Value(t, "ways", "way", way, "runs_for_budget"); got != want {
			t.Errorf("%s: %v runs, want %g", way, got, want)
		}
	}
	if got := r.Value(t, "ways", "way", "one run, no search", "runs_for_budget"); got != nil {
		t.Errorf("one run: %v runs", got)
	}
	for _, way := range []string{"best of exactly so many", "best of K, Poisson", "best portfolio of 4, geometric"} {
		runs := r.Value(t, "ways", "way", way, "runs_for_budget").(float64)
		for more, within := range map[float64]bool{runs: true, runs + 1 + math.Floor(0.02*runs): false} {
			cost := clitest.RunReport(t, "privacy search --runs "+show.Plain(more)+exampleRun).Value(t, "ways", "way", way, "epsilon").(float64)
			if (cost <= 1) != within {
				t.Errorf("%s: %g runs for ε = 1, and %g cost %.4f", way, runs, more, cost)
			}
		}
	}
	poor := clitest.RunReport(t, "privacy search --budget 0.2 --runs 1"+exampleRun)
	for _, row := range poor.Rows(t, "ways") {
		if n := row["runs_for_budget"]; n != nil && n != 0.0 {
			t.Errorf("%v: %v runs for less than one costs", row["way"], n)
		}
	}
}

// TestSearchMechanisms: any mechanism can be a run, and none is on a subset but DP-SGD with fixed lots.
func TestSearchMechanisms(t *testing.T) {
	for _, line := range []string{
		"laplace --sensitivity 1 --scale 10", "selection --method exponential --epsilon 0.1", "zero-concentrated --rho 0.01",
		"gaussian --sensitivity 1 --standard-deviation 1e-9",
		"dp-sgd --sampling poisson --convention opacus --dataset-size 60000 --batch-size 256 --noise-multiplier 1.1 --epochs 60",
	} {
		rows := clitest.RunReport(t, "privacy search --delta 1e-6 --runs 8 --mechanism "+line).Rows(t, "ways")
		want := 11 // with portfolios of 2, 4 and 8 runs
		if strings.HasPrefix(line, "dp-sgd") {
			want += 2 // the noisy trials, and the curve: its guarantee covers all states
		}
		if len(rows) != want {
			t.Errorf("%s: %d rows", line, len(rows))
		}
		for _, row := range rows {
			if one, ok := rows[0]["epsilon"].(float64); ok && !(row["epsilon"].(float64) >= one) {
				t.Errorf("%s: %v costs %v, one run %g", line, row["way"], row["epsilon"], one)
			}
		}
	}
}

func TestSearchUsage(t *testing.T) {
	for more, want := range map[string]string{
		" --runs 0": "--runs", " --budget 0": "--budget", " --subset-share 2": "--subset-share", " --subset-batch-size 4000": "--subset-batch-size",
		" --delta 0": "--delta", " --delta 2": "--delta", " --noise-multiplier -1": "--noise-multiplier", " --mechanism repeated-selection": "one run",
		" --mean-runs 3": "unknown flag", " --max-runs 31": "--max-runs", " --distribution poisson --max-runs 64": "--max-runs", " --distribution -1": "--distribution",
		" --portfolios 1": "--portfolios", " --test-records 5": "--test-noise", " --test-records 5 --test-noise 1 --test-epsilon 1": "together", " --test-noise 1": "--test-records",
		" --final-run mechanism=laplace": "--final-run: sensitivity", " --final-run mechanism=laplace,count=2": "count", " --checkpoints 0": "--checkpoints",
		" --final-run mechanism=dp-sgd,sampling=fixed-size,dataset-size=5,batch-size=1,noise-multiplier=1,epochs=1": "--final-run",
		" --sampling poisson --convention rounded --subset-share 0.5":                                               "--subset-share",
	} {
		_, stderr, code := clitest.Invoke(t, "", strings.Fields("privacy search"+exampleRun+more)...)
		if code != command.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d: %s", more, code, stderr)
		}
	}
}

// TestSearchDefaultFilter: the report says which filter is the default, the Rényi one where losses have heavy tails.
func TestSearchDefaultFilter(t *testing.T) {
	for line, want := range map[string]string{
		"--noise-multiplier 4 --epochs 10":   `here "all shown, adaptive, Gaussian filter"`,
		"--noise-multiplier 0.6 --epochs 10": `here "all shown, adaptive, Rényi filter"`,
	} {
		stdout, _, code := clitest.Invoke(t, "", strings.Fields("privacy search --mechanism dp-sgd --sampling fixed-size --dataset-size 32561 --batch-size 256 --delta 1e-6 --runs 10 "+line)...)
		if code != 0 || !strings.Contains(strings.Join(strings.Fields(stdout), " "), want) {
			t.Errorf("%s: code %d, want %s in\n%s", line, code, want, stdout)
		}
	}
}
