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
	// Early shows what a part has while it is still being made; nil where the reader waits for all
	// of it. Last is the part as it was sent last on the same stream, nil at first.
	Early func(data any) error
	Last  any
}

// Names that several parts of the page share.
const (
	stateName       = "state"
	hypervolumeName = "hypervolume"
)

// parts returns the parts by name.
func (s *site) parts() map[string]part {
	return map[string]part{
		stateName:       s.statePart,
		"front":         s.frontPart,
		"running":       s.runningPart,
		hypervolumeName: s.hypervolumePart,
		"spent":         s.spentPart,
		"miniature":     s.miniaturePart,

		"trials-table": s.trialsPart, "trials-news": s.trialsNewsPart, "trial-detail": s.trialPart,

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
