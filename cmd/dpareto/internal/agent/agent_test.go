package agent

import (
	"maps"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/clients/go/trainer/dpsgd"
	"github.com/dpareto/dpareto/clients/go/trainer/objectiveperturbation"
	"github.com/dpareto/dpareto/clients/go/trainer/sparsevector"
	"github.com/dpareto/dpareto/cmd/internal/command"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// A seed is refused where the noise is a guarantee's, and allowed elsewhere.
func TestSeed(t *testing.T) {
	for name, tt := range map[string]struct {
		spec   *dparetov1.StudySpec
		seeded bool
		err    string
	}{
		"ordinary":             {new(dparetov1.StudySpec), false, ""},
		"ordinary, seeded":     {new(dparetov1.StudySpec), true, ""},
		"ledger, seeded":       {&dparetov1.StudySpec{TestLedger: "ledgers/people"}, true, ""},
		"private":              {&dparetov1.StudySpec{PrivateMode: new(dparetov1.PrivateModeSpec)}, false, ""},
		"private, seeded":      {&dparetov1.StudySpec{PrivateMode: new(dparetov1.PrivateModeSpec)}, true, "--seed cannot be used"},
		"stopping, seeded":     {&dparetov1.StudySpec{RandomStopping: new(dparetov1.RandomStoppingSpec)}, true, "--seed cannot be used"},
		"no trainer, unseeded": {nil, false, "names no trainer"},
	} {
		if tt.spec != nil {
			tt.spec.Trainer = &dparetov1.TrainerSpec{Name: objectiveperturbation.Name}
		}
		f := new(flags)
		if tt.seeded {
			f.seed = new(uint64(1))
		}
		_, err := f.choose(tt.spec)
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) || command.IsUsage(err) != strings.Contains(tt.err, "--seed") {
			t.Errorf("%s: error %v, want %q", name, err, tt.err)
		}
	}
}

// An agent measures nothing by which the guarantee for test records would not hold: no mean
// of unbounded numbers, and none over fewer records than the study hides one among.
func TestChecksAverages(t *testing.T) {
	c := choice{name: objectiveperturbation.Name, settings: map[string]string{"generated": "true", "train_rows": "8000", "validation_rows": "800"}}
	reported := func(ids ...string) *dparetov1.StudySpec {
		spec := new(dparetov1.StudySpec)
		for _, id := range ids {
			spec.Metrics = append(spec.Metrics, &dparetov1.MetricSpec{Id: id, Source: &dparetov1.MetricSpec_Reported{Reported: new(dparetov1.ReportedSource)}})
		}
		return spec
	}
	private := func(records int64, ids ...string) *dparetov1.StudySpec {
		spec := reported(ids...)
		spec.PrivateMode = &dparetov1.PrivateModeSpec{TestSetSize: records}
		return spec
	}
	stopping := func(records int64, ids ...string) *dparetov1.StudySpec {
		spec := reported(ids...)
		spec.RandomStopping = &dparetov1.RandomStoppingSpec{TestSetSize: records, Metric: "error"}
		return spec
	}
	fixed := func(records float64) *dparetov1.StudySpec {
		spec := reported("error", "loss")
		spec.TestLedger = "ledgers/people"
		spec.Metrics[0].GetReported().SampleSize = records
		return spec
	}
	for _, tt := range []struct {
		name string
		spec *dparetov1.StudySpec
		err  string
	}{
		{"open", reported("error", "loss"), ""},
		{"private", private(800, "error"), ""},
		{"private, a loss", private(800, "error", "loss"), "metric loss: must be an average of numbers in [0, 1] over 800 test records for the study's guarantee, is not"},
		{"private, too many records", private(8842, "error"), "metric error: must be an average over 8842 test records for the study's guarantee, but trainer objective-perturbation measures it on 800"},
		{"stopping", stopping(800, "error", "loss"), ""},
		{"stopping, too many records", stopping(8842, "error"), "on 800"},
		{"stopping, unprotected", stopping(0, "error"), ""},
		{"fixed", fixed(800), ""},
		{"fixed, too many records", fixed(8842), "on 800"},
	} {
		err := c.checkAverages(t.Context(), "", tt.spec)
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.err)
		}
	}
	// The gap between groups is no average over all records.
	c = choice{name: dpsgd.Name, settings: map[string]string{"generated": "true"}}
	if err := c.checkAverages(t.Context(), "", private(5000, "error", "equal_opportunity_gap")); err == nil || !strings.Contains(err.Error(), "metric equal_opportunity_gap: must be an average") {
		t.Errorf("gap: %v", err)
	}
	// 1 − F₁ has the resolution of ten positive answers, and is no average over ten records.
	c = choice{name: sparsevector.Name}
	if err := c.checkAverages(t.Context(), "", private(10, "error")); err == nil || !strings.Contains(err.Error(), "is not in trainer sparse-vector") {
		t.Errorf("1 − F₁: %v", err)
	}
}

// Trials on a user's own data have its digests, unless attributes would tell results of a study with a guarantee.
func TestIdentity(t *testing.T) {
	settings := map[string]string{"schema": "s.yaml", "schema_digest": "12", "data_digest": "34", "dataset": "d.csv"}
	want := map[string]string{"schema_digest": "12", "data_digest": "34"}
	if got := identity(settings, new(dparetov1.StudySpec)); !maps.Equal(got, want) {
		t.Errorf("attributes %v, want %v", got, want)
	}
	for _, spec := range []*dparetov1.StudySpec{{PrivateMode: new(dparetov1.PrivateModeSpec)}, {RandomStopping: new(dparetov1.RandomStoppingSpec)}} {
		if got := identity(settings, spec); got != nil {
			t.Errorf("%v: attributes %v", spec, got)
		}
	}
	if got := identity(map[string]string{"dataset": "adult"}, new(dparetov1.StudySpec)); got != nil {
		t.Errorf("a bundled dataset: attributes %v", got)
	}
}

// Two agents of one study have different worker ids; a restarted one has its own again.
func TestDefaultWorkerID(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", folder)
	t.Setenv("HOME", folder)
	first, release := defaultWorkerID(nil, "127.0.0.1:1", "svt")
	second, releaseSecond := defaultWorkerID(nil, "127.0.0.1:1", "svt")
	defer releaseSecond()
	if first == second {
		t.Errorf("both agents are %s", first)
	}
	release()
	again, releaseAgain := defaultWorkerID(nil, "127.0.0.1:1", "svt")
	defer releaseAgain()
	if again != first {
		t.Errorf("the agent is %s after a restart, was %s", again, first)
	}
}
