package cli

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/clients/go/trainer/objectiveperturbation"
	"github.com/dpareto/dpareto/clients/go/trainer/sparsevector"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// The source of the noise is that of the flag, else that of the study's spec.
func TestNoiseSource(t *testing.T) {
	const private = objectiveperturbation.Name
	for _, tt := range []struct {
		name, trainer string
		spec          map[string]string
		flags         agentFlags
		want          map[string]string
		secret        bool
		err           string
	}{
		{"default", private, nil, agentFlags{}, nil, false, ""},
		{"flag", private, nil, agentFlags{noiseSource: "os"}, map[string]string{"noise_source": "os"}, true, ""},
		{"spec", private, map[string]string{"noise_source": "os"}, agentFlags{}, map[string]string{"noise_source": "os"}, true, ""},
		{
			"flag over spec", private, map[string]string{"noise_source": "os", "loss": "huber"}, agentFlags{noiseSource: "seed", hasSeed: true},
			map[string]string{"noise_source": "seed", "loss": "huber"}, false, "",
		},
		{"no such setting", sparsevector.Name, nil, agentFlags{noiseSource: "os"}, nil, false, "trainer sparse-vector has no setting noise_source: --noise-source cannot be used with it"},
		{"seed and flag", private, nil, agentFlags{noiseSource: "os", hasSeed: true}, nil, false, "--seed would make the training repeatable"},
		{"seed and spec", private, map[string]string{"noise_source": "os"}, agentFlags{hasSeed: true}, nil, false, "--seed would make the training repeatable"},
		{"no trainer", "", nil, agentFlags{noiseSource: "os"}, nil, false, "names no trainer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := maps.Clone(tt.spec)
			got, err := tt.flags.choose(&dparetov1.StudySpec{Trainer: &dparetov1.TrainerSpec{Name: tt.trainer, Settings: tt.spec}})
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want %q", err, tt.err)
				}
				if _, usage := errors.AsType[*usageError](err); usage != strings.Contains(tt.err, "--seed") {
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
