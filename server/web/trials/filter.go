package trials

import (
	"regexp"
	"slices"
	"strings"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// chip is a condition, and where it leads.
type chip struct{ Text, Link string }

// chips returns the conditions of a filter that AND joins at its outside, each with the address of the
// view without it.
func chips(path string, q *trialsQuery) []chip {
	link := func(changed trialsQuery) string {
		changed.Token, changed.Trail = "", nil
		return path + "?" + changed.values().Encode()
	}
	var all []chip
	if q.State != "" {
		without := *q
		without.State = ""
		all = append(all, chip{"state: " + q.State, link(without)})
	}
	parts := conditions(q.Filter)
	for i, part := range parts {
		without := *q
		without.Filter = strings.Join(slices.Delete(slices.Clone(parts), i, i+1), " AND ")
		all = append(all, chip{part, link(without)})
	}
	return all
}

// conditions splits a filter at every AND that is outside of parentheses and quotes; one with an OR there
// is one condition.
func conditions(filter string) []string {
	var parts []string
	depth, quoted, from := 0, false, 0
	for i := 0; i < len(filter); i++ {
		switch c := filter[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			depth--
		case depth == 0 && strings.HasPrefix(filter[i:], " OR "):
			return []string{strings.TrimSpace(filter)}
		case depth == 0 && strings.HasPrefix(filter[i:], " AND "):
			parts = append(parts, strings.TrimSpace(filter[from:i]))
			from = i + len(" AND ")
		}
	}
	if last := strings.TrimSpace(filter[from:]); last != "" {
		parts = append(parts, last)
	}
	return parts
}

// filterFields returns the fields that a filter can name, besides labels.
func filterFields(spec *dparetov1.StudySpec) []string {
	all := []string{"number", stateName, "worker", noteField, "create_time", "end_time"}
	for _, p := range spec.GetParameters() {
		all = append(all, "parameters."+p.GetId())
	}
	for _, m := range spec.GetMetrics() {
		all = append(all, "metrics."+m.GetId())
	}
	return all
}

// suggestions returns beginnings of conditions, one for each field.
func suggestions(spec *dparetov1.StudySpec) []string {
	var all []string
	for _, field := range filterFields(spec) {
		operator := " = "
		switch {
		case strings.HasPrefix(field, "metrics."):
			operator = " < "
		case field == noteField:
			operator = ":"
		}
		all = append(all, field+operator)
	}
	return all
}

// word finds what may name a field.
var word = regexp.MustCompile(`"[^"]*"|[A-Za-z_][A-Za-z0-9_.]*`)

// meant returns the filter with its unknown fields replaced by those that are named alike, nil where there
// is none.
func meant(spec *dparetov1.StudySpec, path string, q *trialsQuery) *chip {
	known := filterFields(spec)
	changed := *q
	changed.Filter = word.ReplaceAllStringFunc(q.Filter, func(found string) string {
		if found[0] == '"' || slices.Contains(known, found) || slices.Contains([]string{"AND", "OR", "NOT"}, found) || strings.HasPrefix(found, "labels.") {
			return found
		}
		best, least := found, 3 // at most two letters are wrong
		for _, field := range known {
			if _, name, ok := strings.Cut(field, "."); ok && name == found {
				return field
			}
			if d := distance(found, field); d < least {
				best, least = field, d
			}
		}
		return best
	})
	if changed.Filter == q.Filter {
		return nil
	}
	changed.Token, changed.Trail = "", nil
	return &chip{changed.Filter, path + "?" + changed.values().Encode()}
}

// distance returns how many letters must be added, left out or replaced to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := diagonal
			if a[i] != b[j] {
				next = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
