package overview

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server/web/site"
	"github.com/dpareto/dpareto/server/web/words"
)

// tile is a number of a study with its name and what it means.
type tile struct{ Label, Value, Unit, Line string }

// usualEpsilon is the ε that the first tile is about.
const usualEpsilon = 1

// tilesPart makes the part "tiles": the best result at ε ≤ 1, and the knee, of the front that is known.
func (s views) tilesPart(ctx context.Context, r *site.PartRequest) (any, error) {
	asked := *r
	asked.Query = map[string][]string{"others": {"0"}}
	return s.frontPart(ctx, &asked)
}

// gainTilePart makes the part "tile-gain". It is made once for a view: a forecast is long work.
func (s views) gainTilePart(ctx context.Context, r *site.PartRequest) (any, error) {
	resp, err := s.Analyses.ForecastGain(ctx, &dparetov1.ForecastGainRequest{Name: r.Study, Runs: 10})
	t := tile{Label: "Next 10 trials", Value: "–"}
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, err
	case err != nil:
		t.Line = site.Message(err)
	case len(resp.GetPoints()) == 0 || !(resp.GetHypervolume() > 0):
		t.Line = "A forecast needs some results."
	default:
		last := resp.GetPoints()[len(resp.GetPoints())-1]
		share := func(v float64) string {
			return strings.Replace(show.Plain(show.Rounded(100*v/resp.GetHypervolume(), 2)), "-", "−", 1)
		}
		t.Value, t.Unit = "+"+share(max(0, last.GetGain().GetValue()))+" %", "hypervolume"
		t.Line = share(last.GetGain().GetLower()) + " to " + share(last.GetGain().GetUpper()) + " % (90 %). "
		switch {
		case last.GetProbability() >= 0.9:
			t.Line += "Worth going on."
		case last.GetProbability() >= 0.5:
			t.Line += "Probably worth going on."
		default:
			t.Line += "Stopping is fine."
		}
	}
	return t, nil
}

// Tiles returns the tiles of a front of an ε and other objectives: the best of the first measured
// objective, and the knee.
func (d *frontData) Tiles() []tile {
	all := d.Objectives()
	i := slices.IndexFunc(all, func(m *dparetov1.MetricSpec) bool { return m.GetComputed().GetPrivacy() == nil })
	if i < 0 || d.Front() == nil {
		return nil
	}
	y, epsilon := all[i], show.PrivacyMetric(d.Study.GetSpec())
	if !slices.Contains(all, epsilon) {
		epsilon = nil
	}
	best := tile{Label: "Best " + y.GetId(), Value: "–", Line: "No trial has finished yet."}
	limit := math.Inf(1)
	if epsilon != nil {
		limit = usualEpsilon
		if lowest := d.lowest(epsilon); lowest > limit {
			limit, _ = strconv.ParseFloat(show.NumberUp(lowest), 64)
		}
		best.Label += " at ε ≤ " + show.Plain(limit)
	}
	if p := d.bestWithin(y, epsilon, limit); p != nil {
		best.Value, best.Line = words.Three(y, p.GetValues()[y.GetId()].GetValue()), d.basis(y, p)
	}
	knee := tile{Label: "Knee of the front", Value: "–", Line: "It shows with three points or more."}
	if i := slices.IndexFunc(d.Front().GetPoints(), (*dparetov1.FrontPoint).GetKnee); i >= 0 {
		p := d.Front().GetPoints()[i]
		knee.Value, knee.Line = words.Three(y, p.GetValues()[y.GetId()].GetValue()), d.basis(y, p)
		if at := p.GetValues()[epsilon.GetId()]; epsilon != nil && at != nil {
			knee.Unit = "at ε ≤ " + words.Epsilon(at.GetValue())
			if twice := d.bestWithin(y, epsilon, 2*at.GetValue()); twice != nil {
				change := math.Abs(twice.GetValues()[y.GetId()].GetValue() - p.GetValues()[y.GetId()].GetValue())
				knee.Line = "Twice the ε gains nothing."
				if change > 0 {
					knee.Line = "Twice the ε gains " + show.Plain(show.Rounded(change, 2)) + "."
				}
			}
		}
	}
	return []tile{best, knee}
}

// lowest returns the smallest ε of a run on the front, 0 for none.
func (d *frontData) lowest(epsilon *dparetov1.MetricSpec) float64 {
	lowest := math.Inf(1)
	for _, p := range d.Front().GetPoints() {
		lowest = min(lowest, p.GetValues()[epsilon.GetId()].GetValue())
	}
	if math.IsInf(lowest, 1) {
		return 0
	}
	return lowest
}

// bestWithin returns the point of the front that is best in y with at most some ε, nil for none.
func (d *frontData) bestWithin(y, epsilon *dparetov1.MetricSpec, limit float64) *dparetov1.FrontPoint {
	var best *dparetov1.FrontPoint
	for _, p := range d.Front().GetPoints() {
		if epsilon != nil && p.GetValues()[epsilon.GetId()].GetValue() > limit {
			continue
		}
		v := p.GetValues()[y.GetId()].GetValue()
		if was := best.GetValues()[y.GetId()].GetValue(); best == nil || v < was != (y.GetGoal() == dparetov1.Goal_GOAL_MAXIMIZE) && v != was {
			best = p
		}
	}
	return best
}

// basis says what the value of a point rests on.
func (d *frontData) basis(y *dparetov1.MetricSpec, p *dparetov1.FrontPoint) string {
	v := p.GetValues()[y.GetId()]
	switch {
	case p.GetConstantPoint() != "":
		return "No run: " + show.ConstantPoint(d.Study.GetSpec(), p.GetConstantPoint())
	case v.Lower != nil && v.Upper != nil:
		return words.Three(y, v.GetLower()) + " to " + words.Three(y, v.GetUpper()) + " (90 %), trial " + site.ID(p.GetTrial())
	default:
		return "Measured in trial " + site.ID(p.GetTrial()) + ", which may be luck."
	}
}
