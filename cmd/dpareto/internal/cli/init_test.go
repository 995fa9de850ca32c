package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/studyfile"
)

const initAdult = "study init --trainer dp-sgd --set generated=true --set train_rows=2000"

// A study that is written for a trainer can be created and run as it stands, with
// parameters fixed, too.
func TestStudyInit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "study.yaml")
	line := "study init --trainer sparse-vector --set cutoff=5 --id fixed --trials 3 --file " + path
	if _, stderr, code := invoke(t, "", strings.Fields(line)...); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := studyfile.Parse(content)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(file.Study.GetSpec().GetParameters()); n != 1 {
		t.Errorf("%d parameters, want the noise scale alone", n)
	}
	address, _ := startServer(t)
	for _, command := range []string{
		"study create " + path + " --server " + address,
		"agent --study fixed --server " + address,
	} {
		if _, stderr, code := invoke(t, "", strings.Fields(command)...); code != 0 {
			t.Fatalf("%s: exit code %d: %s", command, code, stderr)
		}
	}
	stdout, stderr, code := invoke(t, "", "trial", "list", "fixed", "--server", address, "--output", "csv")
	if code != 0 || strings.Count(stdout, "succeeded") != 3 {
		t.Errorf("exit code %d: %s\n%s", code, stderr, stdout)
	}
}

func TestStudyInitUsage(t *testing.T) {
	existing := filepath.Join(t.TempDir(), "study.yaml")
	if err := os.WriteFile(existing, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"study init":                          "--trainer is required",
		"study init --trainer nobody":         `trainer "nobody" is unknown, want one of`,
		initAdult + " --trials 0":             "--trials is 0",
		initAdult + " --set bogus=1":          `setting "bogus" of trainer dp-sgd is unknown`,
		initAdult + " --set lot_size=many":    `setting lot_size is "many", want a whole number`,
		initAdult + " --epsilon-reference -1": "--epsilon-reference is -1",
		initAdult + " --file " + existing:     "--force overwrites it",
	} {
		if _, stderr, code := invoke(t, "", strings.Fields(line)...); code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, %s", line, code, stderr)
		}
	}
}

// Every trainer's study is accepted by a server as it is written.
func TestStudyInitOfEveryTrainer(t *testing.T) {
	address, _ := startServer(t)
	for id, line := range map[string]string{
		"sgd":       "dp-sgd --set generated=true",
		"poisson":   "dp-sgd --set generated=true --set sampling=poisson",
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
			if _, stderr, code := invoke(t, "", strings.Fields(command)...); code != 0 {
				t.Errorf("%s: exit code %d: %s", command, code, stderr)
			}
		}
	}
}
