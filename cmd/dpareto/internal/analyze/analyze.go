package analyze

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
)

// question is what a command asks of a study.
type question struct {
	call  *remote.Call
	study *dparetov1.Study
	flags flags
}

type flags struct {
	contour []string
	metric  string
	fixed   map[string]string
	points  int32
	gain    int32
}

// answer is an answer of the server and how it is shown.
type answer struct {
	message  proto.Message
	warnings []*dparetov1.Warning
	section  output.Section
}

// sections are the analyses, in the order in which they are shown. Each has the name of its flag.
var sections = []struct {
	name    string
	isShown bool // where no analysis is asked for
	ask     func(context.Context, *question) (*answer, error)
}{
	{"importance", true, askImportance},
	{"slices", false, askSlices},
	{"contour", false, askContour},
	{"fit", false, askFit},
	{"gain", false, askGain},
}

// Command returns the command analyze.
func Command(env *command.Env) *cobra.Command {
	var f flags
	cmd := remote.Command(env, &cobra.Command{
		Use:   "analyze STUDY",
		Short: "Show the importance of parameters, predictions, and the gain of more runs",
		Long: `Shows an analysis of the parameters by the model behind the posterior front. By default this
is their importance for each objective: the share of its variation over the whole search space
that a parameter explains. The first order is by itself, the total together with others.

--slices shows the objectives along each parameter and --contour one objective over two. The other
parameters are held at the knee of the posterior front, or at the values of --fix. Measured
objectives have 90 % intervals of the mean of very many fresh runs; computed ones are exact.

--fit compares each measurement with the model's prediction without the runs of its
configuration. --gain shows the expected growth of the posterior front's hypervolume with the next runs.

JSON is an object with an answer for each analysis; CSV is one table.`,
		Example: `  dpareto study analyze svt
  dpareto study analyze svt --slices --metric error --output csv
  dpareto study analyze svt --contour noise_scale,cutoff --metric error --points 5
  dpareto study analyze svt --fit --gain 10`,
		Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, call *remote.Call) error { return analyze(ctx, call, f) })
	set := cmd.Flags()
	set.Bool("importance", false, "show the importance of the parameters; the default")
	set.Bool("slices", false, "show the objectives along each parameter")
	set.StringSliceVar(&f.contour, "contour", nil, "show an objective over two parameters: X,Y")
	set.Bool("fit", false, "show how well the model predicts measurements that were left out")
	set.Int32Var(&f.gain, "gain", 0, "show the expected gain of this many further runs; at most 50")
	set.StringVar(&f.metric, "metric", "", "objective to show; default all, or the first measured one for --contour")
	set.StringToStringVar(&f.fixed, "fix", nil, "value at which a parameter is held, as PARAMETER=VALUE; name all active parameters")
	set.Int32Var(&f.points, "points", 0, "number of values of a continuous parameter; default 41, or 25 for --contour")
	return cmd
}

func analyze(ctx context.Context, call *remote.Call, f flags) error {
	if len(f.contour) != 0 && len(f.contour) != 2 {
		return command.Usagef("--contour: must be two parameters, as X,Y")
	}
	if call.Changed("gain") && f.gain < 1 {
		return command.Usagef("--gain: must be at least 1, is %d", f.gain)
	}
	study, err := call.Handle(call.Args[0]).Get(ctx)
	if err != nil {
		return err
	}
	q := &question{call, study, f}
	if err := q.checkMetric(); err != nil {
		return err
	}
	report := &output.Report{Title: view.Title(study)}
	if statement := show.PrivacyStatement(study.GetSpec()); statement != "" {
		report.Notes = append(report.Notes, statement)
	}
	var names []string
	var messages []proto.Message
	asked := false
	for _, s := range sections {
		asked = asked || call.Changed(s.name)
	}
	for _, s := range sections {
		if asked && !call.Changed(s.name) || !asked && !s.isShown {
			continue
		}
		a, err := s.ask(ctx, q)
		if err != nil {
			return err
		}
		for _, w := range a.warnings {
			a.section.Notes = append(a.section.Notes, "note: "+w.GetMessage())
		}
		a.section.Name = s.name
		report.Sections = append(report.Sections, a.section)
		names, messages = append(names, s.name), append(messages, a.message)
	}
	if call.Out.Format == output.JSON {
		return view.WriteNamed(call.Out, names, messages)
	}
	return report.Write(call.Out, call.Out.Format)
}

// checkMetric checks the flag --metric.
func (q *question) checkMetric() error {
	var ids []string
	for _, m := range show.Objectives(q.study.GetSpec()) {
		if m.GetId() == q.flags.metric {
			return nil
		}
		ids = append(ids, m.GetId())
	}
	if q.flags.metric == "" {
		return nil
	}
	return command.Usagef("--metric: %q is not an objective of the study; it has %s", q.flags.metric, strings.Join(ids, ", "))
}

// shows reports whether an objective is shown.
func (q *question) shows(metric string) bool {
	return q.flags.metric == "" || q.flags.metric == metric
}

// fixed returns the configuration at which parameters are held, nil for the default.
func (q *question) fixed() (map[string]*dparetov1.Value, error) {
	if len(q.flags.fixed) == 0 {
		return nil, nil //nolint:nilnil // the default
	}
	values := make(map[string]*dparetov1.Value)
	for id, text := range q.flags.fixed {
		value, err := view.NamedValue(q.study.GetSpec(), id, text)
		if err != nil {
			return nil, command.Usagef("--fix: %w", err)
		}
		values[id] = value
	}
	return values, nil
}

// value returns the cell of an objective's value. An ε is rounded up.
func (q *question) value(metric string, x float64) any {
	if m := show.PrivacyMetric(q.study.GetSpec()); m != nil && m.GetId() == metric {
		return output.Bound(x)
	}
	return x
}

// held returns the configuration at which parameters were held in words.
func (q *question) held(parameters map[string]*dparetov1.Value, but ...string) string {
	var parts []string
	for _, p := range q.study.GetSpec().GetParameters() {
		id := p.GetId()
		if v, ok := parameters[id]; ok && !slices.Contains(but, id) {
			parts = append(parts, id+" = "+output.Cell(view.Value(v)))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " at " + strings.Join(parts, ", ")
}

// failed returns the error of a call.
func (q *question) failed(what string, err error) error {
	return &remote.CallError{Action: fmt.Sprintf("%s of %s", what, q.study.GetName()), Err: err}
}
