package show

import (
	"cmp"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// ConstantPoint returns what people read of a study's constant point: its name, or its id.
func ConstantPoint(spec *dparetov1.StudySpec, id string) string {
	for _, p := range spec.GetConstantPoints() {
		if p.GetId() == id {
			return cmp.Or(p.GetDisplayName(), id)
		}
	}
	return id
}
