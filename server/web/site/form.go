package site

import (
	"net/http"
	"net/url"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Form is a reader's input, and its errors.
type Form struct {
	Values url.Values
	// Errors are messages by field; those under "" concern the whole form.
	Errors map[string]string
}

// Value returns the value of a field.
func (f *Form) Value(field string) string { return f.Values.Get(field) }

// Error returns the error of a field, "" for none.
func (f *Form) Error(field string) string { return f.Errors[field] }

// NewForm reads a form that was sent. The text of its fields has the encoding that calls need.
func NewForm(r *http.Request) (*Form, error) {
	if err := r.ParseForm(); err != nil {
		return nil, Invalid(err)
	}
	f := &Form{Values: make(url.Values), Errors: make(map[string]string)}
	for field, values := range r.PostForm {
		for _, value := range values {
			f.Values.Add(field, ValidText(strings.ReplaceAll(value, "\r\n", "\n")))
		}
	}
	return f, nil
}

// Add adds a message of a field.
func (f *Form) Add(field, message string) {
	if before := f.Errors[field]; before != "" {
		message = before + "; " + message
	}
	f.Errors[field] = message
}

// Refuse takes over a server's errors about a form: fieldOf returns the field of the form for the path of
// a violated field, "" for none. It returns the status to answer with, and false if the error is about
// something else, such as a missing role.
func (f *Form) Refuse(err error, fieldOf func(path string) string) (code int, ok bool) {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.FailedPrecondition, codes.OutOfRange, codes.ResourceExhausted, codes.Aborted:
	default:
		return 0, false
	}
	told := violations(err)
	for _, v := range told {
		name := fieldOf(v.GetField())
		message := v.GetDescription()
		if name == "" {
			message = v.GetField() + " " + message
		}
		f.Add(name, message)
	}
	if len(told) == 0 {
		f.Add("", Message(err))
	}
	return codesOf[status.Code(err)], true
}

// ValidText returns a reader's input in the encoding that calls need.
func ValidText(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// field is the content of the template "field": one field of a form.
type field struct {
	Form              *Form
	Name, Label, Hint string
	Kind              string // text, lines or number
}

// newField is what templates call to show a field of a form.
func newField(f *Form, name, kind, label, hint string) *field {
	return &field{f, name, label, hint, kind}
}
