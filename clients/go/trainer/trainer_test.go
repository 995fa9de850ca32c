package trainer

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/internal/require"
)

func TestParameters(t *testing.T) {
	p := Parameters{"rate": 0.5, "lot": int64(3), "kind": "huber", "plain": 7}
	if v, err := p.Float("rate"); v != 0.5 || err != nil {
		t.Errorf("Float(rate) = %v, %v", v, err)
	}
	if v, err := p.Float("lot"); v != 3 || err != nil {
		t.Errorf("Float(lot) = %v, %v", v, err)
	}
	if v, err := p.Int("lot"); v != 3 || err != nil {
		t.Errorf("Int(lot) = %v, %v", v, err)
	}
	if v, err := p.Text("kind"); v != "huber" || err != nil {
		t.Errorf("Text(kind) = %v, %v", v, err)
	}
	if v, err := p.IntIn("lot", 3, 3); v != 3 || err != nil {
		t.Errorf("IntIn(lot) = %v, %v", v, err)
	}
	if v, err := p.Positive("lot"); v != 3 || err != nil {
		t.Errorf("Positive(lot) = %v, %v", v, err)
	}
	if v, err := p.NotNegative("rate"); v != 0.5 || err != nil {
		t.Errorf("NotNegative(rate) = %v, %v", v, err)
	}
	if !p.Has("rate") || p.Has("Rate") {
		t.Errorf("Has(rate), Has(Rate) = %t, %t, want true, false", p.Has("rate"), p.Has("Rate"))
	}
	if err := p.Only("rate", "lot", "kind", "plain", "more"); err != nil {
		t.Errorf("Only of all names: %v", err)
	}
}

func TestParameterErrors(t *testing.T) {
	p := Parameters{
		"rate": 0.5, "lot": int64(3), "kind": "huber", "plain": 7,
		"zero": 0.0, "negative": -1.0, "infinite": math.Inf(1),
	}
	float := func(name string) error { _, err := p.Float(name); return err }
	integer := func(name string) error { _, err := p.Int(name); return err }
	text := func(name string) error { _, err := p.Text(name); return err }
	for _, tt := range []struct {
		err  error
		want string
	}{
		{float("none"), `parameter "none" is missing, want a float64 or int64`},
		{float("kind"), `parameter "kind" is huber (string), want a float64 or int64`},
		{integer("rate"), `parameter "rate" is 0.5 (float64), want an int64`},
		{integer("plain"), `parameter "plain" is 7 (int), want an int64`},
		{integer("none"), `parameter "none" is missing, want an int64`},
		{text("lot"), `parameter "lot" is 3 (int64), want a string`},
		{failure(p.Positive("zero")), `parameter "zero" is 0, want a positive finite number`},
		{failure(p.Positive("infinite")), `parameter "infinite" is +Inf, want a positive finite number`},
		{failure(p.Positive("kind")), `parameter "kind" is huber (string), want a float64 or int64`},
		{failure(p.NotNegative("negative")), `parameter "negative" is -1, want a finite number of at least 0`},
		{failure(p.NotNegative("infinite")), `parameter "infinite" is +Inf, want a finite number of at least 0`},
		{failure(p.IntIn("lot", 4, math.MaxInt64)), `parameter "lot" is 3, want at least 4`},
		{failure(p.IntIn("lot", 1, 2)), `parameter "lot" is 3, want between 1 and 2`},
		{failure(p.IntIn("rate", 1, 2)), `parameter "rate" is 0.5 (float64), want an int64`},
		{p.Only("infinite", "kind", "lot", "negative", "rate", "zero"), `parameter "plain" is unknown, want one of infinite, kind, lot, negative, rate, zero`},
	} {
		if _, ok := errors.AsType[*ParameterError](tt.err); !ok || tt.err.Error() != tt.want {
			t.Errorf("error %v\nwant  %s", tt.err, tt.want)
		}
	}
}

// failure returns the error of a getter.
func failure[T any](_ T, err error) error { return err }

func TestRunValidate(t *testing.T) {
	if err := (Run{Replicates: 1}).Validate(); err != nil {
		t.Errorf("one replicate: %v", err)
	}
	for _, n := range []int{0, -1} {
		if err := (Run{Replicates: n}).Validate(); err == nil {
			t.Errorf("%d replicates: no error", n)
		}
	}
}

func TestInfeasibleError(t *testing.T) {
	err := error(&InfeasibleError{Reason: "diverged"})
	if got, want := err.Error(), "infeasible: diverged"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
}

type fake struct{ options Options }

func (*fake) Name() string { return "fake" }

func (*fake) Train(context.Context, Run, Report) (Measurement, error) { return Measurement{}, nil }

func TestRegistry(t *testing.T) {
	var r Registry
	broken := errors.New("broken")
	r.Register(Definition{Name: "zeta", New: func(context.Context, Options) (Trainer, error) { return nil, broken }})
	r.Register(Definition{
		Name:     "fake",
		Settings: []Setting{{Name: "split"}, {Name: "rows"}},
		New:      func(_ context.Context, options Options) (Trainer, error) { return &fake{options}, nil },
	})

	options := Options{DataDir: "data", Settings: map[string]string{"split": "all"}}
	made, err := r.New(t.Context(), "fake", options)
	require.NoError(t, err)
	if diff := cmp.Diff(options, made.(*fake).options); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}

	var names []string
	for _, d := range r.Definitions() {
		names = append(names, d.Name)
	}
	if diff := cmp.Diff([]string{"fake", "zeta"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}

	for _, tt := range []struct{ name, setting, want string }{
		{"nobody", "", `trainer "nobody" is unknown, want one of fake, zeta`},
		{"fake", "Split", `setting "Split" of trainer fake is unknown, want one of split, rows`},
		{"zeta", "split", `setting "split" of trainer zeta is unknown, want none`},
	} {
		var options Options
		if tt.setting != "" {
			options.Settings = map[string]string{tt.setting: "x"}
		}
		if _, err := r.New(t.Context(), tt.name, options); err == nil || err.Error() != tt.want {
			t.Errorf("error %v\nwant  %s", err, tt.want)
		}
	}
	if _, err := r.New(t.Context(), "zeta", Options{}); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}

func TestRegistryDeclare(t *testing.T) {
	var r Registry
	constructor := func(context.Context, Options) (Trainer, error) { return &fake{}, nil }
	broken := errors.New("broken")
	r.Register(Definition{Name: "silent", New: constructor})
	r.Register(Definition{
		Name: "open", New: constructor, Settings: []Setting{{Name: "checkpoint"}},
		Declare: func(_ context.Context, options Options) (Declaration, error) {
			return Declaration{CheckpointParameter: options.Settings["checkpoint"]}, nil
		},
	})
	r.Register(Definition{
		Name: "broken", New: constructor,
		Declare: func(context.Context, Options) (Declaration, error) { return Declaration{}, broken },
	})

	got, err := r.Declare(t.Context(), "open", Options{Settings: map[string]string{"checkpoint": "epochs"}})
	if err != nil || got.CheckpointParameter != "epochs" {
		t.Errorf("declaration %+v, error %v", got, err)
	}
	for _, tt := range []struct{ name, setting, want string }{
		{"silent", "", "trainer silent declares no study"},
		{"nobody", "", `trainer "nobody" is unknown`},
		{"open", "rows", `setting "rows" of trainer open is unknown`},
		{"broken", "", "trainer broken: broken"},
	} {
		var options Options
		if tt.setting != "" {
			options.Settings = map[string]string{tt.setting: "x"}
		}
		if _, err := r.Declare(t.Context(), tt.name, options); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want %s", err, tt.want)
		}
	}
}

func TestRegisterPanics(t *testing.T) {
	constructor := func(context.Context, Options) (Trainer, error) { return &fake{}, nil }
	for name, definitions := range map[string][]Definition{
		"no name":        {{New: constructor}},
		"no constructor": {{Name: "a"}},
		"twice":          {{Name: "a", New: constructor}, {Name: "a", New: constructor}},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			var r Registry
			for _, d := range definitions {
				r.Register(d)
			}
		})
	}
}
