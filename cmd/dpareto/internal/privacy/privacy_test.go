package privacy_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/internal/command"
)

const dpSGDFlags = "--mechanism dp-sgd --dataset-size 40000 --batch-size 128 --noise-multiplier 1 --delta 1e-6 "

// printedGuarantee are the fields of a guarantee that programs rely on.
type printedGuarantee struct {
	Epsilon      float64            `json:"epsilon"`
	EpsilonLower *float64           `json:"epsilon_lower"`
	Delta        float64            `json:"delta"`
	Adjacency    string             `json:"adjacency"`
	Accountant   string             `json:"accountant"`
	Steps        int64              `json:"steps"`
	Order        float64            `json:"order"`
	SolvedFor    string             `json:"solved_for"`
	Value        float64            `json:"value"`
	Epochs       int64              `json:"epochs"`
	Derived      map[string]float64 `json:"derived"`
	Assumptions  []struct {
		Text      string `json:"text"`
		Premise   string `json:"premise"`
		CheckedBy string `json:"checked_by"`
	} `json:"assumptions"`
	Warnings []struct {
		Code, Message string
	} `json:"warnings"`
}

// csvColumns are the columns of guarantees for programs.
const csvColumns = "mechanism epochs steps epsilon epsilon_lower delta adjacency accountant conversion order assumptions warnings"

// A row of CSV stands for itself: it has everything that makes ε a guarantee.
func TestPrivacyCSV(t *testing.T) {
	stdout, stderr, code := clitest.Invoke(t, "", strings.Fields("privacy epsilon --mechanism dp-sgd --sampling poisson --convention rounded "+
		"--dataset-size 1000 --batch-size 10 --noise-multiplier 1 --epochs 3 --delta 1e-2 --accountant rdp -o csv")...)
	rows, err := csv.NewReader(strings.NewReader(stdout)).ReadAll()
	if code != 0 || err != nil || len(rows) != 2 || strings.Join(rows[0], " ") != csvColumns {
		t.Fatalf("exit code %d, %v, %s\n%s", code, err, stderr, stdout)
	}
	row := rows[1]
	for i, want := range map[int]string{0: "dp-sgd", 1: "3", 2: "300", 4: "0", 5: "0.01", 6: "add_remove", 7: "rdp", 8: "improved", 11: "LARGE_DELTA"} {
		if row[i] != want {
			t.Errorf("%s is %q, want %q", rows[0][i], row[i], want)
		}
	}
	for _, i := range []int{3, 9} {
		if x, err := strconv.ParseFloat(row[i], 64); err != nil || !(x > 0) {
			t.Errorf("%s is %q", rows[0][i], row[i])
		}
	}
	if !strings.Contains(row[10], "; the number of records is public, since") {
		t.Errorf("assumptions %q", row[10])
	}
	if strings.Count(stderr, "warning: ") != 1 {
		t.Errorf("warnings %q", stderr)
	}
	stdout, _, _ = clitest.Invoke(t, "", strings.Fields("privacy calibrate --mechanism dp-sgd --sampling poisson --convention rounded --dataset-size 1000 --batch-size 10 "+
		"--noise-multiplier 1 --delta 1e-5 --epsilon 3 --solve-for epochs -o csv")...)
	if !strings.HasPrefix(stdout, "mechanism,solved_for,value,epochs,steps,") || !regexp.MustCompile(`(?m)^dp-sgd,epochs,(\d+),\d+,\d+00,[23]\.`).MatchString(stdout) {
		t.Errorf("calibrated:\n%s", stdout)
	}
}

// JSON has what is infinite, too.
func TestPrivacyInfinite(t *testing.T) {
	g := printed[struct{ Derived map[string]string }](t, "epsilon --mechanism gaussian --sensitivity 1e300 --standard-deviation 1e-300 --delta 1e-5")
	if g.Derived["mu"] != "Infinity" {
		t.Errorf("%+v", g)
	}
}

// printed runs dpareto privacy with --output json.
func printed[T any](t *testing.T, line string) T {
	t.Helper()
	stdout, stderr, code := clitest.Invoke(t, "", strings.Fields("privacy "+line+" --output json")...)
	if code != 0 {
		t.Fatalf("%s: exit code %d: %s", line, code, stderr)
	}
	var decoded T
	if err := json.Unmarshal([]byte(stdout), &decoded); err != nil {
		t.Fatalf("%s: %v in %s", line, err, stdout)
	}
	return decoded
}

// The reference values are of an independent evaluation: the exact curve of the
// dominating pair, the published bound with its classic conversion, and the pair's Rényi
// divergence.
func TestPrivacyEpsilon(t *testing.T) {
	for _, tt := range []struct {
		line, accountant, adjacency string
		want, tolerance             float64
		steps                       int64
		lower, order                bool
	}{
		{"--sampling fixed-size --steps 3120", "exact", "replace_one", 1.330865304864, 1e-8, 3120, true, false},
		{"--sampling fixed-size --epochs 10 --accountant exact", "exact", "replace_one", 1.330865304864, 1e-8, 3120, true, false},
		{"--sampling fixed-size --steps 3120 --accountant pld", "pld", "replace_one", 1.330865304864, 1e-3, 3120, true, false},
		{"--sampling fixed-size --steps 3120 --accountant rdp --conversion classic", "rdp", "replace_one", 2.4696, 1e-4, 3120, false, true},
		{"--sampling fixed-size --steps 3120 --accountant rdp", "rdp", "replace_one", 1.60998, 1e-5, 3120, false, true},
	} {
		g := printed[printedGuarantee](t, "epsilon "+dpSGDFlags+tt.line)
		if math.Abs(g.Epsilon-tt.want) > tt.tolerance || g.Accountant != tt.accountant || g.Adjacency != tt.adjacency || g.Steps != tt.steps || g.Delta != 1e-6 {
			t.Errorf("%s: %+v, want epsilon %v", tt.line, g, tt.want)
		}
		if g.EpsilonLower == nil || (*g.EpsilonLower > 0) != tt.lower || *g.EpsilonLower > g.Epsilon || (g.Order > 1) != tt.order {
			t.Errorf("%s: lower bound %v, order %g", tt.line, g.EpsilonLower, g.Order)
		}
	}
	if g := printed[printedGuarantee](t, "epsilon "+dpSGDFlags+"--sampling poisson --convention rounded --steps 3120"); g.Adjacency != "add_remove" || !(g.Epsilon > 1.07 && g.Epsilon < 1.09) {
		t.Errorf("Poisson sampling: %+v", g)
	}
	if g := printed[printedGuarantee](t, "epsilon --mechanism sparse-vector --cutoff 5 --noise-scale 1"); math.Abs(g.Epsilon-17.796024) > 1e-6 || g.Delta != 0 || g.Accountant != "pure" {
		t.Errorf("sparse vector: %+v", g)
	}
	if g := printed[printedGuarantee](t, "epsilon --mechanism objective-perturbation --epsilon 0.1 --dataset-size 10000 --regularization 1e-6 --calibration rank-one --split 0.1"); math.Abs(g.Derived["beta"]-0.045) > 1e-12 {
		t.Errorf("objective perturbation: %+v", g)
	}
}

// Lots of 60 of 60,000 records are 1,000 steps an epoch, under add/remove unless said.
func TestPrivacyOfRandomAllocation(t *testing.T) {
	lots := printed[printedGuarantee](t, "epsilon --mechanism dp-sgd --sampling random-allocation --dataset-size 60000 --batch-size 60 --noise-multiplier 1 --epochs 1 --delta 1e-5")
	steps := printed[printedGuarantee](t, "epsilon --mechanism random-allocation --steps-per-epoch 1000 --noise-multiplier 1 --epochs 1 --delta 1e-5")
	if lots.Epsilon != steps.Epsilon || lots.Adjacency != "add_remove" || !(lots.Epsilon > 0.138 && lots.Epsilon < 0.140) {
		t.Errorf("ε of lots %+v, of steps %+v", lots, steps)
	}
}

// For a trainer that shuffles, ε is the bound for shuffling: 10 passes with noise σ = 1 are
// 10-fold Gaussian, μ = √10. What other samplers would cost is a warning. The old flag that printed
// these as ε of a trainer that shuffles is refused.
func TestPrivacyOfShufflingTrainers(t *testing.T) {
	const line = "epsilon --mechanism dp-sgd --dataset-size 60000 --batch-size 256 --noise-multiplier 1 --epochs 10 --delta 1e-5 "
	for _, accounted := range []string{"fixed-size", "poisson", "shuffled"} {
		for _, format := range []string{"table", "json", "csv"} {
			stdout, stderr, code := clitest.Invoke(t, "", strings.Fields("privacy "+line+"--sampling "+accounted+" --trainer-sampling shuffled -o "+format)...)
			if stdout != "" || code != 2 || !strings.Contains(stderr, "unknown flag") {
				t.Errorf("--sampling %s, %s: exit code %d, %s\n%s", accounted, format, code, stderr, stdout)
			}
		}
	}
	g := printed[printedGuarantee](t, line+"--sampling shuffled")
	// δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) (Balle and Wang, 2018).
	mu, normal := math.Sqrt(10), func(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) }
	if delta := normal(mu/2-g.Epsilon/mu) - math.Exp(g.Epsilon)*normal(-mu/2-g.Epsilon/mu); math.Abs(g.Epsilon-17.8566) > 1e-3 || math.Abs(delta-1e-5) > 1e-10 {
		t.Errorf("ε = %g, where δ is %g", g.Epsilon, delta)
	}
	for _, format := range []string{"table", "csv"} {
		stdout, stderr, _ := clitest.Invoke(t, "", strings.Fields("privacy "+line+"--sampling shuffled -o "+format)...)
		if !strings.Contains(stdout, "17.8") || !strings.Contains(stdout, map[string]string{"table": "1.363 with fresh lots", "csv": "SHUFFLED_LOTS"}[format]) {
			t.Errorf("%s: %s\n%s", format, stderr, stdout)
		}
	}
}

// ε of Opacus 1.6.0 is PRVAccountant's with eps_error=1e-4, as in the Python client's tests.
func TestPrivacyConventions(t *testing.T) {
	opacus := printed[printedGuarantee](t, "epsilon --mechanism dp-sgd --sampling poisson --convention opacus --dataset-size 60000 --batch-size 256 --noise-multiplier 1.1 --epochs 10 --delta 1e-5")
	if math.Abs(opacus.Epsilon-0.9176595) > 1e-3 || opacus.Steps != 2350 {
		t.Errorf("%+v", opacus)
	}
	const uneven = "epsilon --mechanism dp-sgd --noise-multiplier 2 --delta 1e-5 --sampling poisson "
	const sizes = "--dataset-size 1000 --batch-size 700 --epochs 10 "
	given := printed[printedGuarantee](t, uneven+"--sampling-probability 0.5 --steps 20")
	for convention, want := range map[string]struct {
		epsilon float64 // by an accountant that is given the probability and the steps
		steps   int64
	}{
		"opacus":             {given.Epsilon, 20},
		"rounded":            {printed[printedGuarantee](t, uneven+"--sampling-probability 0.7 --steps 10").Epsilon, 10},
		"tensorflow-privacy": {printed[printedGuarantee](t, uneven+"--sampling-probability 0.7 --steps 15").Epsilon, 15},
	} {
		g := printed[printedGuarantee](t, uneven+sizes+"--convention "+convention)
		if g.Epsilon != want.epsilon || g.Steps != want.steps || !strings.Contains(fmt.Sprint(g.Assumptions), "zero-out") {
			t.Errorf("%s: %+v, want epsilon %g, %d steps", convention, g, want.epsilon, want.steps)
		}
	}
	if text := fmt.Sprint(given.Assumptions); strings.Contains(text, "zero-out") || !strings.Contains(text, "settings") {
		t.Errorf("assumptions %v of a probability that is given", given.Assumptions)
	}
	stdout, _, _ := clitest.Invoke(t, "", strings.Fields("privacy "+uneven+sizes+"--convention opacus")...)
	if !strings.Contains(stdout, "5.690 at most") || !strings.Contains(stdout, "zero-out") {
		t.Errorf("printed\n%s", stdout)
	}
}

// People read ε rounded up and its lower bound rounded down, with what they mean.
func TestPrivacyEpsilonText(t *testing.T) {
	stdout, _, code := clitest.Invoke(t, "", strings.Fields("privacy epsilon "+dpSGDFlags+"--sampling fixed-size --steps 3120")...)
	for _, want := range []string{"1.331 at most", "at least", "1e-6", "replace-one", "exact", "3120", "fresh batch"} {
		if !strings.Contains(stdout, want) || code != 0 {
			t.Errorf("exit code %d, %q is missing in\n%s", code, want, stdout)
		}
	}
}

func TestPrivacyCurve(t *testing.T) {
	guarantees := printed[[]printedGuarantee](t, "curve "+dpSGDFlags+"--sampling fixed-size --epochs 10 --every 4")
	if len(guarantees) != 3 || guarantees[0].Epochs != 4 || guarantees[2].Epochs != 10 || guarantees[2].Steps != 3120 ||
		math.Abs(guarantees[2].Epsilon-1.330865304864) > 1e-8 || !(guarantees[0].Epsilon < guarantees[1].Epsilon) {
		t.Errorf("%+v", guarantees)
	}
	stdout, _, _ := clitest.Invoke(t, "", strings.Fields("privacy curve "+dpSGDFlags+"--sampling fixed-size --epochs 3")...)
	if strings.Count(stdout, "provided that every step draws a fresh batch") != 1 || strings.Count(stdout, "accountant exact") != 1 {
		t.Errorf("printed\n%s", stdout)
	}
	// The longest run there is does not overflow.
	longest := printed[[]struct{ Steps int64 }](t, "curve "+dpSGDFlags+"--sampling shuffled --epochs 9223372036854775807")
	if n := len(longest); n != 64 || longest[n-1].Steps != math.MaxInt64 {
		t.Errorf("%d rows, the last %+v", n, longest[n-1])
	}
	stdout, stderr, code := clitest.Invoke(t, "", strings.Fields("privacy curve "+dpSGDFlags+"--sampling fixed-size --epochs 200 --output csv")...)
	rows, err := csv.NewReader(strings.NewReader(stdout)).ReadAll()
	if code != 0 || err != nil || len(rows) != 51 || strings.Join(rows[0], " ") != csvColumns || rows[50][1] != "200" {
		t.Errorf("exit code %d, %v, %s\n%s", code, err, stderr, stdout)
	}
	deltas := printed[[]printedGuarantee](t, "curve --mechanism gaussian --sensitivity 1 --standard-deviation 2 --epsilons 0.5,1")
	// δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) with μ = 1/2.
	if len(deltas) != 2 || math.Abs(deltas[1].Delta-0.006829595) > 1e-9 {
		t.Errorf("%+v", deltas)
	}
}

func TestPrivacyCalibrate(t *testing.T) {
	g := printed[printedGuarantee](t, "calibrate --mechanism dp-sgd --sampling fixed-size --dataset-size 40000 --batch-size 128 --steps 3120 --delta 1e-6 --epsilon 1.330865304864")
	if g.SolvedFor != "noise-multiplier" || math.Abs(g.Value-1) > 1e-8 || g.Epsilon > 1.330865304864 {
		t.Errorf("%+v", g)
	}
	g = printed[printedGuarantee](t, "calibrate "+dpSGDFlags+"--sampling fixed-size --epsilon 1.330866 --solve-for epochs")
	if g.SolvedFor != "epochs" || g.Value != 10 {
		t.Errorf("%+v", g)
	}
	_, stderr, code := clitest.Invoke(t, "", strings.Fields("privacy calibrate --mechanism laplace --sensitivity 1 --epsilon 1e-13")...)
	if code != 1 || !strings.Contains(stderr, "cannot be reached: --scale between 1e-9 and 1e12 gives at least 1.000e-12") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// Without further flags noise is found for every target that makes sense, and an end of
// the range is not told to be more than that.
func TestPrivacyCalibrateRange(t *testing.T) {
	for _, line := range []string{
		"--mechanism dp-sgd --sampling fixed-size --dataset-size 40000 --batch-size 128 --steps 3120 --delta 1e-6",
		"--mechanism dp-sgd --sampling poisson --convention opacus --dataset-size 40000 --batch-size 128 --steps 3120 --delta 1e-6",
		"--mechanism dp-sgd --sampling poisson --steps 3120 --noise-multiplier 2 --delta 1e-6 --solve-for sampling-probability",
		"--mechanism dp-sgd --sampling shuffled --dataset-size 40000 --batch-size 128 --epochs 10 --delta 1e-6",
		"--mechanism dp-sgd --sampling fixed-size --dataset-size 40000 --batch-size 128 --steps 3120 --delta 1e-6 --accountant rdp",
		"--mechanism gaussian --sensitivity 1 --delta 1e-5",
		"--mechanism gaussian --standard-deviation 1 --delta 1e-5 --solve-for sensitivity",
		"--mechanism laplace --sensitivity 1",
		"--mechanism sparse-vector --cutoff 5",
		"--mechanism sparse-vector --noise-scale 1e5 --solve-for cutoff",
		"--mechanism output-perturbation --dataset-size 3000 --standard-deviation 1 --feature-norm 1 --delta 1e-6 --solve-for regularization",
		"--mechanism zero-concentrated --delta 1e-6",
		"--mechanism randomized-response --categories 3",
		"--mechanism selection --method exponential",
	} {
		for _, epsilon := range []string{"1e-3", "10"} {
			g := printed[printedGuarantee](t, "calibrate "+line+" --epsilon "+epsilon)
			target, err := strconv.ParseFloat(epsilon, 64)
			if err != nil || g.Epsilon > target || g.Epsilon < 0.9*target || len(g.Warnings) != 0 {
				t.Errorf("%s for %s: %+v, %v", line, epsilon, g, err)
			}
		}
	}
	g := printed[printedGuarantee](t, "calibrate --mechanism gaussian --sensitivity 1 --delta 1e-5 --epsilon 1 --min 100 --max 200")
	if g.Value != 100 || len(g.Warnings) != 1 || g.Warnings[0].Code != "AT_RANGE_END" {
		t.Errorf("%+v", g)
	}
}

func TestPrivacyCompose(t *testing.T) {
	// k Laplace releases are at most k times one, and three Gaussians are one with √3 μ.
	g := printed[printedGuarantee](t, "compose --part mechanism=laplace,sensitivity=1,scale=10,count=5")
	if math.Abs(g.Epsilon-0.5) > 1e-12 || g.Accountant != "pure" {
		t.Errorf("%+v", g)
	}
	three := printed[printedGuarantee](t, "compose --delta 1e-6 --part mechanism=gaussian,sensitivity=1,standard-deviation=4,count=2 --part mechanism=gaussian,sensitivity=1,standard-deviation=4")
	one := printed[printedGuarantee](t, "epsilon --mechanism gaussian --sensitivity 1.7320508075688772 --standard-deviation 4 --delta 1e-6")
	if math.Abs(three.Epsilon-one.Epsilon) > 1e-9 {
		t.Errorf("three %v, one %v", three.Epsilon, one.Epsilon)
	}
}

// Mistakes are told in the words of the command line.
func TestPrivacyUsage(t *testing.T) {
	for line, want := range map[string]string{
		"bogus":         `unknown command "bogus"`,
		"epsilon":       "--mechanism is required",
		"epsilon stray": "unknown command",
		"epsilon --mechanism sparse-vector --cutoff 0 --noise-scale 1":                                                                                                              "--cutoff: must be an integer of at least 1, is 0",
		"epsilon --mechanism gaussian --sensitivity 1 --standard-deviation -1 --delta 1e-5":                                                                                         "--standard-deviation: must be positive",
		"epsilon --mechanism gaussian --sensitivity 1 --standard-deviation 1":                                                                                                       "give --delta, in (0, 1)",
		"epsilon --mechanism randomized-response --epsilon 1 --categories 2 --adjacency add-remove":                                                                                 "--adjacency: must be replace-one for randomised response",
		"epsilon " + dpSGDFlags + "--sampling fixed-size --steps 9 --accountant pure":                                                                                               "--accountant: cannot be pure: the mechanism has no pure guarantee",
		"epsilon " + dpSGDFlags + "--sampling poisson --epochs 3":                                                                                                                   "--convention: must be rounded, opacus or tensorflow-privacy for poisson",
		"epsilon " + dpSGDFlags + "--sampling fixed-size --convention opacus --epochs 3":                                                                                            "--convention: is only for poisson",
		"epsilon " + dpSGDFlags + "--sampling fixed-size --epochs 3 --steps 940":                                                                                                    "--epochs and --steps are both given",
		"curve --mechanism laplace --sensitivity 1 --scale 1":                                                                                                                       "has no --epochs or --steps",
		"curve " + dpSGDFlags + "--sampling fixed-size --epochs 10 --every -1":                                                                                                      "at most 10000 rows, is -1",
		"curve " + dpSGDFlags + "--sampling fixed-size --epochs 20001 --every 2":                                                                                                    "at most 10000 rows",
		"curve --mechanism repeated-selection --base dp-sgd --mean-runs 10 --sampling fixed-size --dataset-size 1000 --batch-size 10 --noise-multiplier 1 --epochs 10 --delta 1e-5": "repeated-selection has no --epochs or --steps; give --epsilons",
		"curve --mechanism gaussian --sensitivity 1 --standard-deviation 2 --epsilons 1,-1":                                                                                         "must be finite and not negative",
		"calibrate --mechanism laplace --sensitivity 1":                                                                                                                             "--epsilon is required",
		"calibrate --mechanism laplace --sensitivity 1 --epsilon 0":                                                                                                                 "--epsilon: must be positive",
		"calibrate --mechanism laplace --sensitivity 1 --scale 2 --epsilon 1":                                                                                                       "--scale is solved for",
		"calibrate --mechanism gaussian --sensitivity 1 --delta 1e-5 --epsilon 1 --min -1":                                                                                          "--min: makes gaussian.standard_deviation invalid: must be positive",
		"calibrate --mechanism objective-perturbation --dataset-size 100 --regularization 0.1 --epsilon 1 --solve-for split":                                                        "--solve-for must be epsilon",
		"compose":                                "--part is required",
		"compose --part mechanism=sparse-vector": "--part 1: cutoff: must be set; --part 1: noise-scale: must be set",
		"compose --part mechanism=sparse-vector,cutoff=0,noise-scale=1":                 "--part 1: cutoff: must be an integer of at least 1",
		"compose --sensitivity 1 --part mechanism=sparse-vector,cutoff=1,noise-scale=1": "unknown flag",
	} {
		_, stderr, code := clitest.Invoke(t, "", strings.Fields("privacy "+line)...)
		if code != command.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, %s", line, code, stderr)
		}
	}
}
