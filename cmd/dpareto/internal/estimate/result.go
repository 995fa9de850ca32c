package estimate

import (
	"context"
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/floats"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/clients/go/trainer/estimate"
	"github.com/dpareto/dpareto/clients/go/trainer/experiment"
	"github.com/dpareto/dpareto/clients/go/trainer/objectiveperturbation"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/trial"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/cmd/internal/plot"
	"github.com/dpareto/dpareto/cmd/internal/studyfile"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/privacy"
)

// estimatesJSON is the JSON output of the commands.
type estimatesJSON struct {
	Private     bool             `json:"differentially_private"` // always false
	Notes       []string         `json:"notes"`
	TrivialLoss float64          `json:"trivial_loss,omitempty"` // of the model that answers 0
	Columns     []string         `json:"columns"`
	Rows        []map[string]any `json:"rows"`
}

// print prints a table with its notes, which are part of JSON and go to standard error
// otherwise.
func (f *flags) print(env *command.Env, table *output.Table, notes []string, trivialLoss float64) error {
	if f.format != output.JSON {
		for _, note := range notes {
			env.Sayf("%s\n", note)
		}
		return table.Write(env.Stdout, f.format)
	}
	document := estimatesJSON{Notes: notes, TrivialLoss: trivialLoss, Columns: table.Columns}
	for _, row := range table.Rows {
		values := make(map[string]any, len(row))
		for i, cell := range row {
			if x, ok := cell.(float64); !ok || !math.IsInf(x, 0) && !math.IsNaN(x) {
				values[table.Columns[i]] = cell
			}
		}
		document.Rows = append(document.Rows, values)
	}
	return output.WriteJSON(env.Stdout, document)
}

// finite returns a number as a cell of a table, without a value where it is not finite.
func finite(x float64) any {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return x
}

// printCurve prints a curve. The table for people lacks the deviations.
func (f *flags) printCurve(env *command.Env, curve []estimate.Estimate, notes []string, trivialLoss float64) error {
	table := &output.Table{Columns: []string{"epsilon"}}
	deviations := f.format != output.Text
	for _, m := range metrics {
		table.Columns = append(table.Columns, m.String(), m.String()+"_se")
		if deviations {
			table.Columns = append(table.Columns, m.String()+"_sd")
		}
	}
	for _, e := range curve {
		row := []any{e.Epsilon}
		for _, m := range metrics {
			mean := m.Of(e)
			row = append(row, finite(mean.Value), finite(mean.StandardError))
			if deviations {
				row = append(row, finite(mean.Deviation))
			}
		}
		table.Rows = append(table.Rows, row)
	}
	return f.print(env, table, notes, trivialLoss)
}

// printAnswer prints the ε of a target.
func (f *flags) printAnswer(env *command.Env, metric estimate.Metric, target float64, answer estimate.Answer, notes []string) error {
	table := &output.Table{
		Columns: []string{"metric", "target", "epsilon", "epsilon_se", "single_lower", "single_upper", "missed"},
		Rows: [][]any{{
			metric.String(), target, answer.Epsilon, finite(answer.StandardError), finite(answer.Lower), finite(answer.Upper), int64(answer.Missed),
		}},
	}
	return f.print(env, table, notes, 0)
}

// printModel prints the estimated weights, beside the trained model's if there is one.
func (f *flags) printModel(env *command.Env, p problem, epsilon float64, theta []float64, trained *estimate.Solution) error {
	describe := func(what string, theta []float64) string {
		u := p.Evaluate(theta)
		return fmt.Sprintf("%s at ε = %s: train loss %s, error %s; held-out loss %s, error %s", what, show.Number(epsilon),
			show.Number(u.Train.Loss), show.Number(u.Train.Error), show.Number(u.HeldOut.Loss), show.Number(u.HeldOut.Error))
	}
	notes := []string{
		"NOT for release: no guarantee covers an estimated model, and together with another model of the same noise it reveals the noise",
		"the features are divided by their norm bound before the weights are applied",
		describe("estimated model", theta),
	}
	table := &output.Table{Columns: []string{"feature", "estimated"}}
	if trained != nil {
		table.Columns = append(table.Columns, "trained")
		notes = append(notes, describe("trained model", trained.Theta), fmt.Sprintf("distance of the two: %s, norm of the trained model: %s",
			show.Number(floats.Distance(theta, trained.Theta, 2)), show.Number(floats.Norm(trained.Theta, 2))))
	}
	for j, weight := range theta {
		row := []any{int64(j), weight}
		if trained != nil {
			row = append(row, trained.Theta[j])
		}
		table.Rows = append(table.Rows, row)
	}
	return f.print(env, table, notes, 0)
}

// figure draws the means, each with the band of one standard deviation of a model.
func (f *flags) figure(p problem, curve []estimate.Estimate) *plot.Curves {
	c := &plot.Curves{
		Title: "Objective perturbation on " + f.dataset + ", estimated",
		Subtitle: []string{
			p.trainer.Parts().Split.String(),
			fmt.Sprintf("%s loss, %s, λ = %s; %s, mean of %d draws ± deviation of one model", f.loss,
				p.settings[objectiveperturbation.SettingCalibration], show.Plain(f.regularization), f.method, f.draws),
			"not differentially private: computed from the raw records, for internal use only",
		},
		X: "ε of one model", Y: "mean loss, error rate",
	}
	for _, m := range []estimate.Metric{estimate.TrainLoss, estimate.HeldOutLoss, estimate.HeldOutError} {
		s := plot.Series{Name: strings.ReplaceAll(m.String(), "_", " ")}
		for _, e := range curve {
			mean := m.Of(e)
			deviation := mean.Deviation
			if math.IsNaN(deviation) {
				deviation = 0
			}
			s.X, s.Y = append(s.X, e.Epsilon), append(s.Y, mean.Value)
			lower, upper := max(mean.Value-deviation, 0), mean.Value+deviation
			if m == estimate.HeldOutError {
				upper = min(upper, 1)
			}
			s.Lower, s.Upper = append(s.Lower, lower), append(s.Upper, upper)
		}
		c.Curves = append(c.Curves, s)
	}
	trivial := plot.Series{Name: "loss of no model"}
	for _, e := range curve {
		trivial.X = append(trivial.X, e.Epsilon)
		trivial.Y = append(trivial.Y, p.Risk.Loss.Value(0))
	}
	trivial.Lower, trivial.Upper = trivial.Y, trivial.Y
	c.Curves = append(c.Curves, trivial)
	return c
}

// addToStudy adds the points of a curve as completed trials to a study of the trainer,
// and creates the study if there is none.
func addToStudy(ctx context.Context, env *command.Env, server *remote.Server, f flags, p problem, id string, curve []estimate.Estimate) error {
	declared := studyfile.Declared{
		ID: id, Trainer: objectiveperturbation.Name, Summary: "estimates", Settings: p.settings, Declaration: p.trainer.Declaration(),
		Trials: 1, EpsilonReference: 10,
	}
	file, err := studyfile.Parse(declared.Write())
	if err != nil {
		return fmt.Errorf("the trainer's declaration makes no valid study: %w", err)
	}
	file.Study.Spec.Budget = nil // more may be added
	file.Study.Description = "Estimates (method " + f.method + "), not trainings: prior knowledge for other studies. Not differentially private."
	results := make([]trial.Result, len(curve))
	for i, e := range curve {
		values := map[string]any{
			objectiveperturbation.ParameterTargetEpsilon:  e.Epsilon,
			objectiveperturbation.ParameterRegularization: f.regularization,
		}
		if p.Calibration == privacy.RankOne {
			values[objectiveperturbation.ParameterSplit] = p.Mechanism(e.Epsilon).Share()
		}
		var losses, errorRates []any
		for _, u := range e.Draws {
			losses, errorRates = append(losses, u.HeldOut.Loss), append(errorRates, u.HeldOut.Error)
		}
		values[experiment.MetricLoss], values[experiment.MetricError] = losses, errorRates
		results[i] = trial.Result{Line: i + 1, Values: values}
	}
	return server.Session(ctx, func(ctx context.Context, client *dpareto.Client) error {
		handle, err := client.CreateStudy(ctx, id, file.Study)
		if err != nil {
			return err
		}
		return trial.Import(ctx, client, env.Logger, handle, "point", results)
	})
}
