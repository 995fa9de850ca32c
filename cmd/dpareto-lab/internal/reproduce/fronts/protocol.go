package fronts

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/experiment"
	"github.com/dpareto/dpareto/cmd/dpareto/studies"
	"github.com/dpareto/dpareto/cmd/internal/studyfile"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// setting is one of the paper's five experiments.
type setting struct {
	id      string // paper-ID.yaml is its file
	name    string // in tables and legends
	dataset string
}

var (
	adultSGD  = setting{"adult-sgd", "LogReg+SGD", dataset.NameAdult}
	adultAdam = setting{"adult-adam", "LogReg+Adam", dataset.NameAdult}
	adultSVM  = setting{"adult-svm", "SVM+SGD", dataset.NameAdult}
	mnistMLP1 = setting{"mnist-mlp1", "MLP1+SGD", dataset.NameMNIST}
	mnistMLP2 = setting{"mnist-mlp2", "MLP2+SGD", dataset.NameMNIST}
)

// settings returns the experiments in the order of Table 1.
func settings() []setting { return []setting{adultSGD, adultAdam, adultSVM, mnistMLP1, mnistMLP2} }

// adult returns the experiments on Adult in the order of Table 2.
func adult() []setting { return []setting{adultSGD, adultAdam, adultSVM} }

// method says how the points of a study are chosen.
type method string

// The methods. dpareto is the designer DPARETO with the study's reference, as the paper's text
// describes it; published is the same with what the published code computes.
const (
	methodDPareto   method = "dpareto"
	methodPublished method = "published"
	methodDefault   method = "default"
	methodRandom    method = "random"
	methodGrid      method = "grid"
)

// Of random sampling and grids on Adult the learning rate has another range than of the optimiser,
// as in Table 4.
const leastBaselineRate, mostBaselineRate = 1e-3, 1e-1

// scale says how much of an experiment is run. Its name is part of the names of its studies.
type scale struct {
	name       string
	replicates int32
	seeds      int     // most studies of a method with a model, 0 for no limit
	trials     int64   // of a method with a model
	initial    int32   // of them, drawn at random
	random     int64   // trials of a study of random sampling
	sets       int     // studies of random sampling
	levels     []int32 // of the grids
	maxEpochs  int64   // 0 for the paper's
}

// The scales. The paper has 16 + 256 trials of the optimiser; beside them 5,000 random ones on Adult, of which it
// shows 1,500, and 272 on MNIST.
var (
	wholeAdult = scale{replicates: 10, trials: 272, initial: 16, random: 1500, sets: 1, levels: []int32{3, 4}}
	wholeMNIST = scale{replicates: 10, trials: 272, initial: 16, random: 272, sets: 1}
	someMLP1   = scale{name: "subset", replicates: 1, seeds: 1, trials: 24, initial: 8, random: 60, sets: 1, maxEpochs: 20}
	someMLP2   = scale{name: "subset", replicates: 3, seeds: 3, trials: 48, initial: 16, random: 200, sets: 1, maxEpochs: 20}
	quickAdult = scale{name: "quick", replicates: 1, trials: 40, initial: 16, random: 240, sets: 2, levels: []int32{3}}
	quickMNIST = scale{name: "quick", replicates: 1, trials: 20, initial: 8, random: 40, sets: 1, maxEpochs: 3}
	testAdult  = scale{name: "test", replicates: 2, trials: 6, initial: 4, random: 18, sets: 2, levels: []int32{2}, maxEpochs: 2}
	testMNIST  = scale{name: "test", replicates: 1, trials: 6, initial: 4, random: 6, sets: 1, maxEpochs: 2}
)

// series is one study: a setting, a method, and how much is run.
type series struct {
	setting
	scale     scale
	method    method
	seed      uint64 // of the study and of the training
	levels    int32  // of a grid
	generated bool
}

// studyID returns the name of the study in the store.
func (s *series) studyID() string {
	id := s.id + "-" + string(s.method)
	switch s.method {
	case methodGrid:
		id += fmt.Sprintf("-%d", s.levels)
	default:
		id += fmt.Sprintf("-%d", s.seed)
	}
	if s.scale.name != "" {
		id = s.scale.name + "-" + id
	}
	return id
}

// trials returns the number of trials of the study.
func (s *series) trials() int64 {
	switch s.method {
	case methodRandom:
		return s.scale.random
	case methodGrid:
		trials := int64(1)
		for range gridParameters {
			trials *= int64(s.levels)
		}
		return trials
	default:
		return s.scale.trials
	}
}

// gridParameters is the number of parameters of every experiment.
const gridParameters = 5

// file returns the study: the bundled one with the method of the series.
func (s *series) file() (*studyfile.File, error) {
	content, err := studies.File("paper-" + s.id)
	if err != nil {
		return nil, err
	}
	file, err := studyfile.Parse(content)
	if err != nil {
		return nil, err
	}
	file.ID = s.studyID()
	spec := file.Study.GetSpec()
	spec.Seed, spec.Replicates, spec.Budget.MaxTrials = &s.seed, s.scale.replicates, s.trials()
	spec.Algorithm.InitialTrials = s.scale.initial
	switch s.method {
	case methodPublished:
		spec.Algorithm.PublishedAcquisition = true
	case methodDefault:
		spec.Algorithm.Name = dparetov1.Algorithm_ALGORITHM_DEFAULT
	case methodRandom:
		spec.Algorithm = &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_RANDOM}
	case methodGrid:
		spec.Algorithm = &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_GRID}
		for _, p := range spec.GetParameters() {
			p.GridLevels = s.levels
		}
	case methodDPareto:
	}
	if s.dataset == dataset.NameAdult && (s.method == methodRandom || s.method == methodGrid) {
		rate := parameter(spec, "learning_rate").GetDoubleDomain()
		rate.Min, rate.Max = leastBaselineRate, mostBaselineRate
	}
	if s.scale.maxEpochs > 0 {
		parameter(spec, "epochs").GetIntegerDomain().Max = s.scale.maxEpochs
	}
	if s.generated {
		lots := parameter(spec, "lot_size").GetIntegerDomain()
		lots.Max = min(lots.GetMax(), generatedRows)
		settings := spec.GetTrainer().GetSettings()
		settings["generated"] = "true"
		settings["split"], settings["evaluation"], settings["train_rows"] = dataset.SplitShuffled, experiment.EvaluationTest, strconv.Itoa(generatedRows)
		for _, m := range spec.GetMetrics() {
			if sgd := m.GetComputed().GetPrivacy().GetDpSgd(); sgd != nil {
				sgd.DatasetSize = strconv.Itoa(generatedRows)
			}
		}
		if settings["hidden"] != "" { // smaller, to be fast
			settings["hidden"] = "4"
		}
	}
	return file, nil
}

// generatedRows is the number of made-up training examples of tests.
const generatedRows = 1000

// parameter returns a parameter that the study has.
func parameter(spec *dparetov1.StudySpec, id string) *dparetov1.ParameterSpec {
	i := slices.IndexFunc(spec.GetParameters(), func(p *dparetov1.ParameterSpec) bool { return p.GetId() == id })
	return spec.GetParameters()[i]
}
