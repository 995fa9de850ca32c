package bench

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"

	"github.com/dpareto/dpareto/cmd/internal/studyfile"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/random"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
)

// replay returns the problem of finding the front of recorded trials: a CSV file with a
// column for every parameter and every reported objective of the study, by its id, as
// `dpareto trial list --output csv` prints them. Rows without a value of an objective are
// left out. Computed objectives are computed.
//
// A suggestion is answered by the trial that is nearest in the encoded space and not used
// up. What is recorded is taken for the truth.
func replay(file, studyFile string) (*Problem, error) {
	content, err := os.ReadFile(studyFile)
	if err != nil {
		return nil, err
	}
	parsed, err := studyfile.Parse(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", studyFile, err)
	}
	parsed.Study.GetSpec().CheckpointParameter = "" // records are of whole runs
	study, err := spec.Compile("study.spec", parsed.Study.GetSpec())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", studyFile, err)
	}
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close() //nolint:errcheck // it is only read
	records, err := readRecords(in, study.Problem)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	p := &Problem{
		Problem:       study.Problem,
		Name:          replayPrefix + file,
		Initial:       random.New(),
		InitialPoints: min(study.InitialTrials(), len(records)),
		Exact:         true,
		Start:         func() Evaluator { return replayer(study.Problem.Space, records) },
	}
	costs := make([][]float64, len(records))
	for i := range records {
		costs[i] = p.costs(records[i].Values)
	}
	p.MaxHypervolume = pareto.Hypervolume(costs, p.reference())
	return p, nil
}

// replayer returns the evaluator of one study on records.
func replayer(s *space.Space, records []suggest.Evaluation) Evaluator {
	encoded := make([][]float64, len(records))
	for i := range records {
		encoded[i] = s.Encode(nil, records[i].Point)
	}
	used := make([]bool, len(records))
	return func(_ context.Context, q space.Point, _ uint64) ([]suggest.Evaluation, error) {
		x := s.Encode(nil, q)
		nearest, least := -1, math.Inf(1)
		for i, y := range encoded {
			distance := 0.0
			for j := range y {
				distance += (y[j] - x[j]) * (y[j] - x[j])
			}
			if !used[i] && distance < least {
				nearest, least = i, distance
			}
		}
		if nearest < 0 {
			return nil, fmt.Errorf("all %d recorded trials are used up: the budget is too large", len(records))
		}
		used[nearest] = true
		return []suggest.Evaluation{records[nearest]}, nil
	}
}

// readRecords reads the trials of a CSV file.
func readRecords(in io.Reader, p *suggest.Problem) ([]suggest.Evaluation, error) {
	rows, err := csv.NewReader(in).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, errors.New("the file is empty, without a header")
	}
	column := func(name string) (int, error) {
		i := slices.Index(rows[0], name)
		if i < 0 {
			return 0, fmt.Errorf("line 1: column %s is missing", name)
		}
		return i, nil
	}
	parameters := make([]int, len(p.Space.Parameters))
	for i := range parameters {
		if parameters[i], err = column(p.Space.Parameters[i].Name); err != nil {
			return nil, err
		}
	}
	objectives := make([]int, len(p.Objectives))
	for j := range objectives {
		if p.Objectives[j].Known != nil {
			continue
		}
		if objectives[j], err = column(p.Objectives[j].Name); err != nil {
			return nil, err
		}
	}
	var records []suggest.Evaluation
	for i, row := range rows[1:] {
		e, err := record(p, row, parameters, objectives)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+2, err)
		}
		if e != nil {
			records = append(records, *e)
		}
	}
	if len(records) == 0 {
		return nil, errors.New("the file holds no complete trial")
	}
	return records, nil
}

// record reads one trial, given the columns of parameters and objectives. It is nil if
// a measured objective has no value.
func record(p *suggest.Problem, row []string, parameters, objectives []int) (*suggest.Evaluation, error) {
	e := &suggest.Evaluation{
		Point: make(space.Point, len(parameters)), Runs: 1,
		Values: make([]float64, len(objectives)), StdErrors: make([]float64, len(objectives)),
	}
	for i, c := range parameters {
		q := &p.Space.Parameters[i]
		if q.Kind == space.Categorical {
			e.Point[i] = float64(slices.Index(q.Choices, row[c]))
			continue
		}
		v, err := strconv.ParseFloat(row[c], 64)
		if err != nil {
			return nil, fmt.Errorf("%s must be a number, is %q", q.Name, row[c])
		}
		e.Point[i] = v
	}
	if err := p.Space.Contains(e.Point); err != nil {
		return nil, err
	}
	for j, c := range objectives {
		o := &p.Objectives[j]
		if o.Known != nil {
			e.Values[j] = o.Known(e.Point)
			continue
		}
		if row[c] == "" {
			return nil, nil
		}
		v, err := strconv.ParseFloat(row[c], 64)
		if err != nil {
			return nil, fmt.Errorf("%s must be a number, is %q", o.Name, row[c])
		}
		e.Values[j], e.StdErrors[j] = v, math.NaN()
	}
	return e, nil
}
