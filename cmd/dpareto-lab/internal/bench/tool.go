package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers"
	"github.com/dpareto/dpareto/suggest/space"
)

// Tool is another program that takes part in a comparison as a designer does. It runs once for each
// study, and answers lines of JSON on its standard input with one line each on its standard output:
//
//	{"problem": {...}, "seed": 1}                                     {}
//	{"results": [{"configuration": {...}, "values": {...}}, ...]}     {"configuration": {...}, "seconds": 0.5}
//
// The first line describes the problem. Each later one holds what was measured since the line before, the
// initial points at first, and asks for a configuration; seconds of processor time are for the report. A
// value that is not finite is null. The tool is told neither standard errors nor which objectives can be computed,
// and of runs with checkpoints the ends. When its input ends, it ends, or is killed soon after.
type Tool struct {
	// Name is the method's name, in tables and records.
	Name string
	// Command is the program with its arguments.
	Command []string
}

// ParseTool returns the tool of "NAME=COMMAND", with the words of the command separated by spaces.
func ParseTool(text string) (Tool, error) {
	name, command, _ := strings.Cut(text, "=")
	t := Tool{name, strings.Fields(command)}
	if t.Name == "" || len(t.Command) == 0 {
		return Tool{}, fmt.Errorf("must be NAME=COMMAND, is %q", text)
	}
	if _, ok := parseMethod(t.Name); ok {
		return Tool{}, fmt.Errorf("must not be named like the designer %s", t.Name)
	}
	return t, nil
}

// toolStart is the first line to a tool.
type toolStart struct {
	Problem *toolProblem `json:"problem"`
	Seed    uint64       `json:"seed"`
}

// toolRequest asks for a configuration.
type toolRequest struct {
	// Results are those since the line before.
	Results []toolResult `json:"results"`
}

// toolProblem is what a tool is told of a problem.
type toolProblem struct {
	Parameters  []toolParameter  `json:"parameters"`
	Objectives  []toolObjective  `json:"objectives"`
	Constraints []toolConstraint `json:"constraints"`
}

type toolParameter struct {
	Name    string  `json:"name"`
	Min     float64 `json:"min"`
	Max     float64 `json:"max"`
	Integer bool    `json:"integer"`
	// Logarithmic says that the order of magnitude matters.
	Logarithmic bool `json:"logarithmic"`
}

type toolObjective struct {
	Name     string `json:"name"`
	Maximize bool   `json:"maximize"`
	// Reference is the anti-ideal value.
	Reference float64 `json:"reference"`
	// Logarithmic says that values range over orders of magnitude.
	Logarithmic bool `json:"logarithmic"`
}

// toolConstraint is a range that a metric must be in. A bound that it does not have is null.
type toolConstraint struct {
	Name  string   `json:"name"`
	Lower *float64 `json:"lower"`
	Upper *float64 `json:"upper"`
}

type toolResult struct {
	Configuration map[string]float64  `json:"configuration"`
	Values        map[string]*float64 `json:"values"`
}

// toolAnswer is a line from a tool.
type toolAnswer struct {
	Configuration map[string]float64 `json:"configuration"`
	Seconds       float64            `json:"seconds"`
	Error         string             `json:"error"`
}

// runningTool is a tool at work on one study. It implements [suggest.Designer].
type runningTool struct {
	Tool

	process *exec.Cmd
	kill    context.CancelFunc
	in      io.WriteCloser
	out     io.Closer
	lines   *bufio.Scanner // of out
	told    int            // evaluations that it knows
	spent   time.Duration  // processor time that it says it took
}

// toolGrace is the time that a tool has to end after its input has.
const toolGrace = 2 * time.Second

// longestAnswer is the largest number of bytes of a line from a tool.
const longestAnswer = 1 << 20

// longestSeconds is the longest time that a suggestion may say it took: eleven days.
const longestSeconds = 1e6

// start starts a tool on a problem. It fails if the problem has what tools are not told of, or the program
// cannot be started.
func (t *Tool) start(ctx context.Context, p *suggest.Problem, seed uint64) (*runningTool, error) {
	described, err := describe(p)
	if err != nil {
		return nil, err
	}
	ctx, kill := context.WithCancel(ctx)
	process := exec.CommandContext(ctx, t.Command[0], t.Command[1:]...) //nolint:gosec // the caller names the program
	process.Stderr = os.Stderr
	in, errIn := process.StdinPipe()
	out, errOut := process.StdoutPipe()
	if err := errors.Join(errIn, errOut); err != nil {
		kill()
		return nil, err
	}
	if err := process.Start(); err != nil {
		kill()
		return nil, err
	}
	// What the tool has started may hold its output open for longer than it lives.
	context.AfterFunc(ctx, func() { _ = out.Close() })
	r := &runningTool{Tool: *t, process: process, kill: kill, in: in, out: out, lines: bufio.NewScanner(out)}
	r.lines.Buffer(nil, longestAnswer)
	if _, err := r.ask(toolStart{described, seed}); err != nil {
		r.stop(false)
		return nil, err
	}
	return r, nil
}

// stop ends the tool and waits for it. A study that is finished does not depend on how it ends, so that it
// may take a moment.
func (r *runningTool) stop(finished bool) {
	_ = r.in.Close()
	_ = r.out.Close()
	if !finished {
		r.kill()
	}
	timer := time.AfterFunc(toolGrace, r.kill)
	_ = r.process.Wait()
	timer.Stop()
	r.kill()
}

// ask returns the answer to a line.
func (r *runningTool) ask(line any) (toolAnswer, error) {
	var answer toolAnswer
	if err := json.NewEncoder(r.in).Encode(line); err != nil {
		return answer, err
	}
	if !r.lines.Scan() {
		if err := r.lines.Err(); err != nil {
			return answer, fmt.Errorf("answer of the tool: %w", err)
		}
		return answer, errors.New("the tool ended without an answer")
	}
	if err := json.Unmarshal(r.lines.Bytes(), &answer); err != nil {
		return answer, fmt.Errorf("answer of the tool, %q: %w", r.lines.Text(), err)
	}
	if answer.Error != "" {
		return answer, errors.New(answer.Error)
	}
	if !(answer.Seconds >= 0 && answer.Seconds <= longestSeconds) {
		return answer, fmt.Errorf("answer of the tool: seconds must be in [0, %g], is %g", longestSeconds, answer.Seconds)
	}
	r.spent += time.Duration(answer.Seconds * float64(time.Second))
	return answer, nil
}

// Name implements [suggest.Designer].
func (r *runningTool) Name() string { return r.Tool.Name }

// Version implements [suggest.Designer].
func (r *runningTool) Version() string { return "" }

// Suggest implements [suggest.Designer].
func (r *runningTool) Suggest(_ context.Context, p *suggest.Problem, h *suggest.History, request suggest.Request) ([]suggest.Suggestion, error) {
	if len(h.Infeasible) > 0 {
		return nil, errors.New("a run has no result, of which tools are not told")
	}
	var suggestions []suggest.Suggestion
	for range request.Count {
		results := make([]toolResult, 0, len(h.Evaluations)-r.told)
		for _, e := range h.Evaluations[r.told:] {
			results = append(results, toolResult{named(p.Space, e.Point), namedValues(p, e.Values)})
		}
		r.told = len(h.Evaluations)
		answer, err := r.ask(toolRequest{results})
		if err != nil {
			return nil, err
		}
		q, err := point(p.Space, answer.Configuration)
		if err != nil {
			return nil, fmt.Errorf("configuration %v: %w", answer.Configuration, err)
		}
		suggestions = append(suggestions, suggest.Suggestion{Point: q})
	}
	return suggestions, nil
}

// describe returns what a tool has to know of a problem.
func describe(p *suggest.Problem) (*toolProblem, error) {
	switch {
	case p.Checkpoint != "":
		return nil, errors.New("tools are not told of checkpoints: give --final-only")
	case p.Allowed != nil:
		return nil, errors.New("tools are not told of points that are not allowed, which the problem has")
	case len(p.Constants) > 0:
		return nil, errors.New("tools are not told of constant points, which the problem has")
	}
	out := &toolProblem{Constraints: []toolConstraint{}}
	for i := range p.Space.Parameters {
		q := &p.Space.Parameters[i]
		if q.Kind != space.Double && q.Kind != space.Integer || q.Condition != nil || q.Fixed != nil {
			return nil, fmt.Errorf("parameter %s: tools are told of numbers without conditions only", q.Name)
		}
		out.Parameters = append(out.Parameters, toolParameter{q.Name, q.Min, q.Max, q.Kind == space.Integer, q.Scale == space.Log})
	}
	for i := range p.Objectives {
		o := &p.Objectives[i]
		if o.InferReference {
			return nil, fmt.Errorf("objective %s: tools are told references, and it has none", o.Name)
		}
		out.Objectives = append(out.Objectives, toolObjective{o.Name, o.Goal == suggest.Maximize, o.Reference, o.Transform == suggest.Log})
	}
	for i := range p.Constraints {
		c := &p.Constraints[i]
		out.Constraints = append(out.Constraints, toolConstraint{c.Name, finite(c.Lower), finite(c.Upper)})
	}
	return out, nil
}

// finite returns a number as JSON can have it: nil where it is not finite.
func finite(v float64) *float64 {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil
	}
	return &v
}

// named returns a point by the names of the parameters.
func named(s *space.Space, q space.Point) map[string]float64 {
	out := make(map[string]float64, len(q))
	for i, v := range q {
		out[s.Parameters[i].Name] = v
	}
	return out
}

// namedValues returns values by the names of the metrics.
func namedValues(p *suggest.Problem, values []float64) map[string]*float64 {
	out := make(map[string]*float64, len(values))
	for i, v := range values {
		if m := len(p.Objectives); i < m {
			out[p.Objectives[i].Name] = finite(v)
		} else {
			out[p.Constraints[i-m].Name] = finite(v)
		}
	}
	return out
}

// point returns the point of a configuration. It fails if the configuration is not one of the space.
func point(s *space.Space, configuration map[string]float64) (space.Point, error) {
	q := make(space.Point, len(s.Parameters))
	for i := range s.Parameters {
		v, ok := configuration[s.Parameters[i].Name]
		if !ok {
			return nil, fmt.Errorf("%s is missing", s.Parameters[i].Name)
		}
		q[i] = v
	}
	if len(configuration) > len(q) {
		return nil, fmt.Errorf("%d parameters are given, the space has %d", len(configuration), len(q))
	}
	return q, s.Contains(q)
}

// repeated returns a name that is there twice, or "".
func repeated(names []string) string {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return name
		}
	}
	return ""
}

// toolByName returns the tool of a name, or nil.
func toolByName(tools []Tool, name string) *Tool {
	for i := range tools {
		if tools[i].Name == name {
			return &tools[i]
		}
	}
	return nil
}

// start returns the designer under test. stop ends it, and spent returns the processor time that it has taken so far.
func (s *study) start(ctx context.Context) (designer suggest.Designer, stop func(finished bool), spent func() time.Duration, err error) {
	if t := toolByName(s.options.Tools, s.designer); t != nil {
		running, err := t.start(ctx, s.asked(), s.seed)
		if err != nil {
			return nil, nil, nil, err
		}
		return running, running.stop, func() time.Duration { return running.spent }, nil
	}
	ownPoints := s.options.Initial
	if s.options.OwnInitial {
		ownPoints = 0
	}
	designer, ok := designers.ByName(s.designer, designers.Options{InitialPoints: ownPoints, Cache: &s.fits})
	if !ok {
		return nil, nil, nil, errors.New("is unknown")
	}
	return designer, func(bool) {}, ProcessorTime, nil
}
