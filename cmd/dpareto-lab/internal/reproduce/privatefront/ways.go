package privatefront

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dpareto/dpareto/cmd/dpareto/studies"
	"github.com/dpareto/dpareto/cmd/internal/studyfile"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// The bundled studies that the ways are made of.
const (
	frontStudy  = "adult-private"
	curveStudy  = "adult-curve"
	subsetStudy = "adult-subset"
)

// exactTestEpsilon is an ε that protects no test record: its noise, 0.001 points, changes no choice.
const exactTestEpsilon = 1000

// way is a way to search and to publish.
type way struct {
	name  string // in tables, and in the store
	study string // the bundled study
	// edit changes the bundled study into the study of the way.
	edit func(*Experiment, *dparetov1.StudySpec) error
	// trainEpsilon is the declared ε for the training records, 0 where it follows from the search.
	trainEpsilon float64
	// exact is the name of the same way with exact test errors, empty if there is none.
	exact string
	// isDrawn says whether the figure has the way.
	isDrawn bool
}

// openName is the name of the way without a guarantee, which all others are compared with.
const openName = "no guarantee"

// open is that way.
func open() way {
	return way{name: openName, study: frontStudy, isDrawn: true, edit: func(_ *Experiment, spec *dparetov1.StudySpec) error {
		spec.PrivateMode, spec.TestLedger, spec.TrainLedger = nil, "", ""
		return nil
	}}
}

// ways returns the ways that are run, the open one first.
func (e *Experiment) ways() []way {
	all := e.all()
	if len(e.Ways) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(w way) bool { return w.name != openName && !slices.Contains(e.Ways, w.name) })
}

// names returns the names of ways.
func names(ways []way) []string {
	var list []string
	for i := range ways {
		list = append(list, ways[i].name)
	}
	return list
}

// all returns all ways, the open one first.
func (e *Experiment) all() []way {
	all := []way{open()}
	for i, epsilon := range e.TrainEpsilons {
		modes := privateModes(epsilon)
		modes[0].isDrawn = i == len(e.TrainEpsilons)-1
		all = append(all, modes...)
	}
	return append(all,
		way{name: "best value", study: curveStudy, edit: bestValue, isDrawn: true},
		way{name: "best curve", study: curveStudy, edit: curves(1), isDrawn: true},
		way{name: "best portfolio of 2", study: curveStudy, edit: curves(2), isDrawn: true},
		way{name: "best portfolio of 4", study: curveStudy, edit: curves(4), isDrawn: true},
		way{name: "tuned on a tenth", study: subsetStudy, edit: stopping, isDrawn: true},
	)
}

// privateModes returns the ways with private_mode and an ε for the training records. The last one
// shows the loss by the noise on the test errors: it has hardly any.
func privateModes(epsilon float64) []way {
	mode := func(filter string, edit func(*Experiment, *dparetov1.PrivateModeSpec) error) way {
		return way{
			name: fmt.Sprintf("%s, ε = %g", filter, epsilon), study: frontStudy, trainEpsilon: epsilon,
			edit: func(e *Experiment, spec *dparetov1.StudySpec) error {
				spec.PrivateMode.TrainEpsilon, spec.PrivateMode.TestEpsilon = epsilon, e.TestEpsilon
				return edit(e, spec.GetPrivateMode())
			},
		}
	}
	gaussian := mode("Gaussian filter", func(_ *Experiment, m *dparetov1.PrivateModeSpec) error {
		m.TrainFilter = dparetov1.TrainFilter_TRAIN_FILTER_GAUSSIAN
		return nil
	})
	exact := mode("Gaussian filter, exact errors", func(_ *Experiment, m *dparetov1.PrivateModeSpec) error {
		m.TrainFilter, m.TestEpsilon = dparetov1.TrainFilter_TRAIN_FILTER_GAUSSIAN, exactTestEpsilon
		return nil
	})
	gaussian.exact = exact.name
	return []way{
		gaussian,
		mode("Rényi filter", func(_ *Experiment, m *dparetov1.PrivateModeSpec) error {
			m.TrainFilter = dparetov1.TrainFilter_TRAIN_FILTER_RENYI
			return nil
		}),
		mode("slots", func(e *Experiment, m *dparetov1.PrivateModeSpec) (err error) {
			m.Slots, err = declareSlots(e.Trials, m.GetTrainEpsilon(), m.GetDelta())
			return err
		}),
		exact,
	}
}

// stopping sets the common settings of all studies with random_stopping.
func stopping(e *Experiment, spec *dparetov1.StudySpec) error {
	s := spec.GetRandomStopping()
	s.MeanTrials, s.Listed, s.TestEpsilon = e.Mean, e.Listed, e.TestEpsilon
	return nil
}

// bestValue makes a study that publishes one configuration of a study that publishes curves.
func bestValue(e *Experiment, spec *dparetov1.StudySpec) error {
	s := spec.GetRandomStopping()
	spec.CheckpointParameter, s.CurvePoints, s.Portfolio = "", 0, 0
	s.Release = dparetov1.RandomStoppingRelease_RANDOM_STOPPING_RELEASE_BEST_VALUE
	return stopping(e, spec)
}

// curves makes a study that publishes the curves of a portfolio of a number of runs. As many runs are
// made on average as for single curves.
func curves(runs int32) func(*Experiment, *dparetov1.StudySpec) error {
	return func(e *Experiment, spec *dparetov1.StudySpec) error {
		err := stopping(e, spec)
		spec.RandomStopping.Portfolio = runs
		spec.RandomStopping.MeanTrials /= float64(runs)
		return err
	}
}

// file returns the study of a way.
func (e *Experiment) file(w *way, seed uint64) (*studyfile.File, error) {
	content, err := studies.File(w.study)
	if err != nil {
		return nil, err
	}
	file, err := studyfile.Parse(content)
	if err != nil {
		return nil, err
	}
	file.ID = name
	spec := file.Study.GetSpec()
	if spec.GetRandomStopping() == nil { // a study with random_stopping takes no seed
		spec.Seed, spec.Budget.MaxTrials = &seed, e.Trials
	}
	if err := w.edit(e, spec); err != nil {
		return nil, err
	}
	if spec.GetTrainLedger() == "" {
		file.Ledgers = nil
	}
	for _, l := range file.Ledgers { // of one study each, which they must pay for
		l.Epsilon = max(l.GetEpsilon(), spec.GetPrivateMode().GetTestEpsilon(), e.TestEpsilon, w.trainEpsilon)
	}
	if e.generated {
		maps.Copy(spec.GetTrainer().GetSettings(), map[string]string{"generated": "true"})
	}
	return file, nil
}
