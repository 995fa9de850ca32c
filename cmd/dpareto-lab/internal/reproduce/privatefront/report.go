package privatefront

import (
	"fmt"
	"math"
	"strings"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/cmd/internal/plot"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
	"github.com/dpareto/dpareto/internal/show"
)

// result makes tables and a figure of the outcomes.
func (e *Experiment) result(outcomes ...*outcome) *reproduce.Result {
	compared := &output.Table{Columns: []string{
		"study", "trials", "end", "posterior_hypervolume", "observed_hypervolume", "true_hypervolume", "true_median_error", "largest_difference", "train_epsilon", "test_epsilon", "noise",
	}}
	points := &output.Table{Columns: []string{"study", "epsilon", "reported_error", "true_error", "epochs", "lot_size", "learning_rate", "clipping_norm", "noise_multiplier"}}
	picture := &plot.Fronts{
		Title:    "A front that may be published, and one that may not",
		X:        plot.Axis{Label: "ε of one run", Log: true, Reference: math.NaN()},
		Y:        plot.Axis{Label: "test error", Reference: math.NaN()},
		Subtitle: []string{fmt.Sprintf("Adult, logistic regression with DP-SGD; declared for the whole private study: ε = %g (test records), ε = %g (training records), δ = %s, replace-one adjacency", e.TestEpsilon, e.TrainEpsilon, show.Plain(1e-6))},
	}
	if len(outcomes) > 0 {
		picture.Subtitle = append(picture.Subtitle, show.PrivacyStatement(outcomes[0].study.GetSpec()))
	}
	for _, o := range outcomes {
		publication := o.study.GetPublication()
		var train, test, noise any
		if publication != nil {
			train, test = publication.GetSpent().GetTrain().GetEpsilon(), publication.GetSpent().GetTest().GetEpsilon()
			noise = publication.GetNoiseStandardDeviation()
		}
		largest, sum := 0.0, 0.0
		var reported, actual plot.FrontSeries
		reported.Name, actual.Name = o.name+": as reported", o.name+": trained again"
		for _, p := range o.points {
			largest, sum = math.Max(largest, math.Abs(p.reported-p.actual)), sum+p.actual
			points.Rows = append(points.Rows, []any{
				o.name, p.epsilon, p.reported, p.actual, p.parameters["epochs"], p.parameters["lot_size"],
				p.parameters["learning_rate"], p.parameters["clipping_norm"], p.parameters["noise_multiplier"],
			})
			reported.Front = append(reported.Front, plot.Point{X: p.epsilon, Y: p.reported})
			actual.Front = append(actual.Front, plot.Point{X: p.epsilon, Y: p.actual})
		}
		reported.Points, actual.Points = reported.Front, actual.Front
		picture.Fronts = append(picture.Fronts, reported, actual)
		compared.Rows = append(compared.Rows, []any{
			o.name, completed(o.study.GetTrialCounts()), endReason(o.endReason), o.reported, o.observed, o.actual,
			sum / math.Max(1, float64(len(o.points))), largest, train, test, noise,
		})
	}
	compared.Columns[6] = "true_mean_error"
	return &reproduce.Result{
		Report: output.Report{
			Title: "A private front on Adult, beside one that is not",
			Notes: []string{
				fmt.Sprintf("At most %d trials each, seed %d. Declared for the private study: ε = %g for the 16,281 test records and ε = %g for the 32,561 training records, δ = %s, replace-one adjacency.",
					e.Trials, e.Seed, e.TestEpsilon, e.TrainEpsilon, show.Plain(1e-6)),
				fmt.Sprintf("true: the mean error of %d fresh runs of each reported configuration, measured outside of the server and without noise. These numbers, the numbers of the study that is not private, "+
					"and everything made with a known seed protect no record and must not be released.", e.Runs),
			},
			Sections: []output.Section{
				{Name: "comparison", Title: "Both studies", Table: compared, Notes: []string{
					"Hypervolumes are within ε = 1 and an error of 0.25. end is why the next trial was refused. train_epsilon and test_epsilon are what was spent; what holds is what was declared.",
				}},
				{Name: "points", Title: "The reported fronts", Table: points},
			},
		},
		Figures: []reproduce.Figure{{Name: "private-front", Picture: picture}},
	}
}

// completed returns the number of trials that will not change any more.
func completed(c *dparetov1.TrialCounts) int64 {
	return c.GetSucceeded() + c.GetInfeasible() + c.GetFailed()
}

// endReason returns why no trial was handed out, in words.
func endReason(r dparetov1.EndReason) string {
	return strings.ReplaceAll(enum.Name(r), "-", " ")
}
