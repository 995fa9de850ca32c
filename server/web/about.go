package web

import (
	"net/http"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/web/site"
)

// aboutPage is what about.html shows.
type aboutPage struct {
	site.Page

	Info    *dparetov1.GetServerInfoResponse
	Notices string // of third parties
}

// about shows the server's version, its algorithms, the reader, and the notices of third parties: /about.
func (s views) about(w http.ResponseWriter, r *http.Request) error {
	frame, err := s.NewPage(r, "About")
	if err != nil {
		return err
	}
	info, err := s.Admin.GetServerInfo(site.Outgoing(r), new(dparetov1.GetServerInfoRequest))
	if err != nil {
		return err
	}
	s.Render(w, http.StatusOK, "about", &aboutPage{Page: *frame, Info: info, Notices: site.Notices()})
	return nil
}
