package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dpareto/dpareto/clients/go/trainer/sparsevector"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/front"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/cmd/internal/plot"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/suggest/pareto"
)

// Ids of the metrics of the studies of demos.
const (
	epsilonID = "epsilon"
	errorID   = "error"
)

// result is what came of the study of a demo.
type result struct {
	study           *dparetov1.Study
	trials          []*dparetov1.Trial
	front, observed *dparetov1.Front
	hypervolumes    []*dparetov1.HypervolumePoint
	elapsed         time.Duration
	pageURL         string // "" if the page is gone

	exact *exactComparison // nil where the exact front is not known
}

// exactComparison compares a front with the exact one.
type exactComparison struct {
	trueErrors       []float64 // expected error of each point of the front
	trueHypervolume  float64   // of the points with these errors
	exactHypervolume float64   // of the exact front
}

// compareExact compares the front of a sparse vector study with the exact one: each of its
// configurations counts with its expected error, not with an estimate.
func (r *result) compareExact() {
	if r.study.GetSpec().GetTrainer().GetName() != sparsevector.Name {
		return
	}
	reference := []float64{r.front.GetReference()[epsilonID], r.front.GetReference()[errorID]}
	exact := new(exactComparison)
	var reported, best [][]float64
	for _, p := range r.front.GetPoints() {
		cutoff := p.GetParameters()[sparsevector.ParameterCutoff].GetIntValue()
		noiseScale := p.GetParameters()[sparsevector.ParameterNoiseScale].GetDoubleValue()
		expected := sparsevector.ExpectedError(cutoff, noiseScale)
		exact.trueErrors = append(exact.trueErrors, expected)
		reported = append(reported, []float64{sparsevector.Epsilon(cutoff, noiseScale), expected})
	}
	for _, p := range sparsevector.ExactFront(reference[0]) {
		best = append(best, []float64{p.Epsilon, p.Error})
	}
	exact.trueHypervolume = pareto.Hypervolume(reported, reference)
	exact.exactHypervolume = pareto.Hypervolume(best, reference)
	r.exact = exact
}

// hypervolume returns the hypervolume of the reported front: the true one if it is known.
func (r *result) hypervolume() float64 {
	if r.exact != nil {
		return r.exact.trueHypervolume
	}
	return r.front.GetHypervolume()
}

// figure returns the picture.
func (r *result) figure() *plot.Figure { return front.Figure(r.study, r.front, r.trials) }

// bestWithin returns the point of the front with the lowest error among those with an ε
// of at most bound, or nil.
func (r *result) bestWithin(bound float64) *dparetov1.FrontPoint {
	var best *dparetov1.FrontPoint
	for _, p := range r.front.GetPoints() {
		if p.GetValues()[epsilonID].GetValue() <= bound &&
			(best == nil || p.GetValues()[errorID].GetValue() < best.GetValues()[errorID].GetValue()) {
			best = p
		}
	}
	return best
}

// jsonResult is the stable form of a result.
type jsonResult struct {
	Study                string      `json:"study"`
	Trials               int         `json:"trials"`
	Hypervolume          float64     `json:"hypervolume"`           // reported front; svt: the true one
	PosteriorHypervolume float64     `json:"posterior_hypervolume"` // reported front, by the model
	ObservedHypervolume  float64     `json:"observed_hypervolume"`
	ExactHypervolume     *float64    `json:"exact_hypervolume,omitempty"` // svt
	Front                []jsonPoint `json:"front"`
	Generated            bool        `json:"generated"`
	Seed                 uint64      `json:"seed"`
	Seconds              float64     `json:"seconds"`
	Plot                 string      `json:"plot"`
	PageURL              string      `json:"page_url,omitempty"`
}

type jsonPoint struct {
	Trial      string             `json:"trial"`
	Step       int64              `json:"step,omitempty"`
	Parameters map[string]any     `json:"parameters"`
	Values     map[string]float64 `json:"values"`
	Epsilon    float64            `json:"epsilon"`
	Error      float64            `json:"error"`
	ErrorLower *float64           `json:"error_lower,omitempty"`
	ErrorUpper *float64           `json:"error_upper,omitempty"`
	TrueError  *float64           `json:"true_error,omitempty"` // svt
}

// writeJSON prints the result as one line.
func (r *result) writeJSON(w io.Writer, f flags) error {
	out := jsonResult{
		Study:                view.ID(r.study.GetName()),
		Trials:               len(r.trials),
		Hypervolume:          r.hypervolume(),
		PosteriorHypervolume: r.front.GetHypervolume(),
		ObservedHypervolume:  r.observed.GetHypervolume(),
		Front:                make([]jsonPoint, 0, len(r.front.GetPoints())),
		Generated:            show.IsGenerated(r.study.GetSpec()),
		Seed:                 r.study.GetSeed(),
		Seconds:              math.Round(r.elapsed.Seconds()*10) / 10,
		Plot:                 f.picture,
		PageURL:              r.pageURL,
	}
	if r.exact != nil {
		out.ExactHypervolume = &r.exact.exactHypervolume
	}
	for i, p := range r.front.GetPoints() {
		point := jsonPoint{
			Trial: p.GetTrial(), Step: p.GetStep(),
			Parameters: make(map[string]any), Values: make(map[string]float64),
			Epsilon:    p.GetValues()[epsilonID].GetValue(),
			Error:      p.GetValues()[errorID].GetValue(),
			ErrorLower: p.GetValues()[errorID].Lower, ErrorUpper: p.GetValues()[errorID].Upper,
		}
		for id, v := range p.GetParameters() {
			point.Parameters[id] = view.Value(v)
		}
		for id, v := range p.GetValues() {
			point.Values[id] = v.GetValue()
		}
		if r.exact != nil {
			point.TrueError = &r.exact.trueErrors[i]
		}
		out.Front = append(out.Front, point)
	}
	return json.NewEncoder(w).Encode(out)
}

// writeText prints the result for people.
func (r *result) writeText(w io.Writer, f flags) error {
	var b strings.Builder
	for _, line := range front.Heading(r.study, r.front) {
		b.WriteString(line + "\n")
	}
	b.WriteString("\n")
	if err := r.table().WriteText(&b); err != nil {
		return err
	}
	b.WriteString("\n" + r.overTime())
	if r.exact != nil {
		fmt.Fprintf(&b, "hypervolume of the front by the model %s, true %s, exact front %s\n",
			show.Number(r.front.GetHypervolume()), show.Number(r.exact.trueHypervolume), show.Number(r.exact.exactHypervolume))
	}
	b.WriteString(r.recommendation(1))
	fmt.Fprintf(&b, "%d trials%s in %.0f seconds; picture: %s\n", len(r.trials), r.special(), r.elapsed.Seconds(), f.picture)
	_, err := io.WriteString(w, b.String())
	return err
}

// special counts replicates and the trials that were stopped early, in words.
func (r *result) special() string {
	var stopped int
	for _, trial := range r.trials {
		if view.StoppedEarly(r.study.GetSpec(), trial) {
			stopped++
		}
	}
	var parts []string
	if stopped > 0 {
		parts = append(parts, fmt.Sprintf("%d stopped early", stopped))
	}
	if n := view.CountReplicates(r.trials); n > 0 {
		parts = append(parts, fmt.Sprintf("%d replicates", n))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// table returns the front with what fits on a line: objectives and configuration.
func (r *result) table() *output.Table {
	spec := r.study.GetSpec()
	t := &output.Table{Columns: []string{"ε", "error", "90 % interval"}}
	if r.exact != nil {
		t.Columns = append(t.Columns, "true error")
	}
	for _, p := range spec.GetParameters() {
		t.Columns = append(t.Columns, p.GetId())
	}
	t.Columns = append(t.Columns, "trial")
	for i, p := range r.front.GetPoints() {
		value := p.GetValues()[errorID]
		interval := ""
		if value.Lower != nil && value.Upper != nil {
			interval = show.Number(value.GetLower()) + " to " + show.Number(value.GetUpper())
		}
		row := []any{output.Bound(p.GetValues()[epsilonID].GetValue()), value.GetValue(), interval}
		if r.exact != nil {
			row = append(row, r.exact.trueErrors[i])
		}
		for _, parameter := range spec.GetParameters() {
			row = append(row, view.Value(p.GetParameters()[parameter.GetId()]))
		}
		var trial any = "no run: " + p.GetConstantPoint()
		if p.GetConstantPoint() == "" {
			trial = view.ID(p.GetTrial())
		}
		t.Rows = append(t.Rows, append(row, trial))
	}
	return t
}

// overTime returns the hypervolume of the observed front after more and more trials.
func (r *result) overTime() string {
	if len(r.hypervolumes) == 0 {
		return ""
	}
	values := make([]float64, len(r.hypervolumes))
	for i, p := range r.hypervolumes {
		values[i] = p.GetHypervolume()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "hypervolume of the observed front over the trials  %s\n ", sparkline(values))
	n := len(values)
	for k := 1; ; k = min(2*k, n) {
		fmt.Fprintf(&b, "  %d: %s", k, show.Number(values[k-1]))
		if k == n {
			return b.String() + "\n"
		}
	}
}

// sparkline draws values, all finite, as one character each. The scale begins at the value
// after a tenth of them, as the first ones are far below the rest.
func sparkline(values []float64) string {
	const bars = "▁▂▃▄▅▆▇█"
	levels := []rune(bars)
	lo, hi := values[len(values)/10], slices.Max(values)
	out := make([]rune, len(values))
	for i, v := range values {
		level := len(levels) - 1
		if hi > lo {
			level = int(max(0, v-lo) / (hi - lo) * float64(len(levels)-1))
		}
		out[i] = levels[level]
	}
	return string(out)
}

// recommendation returns the best configuration for a bound on ε, in words.
func (r *result) recommendation(bound float64) string {
	best := r.bestWithin(bound)
	if best == nil {
		return fmt.Sprintf("no configuration of the front has ε ≤ %s\n", show.Plain(bound))
	}
	var parts []string
	for _, p := range r.study.GetSpec().GetParameters() {
		switch v := view.Value(best.GetParameters()[p.GetId()]).(type) {
		case float64:
			parts = append(parts, p.GetId()+" "+show.Number(v))
		default:
			parts = append(parts, fmt.Sprintf("%s %v", p.GetId(), v))
		}
	}
	return fmt.Sprintf("best for ε ≤ %s: error %s at ε = %s with %s\n", show.Plain(bound),
		show.Number(best.GetValues()[errorID].GetValue()), show.NumberUp(best.GetValues()[epsilonID].GetValue()),
		strings.Join(parts, ", "))
}
