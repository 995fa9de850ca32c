package web

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
	"github.com/dpareto/dpareto/internal/show"
)

// metricText returns the name of a metric with its unit.
func metricText(m *dparetov1.MetricSpec) string {
	name := m.GetId()
	if name == "epsilon" && m.GetComputed().GetPrivacy() != nil {
		name = "ε"
	}
	if m.GetUnit() != "" {
		name += " (" + m.GetUnit() + ")"
	}
	return name
}

// title returns text with a large first letter, unless it is one of the names that start with a
// Greek letter.
func title(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if first > unicode.MaxASCII {
		return text
	}
	return string(unicode.ToUpper(first)) + text[size:]
}

// metricNumber returns a value of a metric: an ε is never rounded down.
func metricNumber(m *dparetov1.MetricSpec, v float64) string {
	if m.GetComputed().GetPrivacy() != nil {
		return show.NumberUp(v)
	}
	return show.Number(v)
}

// adjacencyText returns an adjacency as people read it.
func adjacencyText(a dparetov1.Adjacency) string { return enum.Name(a) + " adjacency" }

// guarantees says what every ε among the objectives means, or, without one there, the study's first.
func guarantees(spec *dparetov1.StudySpec) []string {
	var texts []string
	for _, m := range objectives(spec) {
		if m.GetComputed().GetPrivacy() != nil {
			texts = append(texts, show.PrivacyStatement(&dparetov1.StudySpec{Metrics: []*dparetov1.MetricSpec{m}})+", an upper bound")
		}
	}
	if m := show.PrivacyMetric(spec); texts == nil && m != nil {
		texts = append(texts, show.PrivacyStatement(spec)+", an upper bound")
	}
	if len(texts) > 1 {
		i := 0
		for _, m := range objectives(spec) {
			if m.GetComputed().GetPrivacy() != nil {
				texts[i] = m.GetId() + ": " + texts[i]
				i++
			}
		}
	}
	return texts
}

// parametersText returns a configuration in a line, in the order of the study's parameters.
func parametersText(spec *dparetov1.StudySpec, values map[string]*dparetov1.Value) string {
	var parts []string
	for _, p := range spec.GetParameters() {
		if v, ok := values[p.GetId()]; ok {
			parts = append(parts, p.GetId()+" "+valueText(v))
		}
	}
	return strings.Join(parts, ", ")
}

// domainText returns the domain of a parameter as people read it.
func domainText(p *dparetov1.ParameterSpec) string {
	switch d := p.GetDomain().(type) {
	case *dparetov1.ParameterSpec_DoubleDomain:
		return "from " + show.Plain(d.DoubleDomain.GetMin()) + " to " + show.Plain(d.DoubleDomain.GetMax())
	case *dparetov1.ParameterSpec_IntegerDomain:
		return "whole numbers from " + strconv.FormatInt(d.IntegerDomain.GetMin(), 10) + " to " + strconv.FormatInt(d.IntegerDomain.GetMax(), 10)
	case *dparetov1.ParameterSpec_DiscreteDomain:
		var values []string
		for _, v := range d.DiscreteDomain.GetValues() {
			values = append(values, show.Plain(v))
		}
		return "one of " + strings.Join(values, ", ")
	case *dparetov1.ParameterSpec_CategoricalDomain:
		return "one of " + strings.Join(d.CategoricalDomain.GetCategories(), ", ")
	default:
		return ""
	}
}

// budgetText returns the limits of a study as people read them, without the number of trials; that
// of privacy comes with its conditions.
func budgetText(spec *dparetov1.StudySpec) string {
	var parts []string
	b := spec.GetBudget()
	if b.GetMaxTrials() > 0 {
		parts = append(parts, strconv.FormatInt(b.GetMaxTrials(), 10)+" trials")
	}
	if b.GetMaxDuration() != nil {
		parts = append(parts, show.Duration(b.GetMaxDuration().AsDuration()))
	}
	if b.GetMaxStagnantTrials() > 0 {
		parts = append(parts, strconv.FormatInt(b.GetMaxStagnantTrials(), 10)+" trials without progress")
	}
	if p := spec.GetPrivateMode(); p != nil {
		parts = append(parts, "privacy of all that it shows: ε "+show.NumberUp(p.GetTrainEpsilon())+" for training records, "+
			show.NumberUp(p.GetTestEpsilon())+" for test records, each with "+show.DeltaText(p.GetDelta()))
	}
	if r := spec.GetRandomStopping(); r != nil {
		parts = append(parts, "a secret number of trials, "+show.Number(r.GetMeanTrials())+" in the mean")
	}
	return strings.Join(parts, ", ")
}

// label is a label of a study and where it leads.
type label struct{ Key, Value, Path string }

// labelsOf returns labels in the order of their keys.
func labelsOf(labels map[string]string, path func(key, value string) string) []label {
	var out []label
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, label{key, labels[key], path(key, labels[key])})
	}
	return out
}
