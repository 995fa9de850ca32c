package designers_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers"
	"github.com/dpareto/dpareto/suggest/designers/dpareto"
	"github.com/dpareto/dpareto/suggest/designers/grid"
	"github.com/dpareto/dpareto/suggest/designers/quasirandom"
	"github.com/dpareto/dpareto/suggest/designers/random"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/space"
)

// registered returns every designer, with few initial points.
func registered() []suggest.Designer {
	var list []suggest.Designer
	for _, name := range designers.Names() {
		d, _ := designers.ByName(name, designers.Options{InitialPoints: 6})
		list = append(list, d)
	}
	return list
}

// What every designer must do.
func TestDesigners(t *testing.T) {
	p := simulated.Training()
	for _, d := range registered() {
		t.Run(d.Name(), func(t *testing.T) {
			if d.Version() == "" {
				t.Error("no version")
			}
			h := simulated.Run(t, d, p, 9, 3, simulated.Train)
			for _, e := range h.Evaluations {
				if err := p.Space.Contains(e.Point); err != nil {
					t.Error(err)
				}
			}
			r := suggest.Request{Count: 3, Seed: 3, Number: 10}
			batch, err := d.Suggest(t.Context(), p, h, r)
			require.NoError(t, err)
			if len(batch) != r.Count {
				t.Fatalf("%d suggestions, want %d", len(batch), r.Count)
			}
			again, err := d.Suggest(t.Context(), p, h, r)
			require.NoError(t, err)
			if diff := cmp.Diff(batch, again); diff != "" {
				t.Errorf("the same request again (-first +second):\n%s", diff)
			}
			for i, want := range batch {
				one, err := d.Suggest(t.Context(), p, h, suggest.Request{Count: 1, Seed: 3, Number: 10 + int64(i)})
				require.NoError(t, err)
				if diff := cmp.Diff(want, one[0]); diff != "" {
					t.Errorf("suggestion %d alone (-batch +alone):\n%s", i, diff)
				}
				h.Pending = append(h.Pending, want.Point)
			}
		})
	}
}

func TestDesignersCancelled(t *testing.T) {
	p := simulated.Training()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, d := range registered() {
		if _, err := d.Suggest(ctx, p, &suggest.History{}, suggest.Request{Count: 1}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v, want %v", d.Name(), err, context.Canceled)
		}
	}
}

func TestDesignersRefuse(t *testing.T) {
	good := simulated.Training()
	for _, d := range registered() {
		for _, tc := range []struct {
			field   string
			problem *suggest.Problem
			history *suggest.History
			request suggest.Request
		}{
			{"objectives", &suggest.Problem{Space: simulated.TrainingSpace()}, &suggest.History{}, suggest.Request{}},
			{"pending[0]", good, &suggest.History{Pending: []space.Point{{1}}}, suggest.Request{}},
			{"count", good, &suggest.History{}, suggest.Request{Count: -1}},
		} {
			_, err := d.Suggest(t.Context(), tc.problem, tc.history, tc.request)
			var fields space.FieldErrors
			if !errors.As(err, &fields) || fields[0].Field != tc.field {
				t.Errorf("%s: error %v, want one in %s", d.Name(), err, tc.field)
			}
		}
	}
}

// Designers that do not repeat themselves use a finite space up completely,
// then say so.
func TestExhausted(t *testing.T) {
	p := &suggest.Problem{Space: simulated.SmallSpace(), Objectives: simulated.TrainingObjectives()}
	for _, d := range []suggest.Designer{
		grid.New(),
		dpareto.New(dpareto.Options{InitialPoints: 4}),
		dpareto.New(dpareto.Options{InitialPoints: 100}),
	} {
		h := &suggest.History{Infeasible: []space.Point{{2, 0, 4}}}
		for number := int64(1); len(h.Evaluations) < 6; number++ {
			s, err := d.Suggest(t.Context(), p, h, suggest.Request{Count: 1, Number: number})
			require.NoError(t, err)
			q := s[0].Point
			h.Evaluations = append(h.Evaluations, suggest.Evaluation{Point: q, Values: []float64{q[0] + q[1], 1 / (1 + q[0] + q[2])}})
		}
		h.Pending = []space.Point{h.Evaluations[5].Point}
		h.Evaluations = h.Evaluations[:5]
		s, err := d.Suggest(t.Context(), p, h, suggest.Request{Count: 10, Number: 7})
		if !errors.Is(err, suggest.ErrExhausted) || len(s) != 5 {
			t.Errorf("%s: %d suggestions and error %v, want 5 and %v", d.Name(), len(s), err, suggest.ErrExhausted)
		}
		seen := map[string]bool{"[2 0 4]": true, fmt.Sprint(h.Pending[0]): true}
		for _, e := range h.Evaluations {
			seen[fmt.Sprint(e.Point)] = true
		}
		for _, v := range s {
			if k := fmt.Sprint(v.Point); seen[k] {
				t.Errorf("%s suggests %s again", d.Name(), k)
			} else {
				seen[k] = true
			}
		}
	}
}

// Golden values: designs are part of every study's record and must not change.
func TestGolden(t *testing.T) {
	p := simulated.Training()
	for _, tc := range []struct {
		designer suggest.Designer
		want     []space.Point
	}{
		{random.New(), []space.Point{
			{37, 18, 0.012266788678935256, 1.4327897407219121, 0},
			{7, 452, 0.004641900862491349, 0.4044010733366394, 0},
			{45, 456, 0.002824634120624397, 0.12669227862725607, 1},
		}},
		{quasirandom.New(), []space.Point{
			{8, 195, 0.0010574975555139319, 5.974571305262533, 0},
			{55, 168, 0.0051600261033014775, 1.2384658006179416, 0},
			{25, 407, 0.015201941084745407, 0.11478709795095537, 1},
		}},
	} {
		s, err := tc.designer.Suggest(t.Context(), p, &suggest.History{}, suggest.Request{Count: 3, Seed: 1, Number: 1})
		require.NoError(t, err)
		var got []space.Point
		for _, v := range s {
			got = append(got, v.Point)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.designer.Name(), diff)
		}
	}
}

// evaluateModel depends on what exists only.
func evaluateModel(q space.Point) suggest.Evaluation {
	loss := 0.2
	if q[1] == 1 {
		loss += 0.02 * math.Abs(q[0]-4)
	} else {
		loss += 0.05 * math.Abs(math.Log(q[2]/0.1))
	}
	return suggest.Evaluation{Point: q, Values: []float64{1 / q[3], 1 - loss - 0.02*q[3]}}
}

// Every designer suggests canonical, allowed points, one by one as in a batch, and
// all kinds of them.
func TestConditionsAndConstraints(t *testing.T) {
	p := &suggest.Problem{Space: simulated.ConditionalSpace(), Objectives: simulated.TrainingObjectives(), Allowed: func(q space.Point) bool {
		if q[1] == 1 {
			return q[0] >= 4
		}
		return q[2]*q[3] < 0.05
	}}
	for _, d := range registered() {
		t.Run(d.Name(), func(t *testing.T) {
			h := simulated.Run(t, d, p, 12, 5, evaluateModel)
			models := make(map[float64]int)
			different := make(map[string]bool)
			for _, e := range h.Evaluations {
				if err := p.Space.Contains(e.Point); err != nil {
					t.Error(err)
				}
				if !p.Allowed(e.Point) {
					t.Errorf("%v is not allowed", e.Point)
				}
				models[e.Point[1]]++
				different[fmt.Sprint(e.Point)] = true
			}
			if len(models) < 2 || len(different) < len(h.Evaluations) && d.Name() != "random" {
				t.Errorf("models %v and %d different configurations", models, len(different))
			}
			h.Evaluations = h.Evaluations[:8]
			r := suggest.Request{Count: 3, Seed: 6, Number: 11}
			batch := simulated.Ask(t, d, p, h, r)
			for i, want := range batch {
				r := suggest.Request{Count: 1, Seed: 6, Number: 11 + int64(i)}
				if diff := cmp.Diff(want, simulated.Ask(t, d, p, h, r)[0]); diff != "" {
					t.Errorf("suggestion %d alone (-batch +alone):\n%s", i, diff)
				}
				h.Pending = append(h.Pending, want.Point)
			}
		})
	}
}

// Where an allowed point is hard to find it is found, and where there is none the
// designers say so.
func TestRarelyAllowed(t *testing.T) {
	line := &space.Space{Parameters: []space.Parameter{{Name: "x", Kind: space.Double, Min: 0, Max: 1}}}
	for _, d := range registered() {
		p := &suggest.Problem{Space: line, Objectives: simulated.TrainingObjectives(), Allowed: func(q space.Point) bool { return q[0] > 0.4 && q[0] < 0.401 }}
		if d.Name() == "grid" {
			p.Allowed = func(q space.Point) bool { return q[0] == 0.5 }
		}
		s := simulated.Ask(t, d, p, &suggest.History{}, suggest.Request{Count: 1, Seed: 1, Number: 1})
		if !p.Allowed(s[0].Point) {
			t.Errorf("%s: %v is not allowed", d.Name(), s[0].Point)
		}
		p.Allowed = func(space.Point) bool { return false }
		none, err := d.Suggest(t.Context(), p, &suggest.History{}, suggest.Request{Count: 1})
		if !errors.Is(err, suggest.ErrExhausted) || len(none) != 0 {
			t.Errorf("%s: %v and error %v, want none and %v", d.Name(), none, err, suggest.ErrExhausted)
		}
	}
}

func TestByName(t *testing.T) {
	for _, name := range designers.Names() {
		d, ok := designers.ByName(name, designers.Options{InitialPoints: 3})
		if !ok || d.Name() != name {
			t.Errorf("designers.ByName(%q) = %v, %t", name, d, ok)
		}
	}
	if _, ok := designers.ByName("oracle", designers.Options{}); ok {
		t.Error("ByName knows an oracle")
	}
}
