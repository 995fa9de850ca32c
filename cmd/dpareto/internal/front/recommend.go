package front

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
)

// recommendFlags say which configuration to recommend.
type recommendFlags struct {
	study        string
	epsilon      float64
	hasEpsilon   bool
	max, min     map[string]string
	confidence   float64
	optimize     string
	measuredOnly bool
}

// RecommendCommand returns the command recommend.
func RecommendCommand(env *command.Env) *cobra.Command {
	var f recommendFlags
	cmd := remote.Command(env, &cobra.Command{
		Use:   "recommend STUDY",
		Short: "Recommend a configuration for a bound on ε or on an error",
		Long: `Recommends a configuration for bounds on objectives: the one that makes another objective as
good as they allow. Computed metrics, ε included, are exact, and at their bound where that
is best. Measured ones meet theirs with the probability --confidence, by the model that
chooses the posterior front.

The configuration need not have been run: then the answer says so, and is a prediction. With
a confidence above 0.5 only configurations that were run are recommended. If no model agrees
with the measurements, a warning says that nothing holds with confidence.
--measured-only recommends only measured configurations. If no configuration meets the bounds, the answer
is the one that comes nearest, and the exit code is 1.`,
		Example: `  dpareto recommend svt --epsilon 1
  dpareto recommend svt --max error=0.2 --confidence 0.9
  dpareto recommend svt --epsilon 1 --measured-only --output json`,
	}, func(ctx context.Context, call *remote.Call) error {
		f.hasEpsilon = call.Changed("epsilon")
		return recommend(ctx, call, f)
	})
	flags := cmd.Flags()
	remote.TakeStudy(cmd, &f.study)
	flags.Float64Var(&f.epsilon, "epsilon", 0, "largest ε")
	flags.StringToStringVar(&f.max, "max", nil, "largest value of an objective to minimise, as METRIC=VALUE")
	flags.StringToStringVar(&f.min, "min", nil, "smallest value of an objective to maximise, as METRIC=VALUE")
	flags.Float64Var(&f.confidence, "confidence", 0.5, "probability with which the bounds on measured objectives must hold")
	flags.StringVar(&f.optimize, "optimize", "", "objective to make as good as possible; default: the first without a bound")
	flags.BoolVar(&f.measuredOnly, "measured-only", false, "recommend only measured configurations")
	return cmd
}

func recommend(ctx context.Context, call *remote.Call, f recommendFlags) error {
	if !f.hasEpsilon && len(f.max) == 0 && len(f.min) == 0 {
		return command.Usagef("recommend: a bound is required: --epsilon, --max or --min")
	}
	if f.hasEpsilon && (!(f.epsilon > 0) || math.IsInf(f.epsilon, 1)) {
		return command.Usagef("--epsilon: must be positive and finite, is %g", f.epsilon)
	}
	handle := call.Handle(f.study)
	study, err := handle.Get(ctx)
	if err != nil {
		return err
	}
	bounds, err := f.bounds(study.GetSpec())
	if err != nil {
		return command.Usage(err)
	}
	resp, err := call.Fronts.QueryFront(ctx, &dparetov1.QueryFrontRequest{
		Name: handle.Name(), Bounds: bounds, Confidence: f.confidence, Optimize: f.optimize, MeasuredOnly: f.measuredOnly,
	})
	if err != nil {
		return &remote.CallError{Action: "query the front of " + handle.Name(), Err: err}
	}
	if err := call.Out.Heading(recommendationHeading(study, bounds, f.confidence, resp)); err != nil {
		return err
	}
	if err := view.Print(call.Out, recommendation(study.GetSpec(), resp), resp); err != nil {
		return err
	}
	if !resp.GetReachable() {
		return errors.New("no configuration meets the bounds")
	}
	return nil
}

// bounds returns the bounds by metric.
func (f *recommendFlags) bounds(spec *dparetov1.StudySpec) (map[string]float64, error) {
	bounds := make(map[string]float64)
	goals := make(map[string]dparetov1.Goal)
	for _, m := range spec.GetMetrics() {
		if m.GetRole() == dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE {
			goals[m.GetId()] = m.GetGoal()
		}
	}
	add := func(flag string, values map[string]string, goal dparetov1.Goal, other string) error {
		for id, text := range values {
			value, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return fmt.Errorf("--%s %s: must be a number, is %q", flag, id, text)
			}
			if g, ok := goals[id]; ok && g != goal {
				return fmt.Errorf("--%s %s: the study has the other goal for it; use --%s", flag, id, other)
			}
			bounds[id] = value
		}
		return nil
	}
	if err := add("max", f.max, dparetov1.Goal_GOAL_MINIMIZE, "min"); err != nil {
		return nil, err
	}
	if err := add("min", f.min, dparetov1.Goal_GOAL_MAXIMIZE, "max"); err != nil {
		return nil, err
	}
	if f.hasEpsilon {
		metric := show.PrivacyMetric(spec)
		if metric == nil {
			return nil, errors.New("--epsilon: the study has no metric that is computed from a mechanism; use --max")
		}
		bounds[metric.GetId()] = f.epsilon
	}
	return bounds, nil
}

// recommendation returns a table of a recommended configuration, in one row; none where
// nothing is known yet.
func recommendation(spec *dparetov1.StudySpec, r *dparetov1.QueryFrontResponse) *output.Table {
	t := &output.Table{Columns: []string{"reachable"}}
	row := []any{strconv.FormatBool(r.GetReachable())}
	add := func(column string, cell any) {
		t.Columns, row = append(t.Columns, column), append(row, cell)
	}
	for _, m := range spec.GetMetrics() {
		id := m.GetId()
		p, v := r.GetPredictions()[id], r.GetComputedMetrics()[id]
		reached, ok := r.GetReached()[id]
		switch {
		case p != nil:
			add(id, p.GetMedian())
			add(id+"_lower", p.GetLower())
			add(id+"_upper", p.GetUpper())
			add(id+"_reached", reached)
		case v != nil && v.Value == nil:
			add(id, nil)
		case v.GetPrivacy() != nil:
			add(id, output.Bound(v.GetValue()))
		case v != nil:
			add(id, v.GetValue())
		case ok: // a constant point, or a measured value
			add(id, reached)
		}
	}
	for _, p := range spec.GetParameters() {
		add(p.GetId(), view.Value(r.GetParameters()[p.GetId()]))
	}
	ids := make([]string, len(r.GetTrials()))
	for i, name := range r.GetTrials() {
		ids[i] = view.ID(name)
	}
	add("trials", strings.Join(ids, " "))
	add("runs", r.GetRuns())
	if r.GetConstantPoint() != "" {
		add("constant_point", r.GetConstantPoint())
	}
	if len(r.GetParameters()) > 0 || r.GetConstantPoint() != "" {
		t.Rows = append(t.Rows, row)
	}
	return t
}

// recommendationHeading returns the lines above the table of a recommendation.
func recommendationHeading(study *dparetov1.Study, bounds map[string]float64, confidence float64, r *dparetov1.QueryFrontResponse) []string {
	conditions := make([]string, 0, len(bounds))
	for _, m := range study.GetSpec().GetMetrics() {
		bound, ok := bounds[m.GetId()]
		if !ok {
			continue
		}
		relation := " ≤ "
		if m.GetGoal() == dparetov1.Goal_GOAL_MAXIMIZE {
			relation = " ≥ "
		}
		conditions = append(conditions, m.GetId()+relation+show.Plain(bound))
	}
	lines := []string{fmt.Sprintf("%s: the best %s with %s, confidence %s", view.Title(study), r.GetOptimize(), strings.Join(conditions, ", "), show.Plain(confidence))}
	if statement := show.PrivacyStatement(study.GetSpec()); statement != "" {
		lines = append(lines, statement)
	}
	if id := r.GetConstantPoint(); id != "" {
		lines = append(lines, "note: nothing has to be run: "+show.ConstantPoint(study.GetSpec(), id))
	}
	if !r.GetReachable() && (len(r.GetParameters()) > 0 || r.GetConstantPoint() != "") {
		lines = append(lines, "note: not reachable; this is the nearest configuration")
	}
	for _, w := range r.GetWarnings() {
		lines = append(lines, "note: "+w.GetMessage())
	}
	return lines
}
