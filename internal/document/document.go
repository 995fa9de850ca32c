// Package document reads YAML and JSON as they are written: a scalar that stands where a text belongs
// keeps its characters (3.10, 007, 1e-3, 2026-11-28), a name that is given twice is refused, and errors
// have lines.
package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/dpareto/dpareto/internal/text"
)

// Bounds of a document, since aliases can multiply its values, and nest them without end.
const (
	maxValues = 300_000
	maxDepth  = 100
)

// Document is a document as a tree.
type Document struct {
	// Root is a map[string]any, []any, string, bool, json.Number or nil. A json.Number has the
	// characters that were written, which need not be a number of JSON: see Number.
	Root  any
	lines map[string]int
}

// Parse reads a document in YAML or JSON, perhaps with a byte order mark.
func Parse(content []byte) (*Document, error) {
	content, err := text.Decode(content)
	if err != nil {
		return nil, err
	}
	if err := CheckUTF8(content); err != nil {
		return nil, err
	}
	d := &Document{lines: make(map[string]int)}
	if json.Valid(content) { // YAML does not take all that JSON may have in texts
		d.Root, err = readJSON(content, d.lines)
		return d, err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var root, more yaml.Node
	if err := decoder.Decode(&root); err != nil && !errors.Is(err, io.EOF) {
		return nil, plain(err)
	}
	if err := decoder.Decode(&more); err == nil && !isEmpty(&more) {
		return nil, linef(more.Line, "a second document begins, want one")
	} else if err != nil && !errors.Is(err, io.EOF) {
		return nil, plain(err)
	}
	if root.Kind == 0 {
		return d, nil
	}
	r := reader{lines: d.lines}
	d.Root, err = r.value("", root.Content[0])
	return d, err
}

// plain returns an error of the YAML library without its name.
func plain(err error) error { return errors.New(strings.TrimPrefix(err.Error(), "yaml: ")) }

// Types of scalars that are no texts.
const (
	tagBool = "!!bool"
	tagNull = "!!null"
)

// isEmpty reports whether a document has no content.
func isEmpty(document *yaml.Node) bool {
	return len(document.Content) == 0 || document.Content[0].ShortTag() == tagNull && document.Content[0].Value == ""
}

// LineError is an error in a line, from 1, of a document.
type LineError struct {
	Line int
	Err  error
}

// Error implements error.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns the error without the line.
func (e *LineError) Unwrap() error { return e.Err }

func linef(line int, format string, args ...any) error {
	return &LineError{line, fmt.Errorf(format, args...)}
}

// CheckUTF8 returns an error that names the first line that is not UTF-8.
func CheckUTF8(content []byte) error {
	number := 0
	for line := range bytes.Lines(content) {
		number++
		if !utf8.Valid(line) {
			return linef(number, "is not UTF-8: save the file as UTF-8")
		}
		if bytes.IndexByte(line, 0) >= 0 {
			return linef(number, "has a NUL character: save the file as UTF-8")
		}
	}
	return nil
}

// Line returns the line of the value with a path such as spec.metrics[0].id or labels["team"], or else of
// the nearest value above it.
func (d *Document) Line(path string) int {
	path = dotted(path)
	for {
		if line, ok := d.lines[path]; ok || path == "" {
			return line
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
}

// dotted returns a path with dots in place of quoted keys.
func dotted(path string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(path, `["`)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		quoted, err := strconv.QuotedPrefix(`"` + rest)
		if err != nil {
			return b.String()
		}
		key, _ := strconv.Unquote(quoted) // it is a quoted prefix
		b.WriteString("." + key)
		path = strings.TrimPrefix(rest[len(quoted)-1:], "]")
	}
}

// reader turns nodes into a tree.
type reader struct {
	lines         map[string]int
	values, depth int
}

func below(path, key string) string { return strings.TrimPrefix(path+"."+key, ".") }

// value returns the tree of a node.
func (r *reader) value(path string, node *yaml.Node) (any, error) {
	r.depth++
	defer func() { r.depth-- }()
	if r.values++; r.values > maxValues || r.depth > maxDepth {
		return nil, linef(node.Line, "the document has more than %d values, or more than %d in each other, counting aliases", maxValues, maxDepth)
	}
	if _, ok := r.lines[path]; !ok {
		r.lines[path] = node.Line
	}
	switch node.Kind {
	case yaml.AliasNode:
		return r.value(path, node.Alias)
	case yaml.SequenceNode:
		list := make([]any, len(node.Content))
		for i, element := range node.Content {
			var err error
			if list[i], err = r.value(fmt.Sprintf("%s[%d]", path, i), element); err != nil {
				return nil, err
			}
		}
		return list, nil
	case yaml.MappingNode:
		return r.mapping(path, node)
	default:
		return scalar(path, node)
	}
}

// scalar returns the value of a node without others below it.
func scalar(path string, node *yaml.Node) (any, error) {
	switch tag := tagOf(node); tag {
	case "!!str", "!!timestamp":
		return node.Value, nil
	case "!!int", "!!float":
		return json.Number(node.Value), nil
	case tagBool:
		return slices.Contains(affirmations, strings.ToLower(node.Value)), nil
	case tagNull:
		return nil, nil
	default:
		return nil, linef(node.Line, "%s: the tag %s is unknown", path, tag)
	}
}

// Words that YAML 1.1, and so many programs, take for true and for false.
var (
	affirmations = []string{"true", "yes", "on"}
	negations    = []string{"no", "off"}
)

// tagOf returns the type of a scalar.
func tagOf(node *yaml.Node) string {
	word := strings.ToLower(node.Value)
	if node.Kind == yaml.ScalarNode && node.Style == 0 && (slices.Contains(affirmations, word) || slices.Contains(negations, word)) {
		return tagBool
	}
	return node.ShortTag()
}

// mapping returns the entries of a mapping. Those that it merges from others ("<<") do not replace its own.
func (r *reader) mapping(path string, node *yaml.Node) (any, error) {
	entries, merged := make(map[string]any), make(map[string]any)
	lines := make(map[string]int)
	for i := 0; i < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.ShortTag() == "!!merge" {
			if err := r.merge(path, value, merged); err != nil {
				return nil, err
			}
			continue
		}
		for key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		line := node.Content[i].Line
		if tag := tagOf(key); key.Kind != yaml.ScalarNode || tag == tagBool || tag == tagNull {
			return nil, linef(line, "%s: a key must be a string, is %q (quote it)", below(path, key.Value), key.Value)
		}
		at := below(path, key.Value)
		if first, ok := lines[key.Value]; ok {
			return nil, repeated(line, at, first)
		}
		lines[key.Value] = line
		r.lines[at] = line
		var err error
		if entries[key.Value], err = r.value(at, value); err != nil {
			return nil, err
		}
	}
	maps.Copy(merged, entries)
	return merged, nil
}

// repeated returns the error of a second entry of the same name.
func repeated(line int, path string, first int) error {
	return linef(line, "%s: is given twice, first in line %d", path, first)
}

// merge adds the entries of a mapping, or of a list of mappings, that are not there.
func (r *reader) merge(path string, node *yaml.Node, to map[string]any) error {
	value, err := r.value(below(path, "<<"), node)
	if err != nil {
		return err
	}
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	for _, element := range list {
		entries, ok := element.(map[string]any)
		if !ok {
			return linef(node.Line, "%s: must be a mapping or a list of mappings", below(path, "<<"))
		}
		for key, value := range entries {
			if _, ok := to[key]; !ok {
				to[key] = value
			}
		}
	}
	return nil
}

// Number returns what was written where a number belongs as a number of JSON. It takes YAML's signs,
// prefixes and underscores. It refuses infinities, and leading zeros, which mean a number in base 8 to
// some programs and in base 10 to others.
func Number(written json.Number) (json.Number, error) {
	digits := strings.ReplaceAll(strings.TrimPrefix(string(written), "+"), "_", "")
	unsigned := strings.TrimPrefix(digits, "-")
	switch lower := strings.ToLower(unsigned); {
	case strings.TrimLeft(lower, ".") == "inf" || lower == ".nan":
		return "", errors.New("must be a finite number")
	case strings.HasPrefix(lower, "0x") || strings.HasPrefix(lower, "0o") || strings.HasPrefix(lower, "0b"):
		whole, err := strconv.ParseUint(unsigned, 0, 64)
		if err != nil {
			return "", errors.New("must be a number")
		}
		return json.Number(strings.TrimSuffix(digits, unsigned) + strconv.FormatUint(whole, 10)), nil
	case len(unsigned) > 1 && unsigned[0] == '0' && unsigned[1] >= '0' && unsigned[1] <= '9':
		return "", errors.New("must have no leading zeros")
	}
	// JSON wants digits on both sides of a point.
	mantissa, exponent := digits, ""
	if i := strings.IndexAny(digits, "eE"); i >= 0 {
		mantissa, exponent = digits[:i], digits[i:]
	}
	mantissa = strings.TrimSuffix(mantissa, ".")
	if sign, rest, ok := strings.Cut(mantissa, "."); ok && (sign == "" || sign == "-") {
		mantissa = sign + "0." + rest
	}
	number := json.Number(mantissa + exponent)
	if !json.Valid([]byte(number)) {
		return "", errors.New("must be a number")
	}
	return number, nil
}

// UnmarshalTexts reads a document whose values are all texts, in lists and mappings, as encoding/json
// would. Unknown fields are errors.
func UnmarshalTexts(content []byte, to any) error {
	d, err := Parse(content)
	if err != nil {
		return err
	}
	encoded, err := json.Marshal(texts(d.Root))
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(to)
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s: must not be of type %s", mismatch.Field, mismatch.Value)
	}
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "json: ")) // unknown field "name"
	}
	return nil
}

// texts returns a tree with what was written in place of numbers.
func texts(value any) any {
	switch v := value.(type) {
	case json.Number:
		return v.String()
	case []any:
		for i := range v {
			v[i] = texts(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = texts(v[key])
		}
	}
	return value
}
