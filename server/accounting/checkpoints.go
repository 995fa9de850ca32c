package accounting

import dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"

// CoversCheckpoints reports whether the guarantee of a run holds for all of its states together, not
// for the last one alone. It does for DP-SGD, which is accounted as the adaptive composition of its
// steps: each state is computed from the outputs of the steps so far. It does for DP-FTRL, whose whole
// stream of noisy steps is one release. It does not for mechanisms that
// add noise once, to the result or to the objective: what they had before is not covered.
func (f *Function) CoversCheckpoints() bool { return coversCheckpoints(f.spec) }

func coversCheckpoints(spec *dparetov1.PrivacySpec) bool {
	switch m := spec.GetMechanism().(type) {
	case *dparetov1.PrivacySpec_DpSgd, *dparetov1.PrivacySpec_DpFtrl:
		return true
	case *dparetov1.PrivacySpec_Composition:
		for _, part := range m.Composition.GetParts() {
			if !coversCheckpoints(part.GetMechanism()) {
				return false
			}
		}
		return true
	default:
		return false
	}
}
