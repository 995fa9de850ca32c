package privatefront

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/cmd/internal/plot"
)

// hypervolumeColumn is the column of hypervolumes of what is published.
const hypervolumeColumn = "hypervolume"

// series are the outcomes of a way in the order of their seeds.
type series struct {
	way      way
	outcomes []*outcome
}

// values returns a number of every outcome.
func (s *series) values(of func(*outcome) float64) []float64 {
	all := make([]float64, len(s.outcomes))
	for i, o := range s.outcomes {
		all[i] = of(o)
	}
	return all
}

// mean returns the mean of a number over the seeds.
func (s *series) mean(of func(*outcome) float64) float64 { return stat.Mean(s.values(of), nil) }

// largest returns the largest value of a number over the seeds, nil where it is 0: there is none then.
func (s *series) largest(of func(*outcome) float64) any {
	largest := 0.0
	for _, v := range s.values(of) {
		largest = math.Max(largest, v)
	}
	return orNone(largest)
}

// deviation returns the standard deviation of a number over the seeds, nil for one seed.
func (s *series) deviation(of func(*outcome) float64) any {
	if len(s.outcomes) < 2 {
		return nil
	}
	return stat.StdDev(s.values(of), nil)
}

// finite returns a number, nil if it is infinite.
func finite(x float64) any {
	if math.IsInf(x, 0) {
		return nil
	}
	return x
}

// orNone returns a number, nil for 0.
func orNone(x float64) any {
	if x == 0 {
		return nil
	}
	return x
}

func published(o *outcome) float64  { return o.Published }
func trainings(o *outcome) float64  { return float64(o.Trainings) }
func trainPrice(o *outcome) float64 { return o.TrainEpsilon }
func testNoise(o *outcome) float64  { return o.Noise }

// testPrice returns ε for the test records, 0 where it protects none.
func testPrice(o *outcome) float64 {
	if o.TestEpsilon >= exactTestEpsilon {
		return 0
	}
	return o.TestEpsilon
}

// collect returns the outcomes of all ways.
func (e *Experiment) collect(ways []way, known *records) []series {
	all := make([]series, len(ways))
	for i := range ways {
		all[i].way = ways[i]
		for seed := range uint64(e.Seeds) {
			all[i].outcomes = append(all[i].outcomes, known.get(e.key(&ways[i], seed+1)))
		}
	}
	return all
}

// result makes tables of the outcomes.
func (e *Experiment) result(ways []way, known *records) *reproduce.Result {
	all := e.collect(ways, known)
	r := &reproduce.Result{
		Report: output.Report{
			Title: "All ways to search on Adult and to publish what was found",
			Notes: []string{
				fmt.Sprintf("Logistic regression with DP-SGD on 32,561 training records, errors on 16,281 test records; %d seeds. δ = 1e-6 and replace-one adjacency on both sides.", e.Seeds),
				fmt.Sprintf("Hypervolumes are of (ε of one run, error) within (1, 0.25). Errors in them are means of %d fresh runs of each published configuration, measured outside of the server and without noise. "+
					"These numbers, the numbers of the study without a guarantee, and everything made with a known seed protect no record and must not be released.", e.Runs),
			},
			Sections: []output.Section{e.compared(all), filters(all), studiesOf(all), points(all)},
		},
	}
	if e.Quick {
		r.Report.Notes = append(r.Report.Notes, "--quick: small studies, to see that it works.")
	}
	return r
}

// wayColumn is the column of the names of ways.
const wayColumn = "way"

// compared is the table of all ways.
func (e *Experiment) compared(all []series) output.Section {
	t := &output.Table{Columns: []string{wayColumn, "train_epsilon", "test_epsilon", "noise", "trainings", "points", "least_error", hypervolumeColumn, "deviation", "share"}}
	for i := range all {
		s := &all[i]
		share := 0.0
		for j, o := range s.outcomes {
			share += o.Published / all[0].outcomes[j].Published / float64(len(s.outcomes))
		}
		t.Rows = append(t.Rows, []any{
			s.way.name, s.largest(trainPrice), s.largest(testPrice), s.largest(testNoise), s.mean(trainings),
			s.mean(func(o *outcome) float64 { return float64(len(o.Points)) }), finite(s.mean(bestError)), s.mean(published), s.deviation(published), share,
		})
	}
	return output.Section{Name: "ways", Title: "All ways", Table: t, Notes: []string{
		fmt.Sprintf("train_epsilon and test_epsilon hold for everything that is published, the search included: the largest over the seeds; without one there is no guarantee. noise is the standard deviation of the noise in a published error. "+
			"trainings, points, least_error (of the points, by fresh runs) and hypervolume are means over the seeds; at most %d trials where a front is shown, and a secret number with mean %g where the best is. share is the hypervolume over the one without a guarantee.", e.Trials, e.Mean),
		"tuned on a tenth: all trainings but the last one see a tenth of the training records.",
	}}
}

// filters is the table of the studies that show a front.
func filters(all []series) output.Section {
	t := &output.Table{Columns: []string{wayColumn, "runs", "fewest_runs", "spent", hypervolumeColumn, "gap", "test_noise", "made", "chosen", "lost_by_choice"}}
	open := all[0].mean(published)
	byName := make(map[string]*series)
	for i := range all {
		byName[all[i].way.name] = &all[i]
	}
	for i := range all {
		s := &all[i]
		if s.way.study != frontStudy {
			continue
		}
		fewest := math.Inf(1)
		for _, n := range s.values(trainings) {
			fewest = math.Min(fewest, n)
		}
		var noise any
		if exact := byName[s.way.exact]; exact != nil {
			noise = exact.mean(published) - s.mean(published)
		}
		made, chosen := s.mean(func(o *outcome) float64 { return o.Made }), s.mean(func(o *outcome) float64 { return o.Chosen })
		t.Rows = append(t.Rows, []any{
			s.way.name, s.mean(trainings), fewest, orNone(s.mean(func(o *outcome) float64 { return o.SpentTrain })),
			s.mean(published), open - s.mean(published), noise, made, chosen, made - chosen,
		})
	}
	return output.Section{Name: "filters", Title: "Private fronts", Table: t, Notes: []string{
		"runs are the admitted ones. gap is what is lacking to the hypervolume without a guarantee, and test_noise the part of it that the noise on the test errors makes: what the same filter has more of with exact errors. " +
			"made and chosen are hypervolumes by the errors of the very runs, before any noise: of all of them, and of those whose configurations are published.",
	}}
}

// studiesOf is the table of all studies.
func studiesOf(all []series) output.Section {
	t := &output.Table{Columns: []string{wayColumn, "seed", "end", "trainings", "train_epsilon", "test_epsilon", "noise", "points", hypervolumeColumn}}
	for _, s := range all {
		for _, o := range s.outcomes {
			t.Rows = append(t.Rows, []any{
				s.way.name, int64(o.Key.Seed), o.End, int64(o.Trainings), orNone(o.TrainEpsilon), orNone(testPrice(o)), orNone(o.Noise), int64(len(o.Points)), o.Published,
			})
		}
	}
	return output.Section{Name: "studies", Title: "Each study", Table: t, Notes: []string{"end is why the next trial was refused."}}
}

// points is the table of the publications of the first seed.
func points(all []series) output.Section {
	t := &output.Table{Columns: []string{wayColumn, "epsilon", "published_error", "true_error"}}
	for _, s := range all {
		for _, p := range s.outcomes[0].Points {
			t.Rows = append(t.Rows, []any{s.way.name, p.Epsilon, p.Reported, p.Actual})
		}
	}
	return output.Section{Name: "published", Title: "What is published, seed 1", Table: t}
}

// picture draws the publications of the first seed, with true errors.
func picture(all []series) *plot.Fronts {
	f := &plot.Fronts{
		Title:    "What each way publishes, seed 1",
		X:        plot.Axis{Label: "ε of one run", Log: true, Reference: math.NaN()},
		Y:        plot.Axis{Label: "test error, mean of fresh runs", Reference: math.NaN()},
		Subtitle: []string{"Adult, logistic regression with DP-SGD; δ = 1e-6, replace-one adjacency. ε of what is published is larger: it includes the search"},
	}
	for _, s := range all {
		if !s.way.isDrawn {
			continue
		}
		one := plot.FrontSeries{Name: s.way.name}
		for _, p := range s.outcomes[0].Points {
			one.Front = append(one.Front, plot.Point{X: p.Epsilon, Y: p.Actual})
		}
		one.Points = one.Front
		f.Fronts = append(f.Fronts, one)
	}
	return f
}

// bestError returns the least error of what an outcome published, by fresh runs; +Inf if nothing was.
func bestError(o *outcome) float64 {
	least := math.Inf(1)
	for _, p := range o.Points {
		least = math.Min(least, p.Actual)
	}
	return least
}

// paidFamilies are the ways that [Experiment.paid] draws, without their budgets: ways that differ.
var paidFamilies = []string{openName, "Gaussian filter", "slots", "best value", "best curve", "best portfolio of 4", "tuned on a tenth"}

// paid draws the best error that each way publishes over the ε of everything, the search included, beside what is as good
// in a search that pays nothing. A family of ways with several budgets is one line.
func (e *Experiment) paid(all []series) *plot.Fronts {
	f := &plot.Fronts{
		Title: fmt.Sprintf("Error over the ε of a search, %d runs", e.Trials),
		X:     plot.Axis{Label: "ε of everything that is published", Log: true, Reference: math.NaN()},
		Y:     plot.Axis{Label: "least test error", Reference: math.NaN()},
		Subtitle: []string{
			fmt.Sprintf("Adult, logistic regression with DP-SGD; δ = 1e-6, replace-one adjacency. ε is for the training records; for the test records it is %g", e.TestEpsilon),
			fmt.Sprintf("Means over %d seeds, by fresh runs. Where only the best is shown there are %g runs on average. No guarantee: seed 1, ε of one run, as in the papers", e.Seeds, e.Mean),
		},
	}
	var open []plot.Point
	worst := math.Inf(-1) // of what is paid for
	for _, s := range all {
		family, _, _ := strings.Cut(s.way.name, ", ε = ")
		if !slices.Contains(paidFamilies, family) {
			continue
		}
		at := slices.IndexFunc(f.Fronts, func(other plot.FrontSeries) bool { return other.Name == family })
		if at < 0 {
			at = len(f.Fronts)
			f.Fronts = append(f.Fronts, plot.FrontSeries{Name: family, Look: plot.Look{Baseline: s.way.name == openName}})
		}
		one := &f.Fronts[at]
		if s.way.name == openName {
			for _, p := range s.outcomes[0].Points {
				open = append(open, plot.Point{X: p.Epsilon, Y: p.Actual})
			}
			continue
		}
		if y := s.mean(bestError); !math.IsInf(y, 1) {
			one.Front = append(one.Front, plot.Point{X: slices.Max(s.values(trainPrice)), Y: y})
			worst = max(worst, y)
		}
	}
	for i := range f.Fronts {
		if f.Fronts[i].Name == openName {
			f.Fronts[i].Front = slices.DeleteFunc(open, func(p plot.Point) bool { return p.Y > worst })
		}
	}
	return f
}
