package studyfile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dpareto/dpareto/clients/go/trainer"
)

// Declared is a study made from a trainer's declaration.
type Declared struct {
	ID          string // of the study
	Trainer     string // its name
	Summary     string // of the trainer, one line
	Settings    map[string]string
	File        string // that the study is written to; empty for ID.yaml
	Declaration trainer.Declaration
	Trials      int // budget
	// WithoutDatasets are the public datasets whose runs the model of the study does not begin with.
	WithoutDatasets []string
	// DataDir is the folder of a user's own data; empty for other data, or the working folder.
	DataDir string
	// EpsilonReference and Delta are the anti-ideal ε and the δ of the privacy
	// metric; Delta is nil for the δ of the declaration.
	EpsilonReference float64
	Delta            *float64
}

// Write returns the study as a file that Parse reads, with comments for people.
func (d Declared) Write() []byte {
	var w writer
	w.linef(0, "# %s.", d.Summary)
	w.linef(0, "#")
	w.linef(0, "#     dpareto study create %s", cmp.Or(d.File, d.ID+".yaml"))
	agent := "dpareto agent --study " + d.ID
	if d.DataDir != "" && d.DataDir != "." {
		agent += " --data-dir " + d.DataDir
	}
	w.linef(0, "#     %s", agent)
	w.linef(0, "#     dpareto front %s --plot %s.svg", d.ID, d.ID)
	w.linef(0, "study_id: %s", d.ID)
	w.linef(0, "labels: {trainer: %s}", scalar(d.Trainer))
	w.linef(0, "")
	w.linef(0, "spec:")
	w.linef(1, "parameters:")
	for _, p := range d.Declaration.Parameters {
		w.parameter(p)
	}
	w.linef(0, "")
	w.linef(1, "metrics:")
	if p := d.Declaration.Privacy; p != nil {
		delta := p.Delta
		if d.Delta != nil {
			delta = *d.Delta
		}
		w.privacy(p, delta, d.EpsilonReference)
	}
	for _, m := range d.Declaration.Metrics {
		w.metric(m)
	}
	if c := d.Declaration.CheckpointParameter; c != "" {
		w.linef(0, "")
		w.linef(1, "# A run passes through the states of all shorter ones: each is a point of the front.")
		w.linef(1, "checkpoint_parameter: %s", c)
	}
	w.constants(d.Declaration)
	w.linef(0, "")
	if len(d.WithoutDatasets) > 0 {
		w.linef(1, "# The server knows runs on this dataset. The model does without them: they would be the answer.")
		w.linef(1, "algorithm: {dp_sgd_features: {without_datasets: [%s]}}", strings.Join(d.WithoutDatasets, ", "))
		w.linef(0, "")
	}
	w.linef(1, "budget: {max_trials: %d}", d.Trials)
	w.linef(1, "lease: {duration: 60s}")
	w.linef(0, "")
	w.linef(1, "# What agents run.")
	w.linef(1, "trainer:")
	w.linef(2, "name: %s", scalar(d.Trainer))
	if len(d.Settings) > 0 {
		w.linef(2, "settings:")
		for _, name := range slices.Sorted(maps.Keys(d.Settings)) {
			w.linef(3, "%s: %s", name, strconv.Quote(d.Settings[name]))
		}
	}
	return []byte(w.text.String())
}

// writer writes lines of YAML.
type writer struct{ text strings.Builder }

func (w *writer) linef(depth int, format string, args ...any) {
	line := strings.Repeat("  ", depth) + fmt.Sprintf(format, args...)
	w.text.WriteString(strings.TrimRight(line, " ") + "\n")
}

func (w *writer) parameter(p trainer.ParameterDeclaration) {
	w.linef(2, "- id: %-23s # %s", p.Name, p.Usage)
	domain := "double_domain"
	if p.Integer {
		domain = "integer_domain"
	}
	w.linef(3, "%s: {min: %s, max: %s}", domain, number(p.Min), number(p.Max))
	scale := "LINEAR"
	if p.Logarithmic {
		scale = "LOG"
	}
	w.linef(3, "scale: %s", scale)
	switch design := p.Design; design.Kind {
	case trainer.DistributionUniform:
		w.linef(3, "design: {uniform: {}}")
	case trainer.DistributionNormal:
		w.linef(3, "design: {normal: {mean: %s, standard_deviation: %s}}", number(design.Mean), number(design.StandardDeviation))
	case trainer.DistributionShiftedExponential:
		w.linef(3, "design: {shifted_exponential: {rate: %s, shift: %s}}", number(design.Rate), number(design.Shift))
	case trainer.DistributionDefault:
	}
}

func (w *writer) privacy(p *trainer.PrivacyDeclaration, delta, reference float64) {
	w.linef(2, "# ε of one run: the server computes it from the parameters, by the tightest accountant")
	w.linef(2, "# that is valid.")
	w.linef(2, "- id: epsilon")
	w.linef(3, "role: OBJECTIVE")
	w.linef(3, "goal: MINIMIZE")
	w.linef(3, "transform: LOG")
	w.linef(3, "reference_value: %s", number(reference))
	w.linef(3, "computed:")
	w.linef(4, "privacy:")
	w.linef(5, "%s:", p.Mechanism)
	for _, name := range slices.Sorted(maps.Keys(p.Fields)) {
		w.linef(6, "%s: %s", name, scalar(p.Fields[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Lists)) {
		var numbers []string
		for _, x := range p.Lists[name] {
			numbers = append(numbers, number(x))
		}
		w.linef(6, "%s: [%s]", name, strings.Join(numbers, ", "))
	}
	w.linef(5, "delta: %s", number(delta))
	w.linef(5, "adjacency: %s", p.Adjacency)
	if p.Accountant != "" {
		w.linef(5, "accountant: %s", p.Accountant)
	}
	if p.Conversion != "" {
		w.linef(5, "conversion: %s", p.Conversion)
	}
}

func (w *writer) metric(m trainer.MetricDeclaration) {
	w.linef(2, "- id: %-23s # %s", m.Name, m.Usage)
	if m.Objective {
		w.linef(3, "role: OBJECTIVE")
		w.linef(3, "goal: MINIMIZE")
		w.linef(3, "transform: %s", m.Transform)
		if m.Reference != 0 { // otherwise it follows from the results
			w.linef(3, "reference_value: %s", number(m.Reference))
		}
	} else {
		w.linef(3, "role: TRACKED")
	}
	if m.Unit != "" {
		w.linef(3, "unit: %s", m.Unit)
	}
	if m.SampleSize > 0 && m.Transform == trainer.TransformLogit {
		w.linef(3, "reported: {sample_size: %d}", m.SampleSize)
	} else {
		w.linef(3, "reported: {}")
	}
}

// constants writes the results that can be had without a run.
func (w *writer) constants(d trainer.Declaration) {
	if len(d.Constants) == 0 {
		return
	}
	w.linef(0, "")
	w.linef(1, "# What can be had without a run. The front lists nothing that is not better somewhere. The")
	w.linef(1, "# values must not come from records that private_mode would protect.")
	w.linef(1, "constant_points:")
	for _, c := range d.Constants {
		w.linef(2, "- id: %-24s# %s", c.Name, c.Usage)
		var values []string
		if d.Privacy != nil {
			values = append(values, "epsilon: 0")
		}
		for _, name := range slices.Sorted(maps.Keys(c.Values)) {
			values = append(values, name+": "+number(c.Values[name]))
		}
		w.linef(3, "display_name: %s", strconv.Quote(c.Usage))
		w.linef(3, "values: {%s}", strings.Join(values, ", "))
	}
}

// number returns x as YAML.
func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// scalar returns a string as YAML: quoted unless it is a plain name.
func scalar(text string) string {
	for i, r := range text {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_'
		inner := i > 0 && (r >= '0' && r <= '9' || r == '-')
		if !letter && !inner {
			return strconv.Quote(text)
		}
	}
	switch strings.ToLower(text) {
	case "", "true", "false", "yes", "no", "on", "off", "null", "y", "n":
		return strconv.Quote(text)
	}
	return text
}
