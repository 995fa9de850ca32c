package analyze_test

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/internal/require"
)

// The command shows every analysis in every format.
func TestAnalyze(t *testing.T) {
	clitest.RunStudy(t, "svt", "--trainer sparse-vector --trials 20", 30)

	t.Run("importance", func(t *testing.T) {
		text := clitest.Succeed(t, "study analyze svt")
		for _, want := range []string{"pure (δ = 0)", "Importance:", "noise_scale", "████"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing in\n%s", want, text)
			}
		}
		if strings.Contains(text, "Slices") {
			t.Errorf("slices that nobody asked for:\n%s", text)
		}
		var answer struct {
			Importance struct {
				Objectives []struct {
					Metric     string `json:"metric"`
					Parameters []struct {
						Parameter string `json:"parameter"`
						Total     struct {
							Value float64 `json:"value"`
							Lower float64 `json:"lower"`
							Upper float64 `json:"upper"`
						} `json:"total"`
					} `json:"parameters"`
				} `json:"objectives"`
			} `json:"importance"`
		}
		require.NoError(t, json.Unmarshal([]byte(clitest.Succeed(t, "study analyze svt --importance -o json")), &answer))
		objectives := answer.Importance.Objectives
		if len(objectives) != 2 || objectives[0].Metric != "epsilon" || len(objectives[0].Parameters) != 2 {
			t.Fatalf("%+v", answer)
		}
		if v := objectives[0].Parameters[1]; v.Parameter != "noise_scale" || !(v.Total.Lower <= v.Total.Value && v.Total.Value <= v.Total.Upper) || v.Total.Value < 0.5 {
			t.Errorf("the noise decides ε: %+v", v)
		}
	})
	t.Run("slices", func(t *testing.T) {
		rows, err := csv.NewReader(strings.NewReader(clitest.Succeed(t, "study analyze svt --slices --metric error --points 5 -o csv"))).ReadAll()
		if err != nil || len(rows) != 1+5+5 || strings.Join(rows[0], ",") != "section,metric,parameter,value,median,lower,upper" {
			t.Errorf("%q, %v", rows, err)
		}
		text := clitest.Succeed(t, "study analyze svt --slices --fix cutoff=4,noise_scale=3 --points 3")
		if !strings.Contains(text, "Slices at cutoff = 4, noise_scale = 3") {
			t.Error(text)
		}
	})
	t.Run("contour", func(t *testing.T) {
		var answer struct {
			Contour struct {
				XValues     []float64 `json:"x_values"`
				YValues     []float64 `json:"y_values"`
				Predictions []struct {
					Median float64 `json:"median"`
				} `json:"predictions"`
			} `json:"contour"`
		}
		require.NoError(t, json.Unmarshal([]byte(clitest.Succeed(t, "study analyze svt --contour noise_scale,cutoff --metric epsilon --points 3 -o json")), &answer))
		c := answer.Contour
		if len(c.Predictions) != 9 {
			t.Fatalf("%+v", c)
		}
		for i, p := range c.Predictions {
			cutoff := 2 * c.YValues[i/3]
			want := (1 + math.Cbrt(cutoff)) * (1 + math.Cbrt(cutoff*cutoff)) / c.XValues[i%3]
			if math.Abs(p.Median-want) > 1e-9*want {
				t.Errorf("ε %g, want %g", p.Median, want)
			}
		}
		if text := clitest.Succeed(t, "study analyze svt --contour noise_scale,cutoff --points 3"); !strings.Contains(text, "Contour of error") {
			t.Error(text)
		}
	})
	t.Run("together", func(t *testing.T) {
		var answer map[string]any
		if err := json.Unmarshal([]byte(clitest.Succeed(t, "study analyze svt --importance --slices --points 2 -o json")), &answer); err != nil || len(answer) != 2 {
			t.Errorf("%v, %v", answer, err)
		}
	})
	for _, wrong := range []string{"--metric accuracy", "--contour noise_scale", "--slices --fix cutoff=much", "--slices --fix cut=1"} {
		clitest.Fail(t, command.ExitUsage, "study analyze svt "+wrong)
	}
	if _, stderr := clitest.Fail(t, command.ExitUsage, "study analyze svt --slices --points 1"); !strings.Contains(stderr, "points") {
		t.Error(stderr)
	}
}
