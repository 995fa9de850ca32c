package private

import (
	"log/slog"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/server/engine"
	"github.com/dpareto/dpareto/server/study"
)

// The engine finds by type that a policy chooses configurations.
var (
	_ engine.Chooser = privateMode{}
	_ engine.Chooser = randomStopping{}
)

// Policies returns the function that chooses the policy for a spec, nil for a study that publishes
// nothing. All noise comes from entropy.
func Policies(entropy *noise.Source, logger *slog.Logger) func(*study.Studies, *dparetov1.StudySpec) study.Policy {
	return func(studies *study.Studies, spec *dparetov1.StudySpec) study.Policy {
		switch {
		case spec.GetRandomStopping() != nil:
			return randomStopping{entropy: entropy, isNoisy: spec.GetRandomStopping().GetTestSetSize() > 0}
		case spec.GetPrivateMode() != nil:
			return privateMode{studies: studies, entropy: entropy, logger: logger}
		default:
			return nil
		}
	}
}
