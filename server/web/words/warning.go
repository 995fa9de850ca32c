package words

import (
	"strings"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// Warning is a warning as people read it: a title, its meaning and the remedy.
type Warning struct{ Title, Text string }

// actions are the titles of warnings and what to do about them, where that is known.
var actions = map[string]Warning{
	"NOT_MEASURED":    {"Not run yet.", "This is a prediction. Queue the configuration to check it."},
	"LOOSE_REFERENCE": {"A reference value is too loose.", "The search favours the ends of the front. Leave the reference value out to derive it from results."},
	"MODEL_THINNED":   {"The model uses a part of the results.", "All of them would take too long. The front lists all results."},
	"SEEDED":          {"Seeded runs.", ""},
}

// WarningOf returns a warning as people read it. What the server says of this case follows.
func WarningOf(w *dparetov1.Warning) Warning {
	prefix, code, ok := strings.Cut(w.GetCode(), ": ")
	if !ok {
		prefix, code = "", w.GetCode()
	} else {
		prefix += ": "
	}
	known, ok := actions[code]
	if !ok {
		known.Title = Title(strings.ToLower(strings.ReplaceAll(code, "_", " "))) + "."
	}
	if code == "NOT_MEASURED" { // the action says it all
		return Warning{prefix + known.Title, known.Text}
	}
	return Warning{prefix + known.Title, strings.TrimSpace(known.Text + " " + sentence(w.GetMessage()))}
}

// sentence returns text as a sentence.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return Title(strings.TrimSuffix(text, ".")) + "."
}
