package privacy

import (
	"bytes"
	"math"
	"strings"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

// An ε without a bound is printed as JSON, too, and warnings are told once.
func TestGuarantee(t *testing.T) {
	lower := 0.5
	warning := &dparetov1.Warning{Code: "VACUOUS", Message: "nothing is guaranteed"}
	g := Guarantee{Mechanism: "m", Message: &dparetov1.PrivacyGuarantee{
		Epsilon: math.Inf(1), EpsilonLower: &lower, Delta: 1e-5, Adjacency: dparetov1.Adjacency_ADJACENCY_ADD_REMOVE,
		Accountant: dparetov1.Accountant_ACCOUNTANT_RDP, Conversion: dparetov1.Conversion_CONVERSION_IMPROVED, Steps: 3,
		Warnings: []*dparetov1.Warning{warning},
	}}
	var out bytes.Buffer
	require.NoError(t, writeGuarantees(&out, []Guarantee{g}))
	for _, want := range []string{`"epsilon": "Infinity"`, `"epsilon_lower": 0.5`, `"steps": 3`, `"conversion": "improved"`, `"code": "VACUOUS"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is missing in %s", want, out.String())
		}
	}
	if lines := guaranteesWarnings([]Guarantee{g, g}); len(lines) != 1 || !strings.Contains(lines[0], "nothing is guaranteed (VACUOUS)") {
		t.Errorf("warnings %q", lines)
	}
	// Rows of different accountants name them, and CSV has all of it.
	other := Guarantee{Mechanism: "m", Derived: map[string]float64{"mu": math.Inf(-1), "x": math.NaN()}, Message: &dparetov1.PrivacyGuarantee{
		Epsilon: 1, Delta: 1e-5, Adjacency: dparetov1.Adjacency_ADJACENCY_ADD_REMOVE, Accountant: dparetov1.Accountant_ACCOUNTANT_EXACT,
	}}
	both := []Guarantee{g, other}
	if heading := guaranteesHeading(both); strings.Contains(heading, "rdp") {
		t.Errorf("heading %q", heading)
	}
	out.Reset()
	if err := Guarantees(both).WriteText(&out); err != nil || !strings.Contains(out.String(), "rdp, improved conversion\n") || !strings.Contains(out.String(), "exact\n") {
		t.Errorf("%v\n%s", err, out.String())
	}
	out.Reset()
	if err := guaranteesCSV(both).WriteCSV(&out); err != nil || !strings.Contains(out.String(), "\nm,,3,+Inf,0.5,1e-05,add_remove,rdp,improved,,,VACUOUS\nm,,0,1,0,1e-05,add_remove,exact,,,,\n") {
		t.Errorf("%v\n%s", err, out.String())
	}
	out.Reset()
	if err := writeGuarantee(&out, other); err != nil || !strings.Contains(out.String(), `"mu": "-Infinity"`) || !strings.Contains(out.String(), `"x": "NaN"`) {
		t.Errorf("%v\n%s", err, out.String())
	}
	out.Reset()
	if err := g.Table().WriteText(&out); err != nil || !strings.Contains(out.String(), "rdp, improved conversion") {
		t.Errorf("%v\n%s", err, out.String())
	}
}
