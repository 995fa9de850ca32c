package fronts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/cmd/internal/plot"
)

// Experiment is the experiment. It implements reproduce.Experiment.
type Experiment struct {
	// Parts are the figures and tables to make, some of [Parts].
	Parts []string
	// Store is the file that keeps what was run; it is made if it does not exist. Empty for one that
	// is thrown away.
	Store string
	// Records is a folder that keeps the outcomes of finished studies as CSV, and gives them back without their store. It is
	// made if it does not exist. Empty for none.
	Records string
	// DataDir is a folder in which data files are looked for first.
	DataDir string
	// Quick runs a small part of everything: minutes. Its numbers are not the paper's experiment.
	Quick bool
	// WholeMNIST runs the paper's whole protocol on MNIST, hundreds of hours of processor time, in place
	// of a part of it.
	WholeMNIST bool
	// Seeds is the number of studies of each method with a model: seeds 1, 2, ..., at least 1. A part of the protocol
	// on MNIST has three of them, or one.
	Seeds int
	// Version of the program, which the studies and the report name. A study that another version has begun is not
	// continued.
	Version string
	// Workers is the number of studies that run at the same time. 0 means one for each processor.
	Workers int

	generated bool // made-up examples and the smallest scale, for tests
	// levels are the errors, by dataset, of what costs ε = 0: to be drawn, and in no hypervolume.
	levels map[string][]plot.Level
}

// part is a figure or a table.
type part struct {
	name   string
	series func(*Experiment) []series
	build  func(*Experiment, results) ([]output.Section, []reproduce.Figure)
}

// allParts are the figures and tables in the order of the report.
func allParts() []part {
	return []part{
		{"fig5", (*Experiment).seriesOfFigure5, (*Experiment).figure5},
		{"fig6", (*Experiment).seriesOfFigure6, (*Experiment).figure6},
		{"fig7", (*Experiment).seriesOfFigure7, (*Experiment).figure7},
		{"fig8", (*Experiment).seriesOfFigure8, (*Experiment).figure8},
		{"table1", nothing, (*Experiment).table1},
		{"table2", (*Experiment).seriesOfTable2, (*Experiment).table2},
		{"table3", nothing, (*Experiment).table3},
		{"table4", nothing, (*Experiment).table4},
		{"methods", (*Experiment).seriesOfMethods, (*Experiment).methods},
	}
}

func nothing(*Experiment) []series { return nil }

// Parts returns the names of the figures and tables.
func Parts() []string {
	var names []string
	for _, p := range allParts() {
		names = append(names, p.name)
	}
	return names
}

// Name implements reproduce.Experiment.
func (*Experiment) Name() string { return "dpareto" }

// Validate implements reproduce.Experiment.
func (e *Experiment) Validate() error {
	for _, p := range e.Parts {
		if !slices.Contains(Parts(), p) {
			return fmt.Errorf("%q is no figure or table of the experiments, want some of %s", p, strings.Join(Parts(), ", "))
		}
	}
	switch {
	case len(e.Parts) == 0:
		return errors.New("no figure or table is named")
	case e.Seeds < 1:
		return fmt.Errorf("--seeds must be at least 1, is %d", e.Seeds)
	case e.Workers < 0:
		return fmt.Errorf("--workers must be at least 1, is %d", e.Workers)
	case e.Quick && e.WholeMNIST:
		return errors.New("--quick and --whole-mnist cannot be used together")
	case e.WholeMNIST && e.Store == "":
		return errors.New("--whole-mnist takes hundreds of hours: --store must name a file that keeps what was run")
	default:
		return nil
	}
}

// scaleOf returns how much of a setting is run.
func (e *Experiment) scaleOf(s setting) scale {
	switch onMNIST := s.dataset == dataset.NameMNIST; {
	case e.generated && onMNIST:
		return testMNIST
	case e.generated:
		return testAdult
	case e.Quick && onMNIST:
		return quickMNIST
	case e.Quick:
		return quickAdult
	case s == mnistMLP1 && !e.WholeMNIST:
		return someMLP1
	case onMNIST && !e.WholeMNIST:
		return someMLP2
	case onMNIST:
		return wholeMNIST
	default:
		return wholeAdult
	}
}

// modelled returns the studies of a method with a model, one for each seed.
func (e *Experiment) modelled(s setting, m method) []series {
	seeds := e.Seeds
	if most := e.scaleOf(s).seeds; most > 0 {
		seeds = min(seeds, most)
	}
	return e.seeded(s, m, seeds)
}

// random returns the studies of random sampling. On MNIST, where all methods have one domain, a study with a model
// begins with the points of the random study of the same seed, if there is one.
func (e *Experiment) random(s setting) []series { return e.seeded(s, methodRandom, e.scaleOf(s).sets) }

// seeded returns studies of a method with the seeds 1, 2, and so on.
func (e *Experiment) seeded(s setting, m method, seeds int) []series {
	all := make([]series, seeds)
	for i := range all {
		all[i] = series{setting: s, scale: e.scaleOf(s), method: m, seed: uint64(i + 1), generated: e.generated}
	}
	return all
}

// grids returns the studies of grids.
func (e *Experiment) grids(s setting) []series {
	var all []series
	for _, levels := range e.scaleOf(s).levels {
		all = append(all, series{setting: s, scale: e.scaleOf(s), method: methodGrid, seed: 1, levels: levels, generated: e.generated})
	}
	return all
}

// mnist returns the experiments on MNIST that are run. MLP1, which is seven times as slow, is not for --quick.
func (e *Experiment) mnist() []setting {
	if e.Quick {
		return []setting{mnistMLP2}
	}
	return []setting{mnistMLP1, mnistMLP2}
}

// EstimateMNIST returns the processor time that the studies on MNIST take, from one epoch of each network: it is
// proportional to the epochs, of which both methods are taken to train half of the most on average.
func (e *Experiment) EstimateMNIST(ctx context.Context) (time.Duration, error) {
	r := newRunner(e.DataDir, e.Version)
	perEpoch := make(map[string]time.Duration)
	var sum time.Duration
	for _, s := range e.needed() {
		if s.dataset != dataset.NameMNIST {
			continue
		}
		file, err := s.file()
		if err != nil {
			return 0, err
		}
		spec := file.Study.GetSpec()
		if perEpoch[s.id] == 0 {
			t, err := r.trainer(ctx, spec.GetTrainer())
			if err != nil {
				return 0, err
			}
			start := time.Now()
			_, err = t.Train(ctx, trainer.Run{Replicates: 1, Seed: new(s.seed), Parameters: trainer.Parameters{
				"epochs": int64(1), "lot_size": int64(800), "learning_rate": 0.1, "clipping_norm": 1.0, "noise_multiplier": 1.0,
			}}, nil)
			if err != nil {
				return 0, err
			}
			perEpoch[s.id] = time.Since(start)
		}
		epochs := float64(parameter(spec, "epochs").GetIntegerDomain().GetMax()) / 2
		sum += time.Duration(float64(perEpoch[s.id]) * epochs * float64(s.trials()) * float64(s.scale.replicates))
	}
	return sum, nil
}

// results are the outcomes of studies by their names.
type results map[string][]outcome

// of returns the outcomes of studies. ok is false if one of them was not run.
func (r results) of(all ...series) (outcomes [][]outcome, ok bool) {
	for i := range all {
		one, found := r[all[i].studyID()]
		if !found {
			return nil, false
		}
		outcomes = append(outcomes, one)
	}
	return outcomes, true
}

// needed returns the studies that the chosen figures and tables are made of.
func (e *Experiment) needed() []series {
	var all []series
	for _, p := range allParts() {
		if !slices.Contains(e.Parts, p.name) {
			continue
		}
		for _, s := range p.series(e) {
			if !slices.ContainsFunc(all, func(other series) bool { return other.studyID() == s.studyID() }) {
				all = append(all, s)
			}
		}
	}
	return all
}

// Run implements reproduce.Experiment. Where data cannot be had, the studies on them are left out and the report
// says so.
func (e *Experiment) Run(ctx context.Context, watch reproduce.Watch) (_ *reproduce.Result, err error) {
	client, stop, err := e.serve(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	r := newRunner(e.DataDir, e.Version)
	r.client, r.records, r.workers, r.progress = client, e.Records, e.Workers, watch.Report
	if r.workers == 0 {
		r.workers = runtime.GOMAXPROCS(0)
	}
	available, missing, err := r.available(ctx, e.needed())
	if err != nil {
		return nil, err
	}
	e.levels = r.levels
	for i := range available {
		r.total += int(available[i].trials())
	}
	made := &builder{of: e, waiting: slices.Clone(available), found: make(results), sections: make(map[string][]output.Section), watch: watch}
	if err := made.build(); err != nil { // what needs no study
		return nil, err
	}
	r.finished = made.add
	if _, err := r.run(ctx, available); err != nil {
		return nil, err
	}
	return e.result(made.sections, missing, slices.Sorted(maps.Keys(r.versions))), nil
}

// builder builds each figure and table as soon as its studies have run.
type builder struct {
	of       *Experiment
	waiting  []series // that have not run
	found    results
	sections map[string][]output.Section // of what is built, by the names of the parts
	watch    reproduce.Watch
}

// add adds the outcomes of a study that has run.
func (b *builder) add(s *series, outcomes []outcome) error {
	b.found[s.studyID()] = outcomes
	b.waiting = slices.DeleteFunc(b.waiting, func(other series) bool { return other.studyID() == s.studyID() })
	return b.build()
}

// build builds what waits for no study.
func (b *builder) build() error {
	for _, one := range allParts() {
		_, isBuilt := b.sections[one.name]
		if isBuilt || !slices.Contains(b.of.Parts, one.name) || b.isWaiting(one.series(b.of)) {
			continue
		}
		sections, figures := one.build(b.of, b.found)
		b.sections[one.name] = sections
		if err := b.watch.Show(figures...); err != nil {
			return err
		}
	}
	return nil
}

// isWaiting reports whether one of the studies has not run.
func (b *builder) isWaiting(all []series) bool {
	return slices.ContainsFunc(all, func(s series) bool {
		return slices.ContainsFunc(b.waiting, func(other series) bool { return other.studyID() == s.studyID() })
	})
}

// available returns the studies whose data can be had, and a line on every dataset that cannot. It fills
// levels.
func (r *runner) available(ctx context.Context, all []series) (available []series, missing []string, err error) {
	lacks := make(map[string]bool)
	for _, s := range all {
		lack, known := lacks[s.dataset]
		if !known {
			file, err := s.file()
			if err != nil {
				return nil, nil, err
			}
			if _, err = r.trainer(ctx, file.Study.GetSpec().GetTrainer()); err == nil {
				r.levels[s.dataset], err = r.constants(ctx, file.Study.GetSpec().GetTrainer())
			}
			var line string
			if line, lack = reproduce.Missing("all that is trained on "+s.dataset, err); lack {
				missing = append(missing, line)
			} else if err != nil {
				return nil, nil, err
			}
			lacks[s.dataset] = lack
		}
		if !lack {
			available = append(available, s)
		}
	}
	return available, missing, nil
}

// result makes the report of the sections of all parts.
func (e *Experiment) result(sections map[string][]output.Section, missing, versions []string) *reproduce.Result {
	r := &reproduce.Result{Missing: missing, Report: output.Report{
		Title: "Automatic discovery of privacy-utility Pareto fronts (Avent et al. 2020), section 4",
		Notes: []string{
			"ε is an upper bound for one training run, by the accountant of the published code: Rényi differential privacy of fixed-size lots with the classic conversion, δ = 1e-5, replace-one adjacency. " +
				"It does not cover the search. Errors are means over the runs of a configuration, on the published test examples, which the search sees: as in the paper. " +
				"\"untouched\" stands for the 16,281 examples of a9a.t, which no search sees: the hypervolume of the front by the searched examples, with its errors on these. Hypervolumes are of (ε, error) within (10, 1); the largest possible is 10.",
			"All trainings are seeded, so that no ε holds for these very models: for public data only.",
		},
	}}
	if len(versions) > 0 {
		r.Report.Notes = append(r.Report.Notes, "The studies were run by version "+strings.Join(versions, ", ")+".")
	}
	if !e.WholeMNIST {
		r.Report.Notes = append(r.Report.Notes, "On MNIST a part of the protocol is run: fewer epochs, trials and runs of a configuration than the paper has.")
	}
	if e.Quick {
		r.Report.Notes = append(r.Report.Notes, "--quick: a small part of the protocol, to see that it works. These numbers are not the paper's experiment.")
	}
	for _, p := range allParts() {
		r.Report.Sections = append(r.Report.Sections, sections[p.name]...)
	}
	return r
}
