package linearizability

import (
	"testing"

	"github.com/anishathalye/porcupine"
)

// An order is refused if an answer says less than one that was given before it.
func TestHistoriesWithoutAnOrder(t *testing.T) {
	at := func(start, end int64, o any) porcupine.Operation {
		return porcupine.Operation{ClientId: int(start), Call: start, Return: end, Output: o}
	}
	for name, test := range map[string]struct {
		calls []porcupine.Operation
		want  bool
	}{
		"in order":               {[]porcupine.Operation{at(1, 2, observed{attempt: 1, isNew: true}), at(3, 4, observed{isHeld: true}), at(5, 6, observed{attempt: 1, end: "a"})}, true},
		"at once":                {[]porcupine.Operation{at(1, 9, observed{attempt: 1, end: "a"}), at(2, 8, observed{isHeld: true})}, true},
		"two ends":               {[]porcupine.Operation{at(1, 2, observed{attempt: 1, end: "a"}), at(3, 4, observed{attempt: 2, end: "b"})}, false},
		"an end that vanished":   {[]porcupine.Operation{at(1, 2, observed{attempt: 1, end: "a"}), at(3, 4, observed{attempt: 1})}, false},
		"handed out after":       {[]porcupine.Operation{at(1, 2, observed{attempt: 1, end: "a"}), at(3, 4, observed{attempt: 2, isNew: true})}, false},
		"measured after":         {[]porcupine.Operation{at(1, 2, observed{attempt: 1, end: "a"}), at(3, 4, observed{isHeld: true})}, false},
		"handed out twice":       {[]porcupine.Operation{at(1, 2, observed{attempt: 2, isNew: true}), at(3, 4, observed{attempt: 2, isNew: true})}, false},
		"a revision that is old": {[]porcupine.Operation{at(1, 2, observed{revision: 7}), at(3, 4, observed{revision: 6, isRead: true})}, false},
	} {
		if got := porcupine.CheckOperations(answers, test.calls); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for name, test := range map[string]struct {
		calls []porcupine.Operation
		want  bool
	}{
		"in order":          {[]porcupine.Operation{at(1, 2, charge{release: 1}), at(3, 4, charge{charges: 2}), at(5, 6, charge{release: 2})}, true},
		"a charge lost":     {[]porcupine.Operation{at(1, 2, charge{release: 1}), at(3, 4, charge{charges: 1})}, false},
		"a number twice":    {[]porcupine.Operation{at(1, 2, charge{release: 1}), at(3, 4, charge{release: 1})}, false},
		"a charge too soon": {[]porcupine.Operation{at(1, 2, charge{charges: 2}), at(3, 4, charge{release: 1})}, false},
	} {
		if got := porcupine.CheckOperations(charges(1), test.calls); got != test.want {
			t.Errorf("ledger, %s: %v", name, got)
		}
	}
}
