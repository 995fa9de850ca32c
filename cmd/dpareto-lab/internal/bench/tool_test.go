package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/problems"
	"github.com/dpareto/dpareto/suggest/space"
)

// toolVariable holds the file in which this program, as a tool, writes what it was told.
const toolVariable = "DPARETO_TEST_TOOL"

// As a tool this program suggests the middle of the space, moved a little with every suggestion; or what
// its argument says.
func TestMain(m *testing.M) {
	if heard := os.Getenv(toolVariable); heard != "" {
		if err := beTool(heard, os.Args[len(os.Args)-1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func beTool(heard, behaviour string) error {
	out, err := os.Create(heard)
	if err != nil {
		return err
	}
	defer out.Close()
	var first toolStart
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for n := 0; lines.Scan(); n++ {
		if _, err := fmt.Fprintln(out, lines.Text()); err != nil {
			return err
		}
		switch {
		case n == 0 && behaviour == "refuse":
			fmt.Fprintln(os.Stdout, `{"error": "not for me"}`)
			continue
		case n == 0:
			if err := json.Unmarshal(lines.Bytes(), &first); err != nil {
				return err
			}
			fmt.Fprintln(os.Stdout, `{}`)
			continue
		case behaviour == "end":
			return nil
		case behaviour == "flood":
			for {
				if _, err := fmt.Fprintln(os.Stdout, "y"); err != nil {
					return err
				}
			}
		case behaviour == "long":
			fmt.Fprintln(os.Stdout, strings.Repeat("y", 2*longestAnswer))
			continue
		case behaviour == "babble":
			fmt.Fprintln(os.Stdout, "warning: babble")
			continue
		case behaviour == "outside":
			fmt.Fprintln(os.Stdout, `{"configuration": {"x0": 7, "x1": 0.5}}`)
			continue
		case behaviour == "little":
			fmt.Fprintln(os.Stdout, `{"configuration": {"x0": 0.5}}`)
			continue
		case behaviour == "backwards":
			fmt.Fprintln(os.Stdout, `{"configuration": {"x0": 0.5, "x1": 0.5}, "seconds": -1}`)
			continue
		}
		answer := toolAnswer{Configuration: make(map[string]float64), Seconds: 0.25}
		for _, p := range first.Problem.Parameters {
			v := p.Min + (p.Max-p.Min)/float64(n+1)
			if p.Integer {
				v = math.Round(v)
			}
			answer.Configuration[p.Name] = v
		}
		line, err := json.Marshal(answer)
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stdout, string(line))
	}
	switch behaviour {
	case "fails at the end":
		return errors.New("end of input")
	case "stays":
		interrupted := make(chan os.Signal, 1)
		signal.Notify(interrupted, os.Interrupt)
		<-interrupted
	}
	return lines.Err()
}

// testTool returns this program as a tool that behaves as told, and what it was told, line by line.
func testTool(t *testing.T, behaviour string) (tool Tool, heard func() []map[string]any) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "heard")
	t.Setenv(toolVariable, path)
	self, err := os.Executable()
	require.NoError(t, err)
	return Tool{"mine", []string{self, behaviour}}, func() []map[string]any {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		var all []map[string]any
		for line := range strings.Lines(string(content)) {
			var one map[string]any
			require.NoError(t, json.Unmarshal([]byte(line), &one))
			all = append(all, one)
		}
		return all
	}
}

// engineTool runs a tool on a test problem.
func engineTool(t *testing.T, problem string, tool Tool, budget, batch int) (*Result, error) {
	t.Helper()
	p, ok := problems.ByName(problem)
	if !ok {
		t.Fatalf("no problem %s", problem)
	}
	return Run(t.Context(), synthetic(p), Options{Designers: []string{tool.Name}, Tools: []Tool{tool}, Seeds: 1, Budget: budget, Initial: 2, Batch: batch})
}

func TestToolOnProblem(t *testing.T) {
	tool, heard := testTool(t, "")
	result, err := engineTool(t, "constr", tool, 5, 2)
	require.NoError(t, err)
	lines := heard()
	p, _ := problems.ByName("constr")
	described := lines[0]["problem"].(map[string]any)
	want := map[string]any{"name": "f1", "maximize": false, "reference": p.Objectives[0].Reference, "logarithmic": false}
	if diff := cmp.Diff(want, described["objectives"].([]any)[0]); diff != "" {
		t.Errorf("objective (-want +got):\n%s", diff)
	}
	constraints := described["constraints"].([]any)
	if c := constraints[0].(map[string]any); len(constraints) != len(p.Constraints) || c["lower"] != 0.0 || c["upper"] != nil {
		t.Errorf("constraints %v", constraints)
	}
	// It is told the initial points at once, nothing of what is pending, and then its own.
	var told []int
	for _, line := range lines[1:] {
		told = append(told, len(line["results"].([]any)))
	}
	if !slices.Equal(told, []int{2, 0, 2}) {
		t.Errorf("told %v results", told)
	}
	own := lines[3]["results"].([]any)[0].(map[string]any)
	middle := space.Point{}
	for _, q := range p.Space.Parameters {
		middle = append(middle, (q.Min+q.Max)/2)
	}
	configuration, values := own["configuration"].(map[string]any), own["values"].(map[string]any)
	if got, exact := configuration["x0"], p.Evaluate(middle); got != middle[0] || values["f2"] != exact[1] || values[p.Constraints[0].Name] != exact[2] {
		t.Errorf("of the first suggestion it is told %v, want %v, %v", own, middle, exact)
	}
	if s := result.designers[0].seeds[0].scores[0]; s.processor != 0.25 || !(s.observed > 0) {
		t.Errorf("score %+v", s)
	}
}

func TestToolFails(t *testing.T) {
	for behaviour, want := range map[string]string{
		"refuse": "not for me", "end": "ended without an answer", "babble": `"warning: babble"`, "outside": "x0", "little": "x1 is missing",
		"flood": `"y"`, "long": "token too long", "backwards": "seconds must be in [0, 1e+06], is -1",
	} {
		tool, _ := testTool(t, behaviour)
		if _, err := engineTool(t, "zdt1", tool, 3, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", behaviour, err, want)
		}
	}
	for _, behaviour := range []string{"fails at the end", "stays"} {
		tool, _ := testTool(t, behaviour)
		if _, err := engineTool(t, "zdt1", tool, 3, 1); err != nil {
			t.Errorf("a finished study of a tool that %s: %v", behaviour, err)
		}
	}
	tool := Tool{"mine", []string{filepath.Join(t.TempDir(), "none")}}
	if _, err := engineTool(t, "zdt1", tool, 3, 1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that does not exist: %v", err)
	}
	tool, _ = testTool(t, "")
	if _, err := Run(t.Context(), counting(), Options{Designers: []string{"mine"}, Tools: []Tool{tool}, Seeds: 1, Budget: 3, InferReference: true}); err == nil || !strings.Contains(err.Error(), "--infer-reference") {
		t.Errorf("with inferred references: %v", err)
	}
	for _, p := range []*suggest.Problem{
		{Space: new(space.Space), Checkpoint: "epochs"},
		{Space: &space.Space{Parameters: []space.Parameter{{Name: "c", Kind: space.Categorical, Choices: []string{"a", "b"}}}}},
	} {
		if _, err := describe(p); err == nil {
			t.Errorf("described %+v", p)
		}
	}
}

// A comparison that is cancelled ends though the tool's answer does not come, and another process holds its output.
func TestToolIsCancelled(t *testing.T) {
	p, _ := problems.ByName("zdt1")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	time.AfterFunc(100*time.Millisecond, cancel)
	tool := Tool{"mine", []string{"sh", "-c", "sleep 5 2> /dev/null & wait"}}
	_, err := Run(ctx, synthetic(p), Options{Designers: []string{"mine"}, Tools: []Tool{tool}, Seeds: 1, Budget: 3, Initial: 2})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestToolNames(t *testing.T) {
	tools := []Tool{{"mine", []string{"x"}}, {"mine", []string{"y"}}}
	p, _ := problems.ByName("zdt1")
	o := Options{Designers: []string{"random", "mine", "mine"}, Tools: tools, Seeds: 1, Budget: 3}
	c := compareOptions("random")
	c.Tools = tools
	for _, err := range []error{o.Validate(synthetic(p)), c.Validate()} {
		if err == nil || !strings.Contains(err.Error(), "must not name mine twice") {
			t.Errorf("two tools of one name: %v", err)
		}
	}
}

func TestParseTool(t *testing.T) {
	got, err := ParseTool("ax=python  peers.py ax=1")
	if diff := cmp.Diff(Tool{"ax", []string{"python", "peers.py", "ax=1"}}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, text := range []string{"", "ax", "ax=", "=python", "default=python", "default_raw=python"} {
		if _, err := ParseTool(text); err == nil {
			t.Errorf("%q is a tool", text)
		}
	}
}

// A tool has the shared initial points and the record of a designer, is shown the ends of runs, and is not
// asked again where its studies are there.
func TestToolOnSurface(t *testing.T) {
	s := opened(t, Variant{Smooth: true})
	tool, heard := testTool(t, "")
	o := compareOptions()
	o.Tools, o.Seeds = []Tool{tool}, 1
	got := compare(t, s, o)[0]
	lines := heard()
	ends := lines[1]["results"].([]any)
	if n := len(ends); n != o.Initial {
		t.Errorf("%d results of %d initial points", n, o.Initial)
	}
	end := ends[0].(map[string]any)["configuration"].(map[string]any)
	if end["epochs"] != got.Epochs[0] {
		t.Errorf("it is told of epoch %v of a run of %v", end["epochs"], got.Epochs[0])
	}
	if objectives := lines[0]["problem"].(map[string]any)["objectives"].([]any); objectives[0].(map[string]any)["logarithmic"] != true {
		t.Errorf("objectives %v", objectives)
	}
	first := compareOptions("random")
	first.Seeds, first.Budget = 1, first.Initial
	want := compare(t, s, first)[0]
	want.Method, want.Seconds = "mine", 0.25
	upToInitial := *got
	for _, values := range []*[]float64{&upToInitial.Epochs, &upToInitial.Observed, &upToInitial.Reported} {
		*values = (*values)[:o.Initial]
	}
	if diff := cmp.Diff(*want, upToInitial, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
		t.Errorf("record of the initial points (-want +got):\n%s", diff)
	}
	if again := compare(t, s, o, got); len(again) != 0 {
		t.Errorf("run again: %v", again)
	}
}
