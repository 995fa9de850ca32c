package private

import (
	"fmt"
	"slices"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/spec"
)

// specPath is the path of a spec in the violations of its fields.
const specPath = "study.spec"

// maxTestSet bounds the number of test records, so that the noise on a value never falls below its
// rounding.
const maxTestSet = 1 << 40

// compiler checks what a spec says about publishing, and completes the compiled study with it. The
// compiled study is nil if the rest of the spec has violations.
type compiler struct {
	fields   *invalid.Fields
	spec     *dparetov1.StudySpec
	compiled *spec.Study
}

// Compile implements study.Policy.
func (privateMode) Compile(fields *invalid.Fields, asked *dparetov1.StudySpec, compiled *spec.Study, record *storev1.StudyRecord) {
	modeCompiler{&compiler{fields, asked, compiled}}.compile(record.GetPrivateMode())
}

// Compile implements study.Policy.
func (randomStopping) Compile(fields *invalid.Fields, asked *dparetov1.StudySpec, compiled *spec.Study, record *storev1.StudyRecord) {
	stoppingCompiler{&compiler{fields, asked, compiled}}.compile(record != nil)
}

// addf records a violation of a field of the spec.
func (c *compiler) addf(field, format string, args ...any) {
	c.fields.Addf(specPath+"."+field, format, args...)
}

// needsLedger records a violation unless a field names a ledger. Without one, a study that is deleted
// and created again would spend the budget of its records again.
func (c *compiler) needsLedger(field, ledger, with string) {
	if ledger == "" {
		c.addf(field, "must be set with %s: create a ledger for these records with CreateLedger, unless they have one", with)
	}
}

// noiseOfReports refuses metrics whose workers know their noise.
func (c *compiler) noiseOfReports(with string) {
	for i, m := range c.spec.GetMetrics() {
		if m.GetReported().GetNoise() == dparetov1.Noise_NOISE_KNOWN {
			c.addf(fmt.Sprintf("metrics[%d].reported.noise", i), "must not be NOISE_KNOWN with %s, which keeps no standard errors of workers", with)
		}
	}
}

// hasMechanism reports whether a metric is computed from a privacy mechanism, which may have
// violations.
func hasMechanism(spec *dparetov1.StudySpec) bool {
	return slices.ContainsFunc(spec.GetMetrics(), func(m *dparetov1.MetricSpec) bool { return m.GetComputed().GetPrivacy() != nil })
}
