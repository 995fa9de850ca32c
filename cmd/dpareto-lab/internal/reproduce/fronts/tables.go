package fronts

import (
	"fmt"

	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce"
	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// seriesOfTable2 are the studies of Table 2.
func (e *Experiment) seriesOfTable2() []series {
	var all []series
	for _, s := range adult() {
		all = append(all, e.random(s))
		for _, m := range modelMethods {
			all = append(all, e.modelled(s, m)...)
		}
	}
	return all
}

// modelMethods are the methods that are compared with random sampling.
var modelMethods = []method{methodDPareto, methodPublished, methodDefault}

// name returns what tables and legends call the method.
func (m method) name() string {
	switch m {
	case methodDPareto:
		return "DPareto"
	case methodPublished:
		return "DPareto, published acquisition"
	case methodDefault:
		return "default engine"
	case methodRandom:
		return "random"
	default:
		return string(m)
	}
}

// Names of columns and axes.
const (
	experimentName  = "experiment"
	hypervolumeName = "hypervolume"
	runsName        = "runs"
)

// table2 compares every method with parts of the random samples.
func (e *Experiment) table2(found results) ([]output.Section, []reproduce.Figure) {
	t := &output.Table{Columns: []string{
		experimentName, "method", "seeds", hypervolumeName, "random", "difference", "lower", "upper", "t", "p", "welch_lower", "welch_upper",
		"published", "published_lower", "published_upper", "published_p",
	}}
	for i, s := range adult() {
		sampled, ok := found.of(e.random(s))
		if !ok {
			continue
		}
		random := hypervolumes(divide(sampled[0], parts, e.partSize()))
		for _, m := range modelMethods {
			studies, ok := found.of(e.modelled(s, m)...)
			if !ok {
				continue
			}
			values := hypervolumes(studies)
			one := compareOne(values[0], random)
			row := []any{s.name, m.name(), int64(len(values)), stat.Mean(values, nil), stat.Mean(random, nil), one.difference, one.lower, one.upper, one.t, one.p, nil, nil}
			if len(values) > 1 {
				welch := compareTwo(values, random)
				row[10], row[11] = welch.lower, welch.upper
			}
			paper := publishedTable2[i]
			t.Rows = append(t.Rows, append(row, paper.difference, paper.lower, paper.upper, paper.p()))
		}
	}
	return []output.Section{{
		Name: "table2", Title: "Table 2: hypervolume over random sampling", Table: t,
		Notes: []string{
			fmt.Sprintf("difference, lower, upper, t and p: the study of seed 1 against %d parts of %d random samples, as the paper has it, which takes the study for certain; "+
				"welch: the 95 %% interval of the difference of means over all seeds. hypervolume is the mean over the seeds.", parts, e.partSize()),
			"published_p is computed from the published interval; the paper says p < .001 of all three rows.",
		},
	}}, nil
}

// partSize is the number of random samples in a part of Table 2: 256, as many as the paper's optimiser adds to
// its initial points.
func (e *Experiment) partSize() int {
	scale := e.scaleOf(adultSGD)
	if scale.name == "" {
		return int(scale.trials) - int(scale.initial)
	}
	return int(scale.random) / parts
}

// domains returns a table of the parameters' domains in the study files.
func domains(all []setting) *output.Table {
	t := &output.Table{Columns: []string{experimentName, "epochs", "lot_size", "learning_rate", "noise_multiplier", "clipping_norm"}}
	for _, s := range all {
		row := []any{s.name}
		spec := specOf(s, methodDPareto)
		for _, id := range t.Columns[1:] {
			row = append(row, domain(parameter(spec, id)))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// specOf returns the spec of a setting's study. The files are part of the program.
func specOf(s setting, m method) *dparetov1.StudySpec {
	file, err := (&series{setting: s, scale: wholeAdult, method: m, seed: 1}).file()
	if err != nil {
		panic(err)
	}
	return file.Study.GetSpec()
}

// domain returns the range of a parameter.
func domain(p *dparetov1.ParameterSpec) string {
	if d := p.GetIntegerDomain(); d != nil {
		return fmt.Sprintf("%d to %d", d.GetMin(), d.GetMax())
	}
	return fmt.Sprintf("%g to %g", p.GetDoubleDomain().GetMin(), p.GetDoubleDomain().GetMax())
}

// table1 shows the domains.
func (e *Experiment) table1(results) ([]output.Section, []reproduce.Figure) {
	return []output.Section{{
		Name: "table1", Title: "Table 1: domains", Table: domains(settings()),
		Notes: []string{"Equal to the published table, whose noise variance is the noise multiplier: the published code takes the range for the standard deviation. " +
			"Of random sampling and grids on Adult the learning rate is in [1e-3, 1e-1], as in Table 4 and in the published code."},
	}}, nil
}

// distributions returns a table of the distributions of random sampling.
func distributions(s setting) *output.Table {
	t := &output.Table{Columns: []string{"parameter", "distribution", "accept_range", "integer"}}
	spec := specOf(s, methodRandom)
	for _, p := range spec.GetParameters() {
		d := "uniform"
		if n := p.GetDesign().GetNormal(); n != nil {
			d = fmt.Sprintf("normal, mean %g, standard deviation %g", n.GetMean(), n.GetStandardDeviation())
		}
		if x := p.GetDesign().GetShiftedExponential(); x != nil {
			d = fmt.Sprintf("%g + exponential of rate %g", x.GetShift(), x.GetRate())
		}
		integer := "no"
		if p.GetIntegerDomain() != nil {
			integer = "yes"
		}
		t.Rows = append(t.Rows, []any{p.GetId(), d, domain(p), integer})
	}
	return t
}

func (e *Experiment) table3(results) ([]output.Section, []reproduce.Figure) {
	return []output.Section{{Name: "table3", Title: "Table 3: random sampling on MNIST", Table: distributions(mnistMLP2), Notes: []string{"Equal to the published table."}}}, nil
}

func (e *Experiment) table4(results) ([]output.Section, []reproduce.Figure) {
	return []output.Section{{Name: "table4", Title: "Table 4: random sampling on Adult", Table: distributions(adultSGD), Notes: []string{"Equal to the published table."}}}, nil
}
