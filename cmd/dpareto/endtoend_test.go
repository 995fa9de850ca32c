package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/studyfile"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/opentest"
)

// succeeded is the log line of an agent for a trial that the server has acknowledged.
var succeeded = regexp.MustCompile(`msg="trial done" trial=(\d+) outcome=succeeded`)

// svtStudy writes a sparse vector study with a number of trials and of runs per trial to
// a file and returns its path.
func svtStudy(t *testing.T, trials, replicates int) string {
	t.Helper()
	content, err := os.ReadFile("studies/svt.yaml")
	require.NoError(t, err)
	text := strings.Replace(string(content), "max_trials: 64", "max_trials: "+strconv.Itoa(trials), 1)
	text = strings.Replace(text, "replicates: 50", "replicates: "+strconv.Itoa(replicates), 1)
	path := filepath.Join(t.TempDir(), "study.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// decodeAll decodes a JSON array of messages.
func decodeAll[M proto.Message](t *testing.T, text string, newMessage func() M) []M {
	t.Helper()
	var elements []json.RawMessage
	if err := json.Unmarshal([]byte(text), &elements); err != nil {
		t.Fatalf("%v in %.200s", err, text)
	}
	out := make([]M, len(elements))
	for i, element := range elements {
		out[i] = newMessage()
		require.NoError(t, studyfile.Decode(element, out[i]))
	}
	return out
}

func newTrial() *dparetov1.Trial { return new(dparetov1.Trial) }

// records decodes CSV and returns its header and the other records.
func records(t *testing.T, text string) (header []string, rows [][]string) {
	t.Helper()
	all, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(all) == 0 {
		t.Fatalf("%d records: %v", len(all), err)
	}
	return all[0], all[1:]
}

func TestEndToEnd(t *testing.T) {
	const trials = 20
	srv := serve(t, filepath.Join(t.TempDir(), "new", "folder", "studies.db"), "127.0.0.1:0")
	at := []string{"--server", srv.address}

	created := must(t, append(at, "study", "create", svtStudy(t, trials, 50))...)
	if !strings.Contains(created, "active") || !strings.Contains(created, "replace-one adjacency") {
		t.Errorf("study create printed\n%s", created)
	}
	if again := must(t, append(at, "study", "create", svtStudy(t, trials, 50))...); again != created {
		t.Errorf("creating the study again printed\n%s", again)
	}
	r := runProgram(t, "", append(at, "study", "create", svtStudy(t, trials+1, 50))...)
	if r.code != command.ExitRefused || !strings.Contains(r.stderr, "AlreadyExists") || !strings.Contains(r.stderr, "budget.max_trials") || strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("another spec: exit code %d\n%s", r.code, r.stderr)
	}

	// A copy from the server's JSON through standard input.
	copied := runProgram(t, must(t, append(at, "study", "get", "svt", "-o", "json")...), append(at, "study", "create", "--id", "copied", "-", "-o", "json")...)
	study := new(dparetov1.Study)
	if err := studyfile.Decode([]byte(copied.stdout), study); err != nil || study.GetName() != "studies/copied" {
		t.Errorf("copy: %v\n%s%s", err, copied.stdout, copied.stderr)
	}
	must(t, append(at, "study", "delete", "copied", "--yes")...)

	r = runProgram(t, "", append(at, "agent", "--study", "svt", "--workers", "2", "--seed", "3")...)
	if r.code != 0 || strings.Count(r.stderr, "outcome=succeeded") != trials || r.stdout != "" {
		t.Fatalf("agent: exit code %d, output %q\n%s", r.code, r.stdout, r.stderr)
	}

	if header, rows := records(t, must(t, append(at, "study", "list", "-o", "csv")...)); len(rows) != 1 || rows[0][0] != "svt" || rows[0][1] != "completed" {
		t.Errorf("study list: %v %v", header, rows)
	}
	if list := decodeAll(t, must(t, append(at, "study", "list", "-o", "json")...), func() *dparetov1.Study { return new(dparetov1.Study) }); len(list) != 1 ||
		list[0].GetTrialCounts().GetSucceeded() != trials {
		t.Errorf("study list: %v", list)
	}

	list := decodeAll(t, must(t, append(at, "trial", "list", "svt", "-o", "json")...), newTrial)
	header, rows := records(t, must(t, append(at, "trial", "list", "svt", "-o", "csv")...))
	table := strings.Split(strings.TrimSpace(must(t, append(at, "trial", "list", "svt")...)), "\n")
	if len(list) != trials || len(rows) != trials || len(table) != trials+1 {
		t.Errorf("trial list: %d, %d and %d entries", len(list), len(rows), len(table)-1)
	}
	for i, trial := range list {
		want := strconv.FormatFloat(trial.GetFinalMeasurement().GetMetrics()["epsilon"].GetValue(), 'g', -1, 64)
		if got := rows[i][indexOf(header, "epsilon")]; got != want {
			t.Errorf("trial %d: epsilon %s, want %s", i+1, got, want)
		}
	}
	checkFronts(t, at)

	if code := srv.signal(syscall.SIGTERM); code != 0 {
		t.Errorf("the server ended with exit code %d", code)
	}
}

func indexOf(header []string, name string) int {
	for i, h := range header {
		if h == name {
			return i
		}
	}
	return -1
}

// checkFronts prints all kinds of fronts of the study svt in all formats.
func checkFronts(t *testing.T, at []string) {
	t.Helper()
	for _, kind := range []string{"posterior", "observed", "best", "worst"} {
		front := new(dparetov1.Front)
		require.NoError(t, studyfile.Decode([]byte(must(t, append(at, "front", "svt", "--kind", kind, "-o", "json")...)), front))
		if got := strings.ToLower(strings.TrimPrefix(front.GetKind().String(), "FRONT_KIND_")); got != kind || len(front.GetPoints()) == 0 {
			t.Errorf("front of kind %s with %d points, want %s", got, len(front.GetPoints()), kind)
		}
		header, rows := records(t, must(t, append(at, "front", "svt", "--kind", kind, "-o", "csv")...))
		if len(rows) != len(front.GetPoints()) || header[0] != "epsilon" {
			t.Errorf("%s: %d rows of %v, want %d", kind, len(rows), header, len(front.GetPoints()))
		}
		text := must(t, append(at, "front", "svt", "--kind", kind)...)
		if !strings.Contains(text, "ε of one run, pure (δ = 0)") || !strings.Contains(text, kind+" front") {
			t.Errorf("front %s printed\n%s", kind, text)
		}
	}
	folder := t.TempDir()
	for _, name := range []string{"front.svg", "front.png"} {
		must(t, append(at, "front", "svt", "--plot", filepath.Join(folder, name))...)
		content, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		if strings.HasSuffix(name, ".png") {
			if _, err := png.Decode(bytes.NewReader(content)); err != nil {
				t.Error(err)
			}
			continue
		}
		decoder := xml.NewDecoder(bytes.NewReader(content))
		for {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		for _, want := range []string{"Sparse vector technique", "posterior front", "anti-ideal (10, 1)", "pure (δ = 0)"} {
			if !bytes.Contains(content, []byte(want)) {
				t.Errorf("no %q in the picture", want)
			}
		}
	}
}

// The server is killed again and again in the middle of a study. Agents go on by
// themselves, nothing that was acknowledged is lost or changed, and the study completes.
func TestServerKilled(t *testing.T) {
	const trials = 60
	storeFile := filepath.Join(t.TempDir(), "studies.db")
	srv := serve(t, storeFile, "127.0.0.1:0")
	must(t, "--server", srv.address, "study", "create", svtStudy(t, trials, 50))
	first := start(t, program(t, "agent", "--server", srv.address, "--study", "svt", "--workers", "2", "--worker-id", "first"), io.Discard)
	second := start(t, program(t, "agent", "--server", srv.address, "--study", "svt", "--workers", "1", "--worker-id", "second"), io.Discard)

	for _, acknowledged := range []int{5, 15, 25} {
		first.await(acknowledged, succeeded)
		before := finished(t, srv.address)
		srv.signal(syscall.SIGKILL)
		srv = serve(t, storeFile, srv.address)
		after := finished(t, srv.address)
		for number, trial := range before {
			if diff := cmp.Diff(trial, after[number], protocmp.Transform()); diff != "" {
				t.Errorf("trial %d after the restart (-want +got):\n%s", number, diff)
			}
		}
	}
	for _, agent := range []*process{first, second} {
		if code := agent.wait(); code != 0 {
			t.Errorf("an agent ended with exit code %d", code)
		}
	}

	final := finished(t, srv.address)
	if len(final) != trials {
		t.Errorf("%d trials finished, want %d", len(final), trials)
	}
	for _, line := range append(first.lines(), second.lines()...) {
		if match := succeeded.FindStringSubmatch(line); match != nil {
			number, err := strconv.ParseInt(match[1], 10, 64)
			require.NoError(t, err)
			if state := final[number].GetState(); state != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED {
				t.Errorf("trial %d was acknowledged and is %v", number, state)
			}
		}
	}
	if study := must(t, "--server", srv.address, "study", "get", "svt"); !strings.Contains(study, "completed: the budget of 60 trials is spent") {
		t.Errorf("the study is\n%s", study)
	}
	srv.signal(syscall.SIGTERM)
	checkStore(t, storeFile)
}

// finished returns the trials of the study svt in a terminal state by number.
func finished(t *testing.T, address string) map[int64]*dparetov1.Trial {
	t.Helper()
	out := make(map[int64]*dparetov1.Trial)
	for _, trial := range decodeAll(t, must(t, "--server", address, "trial", "list", "svt", "-o", "json"), newTrial) {
		if trial.GetEndTime() != nil {
			out[trial.GetNumber()] = trial
		}
	}
	return out
}

// checkStore checks a store that no server has open.
func checkStore(t *testing.T, path string) {
	t.Helper()
	db := opentest.Open(t, path)
	defer db.Close()
	s, err := store.New(t.Context(), db)
	require.NoError(t, err)
	for _, fault := range s.Check(t.Context()) {
		t.Error(fault)
	}
}

// An agent that is asked to stop gives back the trials that it is training, and one that
// is started again in its place finishes the study without waiting for leases.
func TestAgentStops(t *testing.T) {
	const trials = 12
	srv := serve(t, filepath.Join(t.TempDir(), "studies.db"), "127.0.0.1:0")
	must(t, "--server", srv.address, "study", "create", svtStudy(t, trials, 10_000))
	agent := start(t, program(t, "agent", "--server", srv.address, "--study", "svt", "--workers", "3", "--log-level", "debug"), io.Discard)
	agent.await(4, regexp.MustCompile(`msg="trial started"`))
	if code := agent.signal(syscall.SIGTERM); code != 0 {
		t.Errorf("the agent ended with exit code %d", code)
	}
	for _, trial := range decodeAll(t, must(t, "--server", srv.address, "trial", "list", "svt", "-o", "json"), newTrial) {
		if trial.GetLease() != nil {
			t.Errorf("%s is still with %s", trial.GetName(), trial.GetLease().GetWorkerId())
		}
	}
	again := runProgram(t, "", "--server", srv.address, "agent", "--study", "svt", "--workers", "3")
	if got := len(finished(t, srv.address)); again.code != 0 || got != trials {
		t.Errorf("%d trials finished, want %d\n%s", got, trials, again.stderr)
	}
}

// A store belongs to one server at a time.
func TestStoreInUse(t *testing.T) {
	opentest.OnBolt(t)
	storeFile := filepath.Join(t.TempDir(), "studies.db")
	serve(t, storeFile, "127.0.0.1:0")
	r := runProgram(t, "", "serve", "--store", opentest.Name(t, storeFile), "--listen", "127.0.0.1:0")
	if r.code != 1 || !strings.Contains(r.stderr, "is another server running?") {
		t.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
}

// A study with random stopping is created from a file, run to its end by an agent that knows
// nothing of it, and shows its best trial and nothing else.
func TestRandomStopping(t *testing.T) {
	srv := serve(t, filepath.Join(t.TempDir(), "studies.db"), "127.0.0.1:0")
	at := []string{"--server", srv.address}
	content, err := os.ReadFile("studies/svt.yaml")
	require.NoError(t, err)
	text := strings.Replace(string(content), "budget: {max_trials: 64}",
		"algorithm: {name: RANDOM}\n  random_stopping: {mean_trials: 4, eta: 1, metric: error, delta: 1e-6}\n  train_ledger: ledgers/queries", 1)
	text += "\nledgers: [{name: ledgers/queries, records: 1000, epsilon: 100, delta: 1e-5, adjacency: REPLACE_ONE}]\n"
	text = strings.NewReplacer("min: 1e-2, max: 1e2", "min: 20, max: 100", "replicates: 50", "replicates: 1").Replace(text)
	path := filepath.Join(t.TempDir(), "study.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	created := must(t, append(at, "study", "create", path)...)
	for _, want := range []string{"a secret number of trials, 4 on average", "for the training records", "δ = 1e-6", "provided that", "not covered"} {
		if !strings.Contains(created, want) {
			t.Errorf("study create printed no %q:\n%s", want, created)
		}
	}
	release := []string{"--server", srv.address, "release", "best", "svt", "--metric", "error", "-o", "json"}
	if r := runProgram(t, "", release...); r.code == 0 || !strings.Contains(r.stderr, "is not completed") {
		t.Errorf("released before the end: exit code %d\n%s", r.code, r.stderr)
	}
	if r := runProgram(t, "", append(at, "agent", "--study", "svt")...); r.code != 0 || strings.Count(r.stderr, "outcome=succeeded") < 1 {
		t.Fatalf("agent: exit code %d\n%s", r.code, r.stderr)
	}
	if got := must(t, append(at, "study", "list")...); !strings.Contains(got, "completed") {
		t.Errorf("study list printed\n%s", got)
	}
	first := must(t, release...)
	if again := must(t, release...); !strings.Contains(first, `"noise_scale"`) || published(again) != published(first) {
		t.Errorf("released\n%s\nand then\n%s", first, again)
	}
	for _, refused := range [][]string{{"front", "svt"}, {"trial", "list", "svt"}, {"privacy", "ledger", "svt"}, {"recommend", "svt", "--epsilon", "1"}} {
		if r := runProgram(t, "", append(at, refused...)...); r.code == 0 || !strings.Contains(r.stderr, "shows only its best trial") {
			t.Errorf("%v: exit code %d\n%s%s", refused, r.code, r.stdout, r.stderr)
		}
	}
}

// published returns the points of a release in JSON, without its name and time.
func published(release string) string {
	_, rest, _ := strings.Cut(release, `"points"`)
	points, _, _ := strings.Cut(rest, `"create_time"`)
	return points
}
