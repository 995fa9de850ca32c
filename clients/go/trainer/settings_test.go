package trainer

import (
	"errors"
	"testing"
)

func TestSettings(t *testing.T) {
	s := Settings{
		"model": "svm", "empty": "", "rows": "12", "seed": "18446744073709551615", "fast": "true", "norm": "2.5",
	}
	if a, b, c := s.Text("model", "lr"), s.Text("empty", "lr"), s.Text("none", "lr"); a != "svm" || b != "lr" || c != "lr" {
		t.Errorf("texts %q, %q and %q, want svm, lr and lr", a, b, c)
	}
	for name, want := range map[string]string{"model": "svm", "none": "lr"} {
		if v, err := s.Choice(name, "lr", "svm"); v != want || err != nil {
			t.Errorf("Choice(%s) = %q, %v, want %q", name, v, err, want)
		}
	}
	for name, want := range map[string]int{"rows": 12, "empty": 7} {
		if v, err := s.Int(name, 12, 7); v != want || err != nil {
			t.Errorf("Int(%s) = %d, %v, want %d", name, v, err, want)
		}
	}
	for name, want := range map[string]uint64{"seed": 1<<64 - 1, "none": 3} {
		if v, err := s.Seed(name, 3); v != want || err != nil {
			t.Errorf("Seed(%s) = %d, %v, want %d", name, v, err, want)
		}
	}
	for name, want := range map[string]bool{"fast": true, "none": false} {
		if v, err := s.Bool(name); v != want || err != nil {
			t.Errorf("Bool(%s) = %t, %v, want %t", name, v, err, want)
		}
	}
	for name, want := range map[string]float64{"norm": 2.5, "none": 1} {
		if v, err := s.Positive(name, 1); v != want || err != nil {
			t.Errorf("Positive(%s) = %v, %v, want %v", name, v, err, want)
		}
	}
}

func TestSettingErrors(t *testing.T) {
	s := Settings{"model": "tree", "rows": "few", "norm": "NaN", "bound": "+Inf", "seed": "-1", "fast": "yes"}
	choice := func(name string) error { _, err := s.Choice(name, "lr", "svm", "mlp"); return err }
	integer := func(name string) error { _, err := s.Int(name, 2, 0); return err }
	positive := func(name string) error { _, err := s.Positive(name, 0); return err }
	seed := func(name string) error { _, err := s.Seed(name, 0); return err }
	boolean := func(name string) error { _, err := s.Bool(name); return err }
	for _, tt := range []struct {
		err  error
		want string
	}{
		{choice("model"), `setting model is "tree", want lr, svm or mlp`},
		{integer("rows"), `setting rows is "few", want a whole number of at least 2`},
		{positive("norm"), `setting norm is "NaN", want a positive finite number`},
		{positive("bound"), `setting bound is "+Inf", want a positive finite number`},
		{positive("seed"), `setting seed is "-1", want a positive finite number`},
		{seed("seed"), `setting seed is "-1", want a whole number between 0 and 2⁶⁴−1`},
		{boolean("fast"), `setting fast is "yes", want true or false`},
	} {
		if _, ok := errors.AsType[*SettingError](tt.err); !ok || tt.err.Error() != tt.want {
			t.Errorf("error %v\nwant  %s", tt.err, tt.want)
		}
	}
}
