package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset/datasettest"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/surface/surfacetest"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/command/commandtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// invoke runs the program in this process.
func invoke(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return invokeWith(t, strings.NewReader(""), args...)
}

func invokeWith(t *testing.T, stdin io.Reader, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, log bytes.Buffer
	code = command.Main(t.Context(), args, stdin, &out, &log, New)
	return out.String(), log.String(), code
}

// interrupt runs the program, and interrupts it where it prints a text to standard error.
func interrupt(t *testing.T, at string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out bytes.Buffer
	log := &trigger{text: at, do: cancel}
	code = command.Main(ctx, args, strings.NewReader(""), &out, log, New)
	return out.String(), log.String(), code
}

// trigger is a buffer that does something when it has a text.
type trigger struct {
	bytes.Buffer

	text string
	do   func()
}

// Write implements io.Writer.
func (b *trigger) Write(p []byte) (int, error) {
	n, err := b.Buffer.Write(p)
	if strings.Contains(b.String(), b.text) {
		b.do()
	}
	return n, err
}

// A command that is interrupted says so by its exit code, prints no table, and says how to go on.
func TestInterrupted(t *testing.T) {
	data := datasettest.Folder(t, "adult")
	store, results := filepath.Join(t.TempDir(), "a store.db"), filepath.Join(t.TempDir(), "results.jsonl")
	surfaces := []string{"bench", "dp", "--surface", surfacetest.Name, "--tables", surfacetest.Write(t, 60), "--designer", "random,quasi_random", "--budget", "4", "--seeds", "4"}
	fast := []string{"reproduce", "fast-estimation", "--dataset", "adult", "--rows", "200", "--draws", "3", "--data-dir", data}
	for _, tt := range []struct {
		at   string
		args []string
		want string
	}{
		{"fast-estimation: ", fast, strings.Join(fast, " ")},
		{"propose-test: ", []string{"reproduce", "propose-test", "--runs", "2"}, "begins again:\n  dpareto-lab reproduce propose-test --runs 2"},
		{"dp-bayesian-optimization: ", []string{"reproduce", "dp-bayesian-optimization", "--generated", "--linear", "--side", "4", "--train-rows", "200", "--sizes", "100", "--pairs", "2", "--records", "100"}, "nothing was kept"},
		{"dpareto: ", []string{"reproduce", "dpareto", "fig2", "table1"}, "\n  dpareto-lab reproduce dpareto fig2 table1 --store dpareto.db"},
		{"dpareto: ", []string{"reproduce", "dpareto", "fig2", "table1", "--store", store}, "goes on:\n  dpareto-lab reproduce dpareto fig2 table1 --store '" + store + "'"},
		{"dpareto: ", []string{"reproduce", "dpareto", "fig4"}, "begins again"},
		{"1 of 8 studies", surfaces, "--results results.jsonl"},
		{"zdt1: ", []string{"bench", "engine", "--problem", "zdt1", "--designer", "random", "--budget", "50", "--seeds", "20"}, "begins again"},
		{"1 of 8 studies", append(surfaces, "--results", results), "keeps what is done, and this goes on:\n  dpareto-lab bench dp"},
	} {
		stdout, stderr, code := interrupt(t, tt.at, tt.args...)
		if code != command.ExitInterrupted || stdout != "" || !strings.Contains(stderr, "interrupted; no table is printed") || !strings.Contains(stderr, tt.want) {
			t.Errorf("%q: exit code %d, printed %q: %s", tt.args, code, stdout, stderr)
		}
	}
	if done, err := os.ReadFile(results); err != nil || len(done) == 0 {
		t.Errorf("%s: %v", results, err)
	}
}

// Figures that are done when the rest is interrupted are there.
func TestFiguresSurviveAnInterruption(t *testing.T) {
	folder := t.TempDir()
	run := []string{"reproduce", "dpareto", "fig2", "fig4", "--quick", "--plot", folder}
	if _, stderr, code := interrupt(t, "figure2.svg", run...); code != command.ExitInterrupted {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if svg, err := os.ReadFile(filepath.Join(folder, "dpareto", "figure2.svg")); err != nil || len(svg) == 0 {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "dpareto", "figure4.svg")); err == nil {
		t.Error("figure 4 is drawn, though its search was interrupted")
	}
}

func TestReadmeListsCommands(t *testing.T) {
	root := command.Root(new(command.Env), New)
	commandtest.CheckTable(t, filepath.Join("..", "..", "..", "..", "docs", "reference", "command-line.md"), root)
}
