package specchange

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
)

// MaxPriorStudies bounds the prior studies in a spec.
const MaxPriorStudies = 20

// CheckPriors refuses a spec whose prior studies do not exist, or have another search space or other
// objectives, and prior values of parameters that all of them have. find returns the spec of the
// study that a field names, nil if there is none.
func CheckPriors(asked *dparetov1.StudySpec, find func(field, name string) (*dparetov1.StudySpec, error)) error {
	var fields invalid.Fields
	if n := len(asked.GetPriorStudies()); n > MaxPriorStudies {
		return invalid.Field("study.spec.prior_studies", "must hold at most %d studies, holds %d", MaxPriorStudies, n)
	}
	lacked := make(map[string]*dparetov1.Value)
	for i, name := range asked.GetPriorStudies() {
		field := fmt.Sprintf("study.spec.prior_studies[%d]", i)
		prior, err := find(field, name)
		switch {
		case err != nil:
			return err
		case prior == nil:
			fields.Addf(field, "%s does not exist", name)
		case slices.Index(asked.GetPriorStudies(), name) < i:
			fields.Addf(field, "%s is listed twice", name)
		default:
			maps.Copy(lacked, PriorValues(asked, prior))
			if difference := Incompatibility(asked, prior); difference != "" {
				fields.Addf(field, "%s cannot be a prior: %s", name, difference)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(asked.GetPriorValues())) {
		if lacked[id] == nil && fields.Empty() {
			fields.Addf(fmt.Sprintf("study.spec.prior_values[%q]", id), "must not be set: all prior studies have this parameter")
		}
	}
	return fields.Err()
}

// PriorValues returns the values that parameters had in a prior study which lacks them, by id.
func PriorValues(asked, prior *dparetov1.StudySpec) map[string]*dparetov1.Value {
	values := maps.Clone(asked.GetPriorValues())
	for _, p := range prior.GetParameters() {
		delete(values, p.GetId())
	}
	return values
}

// Incompatibility returns why the trials of a prior study do not mean the same in another study, or
// "".
func Incompatibility(asked, prior *dparetov1.StudySpec) string {
	if prior.GetRandomStopping() != nil {
		return "it has random_stopping, and shows only its best trial"
	}
	lacked := PriorValues(asked, prior)
	domains := func(s *dparetov1.StudySpec) map[string]*dparetov1.ParameterSpec {
		all := make(map[string]*dparetov1.ParameterSpec)
		for _, p := range s.GetParameters() {
			if lacked[p.GetId()] != nil {
				continue
			}
			all[p.GetId()] = &dparetov1.ParameterSpec{Domain: p.GetDomain()}
		}
		return all
	}
	objectives := func(s *dparetov1.StudySpec) map[string]*dparetov1.MetricSpec {
		all := make(map[string]*dparetov1.MetricSpec)
		for _, m := range s.GetMetrics() {
			if m.GetRole() == dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE {
				all[m.GetId()] = &dparetov1.MetricSpec{Goal: m.GetGoal(), Transform: m.GetTransform()}
			}
		}
		return all
	}
	if d := firstDifference(domains(asked), domains(prior), holdsDomain); d != "" {
		return "parameter " + d + "; prior_values can hold the value of a parameter that does not exist there"
	}
	sameObjective := func(a, b *dparetov1.MetricSpec) bool { return proto.Equal(a, b) }
	if d := firstDifference(objectives(asked), objectives(prior), sameObjective); d != "" {
		return "objective " + d
	}
	return ""
}

// holdsDomain reports whether a parameter can take all values of a prior study's parameter. Its
// domain may have grown since.
func holdsDomain(asked, prior *dparetov1.ParameterSpec) bool {
	_, reason, sameKind := missing(prior, asked)
	return sameKind && reason == ""
}

// firstDifference describes the first id, in sorted order, that only one of two studies has or that
// differs between them. It returns "" if there is none.
func firstDifference[M proto.Message](asked, prior map[string]M, same func(asked, prior M) bool) string {
	var ids []string
	for id := range asked {
		ids = append(ids, id)
	}
	for id := range prior {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		a, inAsked := asked[id]
		b, inPrior := prior[id]
		switch {
		case !inPrior:
			return id + " does not exist there"
		case !inAsked:
			return id + " does not exist here"
		case !same(a, b):
			return fmt.Sprintf("%s is {%v} here and {%v} there", id, a, b)
		}
	}
	return ""
}
