package study_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/internal/require"
)

const changingStudy = `
study_id: s
description: first
labels: {team: a}
spec:
  parameters: [{id: x, double_domain: {min: 0, max: 1}, scale: LINEAR}]
  metrics: [{id: e, role: OBJECTIVE, goal: MINIMIZE, transform: IDENTITY, reference_value: 10, reported: {}}]
  algorithm: {name: RANDOM}
  budget: {max_trials: 10}
`

// changes runs commands against a server with one study.
type changes struct {
	t       *testing.T
	address string
}

func startChanges(t *testing.T) *changes {
	t.Helper()
	address, _ := clitest.StartServer(t, "--listen", "127.0.0.1:0")
	c := &changes{t, address}
	c.run(changingStudy, "study", "create", "-")
	c.run("x,e\n0.1,5\n0.2,3\n0.3,4\n", "trial", "import", "s", "-")
	return c
}

// run runs a command that must succeed.
func (c *changes) run(stdin string, args ...string) string {
	c.t.Helper()
	stdout, stderr, code := clitest.Invoke(c.t, stdin, append(args, "--server", c.address)...)
	if code != command.ExitOK {
		c.t.Fatalf("dpareto %q: exit code %d, error %q", args, code, stderr)
	}
	return stdout
}

// refuse runs a command that must fail.
func (c *changes) refuse(code int, want string, args ...string) {
	c.t.Helper()
	stdout, stderr, got := clitest.Invoke(c.t, "", append(args, "--server", c.address)...)
	if got != code || stdout != "" || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
		c.t.Errorf("dpareto %q: exit code %d, output %q, error %q, want %q", args, got, stdout, stderr, want)
	}
}

// fields returns the value of a JSON field in each of the objects of an array.
func (c *changes) fields(encoded, field string) (values []string) {
	c.t.Helper()
	var objects []map[string]any
	require.NoError(c.t, json.Unmarshal([]byte(encoded), &objects))
	for _, o := range objects {
		values = append(values, fmt.Sprint(o[field]))
	}
	return values
}

func TestUpdateStudy(t *testing.T) {
	c := startChanges(t)
	shown := func(want, without string, args ...string) {
		t.Helper()
		out := strings.Join(strings.Fields(c.run("", args...)), " ")
		if !strings.Contains(out, want) || without != "" && strings.Contains(out, without) {
			t.Errorf("dpareto %q shows %s", args, out)
		}
	}
	shown("budget 20", "", "study", "update", "s", "--set", "spec.budget.max_trials=20", "--set", "display_name=The study", "--label", "owner=me,site=x")
	shown("labels owner=me, site=x, team=a", "", "study", "get", "s")
	shown("name The study", "", "study", "get", "s")
	shown("labels site=x state", "", "study", "update", "s", "--unlabel", "team,owner")
	shown("description first", "budget", "study", "update", "s", "--set", "spec.budget.max_trials=")
	shown("parameter x: from 0 to 2", "", "study", "update", "s", "--set", "spec.parameters=[{id: x, double_domain: {min: 0, max: 2}, scale: LINEAR}]")

	// A file says it all, and what it does not say is gone.
	file := strings.Replace(changingStudy, "max: 1}", "max: 3}", 1)
	out := c.run(strings.Replace(file, "description: first\n", "", 1), "study", "update", "s", "-")
	if strings.Contains(out, "first") || !strings.Contains(out, "from 0 to 3") || !strings.Contains(out, "team=a") {
		t.Errorf("after the file: %s", out)
	}

	c.refuse(command.ExitUsage, "spec.parameters[0].double_domain.max", "study", "update", "s", "--set", "spec.parameters=[{id: x, double_domain: {min: 0, max: 1}, scale: LINEAR}]")
	c.refuse(command.ExitUsage, "algorithm", "study", "update", "s", "--set", "spec.algorithm.name=GRID")
	c.refuse(command.ExitUsage, "update_mask", "study", "update", "s", "--set", "seed=5")
	c.refuse(command.ExitNotFound, "NotFound", "study", "update", "none", "--set", "description=x")
	c.refuse(command.ExitUsage, "unknown field", "study", "update", "s", "--set", "spec.budged.max_trials=1")
	c.refuse(command.ExitUsage, "must be FIELD=VALUE", "study", "update", "s", "--set", "description")
	c.refuse(command.ExitUsage, "nothing to change", "study", "update", "s")
	c.refuse(command.ExitUsage, "--set description: is given twice", "study", "update", "s", "--set", "description=x", "--set", "description=y")
	c.refuse(command.ExitUsage, "not both", "study", "update", "s", "-", "--set", "description=x")

	c.run("", "study", "pause", "s")
	shown("state paused", "", "study", "get", "s")
	c.run("", "study", "resume", "s")
	shown("state active", "", "study", "get", "s")
	c.run(strings.Replace(changingStudy, "study_id: s", "study_id: other", 1), "study", "create", "-")
	if names := c.fields(c.run("", "study", "list", "--filter", "labels.team = a AND state = ACTIVE", "--order-by", "name desc", "--output", "json"), "name"); !cmp.Equal(names, []string{"studies/s", "studies/other"}) {
		t.Errorf("studies %v", names)
	}
	if names := c.fields(c.run("", "study", "list", "--filter", "trial_counts.succeeded > 2", "--output", "json"), "name"); !cmp.Equal(names, []string{"studies/s"}) {
		t.Errorf("studies %v", names)
	}
	c.refuse(command.ExitUsage, "filter", "study", "list", "--filter", "colour = red")
}

func TestUpdateTrial(t *testing.T) {
	c := startChanges(t)
	if numbers := c.fields(c.run("", "trial", "list", "s", "--filter", "metrics.e < 5", "--order-by", "metrics.e desc", "--output", "json"), "number"); !cmp.Equal(numbers, []string{"3", "2"}) {
		t.Errorf("trials %v", numbers)
	}
	var before struct {
		Revision int64 `json:"revision"`
	}
	require.NoError(t, json.Unmarshal([]byte(c.run("", "trial", "list", "s", "--after-revision", "0", "--output", "json")), &before))
	out := c.run("", "trial", "update", "s", "2", "--note", "odd one", "--label", "gpu=a")
	if !strings.Contains(out, "odd one") || !strings.Contains(out, "gpu=a") {
		t.Errorf("updated: %s", out)
	}
	if out := c.run("", "trial", "update", "s", "2", "--unlabel", "gpu"); strings.Contains(out, "gpu") || !strings.Contains(out, "odd one") {
		t.Errorf("updated: %s", out)
	}
	c.run("", "trial", "delete", "s", "1", "--yes")
	lines := strings.Split(c.run("", "trial", "list", "s", "--after-revision", strconv.FormatInt(before.Revision, 10), "--output", "csv"), "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[1], "2,succeeded,") || !strings.Contains(lines[1], "odd one") || !strings.HasPrefix(lines[2], "1,deleted,") {
		t.Errorf("changes %q", lines)
	}
	c.refuse(command.ExitUsage, "OutOfRange", "trial", "list", "s", "--after-revision", "1000")
	c.refuse(command.ExitUsage, "--order-by", "trial", "list", "s", "--after-revision", "1", "--order-by", "number")
	c.refuse(command.ExitUsage, "nothing to change", "trial", "update", "s", "2")
	c.refuse(command.ExitUsage, "must be its number", "trial", "delete", "s", "first")
	c.refuse(command.ExitNotFound, "NotFound", "trial", "update", "s", "1", "--note", "x")
	c.refuse(command.ExitRefused, "already", "trial", "stop", "s", "2", "--reason", "enough")
}

// watchStudy runs a watch, and returns a function that reads a line of it and one that
// waits for its end.
func (c *changes) watchStudy(args ...string) (line func() string, end func() (stderr string, code int)) {
	p := clitest.Start(c.t, append([]string{"study", "watch", "s", "--server", c.address}, args...)...)
	line = func() string {
		c.t.Helper()
		text, err := p.Stdout.ReadString('\n')
		require.NoError(c.t, err)
		return strings.TrimSpace(text)
	}
	return line, p.Wait
}

func TestWatchStudy(t *testing.T) {
	c := startChanges(t)
	line, end := c.watchStudy()
	for _, want := range []string{"revision 1  study s active  budget 10", "revision 2  trial 1 succeeded  e 5.000", "revision 3  trial 2 succeeded  e 3.000", "revision 4  trial 3 succeeded  e 4.000"} {
		if got := line(); !strings.HasSuffix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	objects, _ := c.watchStudy("--after-revision", "4", "--output", "json")
	c.run("", "trial", "delete", "s", "2", "--yes")
	if got := line(); !strings.HasSuffix(got, "revision 5  trial 2 deleted") {
		t.Errorf("%q", got)
	}
	var change struct {
		Revision int64  `json:"revision"`
		Deleted  string `json:"deleted_trial"`
	}
	if text := objects(); json.Unmarshal([]byte(text), &change) != nil || change.Revision != 5 || change.Deleted != "studies/s/trials/2" {
		t.Errorf("object %s", text)
	}
	c.run("", "study", "delete", "s", "--yes")
	if stderr, code := end(); code != command.ExitNotFound || !strings.Contains(stderr, "NotFound") {
		t.Errorf("exit code %d, error %q", code, stderr)
	}
	c.refuse(command.ExitUsage, "table, json", "study", "watch", "s", "--output", "csv")
	c.refuse(command.ExitNotFound, "NotFound", "study", "watch", "s")
}

// Values of --set keep their text, like values in a file.
func TestSettingsAreKept(t *testing.T) {
	c := startChanges(t)
	out := c.run("", "study", "update", "s", "--set", "description=3.10", "--set", "labels={py: 007}", "--output", "json")
	var study struct {
		Description string            `json:"description"`
		Labels      map[string]string `json:"labels"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &study))
	if study.Description != "3.10" || study.Labels["py"] != "007" {
		t.Errorf("study %+v", study)
	}
}
