// Package snippet writes a configuration for people to copy: as YAML, as JSON, as a Python dict and
// as a command line. Each reads back as the same values, whatever the names of categories are, and
// none holds a character that a terminal would obey.
package snippet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// Entry is a parameter and its value.
type Entry struct {
	ID    string
	Value *dparetov1.Value
}

// Entries returns the values of a configuration in the order of the parameters.
func Entries(parameters []*dparetov1.ParameterSpec, values map[string]*dparetov1.Value) []Entry {
	var entries []Entry
	for _, p := range parameters {
		if v := values[p.GetId()]; v != nil {
			entries = append(entries, Entry{p.GetId(), v})
		}
	}
	return entries
}

// YAML returns a mapping for YAML 1.1 and 1.2.
func YAML(entries []Entry) string {
	var b strings.Builder
	for _, e := range entries {
		key := e.ID
		// YAML 1.1 takes these words for values of another type.
		if slices.Contains([]string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}, strings.ToLower(key)) {
			key = strconv.Quote(key)
		}
		fmt.Fprintf(&b, "%s: %s\n", key, text(e.Value, strconv.Quote))
	}
	return b.String()
}

// JSON returns an object in one line.
func JSON(entries []Entry) string { return object(entries, quoteJSON) }

// Python returns a dict in one line.
func Python(entries []Entry) string { return object(entries, strconv.Quote) }

// Command returns the command that queues the configuration as a trial of a study, for POSIX shells.
func Command(study string, entries []Entry) string {
	return "dpareto trial create " + study + " --parameters '" + strings.ReplaceAll(JSON(entries), "'", `'\''`) + "'"
}

func object(entries []Entry, quote func(string) string) string {
	pairs := make([]string, len(entries))
	for i, e := range entries {
		pairs[i] = quote(e.ID) + ": " + text(e.Value, quote)
	}
	return "{" + strings.Join(pairs, ", ") + "}"
}

// text returns a value. Numbers of double parameters keep a point, without which readers take them
// for integers, or, with an exponent, for strings.
func text(v *dparetov1.Value, quote func(string) string) string {
	switch kind := v.GetKind().(type) {
	case *dparetov1.Value_DoubleValue:
		number := strconv.FormatFloat(kind.DoubleValue, 'g', -1, 64)
		if mantissa, exponent, ok := strings.Cut(number, "e"); !strings.Contains(mantissa, ".") {
			if number = mantissa + ".0"; ok {
				number += "e" + exponent
			}
		}
		return number
	case *dparetov1.Value_StringValue:
		return quote(kind.StringValue)
	default:
		return strconv.FormatInt(v.GetIntValue(), 10)
	}
}

// quoteJSON returns a string of JSON. [strconv.Quote] escapes as YAML and Python do, but not JSON.
func quoteJSON(s string) string {
	var encoded bytes.Buffer
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(s) //nolint:errchkjson // a string is always encoded
	var b strings.Builder
	for _, r := range strings.TrimSuffix(encoded.String(), "\n") {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}
