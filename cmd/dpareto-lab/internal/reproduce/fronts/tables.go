package fronts

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce"
	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// seriesOfTable2 are the studies of Table 2.
func (e *Experiment) seriesOfTable2() []series {
	var all []series
	for _, s := range adult() {
		all = append(append(all, e.random(s)...), e.modelled(s, methodDPareto)...)
	}
	return all
}

// seriesOfMethods are the studies of all methods with a model on Adult.
func (e *Experiment) seriesOfMethods() []series {
	var all []series
	for _, s := range adult() {
		for _, m := range modelMethods {
			all = append(all, e.modelled(s, m)...)
		}
	}
	return all
}

// modelMethods are the methods with a model, DPareto first.
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
	seedsName       = "seeds"
	lowerName       = "lower"
	upperName       = "upper"
	untouchedName   = "untouched"
)

// table2 compares DPareto with parts of the random samples.
func (e *Experiment) table2(found results) ([]output.Section, []reproduce.Figure) {
	t := &output.Table{Columns: []string{
		experimentName, seedsName, hypervolumeName, "random", "difference", lowerName, upperName, "t", "p", "first_difference", "first_lower", "first_upper", "first_p",
		untouchedName, "random_untouched", "untouched_difference", "untouched_lower", "untouched_upper",
		"published", "published_lower", "published_upper", "published_p",
	}}
	parts := 0
	for i, s := range adult() {
		sampled, both := found.of(e.random(s)...)
		studies, ok := found.of(e.modelled(s, methodDPareto)...)
		if !ok || !both {
			continue
		}
		divided := divide(slices.Concat(sampled...), e.partSize())
		parts = len(divided)
		random, values := each(divided, hypervolume), each(studies, hypervolume)
		row := []any{s.name, int64(len(values)), stat.Mean(values, nil), stat.Mean(random, nil), nil, nil, nil, nil, nil}
		if len(values) > 1 {
			c := compareTwo(values, random)
			row = append(row[:4], c.difference, c.lower, c.upper, c.t, c.p)
		}
		first := compareOne(values[0], random)
		row = append(row, first.difference, first.lower, first.upper, first.p, meanUntouched(studies), meanUntouched(divided))
		if len(values) > 1 {
			c := compareTwo(each(studies, untouchedHypervolume), each(divided, untouchedHypervolume))
			row = append(row, known(c.difference), known(c.lower), known(c.upper))
		} else {
			row = append(row, nil, nil, nil)
		}
		paper := publishedTable2[i]
		t.Rows = append(t.Rows, append(row, paper.difference, paper.lower, paper.upper, paper.p()))
	}
	return []output.Section{{
		Name: "table2", Title: "Table 2: hypervolume over random sampling", Table: t,
		Notes: []string{
			fmt.Sprintf("Against %d parts of %d random samples. difference, lower, upper, t and p: of the means over seeds and over parts, with a 95 %% interval by Welch's t. "+
				"first: the study of seed 1 alone, taken for certain, as the paper has it.", parts, e.partSize()),
			"published_p is computed from the published interval; the paper says p < .001 of all three rows.",
		},
	}}, nil
}

// methods compares the methods with a model, by studies of the same seeds.
func (e *Experiment) methods(found results) ([]output.Section, []reproduce.Figure) {
	t := &output.Table{Columns: []string{experimentName, "method", seedsName, hypervolumeName, "difference", lowerName, upperName, "t", "p", untouchedName}}
	for _, s := range adult() {
		var dpareto []float64
		for _, m := range modelMethods {
			studies, ok := found.of(e.modelled(s, m)...)
			if !ok {
				continue
			}
			values := each(studies, hypervolume)
			row := []any{s.name, m.name(), int64(len(values)), stat.Mean(values, nil), nil, nil, nil, nil, nil, meanUntouched(studies)}
			switch {
			case m == methodDPareto:
				dpareto = values
			case len(values) > 1:
				c := compareOne(0, floats.SubTo(make([]float64, len(values)), dpareto, values))
				row[4], row[5], row[6], row[7], row[8] = c.difference, c.lower, c.upper, c.t, c.p
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return []output.Section{{
		Name: "methods", Title: "Other methods with a model, beside DPareto", Table: t,
		Notes: []string{"difference, lower, upper, t and p: of the hypervolume from DPareto's, over pairs of studies of one seed, with a 95 % interval by Student's t."},
	}}, nil
}

// partSize is the number of random samples in a part of Table 2: as many as the optimiser adds to its initial points,
// 256 in the paper.
func (e *Experiment) partSize() int {
	scale := e.scaleOf(adultSGD)
	return int(scale.trials) - int(scale.initial)
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
