package agent

import (
	"maps"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/clients/go/trainer/objectiveperturbation"
	"github.com/dpareto/dpareto/clients/go/trainer/sparsevector"
	"github.com/dpareto/dpareto/cmd/internal/command"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// The flag decides the source of the noise, else the study's spec does.
func TestNoiseSource(t *testing.T) {
	const private = objectiveperturbation.Name
	for _, tt := range []struct {
		name, trainer string
		spec          map[string]string
		flags         flags
		want          map[string]string
		secret        bool
		err           string
	}{
		{"default", private, nil, flags{}, nil, false, ""},
		{"flag", private, nil, flags{noiseSource: "os"}, map[string]string{"noise_source": "os"}, true, ""},
		{"spec", private, map[string]string{"noise_source": "os"}, flags{}, map[string]string{"noise_source": "os"}, true, ""},
		{
			"flag over spec", private, map[string]string{"noise_source": "os", "loss": "huber"}, flags{noiseSource: "seed", hasSeed: true},
			map[string]string{"noise_source": "seed", "loss": "huber"}, false, "",
		},
		{"no such setting", sparsevector.Name, nil, flags{noiseSource: "os"}, nil, false, "trainer sparse-vector has no setting noise_source: --noise-source cannot be used with it"},
		{"seed and flag", private, nil, flags{noiseSource: "os", hasSeed: true}, nil, false, "--seed cannot be used with noise from os"},
		{"seed and spec", private, map[string]string{"noise_source": "os"}, flags{hasSeed: true}, nil, false, "--seed cannot be used with noise from os"},
		{"no trainer", "", nil, flags{noiseSource: "os"}, nil, false, "names no trainer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := maps.Clone(tt.spec)
			got, err := tt.flags.choose(&dparetov1.StudySpec{Trainer: &dparetov1.TrainerSpec{Name: tt.trainer, Settings: tt.spec}})
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want %q", err, tt.err)
				}
				if usage := command.IsUsage(err); usage != strings.Contains(tt.err, "--seed") {
					t.Errorf("usage error %v: %v", usage, err)
				}
				return
			}
			if err != nil || got.name != tt.trainer || !maps.Equal(got.settings, tt.want) || got.secret() != tt.secret {
				t.Errorf("choice %+v, %v", got, err)
			}
			if !maps.Equal(before, tt.spec) {
				t.Errorf("the spec's settings became %v", tt.spec)
			}
		})
	}
}

// Studies for publication take their noise from the operating system by default.
func TestNoiseOfPublication(t *testing.T) {
	for name, spec := range map[string]*dparetov1.StudySpec{
		"private_mode":    {PrivateMode: new(dparetov1.PrivateModeSpec)},
		"random_stopping": {RandomStopping: new(dparetov1.RandomStoppingSpec)},
		"test_ledger":     {TestLedger: "ledgers/people"},
	} {
		spec.Trainer = &dparetov1.TrainerSpec{Name: objectiveperturbation.Name}
		if got, err := new(flags).choose(spec); err != nil || !got.secret() {
			t.Errorf("%s: choice %+v, %v", name, got, err)
		}
		if got, err := (&flags{hasSeed: true}).choose(spec); err != nil || got.secret() {
			t.Errorf("%s with --seed: choice %+v, %v", name, got, err)
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
		{"private, a loss", private(800, "error", "loss"), "metric loss to be an average of numbers in [0, 1] over 800 test records, which it is not"},
		{"private, too many records", private(8842, "error"), "metric error to be an average over 8842 test records, but trainer objective-perturbation measures it on 800"},
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
	// 1 − F₁ has the resolution of ten positive answers, and is no average over ten records.
	c = choice{name: sparsevector.Name}
	if err := c.checkAverages(t.Context(), "", private(10, "error")); err == nil || !strings.Contains(err.Error(), "which it is not in trainer sparse-vector") {
		t.Errorf("1 − F₁: %v", err)
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
