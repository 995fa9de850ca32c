package privacy

import (
	"cmp"
	"slices"
)

// Assumption is a condition of a guarantee.
type Assumption struct {
	// Text is a clause that follows "provided that".
	Text string
	// Premise is its subject, which determines the checker.
	Premise Premise
}

// String returns the text with its premise and who checks it, as in
// "every step draws … (sampler, checked by the client)".
func (a Assumption) String() string {
	return a.Text + " (" + a.Premise.String() + ", checked by " + a.Premise.Checker().String() + ")"
}

// Premise is the subject of an assumption. Lists of assumptions have the order of their premises: those
// that are broken most often in practice come first.
type Premise int

// Premises, with the numbers of the contract. [Premise.Meaning] describes each.
const (
	PremiseSampler Premise = iota + 1
	PremiseFixedInAdvance
	PremiseSensitivity
	PremiseNoise
	PremiseData
	PremiseTheorem
	PremiseIndependence
	PremiseSecrecy
	PremiseScores
	PremiseDisjoint
	PremisePublicData
	PremiseAdmission
	PremiseServerNoise
)

// Checker is the party that checks an assumption.
type Checker int

// Checkers, with the numbers of the contract.
const (
	// CheckedByServer: the server ensures it, whatever clients do.
	CheckedByServer Checker = iota + 1
	// CheckedByClient: the trainer, or the library that it runs in, fulfils it. The server cannot verify that.
	CheckedByClient
	// CheckedByNobody: a person must know it.
	CheckedByNobody
)

// premises is the table of all premises. It has the order of the contract.
var premises = [...]struct {
	name    string
	checker Checker
	meaning string
}{
	PremiseSampler:        {"sampler", CheckedByClient, "the draw of the records of a step"},
	PremiseFixedInAdvance: {"fixed in advance", CheckedByNobody, "decisions that precede all results"},
	PremiseSensitivity:    {"sensitivity", CheckedByClient, "bounds on the influence of a record: clipping, norms, sensitivities"},
	PremiseNoise:          {"noise", CheckedByClient, "the distribution of the noise, and its secret and exact draw"},
	PremiseData:           {"data", CheckedByNobody, "the meaning of a record, and whether the number of records is public"},
	PremiseTheorem:        {"theorem", CheckedByClient, "further conditions of the theorem on the algorithm"},
	PremiseIndependence:   {"independence", CheckedByNobody, "runs or candidates that depend neither on each other nor on the data"},
	PremiseSecrecy:        {"secrecy", CheckedByNobody, "secrets of the trusted parties"},
	PremiseScores:         {"scores", CheckedByNobody, "the terms that scores average"},
	PremiseDisjoint:       {"disjoint", CheckedByNobody, "the split of records or people into sets"},
	PremisePublicData:     {"public data", CheckedByNobody, "data that need no protection"},
	PremiseAdmission:      {"admission", CheckedByServer, "charges that precede every access to the data"},
	PremiseServerNoise:    {"server noise", CheckedByServer, "the noise that the server draws"},
}

// Premises returns all premises in their order.
func Premises() []Premise {
	all := make([]Premise, 0, len(premises)-1)
	for p := range premises[1:] {
		all = append(all, Premise(p+1))
	}
	return all
}

// Assume returns an assumption of the premise.
func (p Premise) Assume(text string) Assumption { return Assumption{text, p} }

// String returns the name, such as "fixed in advance".
func (p Premise) String() string { return premises[p].name }

// Checker returns who checks assumptions of the premise.
func (p Premise) Checker() Checker { return premises[p].checker }

// Meaning returns the subject of the premise, as a noun phrase.
func (p Premise) Meaning() string { return premises[p].meaning }

// String returns "the server", "the client" or "nobody".
func (c Checker) String() string { return [...]string{"", "the server", "the client", "nobody"}[c] }

// JoinAssumptions returns the assumptions of all lists in the order of their premises, each once.
func JoinAssumptions(lists ...[]Assumption) []Assumption {
	var all []Assumption
	for _, a := range slices.Concat(lists...) {
		if !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	slices.SortStableFunc(all, func(a, b Assumption) int { return cmp.Compare(a.Premise, b.Premise) })
	return all
}
