package show

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
	"github.com/dpareto/dpareto/privacy"
)

// settingGenerated is the setting of a trainer that makes it use generated data.
const settingGenerated = "generated"

// IsGenerated reports whether the trainer of a study uses generated data.
func IsGenerated(spec *dparetov1.StudySpec) bool {
	generated, err := strconv.ParseBool(spec.GetTrainer().GetSettings()[settingGenerated])
	return err == nil && generated
}

// PrivacyMetric returns the first metric of a study that is the ε of a mechanism, or
// nil.
func PrivacyMetric(spec *dparetov1.StudySpec) *dparetov1.MetricSpec {
	for _, m := range spec.GetMetrics() {
		if m.GetComputed().GetPrivacy() != nil {
			return m
		}
	}
	return nil
}

// CodeSeeded is the code of the warning of seeded runs.
const CodeSeeded = "SEEDED"

// IsSeeded reports whether runs were seeded, so that no ε holds for them.
func IsSeeded(warnings []*dparetov1.Warning) bool {
	return slices.ContainsFunc(warnings, func(w *dparetov1.Warning) bool { return w.GetCode() == CodeSeeded })
}

// PrivacyStatement returns the meaning of the ε of a study: without δ, adjacency and accountant it means nothing.
// It is empty for a study without privacy.
func PrivacyStatement(spec *dparetov1.StudySpec) string {
	p := PrivacyMetric(spec).GetComputed().GetPrivacy()
	if p == nil {
		return ""
	}
	adjacency := enum.Name(p.GetAdjacency()) + " adjacency"
	if p.GetAdjacency() == dparetov1.Adjacency_ADJACENCY_ADD_REMOVE && sizeIsPublic(p) {
		adjacency += publicSize
	}
	return "ε of one run, " + DeltaText(p.GetDelta()) + ", " + adjacency + ", " + accountant(p)
}

// AdjacencyText returns an adjacency as guarantees with these assumptions mean it.
func AdjacencyText(name string, assumptions []*dparetov1.Assumption) string {
	if IsSizePublic(assumptions) {
		name += publicSize
	}
	return name
}

// IsSizePublic reports whether assumptions have [privacy.PublicSizeAssumption].
func IsSizePublic(assumptions []*dparetov1.Assumption) bool {
	return slices.ContainsFunc(assumptions, func(a *dparetov1.Assumption) bool { return a.GetText() == privacy.PublicSizeAssumption.Text })
}

// Assumption returns an assumption with its premise and who checks it, as in
// "every step draws … (sampler, checked by the client)".
func Assumption(a *dparetov1.Assumption) string {
	if a.GetPremise() == dparetov1.Premise_PREMISE_UNSPECIFIED { // of a server of another version
		return a.GetText()
	}
	by := enum.Name(a.GetCheckedBy())
	if a.GetCheckedBy() != dparetov1.Checker_CHECKER_NOBODY {
		by = "the " + by
	}
	return a.GetText() + " (" + PremiseName(a.GetPremise()) + ", checked by " + by + ")"
}

// PremiseName returns the name of a premise, such as "fixed in advance".
func PremiseName(p dparetov1.Premise) string { return strings.ReplaceAll(enum.Name(p), "-", " ") }

// Assumptions converts assumptions to messages, in the order of their premises, each once.
func Assumptions(lists ...[]privacy.Assumption) []*dparetov1.Assumption {
	var messages []*dparetov1.Assumption
	for _, a := range privacy.JoinAssumptions(lists...) {
		messages = append(messages, &dparetov1.Assumption{
			Text: a.Text, Premise: dparetov1.Premise(a.Premise), CheckedBy: dparetov1.Checker(a.Premise.Checker()),
		})
	}
	return messages
}

// JoinAssumptions returns the assumptions of all lists in the order of their premises, each once.
func JoinAssumptions(lists ...[]*dparetov1.Assumption) []*dparetov1.Assumption {
	var all []*dparetov1.Assumption
	for _, a := range slices.Concat(lists...) {
		if !slices.ContainsFunc(all, func(b *dparetov1.Assumption) bool { return proto.Equal(a, b) }) {
			all = append(all, a)
		}
	}
	slices.SortStableFunc(all, func(a, b *dparetov1.Assumption) int { return cmp.Compare(a.GetPremise(), b.GetPremise()) })
	return all
}

// Attacker states the knowledge that a trade-off curve grants an attacker, which depends on the adjacency of its
// guarantee.
func Attacker(g *dparetov1.PrivacyGuarantee) string {
	instead := ""
	switch {
	case IsSizePublic(g.GetAssumptions()):
		instead = ", or was blank in its place"
	case g.GetAdjacency() == dparetov1.Adjacency_ADJACENCY_REPLACE_ONE:
		instead = ", or another in its place"
	}
	return "Suppose somebody knows everything about the data except whether one record was in it" + instead + ", and guesses from what the run releases."
}

// publicSize follows the name of an adjacency under which the number of records is public: records are
// zeroed out, not added or removed.
const publicSize = " with a public number of records (zero-out)"

// sizeIsPublic reports whether the probability or the number of steps of a sampling that is accounted under
// add/remove follows from the number of records.
func sizeIsPublic(p *dparetov1.PrivacySpec) bool {
	switch m := p.GetMechanism().(type) {
	case *dparetov1.PrivacySpec_DpSgd:
		s := m.DpSgd.GetSampling()
		return (s == dparetov1.Sampling_SAMPLING_POISSON || s == dparetov1.Sampling_SAMPLING_RANDOM_ALLOCATION) && m.DpSgd.GetDatasetSize() != ""
	case *dparetov1.PrivacySpec_RepeatedSelection:
		return sizeIsPublic(m.RepeatedSelection.GetBase())
	case *dparetov1.PrivacySpec_Composition:
		return slices.ContainsFunc(m.Composition.GetParts(), func(part *dparetov1.CompositionMechanism_Part) bool { return sizeIsPublic(part.GetMechanism()) })
	default:
		return false
	}
}

func accountant(p *dparetov1.PrivacySpec) string {
	switch p.GetAccountant() {
	case dparetov1.Accountant_ACCOUNTANT_PURE:
		return "closed form"
	case dparetov1.Accountant_ACCOUNTANT_TIGHTEST, dparetov1.Accountant_ACCOUNTANT_UNSPECIFIED:
		return "tightest accountant"
	default:
	}
	text := strings.TrimPrefix(p.GetAccountant().String(), "ACCOUNTANT_") + " accountant"
	if p.GetConversion() != dparetov1.Conversion_CONVERSION_UNSPECIFIED {
		text += ", " + enum.Name(p.GetConversion()) + " conversion"
	}
	return text
}

// DeltaText returns a δ for people.
func DeltaText(delta float64) string {
	if delta == 0 {
		return "pure (δ = 0)"
	}
	return "δ = " + Plain(delta)
}

// Conversion returns the name of a conversion, or "" without one.
func Conversion(c dparetov1.Conversion) string {
	if c == dparetov1.Conversion_CONVERSION_UNSPECIFIED {
		return ""
	}
	return enum.Underscored(c)
}

// AccountantText returns the accountant of a guarantee as people read it.
func AccountantText(m *dparetov1.PrivacyGuarantee) string {
	name := enum.Name(m.GetAccountant())
	if conversion := Conversion(m.GetConversion()); conversion != "" {
		name += ", " + conversion + " conversion"
	}
	return name
}

// LargeDelta returns a warning for a δ that is not below 1/n, which would allow the publication of a
// record, and otherwise "". It takes a number of records of 0 for an unknown one.
func LargeDelta(delta float64, records int64) string {
	if records < 1 || delta < 1/float64(records) {
		return ""
	}
	return fmt.Sprintf("delta %g is not below 1/n = %.3g (n = %d records): publishing one record would be allowed", delta, 1/float64(records), records)
}
