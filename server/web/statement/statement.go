package statement

import (
	"fmt"
	"strings"
	"time"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
	"github.com/dpareto/dpareto/internal/show"
)

// Statement is what can be said of one ε.
type Statement struct {
	// Study is the resource name, studies/{study}; StudyUID is never reused.
	Study    string `json:"study"`
	StudyUID string `json:"study_uid"`
	// Revision of the study that the statement is about, 0 with random_stopping.
	Revision int64 `json:"study_revision,omitempty"`
	// Trial that is released, trials/{trial} of the study. Empty for a study with private_mode or
	// random_stopping, whose guarantee covers all that it publishes.
	Trial string    `json:"trial,omitempty"`
	Made  time.Time `json:"made"`
	// Claim is the sentence to sign.
	Claim string `json:"claim"`
	// Guarantee protects the training records, Test the test records.
	Guarantee Guarantee  `json:"guarantee"`
	Test      *Guarantee `json:"test_guarantee,omitempty"`
	// IncludesTuning reports whether Guarantee covers the choice among all runs of the study.
	IncludesTuning bool `json:"includes_tuning"`
	// Seeded reports whether somebody may know the randomness of the trial. Then the guarantee is not one
	// of its weights, but of a fresh run of its configuration.
	Seeded bool `json:"seeded"`
	// Sections are the statement proper, Assumptions what must be true for it to hold, those first that are
	// broken most often.
	Sections    []Section    `json:"sections"`
	Assumptions []Assumption `json:"assumptions"`
	// Recompute is a command that prints Guarantee.Epsilon again, without a server. Empty where the guarantee
	// is one that the server enforces.
	Recompute string `json:"recompute,omitempty"`
	// Registry and Questions are the appendices.
	Registry  Registry   `json:"registry"`
	Questions []Question `json:"nist_sp_800_226"`
}

// Guarantee is an (ε, δ) guarantee. ε is an upper bound.
type Guarantee struct {
	Epsilon      float64  `json:"epsilon"`
	EpsilonLower *float64 `json:"epsilon_lower,omitempty"`
	Delta        float64  `json:"delta"`
	Adjacency    string   `json:"adjacency"`
	Accountant   string   `json:"accountant"`
	// Attack is an upper bound of the true positive rate of any membership test, at a false positive rate of
	// 1 %.
	Attack float64 `json:"attack_tpr_at_fpr_0_01"`
}

// Section is a part of a statement.
type Section struct {
	Title string `json:"title"`
	Items []Item `json:"items"`
}

// Item is a line of a section. The server does not know the text of one to fill in: it asks for it.
type Item struct {
	Name   string `json:"name"`
	Text   string `json:"text"`
	FillIn bool   `json:"fill_in,omitempty"`
}

// Assumption is what must be true for the guarantee to hold: a clause, what it is about, and who checks it (server,
// client or nobody).
type Assumption struct {
	Text      string `json:"text"`
	Premise   string `json:"premise"`
	CheckedBy string `json:"checked_by"`

	line string // for people
}

// String returns the assumption as people read it.
func (a Assumption) String() string { return a.line }

// assume states assumptions.
func (s *Statement) assume(lists ...[]*dparetov1.Assumption) {
	for _, a := range show.JoinAssumptions(lists...) {
		s.Assumptions = append(s.Assumptions, Assumption{a.GetText(), enum.Underscored(a.GetPremise()), enum.Underscored(a.GetCheckedBy()), show.Assumption(a)})
	}
}

// guaranteeOf converts a guarantee. Its attack is the one that ε and δ allow, which the trade-off curve of
// the mechanism can only lower.
func guaranteeOf(g *dparetov1.PrivacyGuarantee) Guarantee {
	return Guarantee{
		Epsilon: g.GetEpsilon(), EpsilonLower: g.EpsilonLower, Delta: g.GetDelta(), Adjacency: enum.Underscored(g.GetAdjacency()),
		Accountant: show.AccountantText(g), Attack: attack(g.GetEpsilon(), g.GetDelta(), falsePositives),
	}
}

// text returns a guarantee with everything without which its ε means nothing.
func guaranteeText(g *dparetov1.PrivacyGuarantee) string {
	return fmt.Sprintf("ε at most %s, %s, %s", show.NumberUp(g.GetEpsilon()), show.DeltaText(g.GetDelta()),
		show.AdjacencyText(enum.Name(g.GetAdjacency())+" adjacency", g.GetAssumptions()))
}

// section adds a section.
func (s *Statement) section(title string, items ...Item) {
	s.Sections = append(s.Sections, Section{title, items})
}

// known is an item that the server knows, asked one that a person fills in.
func known(name, format string, args ...any) Item {
	return Item{Name: name, Text: fmt.Sprintf(format, args...)}
}

func asked(name, question string) Item { return Item{Name: name, Text: question, FillIn: true} }

// id returns the last part of a resource name.
func id(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }
