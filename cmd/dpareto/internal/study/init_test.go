package study_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/internal/studyfile"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
)

const initAdult = "study init --trainer dp-sgd --set generated=true --set train_rows=2000"

// A study that is written for a trainer can be created and run as it stands, with
// parameters fixed, too.
func TestStudyInit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "study.yaml")
	line := "study init --trainer sparse-vector --set cutoff=5 --id fixed --trials 3 --file " + path
	if _, stderr, code := clitest.Invoke(t, "", strings.Fields(line)...); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	file, err := studyfile.Parse(content)
	require.NoError(t, err)
	if n := len(file.Study.GetSpec().GetParameters()); n != 1 {
		t.Errorf("%d parameters, want the noise scale alone", n)
	}
	for _, m := range file.Study.GetSpec().GetMetrics() { // one that is far too loose would warn at once
		if m.GetReported() != nil && m.ReferenceValue != nil {
			t.Errorf("%s: reference value %g, want one that follows from the results", m.GetId(), m.GetReferenceValue())
		}
	}
	address, _ := clitest.StartServer(t)
	for _, command := range []string{
		"study create " + path + " --server " + address,
		"agent --study fixed --server " + address,
	} {
		if _, stderr, code := clitest.Invoke(t, "", strings.Fields(command)...); code != 0 {
			t.Fatalf("%s: exit code %d: %s", command, code, stderr)
		}
	}
	stdout, stderr, code := clitest.Invoke(t, "", "trial", "list", "fixed", "--server", address, "--output", "csv")
	if code != 0 || strings.Count(stdout, "succeeded") != 3 {
		t.Errorf("exit code %d: %s\n%s", code, stderr, stdout)
	}
}

// A study is written without its data, with the number of examples that the data would have.
func TestStudyInitWithoutData(t *testing.T) {
	for _, variable := range []string{"HOME", "XDG_CACHE_HOME"} {
		t.Setenv(variable, t.TempDir())
	}
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1") // no network
	for _, line := range []string{
		"dp-sgd", "dp-adam --set split=uci", "output-perturbation --set evaluation=test --set train_rows=1000",
		"objective-perturbation --set split=published", "dp-sgd --set dataset=mnist --set model=mlp",
	} {
		made := clitest.Succeed(t, "study init --trainer "+line+" --set generated=true")
		written := clitest.Succeed(t, "study init --trainer "+line)
		if strings.Contains(written, "generated") || strings.Count(written, "\n") < 50 {
			t.Errorf("%s: %s", line, written)
		}
		size := regexp.MustCompile(`dataset_size: "(\d+)"`)
		if got, want := size.FindStringSubmatch(written), size.FindStringSubmatch(made); got == nil || !slices.Equal(got, want) {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	for name, want := range map[string][2]string{
		"adult": {"35000", "min: 8, max: 512"}, "gisette": {"5400", "min: 16, max: 540"}, "breast-cancer": {"344", "min: 16, max: 64"},
		"kddcup99": {"489021", "min: 978, max: 48902"},
	} {
		text := clitest.Succeed(t, "study init --trainer dp-sgd --set dataset="+name)
		if !strings.Contains(text, `dataset_size: "`+want[0]+`"`) || !strings.Contains(text, "integer_domain: {"+want[1]+"}") {
			t.Errorf("%s: want %q of\n%s", name, want, text)
		}
	}
}

// With --constant the file names what always predicting one class gives, once the data are read, and the
// server shows it.
func TestStudyInitConstant(t *testing.T) {
	address, _ := clitest.StartServer(t)
	for id, line := range map[string]string{
		"sgd": initAdult, "output": "study init --trainer output-perturbation --set generated=true --set train_rows=2000",
		"objective": "study init --trainer objective-perturbation --delta 0 --set generated=true --set train_rows=2000",
	} {
		if plain := clitest.Succeed(t, line); strings.Contains(plain, "constant_points") {
			t.Errorf("%s: without --constant:\n%s", id, plain)
		}
		path := filepath.Join(t.TempDir(), "study.yaml")
		clitest.Succeed(t, line+" --constant --id "+id+" --file "+path)
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		file, err := studyfile.Parse(content)
		require.NoError(t, err)
		points := file.Study.GetSpec().GetConstantPoints()
		if len(points) != 1 || points[0].GetId() != "majority" || !strings.Contains(points[0].GetDisplayName(), "always predict class") {
			t.Fatalf("%s: constant points %v", id, points)
		}
		values := points[0].GetValues()
		if e, ok := values["epsilon"]; !ok || e != 0 || len(values) != 2 || !(values["error"] > 0 && values["error"] <= 0.5) {
			t.Errorf("%s: values %v", id, values)
		}
		clitest.Succeed(t, "study create "+path+" --server "+address)
		if shown := clitest.Succeed(t, "front "+id+" --server "+address); !strings.Contains(shown, "no run: majority") {
			t.Errorf("%s: the front is\n%s", id, shown)
		}
	}
}

func TestStudyInitUsage(t *testing.T) {
	existing := filepath.Join(t.TempDir(), "study.yaml")
	require.NoError(t, os.WriteFile(existing, nil, 0o600))
	for line, want := range map[string]string{
		"study init":                                   "--trainer or --data is required",
		"study init --trainer nobody":                  `trainer "nobody" is unknown, want one of`,
		initAdult + " --trials 0":                      "--trials must be at least 1, is 0",
		initAdult + " --set bogus=1":                   `setting "bogus" of trainer dp-sgd is unknown`,
		initAdult + " --set lot_size=many":             `setting lot_size is "many", want a whole number`,
		initAdult + " --epsilon-reference -1":          "--epsilon-reference must be positive and finite, is -1",
		initAdult + " --epsilon-reference Inf":         "--epsilon-reference must be positive and finite, is +Inf",
		initAdult + " --delta 0":                       "--delta must be above 0 and below 1, is 0",
		initAdult + " --delta NaN":                     "--delta must be above 0 and below 1, is NaN",
		"study init --trainer sparse-vector --delta 1": "--delta must be above 0 and below 1, is 1",
		initAdult + " --id Adult":                      `--id must be a lower-case letter followed by at most 62`,
		initAdult + " --file " + existing:              "--force overwrites it",
		initAdult + " --set clipping_norm=-1":          `parameter "clipping_norm" is -1`,
		initAdult + " --set lot_size=3000":             `parameter "lot_size" is 3000`,
		initAdult + " --set noise_multiplier=0":        `parameter "noise_multiplier"`,
	} {
		if _, stderr, code := clitest.Invoke(t, "", strings.Fields(line)...); code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, %s", line, code, stderr)
		}
	}
}

// Every trainer's study is accepted by a server as it is written.
func TestStudyInitOfEveryTrainer(t *testing.T) {
	address, _ := clitest.StartServer(t)
	for id, line := range map[string]string{
		"sgd":       "dp-sgd --set generated=true",
		"poisson":   "dp-sgd --set generated=true --set sampling=poisson",
		"allocated": "dp-adam --set generated=true --set sampling=random-allocation",
		"replaced":  "dp-sgd --set generated=true --set sampling=random-allocation --set adjacency=replace-one",
		"adam":      "dp-adam --set generated=true --set evaluation=test",
		"output":    "output-perturbation --set generated=true",
		"objective": "objective-perturbation --set generated=true --set calibration=continuous",
		"vector":    "sparse-vector",
	} {
		path := filepath.Join(t.TempDir(), "study.yaml")
		for _, command := range []string{
			"study init --id " + id + " --file " + path + " --trainer " + line,
			"study create " + path + " --server " + address,
		} {
			if _, stderr, code := clitest.Invoke(t, "", strings.Fields(command)...); code != 0 {
				t.Errorf("%s: exit code %d: %s", command, code, stderr)
			}
		}
	}
}

// An agent refuses to train under a study that accounts for less than the training
// costs: settings that were changed without the mechanism, or the other way round.
func TestAgentRefusesUnderstatedPrivacy(t *testing.T) {
	address, _ := clitest.StartServer(t)
	for id, tt := range map[string]struct{ line, old, changed, want string }{
		"constant": {
			"sparse-vector --set cutoff=5", `cutoff: "5"` + "\n", `cutoff: "20"` + "\n", "costs at least",
		},
		"sampler": {
			"dp-sgd --set generated=true --set train_rows=400 --set epochs=1 --set lot_size=20 --set noise_multiplier=1",
			"      train_rows:", "      sampling: poisson\n      train_rows:", "the trainer's noise is for ADJACENCY_ADD_REMOVE",
		},
		"adjacency": {
			"dp-sgd --set sampling=poisson --set generated=true --set train_rows=400 --set epochs=1 --set lot_size=20 --set noise_multiplier=1",
			"adjacency: ADD_REMOVE", "adjacency: REPLACE_ONE", "stated for ADJACENCY_REPLACE_ONE",
		},
		"allocation": { // lots of 20 are 20 steps, of 40 are 10 with the same noise
			"dp-sgd --set sampling=random-allocation --set generated=true --set train_rows=400 --set epochs=1 --set lot_size=40 --set noise_multiplier=1",
			`batch_size: "40"`, `batch_size: "20"`, "costs at least",
		},
		"convention": { // 1.6 lots in the data: 2 steps, with a probability of 0.625 and of 0.5
			"dp-sgd --set sampling=poisson --set generated=true --set train_rows=400 --set epochs=1 --set lot_size=225 --set noise_multiplier=1",
			"convention: ROUNDED", "convention: OPACUS", "costs at least",
		},
		"bands": {
			"dp-mf --set generated=true --set train_rows=400 --set epochs=1 --set lot_size=20 --set noise_multiplier=1 --set bands=4",
			`bands: "4"`, `bands: "16"`, "costs at least",
		},
		"matrix": { // the spec has one tree, the trainer one for each of three epochs
			"dp-mf --set matrix=tree --set generated=true --set train_rows=400 --set epochs=3 --set lot_size=20 --set noise_multiplier=9",
			`separation: "360 / 20"`, `separation: "3 * 360 / 20"`, "costs at least",
		},
		"buffers": {
			"dp-mf --set matrix=blt --set generated=true --set train_rows=400 --set epochs=3 --set lot_size=20 --set noise_multiplier=9",
			"buffer_scale: [0.34, 0.064]", "buffer_scale: [0.34, 0.05]", "costs at least",
		},
		"rows": {
			"dp-sgd --set generated=true --set train_rows=4000 --set epochs=1 --set lot_size=20 --set noise_multiplier=1",
			`train_rows: "4000"`, `train_rows: "400"`, "costs at least",
		},
	} {
		path := filepath.Join(t.TempDir(), "study.yaml")
		run := func(command string) (stderr string, code int) {
			t.Helper()
			_, stderr, code = clitest.Invoke(t, "", strings.Fields(command)...)
			return stderr, code
		}
		if stderr, code := run("study init --trials 2 --id " + id + " --file " + path + " --trainer " + tt.line); code != 0 {
			t.Fatalf("%s: %s", id, stderr)
		}
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		at := strings.LastIndex(string(content), tt.old) // the settings come last
		if at < 0 {
			t.Fatalf("%s: %q is not in\n%s", id, tt.old, content)
		}
		edited := string(content[:at]) + tt.changed + string(content[at+len(tt.old):])
		require.NoError(t, os.WriteFile(path, []byte(edited), 0o600))
		if stderr, code := run("study create " + path + " --server " + address); code != 0 {
			t.Fatalf("%s: %s", id, stderr)
		}
		if stderr, code := run("agent --study " + id + " --server " + address); code != 1 || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: exit code %d: %s", id, code, stderr)
		}
		stdout, _, _ := clitest.Invoke(t, "", "trial", "list", id, "--server", address, "--output", "csv")
		if !strings.Contains(stdout, "queued") || strings.Contains(stdout, "succeeded") {
			t.Errorf("%s: the trial was not given back:\n%s", id, stdout)
		}
	}
}

// An agent runs a study of random allocation under either adjacency, after it has compared ε of every trial with its
// trainer's mechanism. Both have the same noise at σ and σ/2: ε of replace-one is between one and three times the other.
func TestAgentOfRandomAllocation(t *testing.T) {
	address, _ := clitest.StartServer(t)
	epsilon := make(map[string]float64)
	for adjacency, sigma := range map[string]string{"add-remove": "2", "replace-one": "1"} {
		path := filepath.Join(t.TempDir(), "study.yaml")
		run := func(line string) string {
			t.Helper()
			stdout, stderr, code := clitest.Invoke(t, "", strings.Fields(line)...)
			if code != 0 {
				t.Fatalf("%s: exit code %d: %s", line, code, stderr)
			}
			return stdout
		}
		run("study init --trials 1 --id " + adjacency + " --file " + path + " --trainer dp-adam --set generated=true --set train_rows=400 " +
			"--set sampling=random-allocation --set adjacency=" + adjacency + " --set epochs=3 --set lot_size=30 --set noise_multiplier=" + sigma)
		run("study create " + path + " --server " + address)
		run("agent --study " + adjacency + " --server " + address)
		found := regexp.MustCompile(`"epsilon":\s*\{[^{}]*"value":\s*([0-9.e-]+)`).FindStringSubmatch(run("trial list " + adjacency + " -o json --server " + address))
		if found == nil {
			t.Fatalf("%s: no epsilon in %s", adjacency, run("trial list "+adjacency+" -o json --server "+address))
		}
		epsilon[adjacency], _ = strconv.ParseFloat(found[1], 64)
	}
	m := privacy.RandomAllocation{Steps: 12, Picks: 1, NoiseMultiplier: 2, Epochs: 3, Neighbours: privacy.AddRemove} // 360 rows
	want, err := privacy.Epsilon(privacy.Exact{}, m, 1, 1e-5)
	if err != nil || epsilon["add-remove"] != want.Epsilon {
		t.Errorf("epsilon %v, want %v: %v", epsilon, want.Epsilon, err)
	}
	if ratio := epsilon["replace-one"] / epsilon["add-remove"]; !(ratio > 1 && ratio < 3) {
		t.Errorf("epsilon %v", epsilon)
	}
}

// A study that is written for a trainer of DP-SGD has features, which the server shows. Models begin without public
// runs on its own dataset.
func TestStudyInitHasFeatures(t *testing.T) {
	address, _ := clitest.StartServer(t)
	for id, c := range map[string]struct{ flags, want string }{
		"sgd":       {"--trainer dp-sgd", "on: learning rate learning_rate, clipping norm clipping_norm"},
		"adam":      {"--trainer dp-adam --set clipping_norm=2", "on: learning rate learning_rate, clipping norm 2.0, normalized gradients"},
		"allocated": {"--trainer dp-adam --set sampling=random-allocation --set clipping_norm=2", "on: learning rate learning_rate, clipping norm 2.0, normalized gradients"},
		"poisson":   {"--trainer dp-sgd --set sampling=poisson --set dataset=mnist --set model=softmax-regression", "on: learning rate learning_rate, clipping norm clipping_norm"},
	} {
		path := filepath.Join(t.TempDir(), "study.yaml")
		line := "study init " + c.flags + " --id " + id + " --file " + path
		if _, stderr, code := clitest.Invoke(t, "", strings.Fields(line)...); code != 0 {
			t.Fatalf("%s: exit code %d: %s", id, code, stderr)
		}
		stdout, stderr, code := clitest.Invoke(t, "", "study", "create", path, "--server", address)
		if code != 0 || !regexp.MustCompile(`(?m)^features +`+regexp.QuoteMeta(c.want)+`$`).MatchString(stdout) {
			t.Errorf("%s: exit code %d: %s\n%s", id, code, stderr, stdout)
		}
		stdout, _, _ = clitest.Invoke(t, "", "study", "get", id, "--server", address, "--output", "json")
		file, err := studyfile.Parse([]byte(stdout))
		require.NoError(t, err)
		features := file.Study.GetSpec().GetAlgorithm().GetDpSgdFeatures()
		without, isPublic := map[string]string{"sgd": "adult", "poisson": "mnist"}[id]
		if features.GetLearningRate() != "learning_rate" || isPublic && !slices.Equal(features.GetWithoutDatasets(), []string{without}) {
			t.Errorf("%s: %v", id, features)
		}
	}
}
