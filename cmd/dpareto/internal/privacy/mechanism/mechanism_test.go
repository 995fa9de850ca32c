package mechanism

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/testing/protocmp"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/accounting"
)

func parse(t *testing.T, line string) (*Flags, error) {
	t.Helper()
	var f Flags
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.Register(set)
	return &f, set.Parse(strings.Fields(line))
}

// complete lines, one for every mechanism.
var lines = map[string]string{
	"dp-sgd":                 "--sampling fixed-size --dataset-size 30956 --batch-size 128 --noise-multiplier 1 --epochs 10 --delta 1e-5",
	"gaussian":               "--sensitivity 1 --standard-deviation 4 --delta 1e-5",
	"laplace":                "--sensitivity 1 --scale 4",
	"sparse-vector":          "--cutoff 5 --noise-scale 10",
	"output-perturbation":    "--dataset-size 30956 --regularization 1e-3 --feature-norm 1 --standard-deviation 0.1 --delta 1e-6",
	"objective-perturbation": "--epsilon 1 --dataset-size 10000 --regularization 1e-6 --calibration continuous",
	"randomized-response":    "--epsilon 1 --categories 2",
	"selection":              "--epsilon 1 --method permute-and-flip",
	"zero-concentrated":      "--rho 0.1 --delta 1e-6",
	"discrete-gaussian":      "--sensitivity 2 --sigma 5 --delta 1e-6",
	"discrete-laplace":       "--sensitivity 2 --scale 5",
	"dp-ftrl":                "--steps 300 --separation 100 --matrix blt --buffer-scale 0.25,0.1 --buffer-decay 0.5,0.9 --noise-multiplier 5 --delta 1e-6",
	"random-allocation":      "--steps-per-epoch 100 --noise-multiplier 1 --epochs 2 --allocation same --delta 1e-5",
	"repeated-selection":     "--base gaussian --mean-runs 10 --distribution logarithmic --sensitivity 1 --standard-deviation 4 --delta 1e-5",
}

// Every mechanism can be described by flags, and what they describe can be accounted
// and solved for.
func TestEveryMechanism(t *testing.T) {
	for _, name := range Names() {
		f, err := parse(t, "--mechanism "+name+" "+lines[name])
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		m, err := f.Mechanism()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		response, err := accounting.Service{}.ComputeEpsilon(t.Context(), &dparetov1.ComputeEpsilonRequest{Privacy: m.Spec})
		if err != nil || !(response.GetGuarantees()[0].GetEpsilon() > 0) {
			t.Errorf("%s: %v, %v", name, response, err)
		}
		if !strings.Contains(Help(), "  "+name+"\n") {
			t.Errorf("%s is missing in the help", name)
		}
	}
	for name := range lines {
		if m, ok := find(name); ok && m.solveFor == "" {
			t.Errorf("%s has nothing to solve for", name)
		}
	}
}

// Every flag has a help of its own in the contract's comments, without the contract's names.
func TestHelpIsInTheContract(t *testing.T) {
	for _, o := range options() {
		if meaning, _, _ := strings.Cut(o.usage, ":"); len(meaning) < 5 || strings.ContainsAny(o.usage, "_\n") || strings.Contains(o.usage, "Expression") {
			t.Errorf("--%s: help %q", o.name, o.usage)
		}
	}
	for name, want := range map[string]string{
		"sensitivity": "gaussian: the L2 sensitivity, positive; laplace: the L1 sensitivity, positive; " +
			"discrete-gaussian: the sensitivity, an integer in [1, 10000]; discrete-laplace: the L1 sensitivity, an integer in [1, 10000]",
		"split":    "the share of ε that goes to the regulariser in rank-one, in (0, 1) (default 0.05)",
		"sampling": "how the trainer draws its lots: fixed-size, poisson, shuffled, random-allocation",
	} {
		if o, ok := findOption(name); !ok || o.usage != want {
			t.Errorf("--%s: help %q, want %q", name, o.usage, want)
		}
	}
	if help := Help(); !strings.Contains(help, "--sensitivity --scale\n") || !strings.Contains(help, "[--radius]") {
		t.Errorf("help:\n%s", help)
	}
}

func TestSpec(t *testing.T) {
	for line, want := range map[string]string{
		"--mechanism dp-sgd " + lines["dp-sgd"]: `{"dp_sgd":{"sampling":"SAMPLING_FIXED_SIZE","dataset_size":"30956","batch_size":"128","noise_multiplier":"1","epochs":"10"},
			"delta":1e-5,"adjacency":"ADJACENCY_REPLACE_ONE"}`,
		"--mechanism dp-sgd --sampling Poisson --convention TENSORFLOW_PRIVACY --dataset-size 100 --batch-size 10 --noise-multiplier 1e7 --steps 10 --delta 1e-5 --accountant RDP": `{
			"dp_sgd":{"sampling":"SAMPLING_POISSON","convention":"CONVENTION_TENSORFLOW_PRIVACY","dataset_size":"100","batch_size":"10","noise_multiplier":"1e+07","steps":"10"},
			"delta":1e-5,"adjacency":"ADJACENCY_ADD_REMOVE","accountant":"ACCOUNTANT_RDP","conversion":"CONVERSION_IMPROVED"}`,
		"--mechanism dp-sgd --sampling poisson --convention opacus --dataset-size 100 --batch-size 10 --noise-multiplier 1e7 --steps 10 --delta 1e-5 --accountant rdp": `{
			"dp_sgd":{"sampling":"SAMPLING_POISSON","convention":"CONVENTION_OPACUS","dataset_size":"100","batch_size":"10","noise_multiplier":"1e+07","steps":"10"},
			"delta":1e-5,"adjacency":"ADJACENCY_ADD_REMOVE","accountant":"ACCOUNTANT_RDP","conversion":"CONVERSION_IMPROVED"}`,
		"--mechanism repeated-selection --base dp-sgd --mean-runs 10 --distribution poisson --adjacency replace-one --sampling poisson --convention rounded --dataset-size 100 --batch-size 10 --noise-multiplier 1 --steps 10 --delta 1e-5": `{
			"repeated_selection":{"mean_runs":"10","poisson":{},"base":{"dp_sgd":{"sampling":"SAMPLING_POISSON","convention":"CONVENTION_ROUNDED","dataset_size":"100","batch_size":"10","noise_multiplier":"1","steps":"10"}}},
			"delta":1e-5,"adjacency":"ADJACENCY_REPLACE_ONE"}`,
		"--mechanism dp-sgd --sampling poisson --sampling-probability 0.1 --noise-multiplier 1 --steps 10 --delta 1e-5": `{
			"dp_sgd":{"sampling":"SAMPLING_POISSON","sampling_probability":"0.1","noise_multiplier":"1","steps":"10"},"delta":1e-5,"adjacency":"ADJACENCY_ADD_REMOVE"}`,
		"--mechanism dp-ftrl --steps 10 --noise-multiplier 3 --matrix toeplitz --column 1,0.5 --delta 1e-5": `{
			"dp_ftrl":{"steps":"10","noise_multiplier":"3","matrix":"NOISE_MATRIX_TOEPLITZ","column":[1,0.5]},"delta":1e-5,"adjacency":"ADJACENCY_ADD_REMOVE"}`,
		"--mechanism repeated-selection --base laplace --mean-runs 10 --distribution 0.5 --sensitivity 1 --scale 2 --delta 1e-5": `{
			"repeated_selection":{"mean_runs":"10","eta":"0.5","base":{"laplace":{"sensitivity":"1","scale":"2"}}},"delta":1e-5,"adjacency":"ADJACENCY_ADD_REMOVE"}`,
	} {
		f, err := parse(t, line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		got, err := f.Mechanism()
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		spec := new(dparetov1.PrivacySpec)
		require.NoError(t, protojson.Unmarshal([]byte(want), spec))
		if diff := cmp.Diff(spec, got.Spec, protocmp.Transform()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
}

// The accountant refuses what is missing, under the names of the flags.
func TestMissing(t *testing.T) {
	for line, want := range map[string]string{
		"--mechanism gaussian --delta 1e-5":    "--sensitivity --standard-deviation",
		"--mechanism sparse-vector --cutoff 5": "--noise-scale",
		"--mechanism selection --epsilon 1":    "--method",
		"--mechanism dp-sgd --dataset-size 10 --batch-size 1 --noise-multiplier 1 --epochs 1 --delta 1e-5":                              "--sampling",
		"--mechanism dp-sgd --sampling poisson --convention rounded --dataset-size 10 --batch-size 1 --noise-multiplier 1 --delta 1e-5": "--epochs",
		"--mechanism dp-sgd --sampling poisson --dataset-size 10 --batch-size 1 --noise-multiplier 1 --epochs 1 --delta 1e-5":           "--convention",
		"--mechanism repeated-selection --base laplace --mean-runs 2 --sensitivity 1":                                                   "--scale",
	} {
		f, err := parse(t, line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		m, err := f.Mechanism()
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		_, err = accounting.Service{}.ComputeEpsilon(t.Context(), &dparetov1.ComputeEpsilonRequest{Privacy: m.Spec})
		var missing []string
		for _, detail := range status.Convert(err).Details() {
			for _, v := range detail.(*errdetails.BadRequest).GetFieldViolations() {
				missing = append(missing, Flag(v.GetField()))
			}
		}
		if got := strings.Join(missing, " "); got != want {
			t.Errorf("%s: missing %q (%v), want %q", line, got, err, want)
		}
	}
}

func TestUnsolved(t *testing.T) {
	f, err := parse(t, "--mechanism dp-sgd --sampling fixed-size --dataset-size 30956 --noise-multiplier 1 --epochs 10 --delta 1e-5")
	require.NoError(t, err)
	m, err := f.Unsolved("batch-size")
	if err != nil || m.Spec.GetDpSgd().GetBatchSize() != Variable {
		t.Errorf("%+v, %v", m, err)
	}
	if lo, hi := f.Range("batch-size"); lo != 1 || hi != 30956 {
		t.Errorf("batch sizes from %g to %g", lo, hi)
	}
	for solveFor, want := range map[string]string{
		"": "--noise-multiplier is solved for", "sampling": "not a number", "standard-deviation": "not a number of the mechanism", "epochs": "cannot be given",
	} {
		if _, err := f.Unsolved(solveFor); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("solving for %q: %v, want %q", solveFor, err, want)
		}
	}
}

// Where ε is a parameter, its flag is the target of a calibration.
func TestUnsolvedEpsilon(t *testing.T) {
	for line, solveFor := range map[string]string{
		"--mechanism objective-perturbation --dataset-size 100 --regularization 0.1":                                   "split",
		"--mechanism randomized-response":                                                                              "categories",
		"--mechanism repeated-selection --base selection --method exponential --distribution logarithmic --delta 1e-6": "mean-runs",
	} {
		f, err := parse(t, line)
		require.NoError(t, err)
		if _, err := f.Unsolved(solveFor); err == nil || !strings.Contains(err.Error(), "--solve-for must be epsilon") {
			t.Errorf("%s, solving for %s: %v", line, solveFor, err)
		}
	}
}

func TestErrors(t *testing.T) {
	for line, want := range map[string]string{
		"":                  "--mechanism is required",
		"--mechanism dpsgd": `is "dpsgd"`,
		"--mechanism sparse-vector --cutoff 5 --noise-scale 1 --standard-deviation 3":          "--standard-deviation is not for the mechanism sparse-vector",
		"--mechanism repeated-selection --sensitivity 1 --standard-deviation 1":                "--base is required",
		"--mechanism repeated-selection --base repeated-selection --mean-runs 10 --delta 1e-5": "must be dp-sgd, gaussian",
		"--sampling uniform": `"uniform" for "--sampling" flag: must be fixed-size, poisson, shuffled or random-allocation`,
		"--mechanism dp-sgd --sampling fixed-size --dataset-size 100 --batch-size 10 --noise-multiplier 1 --epochs 7 --steps 10": "--epochs and --steps are both given",
		"--column 1,x":              "must be finite numbers with commas or colons between them",
		"--epochs ten":              "must be a finite number",
		"--standard-deviation NaN":  "must be a finite number",
		"--distribution sometimes":  "must be geometric, logarithmic, poisson, binomial, fixed or a number",
		"--base mean":               "must be dp-sgd, gaussian",
		"--accountant renyi":        "must be tightest, rdp",
		"--accountant rdp-odometer": "must be tightest, rdp",
	} {
		f, err := parse(t, line)
		if err == nil {
			_, err = f.Mechanism()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", line, err, want)
		}
	}
}

func TestParts(t *testing.T) {
	part, err := Part("mechanism=dp-sgd, sampling=fixed-size,dataset-size=100,batch-size=10,noise-multiplier=1,steps=5,count=3")
	if err != nil || part.GetCount() != "3" || part.GetMechanism().GetDpSgd().GetSteps() != "5" {
		t.Fatalf("%v, %v", part, err)
	}
	ftrl, err := Part("mechanism=dp-ftrl,steps=9,noise-multiplier=1,matrix=toeplitz,column=1:0.5")
	if err != nil || len(ftrl.GetMechanism().GetDpFtrl().GetColumn()) != 2 {
		t.Fatalf("%v, %v", ftrl, err)
	}
	laplace, err := Part("mechanism=laplace,sensitivity=1,scale=2")
	require.NoError(t, err)
	var f Flags
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.RegisterCommon(set)
	if _, err := f.Compose([]*dparetov1.CompositionMechanism_Part{part, laplace}); err == nil || !strings.Contains(err.Error(), "give --adjacency") {
		t.Errorf("parts of different adjacencies: %v", err)
	}
	require.NoError(t, set.Parse([]string{"--adjacency", "replace-one", "--delta", "1e-5"}))
	m, err := f.Compose([]*dparetov1.CompositionMechanism_Part{part, laplace})
	if err != nil || len(m.Spec.GetComposition().GetParts()) != 2 || m.Spec.GetAdjacency() != dparetov1.Adjacency_ADJACENCY_REPLACE_ONE || m.Spec.GetDelta() != 1e-5 {
		t.Errorf("%v, %v", m, err)
	}
	for text, want := range map[string]string{
		"":                                  "must be name=value",
		"mechanism=laplace,scale=1,scale=2": "scale is given twice",
		"mechanism=laplace,count=1,count=2": "count is given twice",
		"mechanism=laplace,count=x":         `count: must be a finite number, is "x"`,
		"mechanism=laplace,delta=1":         "delta is not for parts",
		"mechanism=laplace,bogus=1":         "bogus is not for parts",
		"mechanism=laplace,sensitivity=big": "must be a finite number",
	} {
		if _, err := Part(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

func TestFlag(t *testing.T) {
	for path, want := range map[string]string{
		"privacy.dp_sgd.noise_multiplier":     "--noise-multiplier",
		"privacy.gaussian.standard_deviation": "--standard-deviation",
		"privacy.delta":                       "--delta",
		"target_epsilon":                      "--epsilon",
		"privacy.composition.parts[1].mechanism.sparse_vector.cutoff": "--part 2: cutoff",
	} {
		if got := Flag(path); got != want {
			t.Errorf("Flag(%q) = %q, want %q", path, got, want)
		}
	}
	if got := Words("must be ADJACENCY_REPLACE_ONE for lots, is ADJACENCY_ADD_REMOVE"); got != "must be replace-one for lots, is add-remove" {
		t.Errorf("words %q", got)
	}
}
