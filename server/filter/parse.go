package filter

import (
	"fmt"
	"slices"
	"strings"
)

// Limits on a filter.
const (
	maxLength      = 2000 // bytes
	maxComparisons = 100
	maxDepth       = 20 // of parentheses
)

// Filter reports whether a resource belongs to a list.
type Filter[T any] func(T) bool

// Parse compiles a filter. An empty one holds for every resource. Errors give the position, in bytes
// from 0.
func Parse[T any](source string, fields Fields[T]) (Filter[T], error) {
	if len(source) > maxLength {
		return nil, fmt.Errorf("must have at most %d bytes, has %d", maxLength, len(source))
	}
	tokens, err := scan(source)
	if err != nil {
		return nil, err
	}
	p := &parser[T]{tokens: tokens, fields: fields}
	if p.next().kind == end {
		return func(T) bool { return true }, nil
	}
	filter, err := p.expression()
	if err != nil {
		return nil, err
	}
	if t := p.next(); t.kind != end {
		return nil, t.errorf("unexpected %s", t)
	}
	return filter, nil
}

// tokenKind is the type of a token.
type tokenKind int

const (
	end        tokenKind = iota
	word                 // a path, a keyword, or an unquoted value
	text                 // a quoted value
	comparator           // = != < <= > >= :
	opening
	closing
)

// token is a part of a filter.
type token struct {
	kind     tokenKind
	text     string
	position int
	adjacent bool // no space before it
}

// String returns the token as errors show it.
func (t token) String() string {
	if t.kind == end {
		return "end"
	}
	return fmt.Sprintf("%.40q", t.text)
}

func (t token) errorf(format string, args ...any) error {
	return fmt.Errorf("at %d: "+format, append([]any{t.position}, args...)...)
}

// scan splits a filter into tokens. The last one is the end.
func scan(source string) ([]token, error) {
	var tokens []token
	space := true
	for i := 0; i < len(source); {
		t := token{position: i, adjacent: !space}
		space = false
		switch c := source[i]; c {
		case ' ', '\t', '\n', '\r':
			space = true
			i++
			continue
		case '(':
			t.kind, t.text = opening, "("
		case ')':
			t.kind, t.text = closing, ")"
		case '=', ':':
			t.kind, t.text = comparator, string(c)
		case '<', '>', '!':
			t.kind, t.text = comparator, string(c)
			if strings.HasPrefix(source[i+1:], "=") {
				t.text += "="
			}
			if t.text == "!" {
				return nil, t.errorf("unexpected %q; did you mean != or NOT?", "!")
			}
		case '"', '\'':
			quoted, length := unquote(source[i:])
			if length == 0 {
				return nil, t.errorf("missing closing quote")
			}
			tokens = append(tokens, token{text, quoted, i, t.adjacent})
			i += length
			continue
		default:
			length := strings.IndexAny(source[i:], " \t\n\r()=:<>!\"'")
			if length < 0 {
				length = len(source) - i
			}
			t.kind, t.text = word, source[i:i+length]
		}
		tokens = append(tokens, t)
		i += len(t.text)
	}
	return append(tokens, token{kind: end, position: len(source)}), nil
}

// unquote returns the quoted text at the start of source, and its length with quotes, 0 if it is
// unterminated. A backslash escapes the next character.
func unquote(source string) (quoted string, length int) {
	var b strings.Builder
	for i := 1; i < len(source); i++ {
		switch source[i] {
		case source[0]:
			return b.String(), i + 1
		case '\\':
			i++
			if i == len(source) {
				return "", 0
			}
		}
		b.WriteByte(source[i])
	}
	return "", 0
}

// parser is a recursive-descent parser.
type parser[T any] struct {
	tokens      []token
	fields      Fields[T]
	comparisons int
	depth       int
}

// next returns the next token without consuming it.
func (p *parser[T]) next() token { return p.tokens[0] }

// take consumes the next token, unless it is the end.
func (p *parser[T]) take() token {
	t := p.tokens[0]
	if t.kind != end {
		p.tokens = p.tokens[1:]
	}
	return t
}

// keyword consumes the next token if it is the keyword.
func (p *parser[T]) keyword(name string) bool {
	if t := p.next(); t.kind != word || t.text != name {
		return false
	}
	p.take()
	return true
}

// expression parses a conjunction: factors one after the other, or with AND in between.
func (p *parser[T]) expression() (Filter[T], error) {
	all, err := p.factor()
	if err != nil {
		return nil, err
	}
	for {
		if !p.keyword("AND") {
			if t := p.next(); t.kind == end || t.kind == closing {
				return all, nil
			}
		}
		left := all
		right, err := p.factor()
		if err != nil {
			return nil, err
		}
		all = func(resource T) bool { return left(resource) && right(resource) }
	}
}

// factor parses a disjunction of terms: OR binds tighter than AND.
func (p *parser[T]) factor() (Filter[T], error) {
	anyOf, err := p.term()
	if err != nil {
		return nil, err
	}
	for p.keyword("OR") {
		left := anyOf
		right, err := p.term()
		if err != nil {
			return nil, err
		}
		anyOf = func(resource T) bool { return left(resource) || right(resource) }
	}
	return anyOf, nil
}

// term parses a comparison or a parenthesised expression, which may be negated.
func (p *parser[T]) term() (Filter[T], error) {
	negated := p.keyword("NOT")
	if t := p.next(); !negated && t.kind == word && strings.HasPrefix(t.text, "-") {
		negated = true
		if p.tokens[0].text = t.text[1:]; p.tokens[0].text == "" {
			p.take()
		}
	}
	var filter Filter[T]
	var err error
	if p.next().kind == opening {
		filter, err = p.parentheses()
	} else {
		filter, err = p.comparison()
	}
	if err != nil || !negated {
		return filter, err
	}
	return func(resource T) bool { return !filter(resource) }, nil
}

// parentheses parses a parenthesised expression.
func (p *parser[T]) parentheses() (Filter[T], error) {
	first := p.take()
	if p.depth++; p.depth > maxDepth {
		return nil, first.errorf("parentheses nested more than %d deep", maxDepth)
	}
	filter, err := p.expression()
	if err != nil {
		return nil, err
	}
	p.depth--
	if t := p.take(); t.kind != closing {
		return nil, t.errorf("unexpected %s, want )", t)
	}
	return filter, nil
}

// comparison parses a comparison of a field with a value.
func (p *parser[T]) comparison() (Filter[T], error) {
	first := p.next()
	if p.comparisons++; p.comparisons > maxComparisons {
		return nil, first.errorf("more than %d comparisons", maxComparisons)
	}
	path, err := p.path()
	if err != nil {
		return nil, err
	}
	operator := p.take()
	if operator.kind == opening {
		return nil, first.errorf("functions are not supported")
	}
	if operator.kind != comparator {
		return nil, operator.errorf("unexpected %s, want a comparison of %s: =, !=, <, <=, >, >= or :", operator, strings.Join(path, "."))
	}
	value := p.take()
	if value.kind != word && value.kind != text {
		return nil, value.errorf("unexpected %s, want a value", value)
	}
	filter, err := compile(p.fields, path, operator.text, value)
	if err != nil {
		return nil, first.errorf("%w", err)
	}
	return filter, nil
}

// path parses the path of a field: names, which may be quoted, separated by dots.
func (p *parser[T]) path() ([]string, error) {
	first := p.take()
	if first.kind != word {
		return nil, first.errorf("unexpected %s, want a field", first)
	}
	path := strings.Split(first.text, ".")
	for path[len(path)-1] == "" && p.next().kind == text && p.next().adjacent {
		path[len(path)-1] = p.take().text
		if t := p.next(); t.kind == word && t.adjacent && strings.HasPrefix(t.text, ".") {
			path = append(path, strings.Split(p.take().text[1:], ".")...)
		}
	}
	if slices.Contains(path, "") {
		return nil, first.errorf("field %s has an empty name", first)
	}
	return path, nil
}
