package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ParseJSON reads one JSON value as Parse does.
func ParseJSON(content []byte) (any, error) { return readJSON(content, make(map[string]int)) }

func readJSON(content []byte, lines map[string]int) (any, error) {
	r := newJSONReader(content, lines)
	value, err := r.value("")
	if err != nil {
		return nil, err
	}
	if _, err := r.decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, linef(r.at(), "more follows the first value")
	}
	return value, nil
}

// ParseObjects reads JSON objects that follow each other, or stand in lists, and the lines where they
// begin.
func ParseObjects(content []byte) (objects []map[string]any, lines []int, err error) {
	r := newJSONReader(content, make(map[string]int))
	for r.decoder.More() {
		clear(r.lines)
		value, err := r.value("")
		if err != nil {
			return nil, nil, err
		}
		list, ok := value.([]any)
		if !ok {
			list = []any{value}
		}
		for i, element := range list {
			line := r.lines[""]
			if ok {
				line = r.lines[fmt.Sprintf("[%d]", i)]
			}
			object, ok := element.(map[string]any)
			if !ok {
				return nil, nil, linef(line, "must be a JSON object, is %v", element)
			}
			objects, lines = append(objects, object), append(lines, line)
		}
	}
	if _, err := r.decoder.Token(); !errors.Is(err, io.EOF) { // a bracket that closes nothing
		return nil, nil, linef(r.at(), "more follows the last value")
	}
	return objects, lines, nil
}

func newJSONReader(content []byte, lines map[string]int) *jsonReader {
	r := &jsonReader{content: content, decoder: json.NewDecoder(bytes.NewReader(content)), lines: lines, line: 1}
	r.decoder.UseNumber()
	return r
}

// jsonReader reads JSON by its tokens, since encoding/json keeps the last of two equal names in silence.
type jsonReader struct {
	content []byte
	decoder *json.Decoder
	lines   map[string]int
	line    int   // of the byte at offset
	offset  int64 // of the last token's end
}

// at returns the line of the last token.
func (r *jsonReader) at() int {
	now := min(r.decoder.InputOffset(), int64(len(r.content)))
	r.line += bytes.Count(r.content[r.offset:now], []byte("\n"))
	r.offset = now
	return r.line
}

// token returns the next token, for the value of the path.
func (r *jsonReader) token(path string) (json.Token, error) {
	token, err := r.decoder.Token()
	if err == nil {
		return token, nil
	}
	line := r.at()
	word := strings.TrimLeft(string(r.content[r.offset:]), " \t\r\n:,")
	if end := strings.IndexAny(word, " \t\r\n:,]}"); end > 0 {
		word = word[:end]
	}
	switch strings.TrimPrefix(word, "-") {
	case "":
		return nil, linef(line, "the JSON ends within a value")
	case "NaN", "Infinity":
		return nil, linef(line, "%sis %s, which is not JSON: use null where there is no value", prefix(path), word)
	}
	return nil, linef(line, "%sis not JSON from %.20q on", prefix(path), word)
}

// prefix begins an error with its path, if there is one.
func prefix(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}

func (r *jsonReader) value(path string) (any, error) {
	token, err := r.token(path)
	if err != nil {
		return nil, err
	}
	if _, ok := r.lines[path]; !ok {
		r.lines[path] = r.at()
	}
	switch token {
	case json.Delim('{'):
		entries, lines := make(map[string]any), make(map[string]int)
		for r.decoder.More() {
			name, err := r.token(path)
			if err != nil {
				return nil, err
			}
			key, ok := name.(string)
			if !ok {
				return nil, linef(r.at(), "%s: a name must be a string", path)
			}
			at := below(path, key)
			if first, ok := lines[key]; ok {
				return nil, repeated(r.at(), at, first)
			}
			lines[key] = r.at()
			if entries[key], err = r.value(at); err != nil {
				return nil, err
			}
		}
		_, err := r.token(path)
		return entries, err
	case json.Delim('['):
		list := []any{}
		for r.decoder.More() {
			element, err := r.value(fmt.Sprintf("%s[%d]", path, len(list)))
			if err != nil {
				return nil, err
			}
			list = append(list, element)
		}
		_, err := r.token(path)
		return list, err
	default:
		return token, nil
	}
}
