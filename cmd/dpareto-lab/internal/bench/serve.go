package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/quasirandom"
	"github.com/dpareto/dpareto/suggest/space"
)

// serveRequest is one line of a tool that works on a surface. Exactly one field is set.
type serveRequest struct {
	// Describe asks for the problem.
	Describe bool `json:"describe,omitempty"`
	// Start begins a study, and ends the one before.
	Start *serveStart `json:"start,omitempty"`
	// Evaluate trains a configuration: all parameters by name.
	Evaluate map[string]float64 `json:"evaluate,omitempty"`
	// Finish asks for the record of the study.
	Finish *serveFinish `json:"finish,omitempty"`
}

type serveStart struct {
	Method string `json:"method"`
	Seed   uint64 `json:"seed"`
	// Initial is the number of initial points that the answer names, which all methods share.
	Initial int `json:"initial"`
}

type serveFinish struct {
	// Seconds are those that a suggestion took on average.
	Seconds float64 `json:"seconds"`
}

// serveProblem answers Describe.
type serveProblem struct {
	Surface string `json:"surface"`
	// Table and Variant are those of the records.
	Table string `json:"table"`
	Variant
	Parameters []serveParameter `json:"parameters"`
	// Checkpoint is the parameter whose smaller values a run passes through.
	Checkpoint string `json:"checkpoint"`
	// Objectives are minimised.
	Objectives []serveObjective `json:"objectives"`
}

type serveParameter struct {
	Name    string  `json:"name"`
	Min     float64 `json:"min"`
	Max     float64 `json:"max"`
	Integer bool    `json:"integer"`
	// Logarithmic says that the order of magnitude matters.
	Logarithmic bool `json:"logarithmic"`
}

type serveObjective struct {
	Name string `json:"name"`
	// Reference is the anti-ideal value.
	Reference float64 `json:"reference"`
}

// serveRun answers Evaluate.
type serveRun struct {
	serveState
	// States are those after every epoch, the end last.
	States []serveState `json:"states"`
}

// serveState is a point that a run passes through. An infinite ε is null.
type serveState struct {
	Epoch   int      `json:"epoch"`
	Epsilon *float64 `json:"epsilon"`
	Error   float64  `json:"error"`
}

// Serve answers a tool's requests on a surface until there are no more: each a line of JSON, each
// answered by one line. A request that cannot be answered gets {"error": "..."}. Serve fails if
// reading or writing does.
func (s *Surface) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	server := &surfaceServer{surface: s}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	answers := json.NewEncoder(out)
	for lines.Scan() {
		answer, err := server.answer(ctx, lines.Bytes())
		if err != nil {
			answer = map[string]string{"error": err.Error()}
		}
		if err := answers.Encode(answer); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return lines.Err()
}

// surfaceServer is the state of Serve.
type surfaceServer struct {
	surface *Surface
	start   serveStart
	course  *course
}

func (s *surfaceServer) answer(ctx context.Context, line []byte) (any, error) {
	var r serveRequest
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, err
	}
	switch {
	case r.Describe:
		return s.surface.describe(), nil
	case r.Start != nil:
		return s.begin(ctx, r.Start)
	case s.course == nil:
		return nil, errors.New("the first request must be describe or start")
	case r.Evaluate != nil:
		q, err := s.point(r.Evaluate)
		if err != nil {
			return nil, err
		}
		return answerRun(s.course.run(q)), nil
	case r.Finish != nil:
		if s.course.runs() == 0 {
			return nil, errors.New("finish: nothing was evaluated")
		}
		record, err := s.course.record(ctx, s.start.Method, s.start.Initial)
		if err != nil {
			return nil, err
		}
		record.Seconds = r.Finish.Seconds
		return record, nil
	default:
		return nil, errors.New("a request must have one of describe, start, evaluate and finish")
	}
}

// begin begins a study and answers with its initial points.
func (s *surfaceServer) begin(ctx context.Context, r *serveStart) (any, error) {
	if r.Method == "" || r.Initial < 0 {
		return nil, fmt.Errorf("start: method must be given and initial at least 0, are %q and %d", r.Method, r.Initial)
	}
	s.start, s.course = *r, newCourse(s.surface, r.Seed)
	initial := make([]map[string]float64, 0, r.Initial)
	suggested, err := quasirandom.New().Suggest(ctx, s.surface.problem, new(suggest.History), suggest.Request{Count: r.Initial, Seed: r.Seed, Number: 1})
	if err != nil {
		return nil, err
	}
	for _, suggestion := range suggested {
		named := make(map[string]float64)
		for i, v := range suggestion.Point {
			named[s.surface.problem.Space.Parameters[i].Name] = v
		}
		initial = append(initial, named)
	}
	return map[string]any{"initial": initial}, nil
}

// point returns the configuration of named parameters.
func (s *surfaceServer) point(named map[string]float64) (space.Point, error) {
	parameters := s.surface.problem.Space.Parameters
	q := make(space.Point, len(parameters))
	for i := range parameters {
		v, ok := named[parameters[i].Name]
		if !ok {
			return nil, fmt.Errorf("evaluate: %s is missing", parameters[i].Name)
		}
		q[i] = v
	}
	if len(named) > len(parameters) {
		return nil, fmt.Errorf("evaluate: %d parameters are given, the surface has %d", len(named), len(parameters))
	}
	if err := s.surface.problem.Space.Contains(q); err != nil {
		return nil, fmt.Errorf("evaluate: %w", err)
	}
	return q, nil
}

// describe returns what a tool has to know of the surface.
func (s *Surface) describe() serveProblem {
	p := serveProblem{Surface: s.model.Surface.Name, Table: s.digest, Variant: s.Variant, Checkpoint: s.problem.Checkpoint}
	for _, q := range s.problem.Space.Parameters {
		p.Parameters = append(p.Parameters, serveParameter{q.Name, q.Min, q.Max, q.Kind == space.Integer, q.Scale == space.Log})
	}
	for _, o := range s.problem.Objectives {
		p.Objectives = append(p.Objectives, serveObjective{o.Name, o.Reference})
	}
	return p
}

// answerRun returns the states of a run.
func answerRun(evaluations []suggest.Evaluation) serveRun {
	var out serveRun
	for i, e := range evaluations {
		state := serveState{Epoch: i + 1, Error: e.Values[1]}
		if v := e.Values[0]; !math.IsInf(v, 0) {
			state.Epsilon = &v
		}
		out.States = append(out.States, state)
	}
	out.serveState = out.States[len(out.States)-1]
	return out
}
