package server

import (
	"log/slog"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy/noise"
)

// Policies returns the function that tells which policy a study has; nil for those that publish
// nothing. All noise comes from entropy.
func Policies(entropy *noise.Source, logger *slog.Logger) func(*Studies, *dparetov1.StudySpec) Policy {
	return func(studies *Studies, spec *dparetov1.StudySpec) Policy {
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
