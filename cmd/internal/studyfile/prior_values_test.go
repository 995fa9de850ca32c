package studyfile_test

import (
	"testing"

	"github.com/dpareto/dpareto/cmd/internal/studyfile"
	"github.com/dpareto/dpareto/internal/require"
)

// Values of parameters in prior studies are written plainly, or as messages.
func TestPriorValues(t *testing.T) {
	file, err := studyfile.Parse([]byte(`
study_id: next
spec:
  parameters:
    - {id: clip, double_domain: {min: 0.1, max: 10}, scale: LOG}
    - {id: depth, integer_domain: {min: 1, max: 9}, scale: LINEAR}
    - {id: optimizer, categorical_domain: {categories: [sgd, adam]}}
    - {id: rate, double_domain: {min: 0.1, max: 10}, scale: LOG}
  metrics: [{id: error, role: OBJECTIVE, goal: MINIMIZE, transform: LOGIT, reference_value: 1, reported: {}}]
  prior_studies: [studies/old]
  prior_values: {clip: 1, depth: 3, optimizer: sgd, rate: {double_value: 0.5}}
`))
	require.NoError(t, err)
	got := file.Study.GetSpec().GetPriorValues()
	if got["clip"].GetDoubleValue() != 1 || got["depth"].GetIntValue() != 3 || got["optimizer"].GetStringValue() != "sgd" || got["rate"].GetDoubleValue() != 0.5 {
		t.Errorf("prior values %v", got)
	}
}
