package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// recommendFlags say which configuration is wanted.
type recommendFlags struct {
	study        string
	epsilon      float64
	hasEpsilon   bool
	max, min     map[string]string
	confidence   float64
	optimize     string
	measuredOnly bool
}

func (a *app) recommendCommand() *cobra.Command {
	var f recommendFlags
	cmd := &cobra.Command{
		Use:   "recommend STUDY",
		Short: "Recommend a configuration for a bound on ε or on an error",
		Long: `Recommends a configuration for bounds on objectives: the one that makes another objective
as good as they allow. ε and other computed metrics are exact, and at their bound where
that is best; measured ones meet theirs with the probability --confidence, by the model
that chooses the posterior front.

The configuration need not have been run: then the answer says so, and is a prediction.
--measured-only recommends what was run. Where nothing meets the bounds, the answer is what
comes nearest, and the command ends with the exit code 1.`,
		Example: `  dpareto recommend svt --epsilon 1
  dpareto recommend svt --max error=0.2 --confidence 0.9
  dpareto recommend svt --epsilon 1 --measured-only --output json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.hasEpsilon = cmd.Flags().Changed("epsilon")
			return a.recommend(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	takeStudy(cmd, &f.study)
	flags.Float64Var(&f.epsilon, "epsilon", 0, "largest ε")
	flags.StringToStringVar(&f.max, "max", nil, "largest value of an objective to minimise, as METRIC=VALUE")
	flags.StringToStringVar(&f.min, "min", nil, "smallest value of an objective to maximise, as METRIC=VALUE")
	flags.Float64Var(&f.confidence, "confidence", 0.5, "probability with which the bounds on measured objectives must hold")
	flags.StringVar(&f.optimize, "optimize", "", "objective to make as good as possible; default: the first without a bound")
	flags.BoolVar(&f.measuredOnly, "measured-only", false, "recommend only what was run")
	a.addClientFlags(cmd)
	command.OutputFlag(cmd, &a.output)
	return cmd
}

func (a *app) recommend(ctx context.Context, f recommendFlags) error {
	if !f.hasEpsilon && len(f.max) == 0 && len(f.min) == 0 {
		return command.Usage(errors.New("recommend: a bound is required: --epsilon, --max or --min"))
	}
	return a.session(ctx, func(ctx context.Context, client *dpareto.Client) error {
		handle := client.Study(studyID(f.study))
		study, err := handle.Get(ctx)
		if err != nil {
			return err
		}
		bounds, err := f.bounds(study.GetSpec())
		if err != nil {
			return command.Usage(err)
		}
		resp, err := client.Fronts.QueryFront(ctx, &dparetov1.QueryFrontRequest{
			Name: handle.Name(), Bounds: bounds, Confidence: f.confidence, Optimize: f.optimize, MeasuredOnly: f.measuredOnly,
		})
		if err != nil {
			return &callError{"query the front of " + handle.Name(), err}
		}
		if a.output == output.Text {
			if err := a.printHeading(view.RecommendationHeading(study, bounds, f.confidence, resp)); err != nil {
				return err
			}
		}
		if err := a.print(view.Recommendation(study.GetSpec(), resp), resp); err != nil {
			return err
		}
		if !resp.GetReachable() {
			return errors.New("no configuration meets the bounds")
		}
		return nil
	})
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
				return fmt.Errorf("--%s %s=%s: want a number", flag, id, text)
			}
			if g, ok := goals[id]; ok && g != goal {
				return fmt.Errorf("--%s %s: the study wants it the other way; use --%s", flag, id, other)
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
		metric := view.PrivacyMetric(spec)
		if metric == nil {
			return nil, errors.New("--epsilon: the study has no metric that is computed from a mechanism; use --max")
		}
		bounds[metric.GetId()] = f.epsilon
	}
	return bounds, nil
}

// namedValue reads the value of a parameter of a study.
func namedValue(spec *dparetov1.StudySpec, id, text string) (*dparetov1.Value, error) {
	for _, p := range spec.GetParameters() {
		if p.GetId() != id {
			continue
		}
		value, err := parameterValue(p, text)
		if err != nil {
			return nil, fmt.Errorf("parameter %s: %w", id, err)
		}
		return value, nil
	}
	ids := make([]string, len(spec.GetParameters()))
	for i, p := range spec.GetParameters() {
		ids[i] = p.GetId()
	}
	return nil, fmt.Errorf("the study has no parameter %q; it has %s", id, strings.Join(ids, ", "))
}
