package web

import (
	"context"
	"net/http"
	"net/url"
)

// part is a piece of a view of a study that is made again when the study changes, or when the reader
// asks for it with other settings. It has a template of its name.
type part func(ctx context.Context, request *partRequest) (any, error)

// partRequest is what a part is made from.
type partRequest struct {
	Study string     // its name
	Query url.Values // settings of the view
}

// parts returns the parts by name.
func (s *site) parts() map[string]part {
	return map[string]part{
		"state":      s.statePart,
		"chooser":    s.chooserPart,
		"choice":     s.choicePart,
		"importance": s.importancePart,
		"slices":     s.slicesPart,
		"contour":    s.contourPart,
		"fit":        s.fitPart,
		"gain":       s.gainPart,
	}
}

// showPart answers with one part of a view: /studies/{study}/parts/{part}.
func (s *site) showPart(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("part")
	found, ok := s.parts()[name]
	if !ok {
		return errNotFound
	}
	data, err := found(outgoing(r), &partRequest{Study: studyName(r), Query: r.URL.Query()})
	if err != nil {
		return err
	}
	if settled, ok := data.(interface{ ViewURL() string }); ok {
		w.Header().Set("Hx-Replace-Url", settled.ViewURL()) // the view keeps the settings of its parts
	}
	s.render(w, http.StatusOK, name, data)
	return nil
}
