package words

import (
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
	"github.com/dpareto/dpareto/internal/show"
)

// Metric returns the name of a metric with its unit.
func Metric(m *dparetov1.MetricSpec) string {
	name := m.GetId()
	if name == "epsilon" && m.GetComputed().GetPrivacy() != nil {
		name = "ε"
	}
	if m.GetUnit() != "" {
		name += " (" + m.GetUnit() + ")"
	}
	return name
}

// Title returns text with a large first letter, unless it is one of the names that start with a
// Greek letter.
func Title(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if first > unicode.MaxASCII {
		return text
	}
	return string(unicode.ToUpper(first)) + text[size:]
}

// MetricValue returns a value of a metric: an ε is never rounded down.
func MetricValue(m *dparetov1.MetricSpec, v float64) string {
	if m.GetComputed().GetPrivacy() != nil {
		return Epsilon(v)
	}
	return show.Number(v)
}

// Measured returns the measured or computed value of a metric, "" for none.
func Measured(m *dparetov1.MetricSpec, v *dparetov1.MetricValue) string {
	if v == nil || v.Value == nil {
		return ""
	}
	return MetricValue(m, v.GetValue())
}

// Epsilon returns an upper bound, rounded up.
func Epsilon(epsilon float64) string {
	if math.IsInf(epsilon, 1) {
		return "no bound"
	}
	return show.NumberUp(epsilon)
}

// Time returns a time as a <time> element in UTC, which page.js turns into the reader's own time zone.
func Time(t time.Time) template.HTML {
	t = t.UTC()
	return template.HTML(`<time datetime="` + t.Format(time.RFC3339) + `">` + t.Format("2006-01-02 15:04:05") + ` UTC</time>`) //nolint:gosec // of a time
}

// Accountant names the accountant of a guarantee: of those that apply, the one with the smallest ε.
func Accountant(g *dparetov1.PrivacyGuarantee) string {
	text := show.AccountantText(g)
	for _, name := range []string{"rdp", "pld", "gdp", "zcdp"} {
		if strings.HasPrefix(text, name) {
			return strings.ReplaceAll(strings.ToUpper(name)+text[len(name):], "-", " ")
		}
	}
	return text
}

// Conditions returns the conditions of the ε of a guarantee: δ, adjacency and accountant.
func Conditions(g *dparetov1.PrivacyGuarantee) string {
	return DeltaOf(g.GetDelta()) + ", " + show.AdjacencyText(enum.Name(g.GetAdjacency())+" adjacency", g.GetAssumptions()) + ", " + Accountant(g) + " accountant"
}

// Guarantee returns an ε with everything that it depends on, and says that it is an upper bound.
func Guarantee(g *dparetov1.PrivacyGuarantee) string {
	if math.IsInf(g.GetEpsilon(), 1) {
		return "no bound on ε is known"
	}
	return "ε ≤ " + show.NumberUp(g.GetEpsilon()) + ", " + Conditions(g) + ", an upper bound"
}

// Plain states in a sentence the bound of the ε of a study; "" for a study without.
func Plain(spec *dparetov1.StudySpec) string {
	p := show.PrivacyMetric(spec).GetComputed().GetPrivacy()
	if p == nil {
		return ""
	}
	change := map[dparetov1.Adjacency]string{
		dparetov1.Adjacency_ADJACENCY_ADD_REMOVE: "one record added or removed", dparetov1.Adjacency_ADJACENCY_REPLACE_ONE: "one record replaced",
	}[p.GetAdjacency()]
	if change == "" {
		change = enum.Name(p.GetAdjacency()) + " adjacency"
	}
	return "ε is an upper bound for one training run at " + DeltaOf(p.GetDelta()) + " (" + change + ")."
}

// DeltaOf returns a δ.
func DeltaOf(delta float64) string {
	if delta == 0 {
		return show.DeltaText(0)
	}
	return "δ = " + show.Delta(delta)
}

// Three returns a value of a metric with three digits, trailing zeros among them: an ε is rounded up.
func Three(m *dparetov1.MetricSpec, v float64) string {
	if m.GetComputed().GetPrivacy() != nil {
		return Epsilon(v)
	}
	rounded := show.Rounded(v, 3)
	magnitude := math.Abs(rounded)
	if !(magnitude >= 1e-3 && magnitude < 100) {
		return show.Plain(rounded)
	}
	return strconv.FormatFloat(rounded, 'f', 2-int(math.Floor(math.Log10(magnitude))), 64)
}

// Seeded is said beside every ε of a study with seeded runs.
const Seeded = "Runs of this study were seeded, so that no ε holds for them: an ε is what a run of the configuration costs if its randomness is secret"

// EpsilonWithin returns an ε that meets a bound so that it is seen to: rounded up, unless that
// would exceed the bound.
func EpsilonWithin(epsilon, bound float64) string {
	text := Epsilon(epsilon)
	if rounded, err := strconv.ParseFloat(text, 64); err == nil && epsilon <= bound && rounded > bound {
		return show.Plain(epsilon)
	}
	return text
}

// Loosened returns a bound on a metric with few digits that a value meets.
func Loosened(m *dparetov1.MetricSpec, value float64) float64 {
	text := show.NumberUp(value)
	if m.GetGoal() == dparetov1.Goal_GOAL_MAXIMIZE {
		text = show.NumberDown(value)
	}
	if rounded, err := strconv.ParseFloat(text, 64); err == nil {
		return rounded
	}
	return value
}

// Meaning states the meaning of a metric if it is an ε, otherwise nothing.
func Meaning(m *dparetov1.MetricSpec) string {
	if m.GetComputed().GetPrivacy() == nil {
		return ""
	}
	return show.PrivacyStatement(&dparetov1.StudySpec{Metrics: []*dparetov1.MetricSpec{m}}) + ", an upper bound"
}

// Guarantees says what every ε among the objectives means, or, without one there, the study's first.
func Guarantees(spec *dparetov1.StudySpec) []string {
	var texts []string
	for _, m := range show.Objectives(spec) {
		if text := Meaning(m); text != "" {
			texts = append(texts, text)
		}
	}
	if text := Meaning(show.PrivacyMetric(spec)); texts == nil && text != "" {
		texts = append(texts, text)
	}
	if len(texts) > 1 {
		i := 0
		for _, m := range show.Objectives(spec) {
			if m.GetComputed().GetPrivacy() != nil {
				texts[i] = m.GetId() + ": " + texts[i]
				i++
			}
		}
	}
	return texts
}

// Configuration returns the values of parameters in a line, in the order of the study's parameters.
func Configuration(spec *dparetov1.StudySpec, values map[string]*dparetov1.Value) string {
	var parts []string
	for _, p := range spec.GetParameters() {
		if v, ok := values[p.GetId()]; ok {
			parts = append(parts, p.GetId()+" "+Value(v))
		}
	}
	return strings.Join(parts, ", ")
}

// Value returns the value of a parameter, rounded.
func Value(v *dparetov1.Value) string {
	if x, ok := v.GetKind().(*dparetov1.Value_DoubleValue); ok {
		return show.Number(x.DoubleValue)
	}
	return show.Value(v)
}

// Budget returns the limits of a study as people read them; limits of privacy come with their
// conditions.
func Budget(study *dparetov1.Study) string {
	var parts []string
	spec := study.GetSpec()
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
	if p := study.GetPublication(); spec.GetPrivateMode() != nil && p.GetTrain() != nil && p.GetTest() != nil {
		parts = append(parts, "privacy of all that it will ever show: for training records "+Guarantee(p.GetTrain())+"; for test records "+Guarantee(p.GetTest()))
	}
	if r := spec.GetRandomStopping(); r != nil {
		parts = append(parts, show.RandomTrials(r))
	}
	return strings.Join(parts, ", ")
}

// Percent returns a share in percent with as many digits as matter.
func Percent(x float64) string { return show.Number(100*x) + " %" }

// Share returns a share in whole percent.
func Share(x float64) string { return strconv.FormatFloat(math.Round(100*x), 'f', -1, 64) + " %" }

// PercentUp returns a share in percent, rounded up.
func PercentUp(x float64) string {
	if x >= 1 {
		return "100 %"
	}
	return show.NumberUp(100*x) + " %"
}

// Ratio returns a per b, and nothing where b is 0. b is an int32 or a float64.
func Ratio(a float64, b any) string {
	var divisor float64
	switch b := b.(type) {
	case int32:
		divisor = float64(b)
	case float64:
		divisor = b
	}
	if divisor == 0 {
		return ""
	}
	return show.Number(a / divisor)
}

// Minus returns the text of a number with a minus sign in place of the hyphen before it.
func Minus(text string) string {
	if rest, ok := strings.CutPrefix(text, "-"); ok {
		return "−" + rest
	}
	return text
}
