package site

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// codesOf are the HTTP statuses of failed calls; others are 500.
var codesOf = map[codes.Code]int{
	codes.InvalidArgument:    http.StatusUnprocessableEntity,
	codes.OutOfRange:         http.StatusUnprocessableEntity,
	codes.Unauthenticated:    http.StatusUnauthorized,
	codes.PermissionDenied:   http.StatusForbidden,
	codes.NotFound:           http.StatusNotFound,
	codes.AlreadyExists:      http.StatusConflict,
	codes.Aborted:            http.StatusConflict,
	codes.FailedPrecondition: http.StatusConflict,
	codes.ResourceExhausted:  http.StatusTooManyRequests,
	codes.Unavailable:        http.StatusServiceUnavailable,
	codes.DeadlineExceeded:   http.StatusGatewayTimeout,
}

// errorPage is what error.html shows.
type errorPage struct {
	Page

	Message string
	Fields  []*errdetails.BadRequest_FieldViolation
}

// errorPart is the template of what takes the place of a part that failed.
const errorPart = "error-part"

// errNotFound is the error of paths that do not exist.
var errNotFound = errors.New("this page does not exist")

// inputError is an error in a reader's input.
type inputError struct{ error }

// Invalid marks an error as one in a reader's input, for which the answer has the status 422
// Unprocessable Entity.
func Invalid(err error) error { return inputError{err} }

// Message returns the text that a reader sees of an error, in a sentence.
func Message(err error) string { return status.Convert(err).Message() }

// fail answers a request that failed. A reader without a valid token is asked for one. A part of a
// view answers with the message alone.
func (s *Site) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		return // the reader has gone
	}
	failed := status.Convert(err)
	code, ok := codesOf[failed.Code()]
	if _, isInput := errors.AsType[inputError](err); isInput {
		code, ok = http.StatusUnprocessableEntity, true
	}
	if errors.Is(err, errNotFound) {
		code, ok = http.StatusNotFound, true
	}
	if !ok {
		code = http.StatusInternalServerError
	}
	if code == http.StatusUnauthorized && s.options.SignIn && r.Method == http.MethodGet && r.PathValue("part") == "" {
		http.Redirect(w, r, "/sign-in?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
		return
	}
	p := s.errorOf(err)
	p.Title = http.StatusText(code)
	name := "error"
	if r.PathValue("part") != "" {
		name = errorPart
	}
	s.Render(w, code, name, p)
}

// errorOf returns the data that a reader sees of an error.
func (s *Site) errorOf(err error) *errorPage {
	return &errorPage{Page: Page{SignIn: s.options.SignIn}, Message: Message(err), Fields: violations(err)}
}

// violations returns the violations that a call reports for the fields of its request.
func violations(err error) []*errdetails.BadRequest_FieldViolation {
	var all []*errdetails.BadRequest_FieldViolation
	for _, detail := range status.Convert(err).Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok {
			all = append(all, bad.GetFieldViolations()...)
		}
	}
	return all
}
