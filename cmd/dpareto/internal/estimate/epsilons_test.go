package estimate

import (
	"math"
	"testing"
)

func TestParseEpsilons(t *testing.T) {
	for text, want := range map[string][]float64{
		"0.1":        {0.1},
		"1, 0.5":     {1, 0.5},
		"1..4/3":     {1, 2, 4},
		" 1 .. 4 /2": {1, 4},
	} {
		got, err := parseEpsilons(text)
		if err != nil || len(got) != len(want) {
			t.Errorf("%s: %v, %v", text, got, err)
			continue
		}
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-12 {
				t.Errorf("%s: %v, want %v", text, got, want)
			}
		}
	}
	if got, err := parseEpsilons("0.05..1"); err != nil || len(got) != epsilonCount || got[0] != 0.05 || got[epsilonCount-1] != 1 {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "x", "0", "-1", "1,", "inf", "1..1", "2..1", "..1", "1..", "1..2/1", "1..2/x"} {
		if got, err := parseEpsilons(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
