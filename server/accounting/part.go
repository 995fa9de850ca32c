package accounting

import (
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/server/invalid"
)

// Part returns the mechanism of a spec without variables, and how often one run applies it. The
// error has the status INVALID_ARGUMENT and names the fields, under "privacy".
func Part(spec *dparetov1.PrivacySpec) (privacy.Part, error) {
	var fields invalid.Fields
	_, environment := bind(&fields, nil, nil)
	function := Compile("privacy", &fields, environment, spec)
	if !fields.Empty() {
		return privacy.Part{}, fields.Err()
	}
	part, err := function.Part(nil)
	if err != nil {
		return privacy.Part{}, fieldsOf(err)
	}
	return part, nil
}
