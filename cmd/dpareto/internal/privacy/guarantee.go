package privacy

import (
	"encoding/json"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
	"github.com/dpareto/dpareto/internal/show"
)

// Columns and fields of several tables.
const (
	adjacencyColumn   = "adjacency"
	deltaColumn       = "delta"
	epsilonColumn     = "epsilon"
	mechanismColumn   = "mechanism"
	sensitivityColumn = "sensitivity"
)

// lengthEpochs is the unit of a length in epochs.
const lengthEpochs = "epochs"

// Guarantee is a privacy guarantee as it is printed, together with what it is about.
type Guarantee struct {
	// Mechanism is the name of the mechanism.
	Mechanism string
	// Length is the number of epochs or steps, in the unit LengthName, for which the
	// guarantee holds; 0 without one.
	Length     int64
	LengthName string
	// Solved is the value that was solved for, of the flag SolvedName, or nil.
	Solved     *dparetov1.Value
	SolvedName string
	// Message is the guarantee itself.
	Message *dparetov1.PrivacyGuarantee
	// Derived are further quantities by name.
	Derived map[string]float64
}

// jsonGuarantee is the JSON form of a Guarantee.
type jsonGuarantee struct {
	Mechanism    string                `json:"mechanism"`
	SolvedFor    string                `json:"solved_for,omitempty"`
	Value        any                   `json:"value,omitempty"`
	Epochs       int64                 `json:"epochs,omitempty"`
	Epsilon      jsonNumber            `json:"epsilon"`
	EpsilonLower jsonNumber            `json:"epsilon_lower"`
	Delta        jsonNumber            `json:"delta"`
	Adjacency    string                `json:"adjacency"`
	Accountant   string                `json:"accountant"`
	Conversion   string                `json:"conversion,omitempty"`
	Order        jsonNumber            `json:"order,omitempty"`
	Steps        int64                 `json:"steps"`
	Derived      map[string]jsonNumber `json:"derived,omitempty"`
	Assumptions  []jsonAssumption      `json:"assumptions"`
	Warnings     []jsonWarning         `json:"warnings"`
}

type jsonAssumption struct {
	Text      string `json:"text"`
	Premise   string `json:"premise"`
	CheckedBy string `json:"checked_by"`
}

type jsonWarning struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// jsonNumber is a number that may be one that JSON has not: infinite or none.
type jsonNumber float64

// MarshalJSON implements json.Marshaler: "Infinity" as in the JSON form of messages.
func (x jsonNumber) MarshalJSON() ([]byte, error) {
	switch f := float64(x); {
	case math.IsInf(f, 1):
		return []byte(`"Infinity"`), nil
	case math.IsInf(f, -1):
		return []byte(`"-Infinity"`), nil
	case math.IsNaN(f):
		return []byte(`"NaN"`), nil
	default:
		return json.Marshal(f)
	}
}

func (g Guarantee) json() jsonGuarantee {
	m := g.Message
	out := jsonGuarantee{
		Mechanism:    g.Mechanism,
		Epsilon:      jsonNumber(m.GetEpsilon()),
		EpsilonLower: jsonNumber(m.GetEpsilonLower()),
		Delta:        jsonNumber(m.GetDelta()),
		Adjacency:    enum.Underscored(m.GetAdjacency()),
		Accountant:   enum.Underscored(m.GetAccountant()),
		Order:        jsonNumber(m.GetOrder()),
		Steps:        m.GetSteps(),
		Assumptions:  make([]jsonAssumption, 0, len(m.GetAssumptions())),
		Warnings:     make([]jsonWarning, 0, len(m.GetWarnings())),
	}
	if len(g.Derived) > 0 {
		out.Derived = make(map[string]jsonNumber, len(g.Derived))
		for name, x := range g.Derived {
			out.Derived[name] = jsonNumber(x)
		}
	}
	for _, a := range m.GetAssumptions() {
		out.Assumptions = append(out.Assumptions, jsonAssumption{a.GetText(), enum.Underscored(a.GetPremise()), enum.Underscored(a.GetCheckedBy())})
	}
	out.Conversion = show.Conversion(m.GetConversion())
	if g.LengthName == lengthEpochs {
		out.Epochs = g.Length
	}
	if g.Solved != nil {
		out.SolvedFor, out.Value = g.SolvedName, view.Value(g.Solved)
	}
	for _, w := range m.GetWarnings() {
		out.Warnings = append(out.Warnings, jsonWarning{w.GetCode(), w.GetMessage()})
	}
	return out
}

// writeGuarantee prints a guarantee as a JSON object.
func writeGuarantee(w io.Writer, g Guarantee) error { return output.WriteJSON(w, g.json()) }

// writeGuarantees prints guarantees as a JSON array.
func writeGuarantees(w io.Writer, guarantees []Guarantee) error {
	all := make([]jsonGuarantee, len(guarantees))
	for i, g := range guarantees {
		all[i] = g.json()
	}
	return output.WriteJSON(w, all)
}

// Table returns a table of the guarantee, a row for every field.
func (g Guarantee) Table() *output.Table {
	m := g.Message
	t := output.FieldTable()
	add := func(field string, value string) { t.Rows = append(t.Rows, []any{field, value}) }
	add(mechanismColumn, g.Mechanism)
	if g.Solved != nil {
		add(g.SolvedName, output.Full(view.Value(g.Solved)))
	}
	add("ε", output.Cell(output.Bound(m.GetEpsilon()))+" at most")
	if m.EpsilonLower != nil {
		add("", output.Cell(output.LowerBound(m.GetEpsilonLower()))+" at least")
	}
	if m.GetDelta() == 0 {
		add("δ", "0, pure differential privacy")
	} else {
		add("δ", show.Plain(m.GetDelta()))
	}
	add(adjacencyColumn, enum.Name(m.GetAdjacency()))
	add("accountant", show.AccountantText(m))
	if m.GetOrder() > 0 {
		add("order", show.Number(m.GetOrder()))
	}
	add("steps", strconv.FormatInt(m.GetSteps(), 10))
	for _, name := range slices.Sorted(maps.Keys(g.Derived)) {
		add(name, strconv.FormatFloat(g.Derived[name], 'g', 8, 64))
	}
	for i, assumption := range m.GetAssumptions() {
		field := ""
		if i == 0 {
			field = "provided that"
		}
		add(field, show.Assumption(assumption))
	}
	for _, w := range m.GetWarnings() {
		add("warning", w.GetMessage()+" ("+w.GetCode()+")")
	}
	return t
}

// Guarantees returns a table of guarantees for several lengths or δ for people, a row
// for each. What all of them share is in [guaranteesHeading].
func Guarantees(guarantees []Guarantee) *output.Table {
	t := &output.Table{Columns: []string{"steps", epsilonColumn, "epsilon_lower", deltaColumn}}
	withEpochs := len(guarantees) > 0 && guarantees[0].LengthName == lengthEpochs
	if withEpochs {
		t.Columns = append([]string{lengthEpochs}, t.Columns...)
	}
	withAccountant := !sameAccountant(guarantees)
	if withAccountant {
		t.Columns = append(t.Columns, "accountant")
	}
	for _, g := range guarantees {
		m := g.Message
		row := []any{m.GetSteps(), output.Bound(m.GetEpsilon()), output.LowerBound(m.GetEpsilonLower()), output.Bound(m.GetDelta())}
		if withEpochs {
			row = append([]any{g.Length}, row...)
		}
		if withAccountant {
			row = append(row, show.AccountantText(m))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// guaranteesCSV returns a table of guarantees for programs: every row stands for itself.
// The columns solved_for and value are there if the guarantees were solved for.
func guaranteesCSV(guarantees []Guarantee) *output.Table {
	t := &output.Table{Columns: []string{mechanismColumn}}
	solved := len(guarantees) > 0 && guarantees[0].Solved != nil
	if solved {
		t.Columns = append(t.Columns, "solved_for", "value")
	}
	t.Columns = append(t.Columns, lengthEpochs, "steps", epsilonColumn, "epsilon_lower", deltaColumn,
		adjacencyColumn, "accountant", "conversion", "order", "assumptions", "warnings")
	for _, g := range guarantees {
		m := g.Message
		row := []any{g.Mechanism}
		if solved {
			row = append(row, g.SolvedName, view.Value(g.Solved))
		}
		var epochs, order any
		if g.LengthName == lengthEpochs {
			epochs = g.Length
		}
		if m.GetOrder() > 0 {
			order = m.GetOrder()
		}
		codes := make([]string, len(m.GetWarnings()))
		for i, w := range m.GetWarnings() {
			codes[i] = w.GetCode()
		}
		t.Rows = append(t.Rows, append(row, epochs, m.GetSteps(), m.GetEpsilon(), m.GetEpsilonLower(), m.GetDelta(),
			enum.Underscored(m.GetAdjacency()), enum.Underscored(m.GetAccountant()),
			show.Conversion(m.GetConversion()), order, strings.Join(assumptionTexts(m.GetAssumptions()), "; "), strings.Join(codes, ";")))
	}
	return t
}

// sameAccountant reports whether one accountant gave all guarantees.
func sameAccountant(guarantees []Guarantee) bool {
	return !slices.ContainsFunc(guarantees, func(g Guarantee) bool {
		return show.AccountantText(g.Message) != show.AccountantText(guarantees[0].Message)
	})
}

// guaranteesHeading returns what guarantees of one mechanism have in common.
func guaranteesHeading(guarantees []Guarantee) string {
	m := guarantees[0].Message
	heading := guarantees[0].Mechanism + ", " + enum.Name(m.GetAdjacency()) + " adjacency"
	if sameAccountant(guarantees) {
		heading += ", accountant " + show.AccountantText(m)
	}
	return heading
}

// guaranteesAssumptions returns the assumptions of guarantees, each once.
func guaranteesAssumptions(guarantees []Guarantee) []string {
	var all []*dparetov1.Assumption
	for _, g := range guarantees {
		all = show.JoinAssumptions(all, g.Message.GetAssumptions())
	}
	lines := assumptionTexts(all)
	for i := range lines {
		lines[i] = "provided that " + lines[i]
	}
	return lines
}

func assumptionTexts(all []*dparetov1.Assumption) []string {
	texts := make([]string, len(all))
	for i, a := range all {
		texts[i] = show.Assumption(a)
	}
	return texts
}

// guaranteesWarnings returns the warnings of guarantees, each kind once.
func guaranteesWarnings(guarantees []Guarantee) []string {
	var lines []string
	seen := make(map[string]bool)
	for _, g := range guarantees {
		for _, w := range g.Message.GetWarnings() {
			if !seen[w.GetCode()] {
				seen[w.GetCode()] = true
				lines = append(lines, "warning: "+w.GetMessage()+" ("+w.GetCode()+")")
			}
		}
	}
	return lines
}
