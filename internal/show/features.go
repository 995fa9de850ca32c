package show

import (
	"slices"
	"strings"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// Names of parameters that are a learning rate or a clipping norm in most programs.
var (
	commonRates = []string{"learning_rate", "lr"}
	commonNorms = []string{"clipping_norm", "max_grad_norm", "l2_norm_clip", "clip"}
)

// Features says what models see of the DP-SGD of a study, or what it has to name for that. It is empty for a
// study without a model of DP-SGD.
func Features(spec *dparetov1.StudySpec) string {
	features := spec.GetAlgorithm().GetDpSgdFeatures()
	switch {
	case features.GetDisabled():
		return "off"
	case features != nil:
		text := "on: learning rate " + features.GetLearningRate() + ", clipping norm " + features.GetClippingNorm()
		if features.GetOptimizer() == dparetov1.DpSgdOptimizer_DP_SGD_OPTIMIZER_NORMALIZED {
			text += ", normalized gradients"
		}
		if features.GetWithoutPublicRuns() {
			text += ", without public runs"
		}
		return text
	case spec.GetAlgorithm().GetName() != dparetov1.Algorithm_ALGORITHM_DEFAULT || spec.GetRandomStopping() != nil:
		return ""
	}
	for _, m := range spec.GetMetrics() {
		if m.GetComputed().GetPrivacy().GetDpSgd().GetDatasetSize() != "" {
			return "off; add " + hint(spec) + " to dp_sgd of metric " + m.GetId() + " to need fewer runs"
		}
	}
	return ""
}

// hint returns the fields to add, with the parameters that are probably meant if there is only one for each.
func hint(spec *dparetov1.StudySpec) string {
	only := func(names []string) string {
		found := ""
		for _, p := range spec.GetParameters() {
			if slices.Contains(names, strings.ToLower(p.GetId())) {
				if found != "" || p.GetCondition() != nil {
					return ""
				}
				found = p.GetId()
			}
		}
		return found
	}
	rate, norm := only(commonRates), only(commonNorms)
	if rate == "" || norm == "" {
		return "learning_rate and clipping_norm"
	}
	return "learning_rate: " + rate + " and clipping_norm: " + norm
}
