package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
)

// demoOutput is what the last line of demo --output json holds, at least.
type demoOutput struct {
	Study               string      `json:"study"`
	Trials              int         `json:"trials"`
	Hypervolume         float64     `json:"hypervolume"`
	ObservedHypervolume float64     `json:"observed_hypervolume"`
	ExactHypervolume    *float64    `json:"exact_hypervolume"`
	Front               []demoPoint `json:"front"`
	Generated           bool        `json:"generated"`
	Seed                uint64      `json:"seed"`
	Plot                string      `json:"plot"`
	PageURL             string      `json:"page_url"`
}

// demoPoint is a point of its front.
type demoPoint struct {
	Trial      string             `json:"trial"`
	Parameters map[string]any     `json:"parameters"`
	Values     map[string]float64 `json:"values"`
	Epsilon    float64            `json:"epsilon"`
	Error      float64            `json:"error"`
	TrueError  *float64           `json:"true_error"`
}

// demo runs a demo and returns what it printed as JSON. Nothing may be left behind.
func demo(t *testing.T, args ...string) (demoOutput, result) {
	t.Helper()
	temporary := t.TempDir()
	cmd := program(t, append([]string{"demo", "--output", "json"}, args...)...)
	cmd.Env = append(cmd.Env, "TMPDIR="+temporary)
	r := finish(t, cmd, "")
	if r.code != 0 {
		t.Fatalf("exit code %d\n%s", r.code, r.stderr)
	}
	if strings.Count(r.stdout, "\n") != 1 || !strings.HasSuffix(r.stdout, "\n") {
		t.Errorf("output is not one line: %q", r.stdout)
	}
	var out demoOutput
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &out))
	checkEmpty(t, temporary)
	picture, err := os.ReadFile(filepath.Join(cmd.Dir, out.Plot))
	if err != nil || !strings.Contains(string(picture), "</svg>") {
		t.Errorf("picture %s: %v", out.Plot, err)
	}
	return out, r
}

// checkEmpty fails if anything is in a folder.
func checkEmpty(t *testing.T, folder string) {
	t.Helper()
	left, err := os.ReadDir(folder)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind in %s: %v %v", folder, left, err)
	}
}

func TestDemoSparseVector(t *testing.T) {
	out, r := demo(t, "--study", "svt", "--trials", "12", "--seed", "5")
	if out.PageURL != "" {
		t.Errorf("the page at %s is gone", out.PageURL)
	}
	if out.Study != "svt" || out.Trials != 12 || out.Seed != 5 || out.Generated || len(out.Front) == 0 {
		t.Errorf("demo printed %s", r.stdout)
	}
	// The exact front of the technique, within (10, 1): Avent et al. (2020), Figure 1.
	if out.ExactHypervolume == nil || *out.ExactHypervolume < 1.53 || *out.ExactHypervolume > 1.55 {
		t.Errorf("exact hypervolume %v, want about 1.54", out.ExactHypervolume)
	} else if !(out.Hypervolume > 1 && out.Hypervolume < *out.ExactHypervolume+0.006) {
		t.Errorf("true hypervolume %g of an exact one of %g", out.Hypervolume, *out.ExactHypervolume)
	}
	for i, p := range out.Front {
		if p.TrueError == nil || p.Epsilon != p.Values["epsilon"] || p.Error != p.Values["error"] ||
			!strings.HasPrefix(p.Trial, "studies/svt/trials/") || p.Parameters["cutoff"] == nil {
			t.Errorf("point %d: %+v", i, p)
		}
		if i > 0 && p.Epsilon < out.Front[i-1].Epsilon {
			t.Errorf("point %d has ε = %g after %g", i, p.Epsilon, out.Front[i-1].Epsilon)
		}
	}
	if !strings.Contains(r.stderr, "12 of 12 trials") {
		t.Errorf("no progress in\n%s", r.stderr)
	}
}

// Without a network the demo says so in one line and runs on generated data, which every
// output names.
func TestDemoGenerated(t *testing.T) {
	out, r := demo(t, "--study", "adult", "--trials", "3")
	if !out.Generated || out.Study != "adult-generated" || out.Trials != 3 || out.ExactHypervolume != nil {
		t.Errorf("demo printed %s", r.stdout)
	}
	lines := strings.Split(r.stderr, "\n")
	if !strings.HasPrefix(lines[0], "Adult is not available") || !strings.Contains(lines[0], "generated data") {
		t.Errorf("first line %q", lines[0])
	}
	if !strings.HasPrefix(lines[1], "see it live: http://127.0.0.1:") || !strings.HasSuffix(lines[1], "/studies/adult-generated") {
		t.Errorf("second line %q", lines[1])
	}
	if !strings.Contains(lines[2], "(generated data): 1 of 3 trials") && !strings.Contains(r.stderr, "(generated data): 3 of 3 trials") {
		t.Errorf("progress without a label:\n%s", r.stderr)
	}

	cmd := program(t, "demo", "--study", "adult", "--trials", "3")
	text := finish(t, cmd, "")
	for _, want := range []string{"(generated data): posterior front", "90 % interval", "hypervolume of the observed front", "picture: dpareto-demo-adult.svg"} {
		if !strings.Contains(text.stdout, want) {
			t.Errorf("no %q in\n%s", want, text.stdout)
		}
	}
	picture, err := os.ReadFile(filepath.Join(cmd.Dir, "dpareto-demo-adult.svg"))
	if err != nil || !strings.Contains(string(picture), "(generated data)") {
		t.Errorf("the picture does not say that its data are generated: %v", err)
	}
}

// What the environment sets for real servers and agents neither stops a demo nor gets to
// see it.
func TestDemoWithSettingsOfAServer(t *testing.T) {
	folder := t.TempDir()
	auth := filepath.Join(folder, "auth.yaml")
	must(t, "token", "create", "--name", "ann", "--role", "admin", "--auth-file", auth)
	cmd := program(t, "demo", "--study", "svt", "--trials", "3")
	cmd.Env = append(cmd.Env,
		"DPARETO_AUTH_FILE="+auth, "DPARETO_AUDIT_FILE="+filepath.Join(folder, "audit.jsonl"), "DPARETO_CONFIG="+filepath.Join(folder, "server.yaml"),
		"DPARETO_HTTP_LISTEN=192.0.2.1:1", "DPARETO_MAX_STUDIES=-1", "DPARETO_TLS=true", "DPARETO_TOKEN=not one", "DPARETO_TOKEN_FILE="+auth)
	if r := finish(t, cmd, ""); r.code != 0 {
		t.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
	if _, err := os.Stat(filepath.Join(folder, "audit.jsonl")); !os.IsNotExist(err) {
		t.Errorf("the audit log of the server: %v", err)
	}
}

// A demo told to serve shows its result, and goes on until Ctrl-C, which ends it well.
func TestDemoServes(t *testing.T) {
	temporary := t.TempDir()
	cmd := program(t, "demo", "--study", "svt", "--trials", "3", "--serve", "--output", "json")
	cmd.Env = append(cmd.Env, "TMPDIR="+temporary)
	reader, writer := io.Pipe()
	defer reader.Close()
	p := start(t, cmd, writer)
	var out demoOutput
	require.NoError(t, json.NewDecoder(reader).Decode(&out))
	p.await(1, regexp.MustCompile("^see it live: "+regexp.QuoteMeta(out.PageURL)+"$"))
	p.await(1, regexp.MustCompile("until Ctrl-C: "+regexp.QuoteMeta(out.PageURL)+"$"))
	server, ok := strings.CutSuffix(out.PageURL, "/studies/svt")
	if !ok {
		t.Fatalf("page %q", out.PageURL)
	}
	resp, err := http.Get(server + "/v1/studies/svt")
	require.NoError(t, err)
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("HTTP status %d", resp.StatusCode)
	}
	go io.Copy(io.Discard, reader) // what the decoder has left
	if code := p.signal(os.Interrupt); code != 0 {
		t.Errorf("exit code %d", code)
	}
	checkEmpty(t, temporary)
}

// longDemo starts a demo that goes on for a while and waits until trials have run.
func longDemo(t *testing.T, temporary string) *process {
	t.Helper()
	cmd := program(t, "demo", "--study", "svt", "--trials", "500")
	cmd.Env = append(cmd.Env, "TMPDIR="+temporary)
	// A terminal's Ctrl-C goes to a whole group.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p := start(t, cmd, io.Discard)
	p.await(1, regexp.MustCompile(`of 500 trials`))
	awaitPrograms(t, "parent, server and two agents do not run", func(n int) bool { return n == 4 })
	return p
}

// Ctrl-C stops everything cleanly.
func TestDemoInterrupted(t *testing.T) {
	runningPrograms(t) // or skip
	temporary := t.TempDir()
	p := longDemo(t, temporary)
	require.NoError(t, syscall.Kill(-p.cmd.Process.Pid, syscall.SIGINT))
	if code := p.wait(); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	if n := len(runningPrograms(t)); n > 0 {
		t.Errorf("%d processes are left", n)
	}
	checkEmpty(t, temporary)
	for _, line := range p.lines() {
		if regexp.MustCompile(`level=(WARN|ERROR)|panic|dpareto:`).MatchString(line) {
			t.Errorf("logged %q", line)
		}
	}
}

// Children do not outlive a parent that was killed.
func TestDemoKilled(t *testing.T) {
	runningPrograms(t) // or skip
	p := longDemo(t, t.TempDir())
	p.signal(syscall.SIGKILL)
	p.await(1, regexp.MustCompile(`of 500 trials`))
	awaitPrograms(t, "children outlive their parent", func(n int) bool { return n == 0 })
}
