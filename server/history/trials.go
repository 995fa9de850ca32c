package history

import (
	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// Trials are the trials of a study as of one view.
type Trials struct {
	// Evaluations are the measurements of successful trials in the order in which these completed,
	// then by step: the final measurements, and, if the study declares a checkpoint parameter, the
	// intermediate ones. Run is the number of the trial.
	Evaluations  []suggest.Evaluation
	Measurements []Measurement // of Evaluations
	Infeasible   []space.Point // of infeasible trials, in the order in which they completed
	Pending      []space.Point // of open trials, by ascending number
	Seeded       bool          // whether a run was seeded
}

// Runs returns the evaluations of complete runs, of which none is a checkpoint.
func (t *Trials) Runs() []suggest.Evaluation {
	runs := make([]suggest.Evaluation, 0, len(t.Evaluations))
	for i := range t.Evaluations {
		if t.Measurements[i].Final {
			e := t.Evaluations[i]
			e.Run = 0
			runs = append(runs, e)
		}
	}
	return runs
}

// Measurement is a measurement of a successful trial.
type Measurement struct {
	Trial         int64 // number
	Step          int64
	Final         bool // whether it is the trial's final measurement
	Last          bool // whether no measurement of the trial has a later step
	Configuration int  // index of the point among the distinct points of a study's measurements

	encoded     []byte    // the message, which takes many times the memory once it is decoded
	best, worst []float64 // of its runs, by objective; nil if they equal the mean
}

// Message decodes the measurement.
func (m *Measurement) Message() *dparetov1.Measurement {
	message := new(dparetov1.Measurement)
	if err := proto.Unmarshal(m.encoded, message); err != nil {
		panic(err) // newMeasurement has encoded it
	}
	return message
}

// Values returns a statistic of the objectives over the runs of measurement i.
func (t *Trials) Values(i int, statistic spec.Statistic, objectives int) []float64 {
	m := &t.Measurements[i]
	switch {
	case statistic == spec.Best && m.best != nil:
		return m.best
	case statistic == spec.Worst && m.worst != nil:
		return m.worst
	default:
		return t.Evaluations[i].Values[:objectives]
	}
}
