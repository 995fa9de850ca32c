package overview

import (
	"context"
	"math"
	"strconv"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server/web/site"
	"github.com/dpareto/dpareto/server/web/words"
)

// tile is a number of a study with its name and meaning.
type tile struct{ Label, Value, Unit, Line string }

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
		if warnings := resp.GetWarnings(); len(warnings) > 0 {
			t.Line = words.WarningOf(warnings[0]).Text
		}
	default:
		last := resp.GetPoints()[len(resp.GetPoints())-1]
		share := func(v float64) string {
			return words.Minus(show.Plain(show.Rounded(100*v/resp.GetHypervolume(), 2)))
		}
		t.Value, t.Unit = "+"+share(max(0, last.GetGain().GetValue()))+" %", "hypervolume"
		t.Line = share(last.GetGain().GetLower()) + " % to " + share(last.GetGain().GetUpper()) + " % (90 %). "
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
	spec := d.Study.GetSpec()
	best := words.Best(spec, d.Front())
	if best == nil || d.Front() == nil {
		return nil
	}
	tiles := []tile{{Label: best.Label, Value: best.Value, Line: best.Basis}, {Label: "Knee of the front", Value: "–", Line: "It shows with three points or more."}}
	if len(d.Objectives()) != 2 { // a knee is of a line
		tiles[1] = tile{Label: "Front", Value: strconv.Itoa(len(d.Front().GetPoints())), Unit: "points", Line: "Chosen among " + show.Count(d.Front().GetCandidates(), "configuration") + "."}
		return tiles
	}
	knee := words.Knee(spec, d.Front())
	if knee == nil {
		return tiles
	}
	tiles[1].Value, tiles[1].Line = knee.Value, knee.Basis
	epsilon := show.PrivacyMetric(spec)
	if at := knee.Point.GetValues()[epsilon.GetId()]; epsilon != nil && at != nil {
		tiles[1].Unit = "at ε ≤ " + words.Epsilon(at.GetValue())
		if twice := words.BestWithin(d.Front(), best.Metric, epsilon, 2*at.GetValue()); twice != nil {
			change := math.Abs(twice.GetValues()[best.Metric.GetId()].GetValue() - knee.Point.GetValues()[best.Metric.GetId()].GetValue())
			tiles[1].Line = "Twice the ε gains nothing."
			if change > 0 {
				tiles[1].Line = "Twice the ε gains " + show.Plain(show.Rounded(change, 2)) + "."
			}
		}
	}
	return tiles
}
