package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ParseJSON reads one JSON value as Parse does.
func ParseJSON(content []byte) (any, error) { return readJSON(content, make(map[string]int)) }

func readJSON(content []byte, lines map[string]int) (any, error) {
	r := jsonReader{content: content, decoder: json.NewDecoder(bytes.NewReader(content)), lines: lines, line: 1}
	r.decoder.UseNumber()
	value, err := r.value("")
	if err != nil {
		return nil, err
	}
	if _, err := r.decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("line %d: more follows the first value", r.at())
	}
	return value, nil
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

func (r *jsonReader) token() (json.Token, error) {
	token, err := r.decoder.Token()
	line := r.at()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", line, err)
	}
	return token, nil
}

func (r *jsonReader) value(path string) (any, error) {
	token, err := r.token()
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
			name, err := r.token()
			if err != nil {
				return nil, err
			}
			key, ok := name.(string)
			if !ok {
				return nil, fmt.Errorf("line %d: %s: a name must be a string", r.at(), path)
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
		_, err := r.token()
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
		_, err := r.token()
		return list, err
	default:
		return token, nil
	}
}
