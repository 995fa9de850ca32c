package privacy

import (
	"cmp"
	"slices"
)

// Assumption is what must be true for a guarantee to hold.
type Assumption struct {
	// Text is a clause that follows "provided that".
	Text string
	// Premise is what it is about, which says who checks it.
	Premise Premise
}

// String returns the text with its premise and who checks it, as in
// "every step draws … (sampler, checked by the client)".
func (a Assumption) String() string {
	return a.Text + " (" + a.Premise.String() + ", checked by " + a.Premise.Checker().String() + ")"
}

// Premise is what an assumption is about. Lists of assumptions have the order of their premises, in
// which those come first that are broken most often in practice.
type Premise int

// Premises, with the numbers of the contract. [Premise.Meaning] says what each is.
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

// Checker is who checks an assumption.
type Checker int

// Checkers, with the numbers of the contract.
const (
	// CheckedByServer: the assumption holds whatever clients do.
	CheckedByServer Checker = iota + 1
	// CheckedByClient: the trainer, or the library that it runs in, keeps it. The server cannot tell.
	CheckedByClient
	// CheckedByNobody: a person must know it.
	CheckedByNobody
)

// premises is the table of all premises. Its order is that of the contract.
var premises = [...]struct {
	name    string
	checker Checker
	meaning string
}{
	PremiseSampler:        {"sampler", CheckedByClient, "how the records of a step are drawn"},
	PremiseFixedInAdvance: {"fixed in advance", CheckedByNobody, "what had to be decided before any result was seen"},
	PremiseSensitivity:    {"sensitivity", CheckedByClient, "what bounds the influence of a record: clipping, norms, sensitivities"},
	PremiseNoise:          {"noise", CheckedByClient, "the distribution of the noise, and its secret and exact draw"},
	PremiseData:           {"data", CheckedByNobody, "what a record is, and whether the number of records is public"},
	PremiseTheorem:        {"theorem", CheckedByClient, "what else the theorem needs of the algorithm"},
	PremiseIndependence:   {"independence", CheckedByNobody, "that runs or candidates depend neither on each other nor on the data"},
	PremiseSecrecy:        {"secrecy", CheckedByNobody, "what those who are trusted do not disclose"},
	PremiseScores:         {"scores", CheckedByNobody, "what scores are averages of"},
	PremiseDisjoint:       {"disjoint", CheckedByNobody, "which records or people are in which set"},
	PremisePublicData:     {"public data", CheckedByNobody, "which data need no protection"},
	PremiseAdmission:      {"admission", CheckedByServer, "that every access to the data is charged before it happens"},
	PremiseServerNoise:    {"server noise", CheckedByServer, "how the server draws its own noise"},
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

// Meaning returns what the premise is about, as a clause.
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
