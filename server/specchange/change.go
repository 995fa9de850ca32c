package specchange

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
)

// Fixed says what the policy of a study keeps as it is, although other studies may change it.
type Fixed struct {
	Domains bool // do not grow
	Ledgers bool // a study without a ledger for releases gets none later
}

// Check refuses changes that past trials depend on. Allowed are the budget, the lease, early
// stopping, units, and, unless they are fixed, growing domains and a first ledger to charge
// releases to.
func Check(before, after *dparetov1.StudySpec, fixed Fixed) error {
	var fields invalid.Fields
	allowed := proto.CloneOf(before)
	allowed.Budget, allowed.Lease, allowed.DisableEarlyStopping = after.GetBudget(), after.GetLease(), after.GetDisableEarlyStopping()
	if before.GetTestLedger() == "" && !fixed.Ledgers {
		allowed.TestLedger = after.GetTestLedger()
	}
	if len(before.GetMetrics()) == len(after.GetMetrics()) {
		for i, m := range after.GetMetrics() {
			allowed.Metrics[i].Unit = m.GetUnit()
		}
	}
	if len(before.GetParameters()) == len(after.GetParameters()) {
		for i, p := range after.GetParameters() {
			field, reason, sameKind := missing(before.GetParameters()[i], p)
			if reason != "" {
				fields.Addf(fmt.Sprintf("study.spec.parameters[%d].%s", i, field), "%s: a domain can only grow", reason)
			}
			if sameKind && !fixed.Domains {
				allowed.Parameters[i].Domain = p.GetDomain()
			}
		}
	}
	for _, path := range Differences(allowed, after) {
		fields.Addf("study.spec."+path, "cannot be changed: the trials so far depend on it")
	}
	return fields.Err()
}

// missing returns which field of a parameter's new domain lacks a value of the old one and what it
// should be, "" if none does. Domains of different kinds cannot be compared.
func missing(before, after *dparetov1.ParameterSpec) (field, reason string, sameKind bool) {
	switch b := before.GetDomain().(type) {
	case *dparetov1.ParameterSpec_DoubleDomain:
		if a := after.GetDoubleDomain(); a != nil {
			field, reason = missingEnd("double_domain", b.DoubleDomain.GetMin(), b.DoubleDomain.GetMax(), a.GetMin(), a.GetMax())
			return field, reason, true
		}
	case *dparetov1.ParameterSpec_IntegerDomain:
		if a := after.GetIntegerDomain(); a != nil {
			field, reason = missingEnd("integer_domain", b.IntegerDomain.GetMin(), b.IntegerDomain.GetMax(), a.GetMin(), a.GetMax())
			return field, reason, true
		}
	case *dparetov1.ParameterSpec_DiscreteDomain:
		if a := after.GetDiscreteDomain(); a != nil {
			field, reason = missingValue("discrete_domain.values", b.DiscreteDomain.GetValues(), a.GetValues())
			return field, reason, true
		}
	case *dparetov1.ParameterSpec_CategoricalDomain:
		if a := after.GetCategoricalDomain(); a != nil {
			field, reason = missingValue("categorical_domain.categories", b.CategoricalDomain.GetCategories(), a.GetCategories())
			return field, reason, true
		}
	}
	return "", "", false
}

// missingEnd implements missing for intervals.
func missingEnd[T int64 | float64](domain string, oldMin, oldMax, newMin, newMax T) (field, reason string) {
	switch {
	case newMin > oldMin:
		return domain + ".min", fmt.Sprintf("must be at most %v, is %v", oldMin, newMin)
	case newMax < oldMax:
		return domain + ".max", fmt.Sprintf("must be at least %v, is %v", oldMax, newMax)
	default:
		return "", ""
	}
}

// missingValue implements missing for lists.
func missingValue[T comparable](field string, before, after []T) (string, string) {
	present := make(map[T]bool, len(after))
	for _, v := range after {
		present[v] = true
	}
	for _, v := range before {
		if !present[v] {
			return field, fmt.Sprintf("must hold %v, as before", v)
		}
	}
	return "", ""
}
