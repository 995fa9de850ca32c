package trials

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server/web/site"
)

// parameterPrefix begins the names of fields that are values of parameters.
const parameterPrefix = "parameters."

// queuePage is what queue.html shows: a form for a configuration.
type queuePage struct {
	site.Page

	Form   *site.Form
	Inputs []parameterInput
	// Constraints are the constraints on a configuration.
	Constraints []string
}

// parameterInput is the field of a parameter.
type parameterInput struct {
	ID       string
	Name     string // of the field
	Value    string
	Error    string
	Hint     string   // the domain, and the condition
	Options  []string // to choose from; nil for numbers
	Whole    bool
	Optional bool
	Min, Max string
}

// queueForm shows a form for a configuration, filled in by the query:
// /studies/{study}/queue?parameters.ID=VALUE.
func (s views) queueForm(w http.ResponseWriter, r *http.Request) error {
	return s.renderQueue(w, r, http.StatusOK, &site.Form{Values: r.URL.Query()})
}

func (s views) renderQueue(w http.ResponseWriter, r *http.Request, code int, f *site.Form) error {
	frame, err := s.NewPage(r, "Queue a configuration")
	if err != nil {
		return err
	}
	frame.View = trialsView
	p := &queuePage{Page: *frame, Form: f, Constraints: frame.Study.GetSpec().GetParameterConstraints()}
	for _, parameter := range frame.Study.GetSpec().GetParameters() {
		p.Inputs = append(p.Inputs, newParameterInput(parameter, f))
	}
	s.Render(w, code, "queue", p)
	return nil
}

func newParameterInput(p *dparetov1.ParameterSpec, f *site.Form) parameterInput {
	name := parameterPrefix + p.GetId()
	in := parameterInput{ID: p.GetId(), Name: name, Value: f.Value(name), Error: f.Error(name)}
	var hints []string
	switch d := p.GetDomain().(type) {
	case *dparetov1.ParameterSpec_DoubleDomain:
		in.Min, in.Max = show.Plain(d.DoubleDomain.GetMin()), show.Plain(d.DoubleDomain.GetMax())
	case *dparetov1.ParameterSpec_IntegerDomain:
		in.Min, in.Max, in.Whole = strconv.FormatInt(d.IntegerDomain.GetMin(), 10), strconv.FormatInt(d.IntegerDomain.GetMax(), 10), true
	case *dparetov1.ParameterSpec_DiscreteDomain:
		for _, x := range d.DiscreteDomain.GetValues() {
			in.Options = append(in.Options, show.Plain(x))
		}
	case *dparetov1.ParameterSpec_CategoricalDomain:
		in.Options = d.CategoricalDomain.GetCategories()
	}
	if in.Min != "" {
		hints = append(hints, in.Min+" to "+in.Max)
	}
	if c := p.GetCondition(); c != nil {
		in.Optional = true
		var values []string
		for _, v := range c.GetValues() {
			values = append(values, show.Value(v))
		}
		hints = append(hints, "used only where "+c.GetParent()+" is "+strings.Join(values, " or "))
	}
	in.Hint = strings.Join(hints, ", ")
	return in
}

// queue creates a trial that waits for a worker: POST /studies/{study}/queue.
func (s views) queue(w http.ResponseWriter, r *http.Request) error {
	f, err := site.NewForm(r)
	if err != nil {
		return err
	}
	study, err := s.Studies.GetStudy(site.Outgoing(r), &dparetov1.GetStudyRequest{Name: site.StudyName(r)})
	if err != nil {
		return err
	}
	spec := study.GetStudy().GetSpec()
	code := http.StatusUnprocessableEntity
	parameters := configurationOf(f, spec)
	if len(f.Errors) == 0 {
		resp, err := s.Studies.CreateTrial(site.Outgoing(r), &dparetov1.CreateTrialRequest{
			Parent: site.StudyName(r), Trial: &dparetov1.Trial{Parameters: parameters, Note: f.Value(noteField)}, RequestId: f.Value("request_id"),
		})
		if err == nil {
			return done(w, r, studyPath(r)+"/trials/"+url.PathEscape(site.ID(resp.GetTrial().GetName())))
		}
		var ok bool
		if code, ok = f.Refuse(err, queueField); !ok {
			return err
		}
	}
	return s.renderQueue(w, r, code, f)
}

// queueField returns the field of the form for the path of a field of CreateTrial.
func queueField(path string) string {
	if quoted, ok := strings.CutPrefix(path, "trial.parameters["); ok {
		if id, err := strconv.Unquote(strings.TrimSuffix(quoted, "]")); err == nil {
			return parameterPrefix + id
		}
	}
	return fields("trial", noteField)(path)
}

// configurationOf reads the values of the parameters that exist, and notes their errors. A value of
// a parameter whose condition does not hold is left out, so that the form need not know conditions.
func configurationOf(f *site.Form, spec *dparetov1.StudySpec) map[string]*dparetov1.Value {
	values := make(map[string]*dparetov1.Value)
	for _, p := range spec.GetParameters() {
		name := parameterPrefix + p.GetId()
		text := f.Value(name)
		if p.GetCategoricalDomain() == nil {
			text = strings.TrimSpace(text)
		}
		if text == "" {
			continue // the server says whether it is needed
		}
		value := new(dparetov1.Value)
		switch {
		case p.GetCategoricalDomain() != nil:
			value.Kind = &dparetov1.Value_StringValue{StringValue: text}
		case p.GetIntegerDomain() != nil:
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				f.Add(name, "must be a whole number")
			}
			value.Kind = &dparetov1.Value_IntValue{IntValue: n}
		default:
			x, err := strconv.ParseFloat(text, 64)
			if err != nil {
				f.Add(name, "must be a number")
			}
			value.Kind = &dparetov1.Value_DoubleValue{DoubleValue: x}
		}
		values[p.GetId()] = value
	}
	for dropped := true; dropped; {
		dropped = false
		for _, p := range spec.GetParameters() {
			if _, ok := values[p.GetId()]; ok && !holds(p.GetCondition(), values) {
				delete(values, p.GetId())
				delete(f.Errors, parameterPrefix+p.GetId())
				dropped = true
			}
		}
	}
	return values
}

// holds reports whether a condition holds, nil always.
func holds(c *dparetov1.Condition, values map[string]*dparetov1.Value) bool {
	parent := values[c.GetParent()]
	return c == nil || parent != nil && slices.ContainsFunc(c.GetValues(), func(v *dparetov1.Value) bool { return show.Value(v) == show.Value(parent) })
}
