package site

import (
	"context"
	"html/template"
	"net/http"
	"net/url"
)

// Part makes a piece of a view of a study, again when the study changes or when the reader asks for
// it with other settings. The template of its name shows its result. Where that has a method
// ViewURL() string, the reader's address follows the settings of the part.
type Part func(ctx context.Context, request *PartRequest) (any, error)

// PartRequest is the input of a part.
type PartRequest struct {
	Study string     // its name
	Query url.Values // settings of the view
	// Early shows what a part has while it is still being made; nil where the reader waits for all
	// of it. Last is the part as it was sent last on the same stream, nil at first.
	Early func(data any) error
	Last  any
}

// showPart answers with one part of a view: /studies/{study}/parts/{part}.
func (s *Site) showPart(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("part")
	found, ok := s.parts[name]
	if !ok {
		return errNotFound
	}
	data, err := found(Outgoing(r), &PartRequest{Study: StudyName(r), Query: r.URL.Query()})
	if err != nil {
		return err
	}
	if settled, ok := data.(interface{ ViewURL() string }); ok {
		w.Header().Set("Hx-Replace-Url", settled.ViewURL()) // the view keeps the settings of its parts
	}
	s.Render(w, http.StatusOK, name, data)
	return nil
}

// Part makes a part for a view that waits for it. One that cannot be made is replaced by its error.
func (s *Site) Part(ctx context.Context, name string, request *PartRequest) (template.HTML, error) {
	data, err := s.parts[name](ctx, request)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	content, err := s.content(name, data, err)
	return template.HTML(content), err //nolint:gosec // made by a template
}

// content returns a part, or what takes its place if it could not be made: one part must not keep a
// view from its others.
func (s *Site) content(name string, data any, err error) ([]byte, error) {
	if err == nil {
		var content []byte
		if content, err = s.templates.bytes(name, data); err == nil {
			return content, nil
		}
	}
	return s.templates.bytes(errorPart, s.errorOf(err))
}
