package front

import (
	"fmt"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/suggest/model"
)

// Codes of warnings about models.
const (
	warnNoTrustedModel = "NO_TRUSTED_MODEL"
	warnWiderIntervals = "WIDER_INTERVALS"
	warnMuchLuck       = "MUCH_LUCK"
	warnNoConfidence   = "NO_CONFIDENCE"
)

const (
	// muchWider is the factor of standard deviations from which on a reader is told of it.
	muchWider = 1.5
	// muchLuck is the share of the observed hypervolume below which a reader is told the model's claim.
	muchLuck = 0.5
)

// Doubts returns what a reader must know of how a model compares with the measurements.
func Doubts(m *model.Model) (warnings []*dparetov1.Warning) {
	c := m.Check()
	warn := func(code, format string, args ...any) {
		warnings = append(warnings, &dparetov1.Warning{Code: code, Message: fmt.Sprintf(format, args...)})
	}
	if c.Contradicted {
		warn(warnNoTrustedModel, "no model agrees with the measurements: this shows the measured values without intervals, and fresh runs of the best of them will be worse on average")
		return warnings
	}
	if c.Claimed < muchLuck*c.Observed {
		warn(warnMuchLuck, "the model takes more than half of the measured front for luck: it expects a hypervolume of %.3g, and %.3g was measured", c.Claimed, c.Observed)
	}
	for j, o := range m.Problem().Metrics() {
		if s := c.Inflation[j]; s >= muchWider {
			warn(warnWiderIntervals, "intervals of %s are %.2g times as wide as the model's: it was that wrong about runs that it had not seen", o.Name, s)
		}
	}
	return warnings
}
