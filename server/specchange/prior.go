package specchange

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

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
	if d := otherCondition(asked, prior, lacked); d != "" {
		return "parameter " + d
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

// otherCondition describes a parameter that exists at other configurations of a prior study than the
// condition in another study says. It returns "" if there is none.
func otherCondition(asked, prior *dparetov1.StudySpec, lacked map[string]*dparetov1.Value) string {
	here, there := byID(asked), byID(prior)
	for _, p := range prior.GetParameters() {
		a, b := existence(p.GetId(), here, there, lacked), existence(p.GetId(), there, there, nil)
		if a != b {
			return fmt.Sprintf("%s exists %s here, and %s there", p.GetId(), a, b)
		}
	}
	return ""
}

func byID(spec *dparetov1.StudySpec) map[string]*dparetov1.ParameterSpec {
	parameters := make(map[string]*dparetov1.ParameterSpec)
	for _, p := range spec.GetParameters() {
		parameters[p.GetId()] = p
	}
	return parameters
}

// existence says where in the space of a prior study, with values of parameters that it lacks, a
// parameter exists. Equal sets of configurations have equal descriptions.
func existence(id string, parameters, prior map[string]*dparetov1.ParameterSpec, lacked map[string]*dparetov1.Value) string {
	var requirements []string
	for c := parameters[id].GetCondition(); c != nil; c = parameters[c.GetParent()].GetCondition() {
		parent := c.GetParent()
		if value := lacked[parent]; value != nil {
			if !slices.ContainsFunc(c.GetValues(), func(v *dparetov1.Value) bool { return proto.Equal(v, value) }) {
				return "never"
			}
			continue
		}
		switch values, all := admitted(prior[parent], c.GetValues()); {
		case all:
		case len(values) == 0:
			return "never"
		case len(values) == 1:
			requirements = append(requirements, parent+" = "+values[0])
		default:
			requirements = append(requirements, parent+" is one of "+strings.Join(values, ", "))
		}
	}
	if len(requirements) == 0 {
		return "always"
	}
	slices.Sort(requirements)
	return "where " + strings.Join(requirements, " and ")
}

// admitted returns which of a condition's values the domain of a parameter holds, and whether these
// are all that it holds.
func admitted(p *dparetov1.ParameterSpec, values []*dparetov1.Value) (texts []string, all bool) {
	size := 0
	holds := func(*dparetov1.Value) bool { return false }
	switch domain := p.GetDomain().(type) {
	case *dparetov1.ParameterSpec_IntegerDomain:
		least, most := domain.IntegerDomain.GetMin(), domain.IntegerDomain.GetMax()
		size = int(most - least + 1)
		holds = func(v *dparetov1.Value) bool { return least <= v.GetIntValue() && v.GetIntValue() <= most }
	case *dparetov1.ParameterSpec_DiscreteDomain:
		size = len(domain.DiscreteDomain.GetValues())
		holds = func(v *dparetov1.Value) bool {
			return slices.Contains(domain.DiscreteDomain.GetValues(), v.GetDoubleValue())
		}
	case *dparetov1.ParameterSpec_CategoricalDomain:
		size = len(domain.CategoricalDomain.GetCategories())
		holds = func(v *dparetov1.Value) bool {
			return slices.Contains(domain.CategoricalDomain.GetCategories(), v.GetStringValue())
		}
	}
	for _, v := range values {
		if holds(v) {
			texts = append(texts, text(v))
		}
	}
	slices.Sort(texts)
	return texts, len(texts) == size
}

// text returns a value of a condition as people write it.
func text(v *dparetov1.Value) string {
	switch kind := v.GetKind().(type) {
	case *dparetov1.Value_IntValue:
		return strconv.FormatInt(kind.IntValue, 10)
	case *dparetov1.Value_DoubleValue:
		return strconv.FormatFloat(kind.DoubleValue+0, 'g', -1, 64) // 0 for -0
	default:
		return v.GetStringValue()
	}
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
