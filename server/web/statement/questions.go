package statement

import "strings"

// Question is a question that NIST SP 800-226, "Guidelines for Evaluating Differential Privacy Guarantees"
// (March 2025), has a reader ask of a guarantee. The publication has no numbered list: these are the factors
// of its differential privacy pyramid and the hazards that it names, each as one question in our words.
type Question struct {
	Factor   string `json:"factor"`
	Question string `json:"question"`
	Answer   string `json:"answer"`
	FillIn   bool   `json:"fill_in,omitempty"`
}

// questions answers the questions.
func (m *maker) questions() []Question {
	s := m.s
	answers := func(parts ...string) string {
		var said []string
		for _, p := range parts {
			if p != "" {
				said = append(said, p)
			}
		}
		return strings.Join(said, ". ")
	}
	const (
		who, released, search = "Who is protected", "What is released", "What the search cost"
		executed, attacker    = "What was accounted and executed", "What an attacker can do"
	)
	assumptions := make([]string, len(s.Assumptions))
	for i, a := range s.Assumptions {
		assumptions[i] = a.Text
	}
	tuning := "the search is not included in ε"
	if s.IncludesTuning {
		tuning = "the search is included in ε"
	}
	variant := "approximate differential privacy"
	if s.Guarantee.Delta == 0 {
		variant = "pure differential privacy"
	}
	return []Question{
		{Factor: "Privacy parameters", Question: "What is ε, and is it small enough for the use?", Answer: answers(s.text(who, "ε"), s.text(attacker, "Membership")) + ". FILL IN: why this is small enough", FillIn: true},
		{Factor: "Privacy parameters", Question: "Which variant of differential privacy is it, and is δ small against 1/n?", Answer: answers(variant, s.text(who, "δ against 1/n"))},
		{Factor: "Unit of privacy", Question: "What is one unit, and is it a person?", Answer: answers(s.text(who, "Unit of privacy")) + ". FILL IN: how many records a person can have", FillIn: true},
		{Factor: "Unit of privacy", Question: "Is the number of records public (bounded or unbounded adjacency)?", Answer: s.text(who, "Adjacency")},
		{Factor: "Query model", Question: "Who may ask what, and how do answers add up?", Answer: answers("non-interactive: "+s.text(released, "Released"), s.text(search, "Tuning"), tuning)},
		{Factor: "Algorithms", Question: "Which mechanism is it, and is its sensitivity bounded as it was accounted?", Answer: answers(s.text(executed, "Mechanism"), s.text(executed, "Sampler"), "provided that "+strings.Join(assumptions, "; "))},
		{Factor: "Algorithms", Question: "Is the accounting right, and can somebody else repeat it?", Answer: answers(s.text(executed, "Accountant"), s.text("How to compute it again", ""), s.text("How to check it", ""))},
		{Factor: "Machine learning", Question: "Were hyperparameters tuned on the data, and is that in ε?", Answer: s.text(search, "")},
		{Factor: "Utility and bias", Question: "Is the result useful, and for whom less than for others?", Answer: "FILL IN: errors by group, on data that may be used for it; clipping and noise cost rare groups most", FillIn: true},
		{Factor: "Threat model", Question: "Whom must one trust?", Answer: "the central model: the workers see the records, and readers of the study see unprotected results. FILL IN: who they are", FillIn: true},
		{Factor: "Implementation", Question: "Is the randomness secret, and is the noise safe in floating point?", Answer: answers(s.text(executed, "Randomness"), s.text(executed, "Floating point"))},
		{Factor: "Implementation", Question: "Are there side channels, such as time?", Answer: "times of runs, failures and the length of the search are not protected"},
		{Factor: "Data security", Question: "How are the records and the results of runs kept, and who has access?", Answer: "FILL IN: access, backups, deletion", FillIn: true},
		{Factor: "Data collection", Question: "Was the collection itself lawful and minimal? ε says nothing about it.", Answer: "FILL IN: purpose, consent or other basis, what is stored and for how long", FillIn: true},
	}
}
