package mechanism

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"google.golang.org/protobuf/reflect/protoreflect"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/gen/openapi"
	"github.com/dpareto/dpareto/internal/enum"
)

// option is a flag of some mechanism, or of all: a field of the contract.
type option struct {
	name, usage string
	choices     []string // names that it takes
	number      bool     // takes numbers
	list        bool     // takes numbers with commas or colons between them
}

// isNumber reports whether the option takes one number alone.
func (o option) isNumber() bool { return o.number && !o.list && len(o.choices) == 0 }

// fields are the fields of PrivacySpec.
var fields = new(dparetov1.PrivacySpec).ProtoReflect().Descriptor().Fields()

// ofModels are the fields of mechanisms that only the models of a study use.
var ofModels = map[protoreflect.Name]bool{"learning_rate": true, "clipping_norm": true, "optimizer": true}

// renamed are the flags of fields with other names: the distributions are one flag.
var renamed = map[protoreflect.Name]string{"eta": flagDistribution, poisson: flagDistribution, fixed: flagDistribution, binomial: flagTries}

// flagOf returns the flag of a field.
func flagOf(field protoreflect.FieldDescriptor) string {
	if name, ok := renamed[field.Name()]; ok {
		return name
	}
	return strings.ReplaceAll(string(field.Name()), "_", "-")
}

// fieldsOf returns the fields of a mechanism's message that are flags.
func fieldsOf(message protoreflect.MessageDescriptor) []protoreflect.FieldDescriptor {
	var all []protoreflect.FieldDescriptor
	for i := range message.Fields().Len() {
		if field := message.Fields().Get(i); !ofModels[field.Name()] {
			all = append(all, field)
		}
	}
	return all
}

// ownDefaults are the defaults of the command line for fields that the contract requires.
var ownDefaults = map[string]string{flagAdjacency: "depends on the mechanism", flagConversion: "improved"}

// options are the flags in the order of the contract: of the mechanisms, then of repeated-selection,
// then of every mechanism. Their help is the first sentence of the comments of their fields.
var options = sync.OnceValue(func() []option {
	var all []option
	meanings := make(map[string][]string) // of a flag, each with the first mechanism that has it
	add := func(mechanism string, field protoreflect.FieldDescriptor) {
		o := option{name: flagOf(field), usage: usage(field)}
		known := slices.ContainsFunc(all, func(other option) bool { return other.name == o.name })
		if !slices.ContainsFunc(meanings[o.name], func(other string) bool { return strings.HasSuffix(other, ": "+o.usage) }) {
			meanings[o.name] = append(meanings[o.name], mechanism+": "+o.usage)
		}
		switch {
		case known:
			return
		case o.name == flagDistribution:
			o.choices, o.number = distributions, true
		case o.name == flagBase:
			o.choices = bases()
		case field.Enum() != nil:
			o.choices = slices.DeleteFunc(enum.Names(field.Enum()), func(name string) bool { return slices.Contains(ofGuarantees, name) })
		default:
			o.number, o.list = true, field.IsList()
		}
		all = append(all, o)
	}
	for _, d := range append(slices.Clone(definitions), definition{name: repeatedName}) {
		for _, field := range fieldsOf(d.field().Message()) {
			add(d.name, field)
		}
	}
	for _, field := range fieldsOf(fields.ByName("delta").ContainingMessage()) {
		if field.ContainingOneof() == nil {
			add("", field)
		}
	}
	for i, o := range all {
		switch {
		case o.name == flagDistribution:
			all[i].usage = "distribution of the number of runs: " + strings.Join(distributions, ", ") +
				", or η of the truncated negative binomial distribution (default geometric)"
		case !o.number:
			all[i].usage += ": " + strings.Join(o.choices, ", ")
		case len(meanings[o.name]) > 1:
			all[i].usage = strings.Join(meanings[o.name], "; ")
		}
		if own := ownDefaults[o.name]; own != "" {
			all[i].usage += " (default " + own + ")"
		}
	}
	return all
})

// findOption returns an option by its name.
func findOption(name string) (option, bool) {
	all := options()
	i := slices.IndexFunc(all, func(o option) bool { return o.name == name })
	if i < 0 {
		return option{}, false
	}
	return all[i], true
}

// synopsis lists the flags of a mechanism. Those that the contract does not require are in brackets.
func (d *definition) synopsis() string {
	var parts []string
	for _, field := range fieldsOf(d.field().Message()) {
		part := "--" + flagOf(field)
		if !strings.HasPrefix(comment(field), "Required.") {
			part = "[" + part + "]"
		}
		if !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	if d.name == repeatedName {
		parts = append(parts, "and the flags of the base")
	}
	return strings.Join(parts, " ")
}

// contract is the document of the contract, which has the comments of fields.
var contract = sync.OnceValue(func() (document struct {
	Definitions map[string]struct {
		Properties map[string]struct {
			Description string `json:"description"`
		} `json:"properties"`
	} `json:"definitions"`
}) {
	if err := json.Unmarshal(openapi.Document(), &document); err != nil {
		panic("mechanism: " + err.Error()) // it is part of the program
	}
	return document
})

// comment returns the comment of a field.
func comment(field protoreflect.FieldDescriptor) string {
	message := contract().Definitions["v1"+string(field.Parent().Name())]
	return strings.Join(strings.Fields(message.Properties[string(field.Name())].Description), " ")
}

// Parts of comments.
var (
	preamble = regexp.MustCompile(`^(Required[^.:]*\. )?(Expression[^:]*: )?`)
	preset   = regexp.MustCompile(`\bDefault:? (.+?)\.( |$)`)
)

// usage returns the first sentence of the comment of a field with its default, in the words of the
// command line.
func usage(field protoreflect.FieldDescriptor) string {
	whole := comment(field)
	text, _, _ := strings.Cut(preamble.ReplaceAllString(whole, ""), ". ")
	text = strings.TrimSuffix(text, ".")
	if runes := []rune(text); len(runes) > 1 && (runes[1] == ' ' || unicode.IsLower(runes[1])) {
		text = string(unicode.ToLower(runes[0])) + string(runes[1:])
	}
	if found := preset.FindStringSubmatch(whole); found != nil {
		text += " (default " + found[1] + ")"
	}
	return strings.ReplaceAll(Words(text), "_", "-")
}
