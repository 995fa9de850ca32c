package web

import (
	"net/http"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// aboutPage is what about.html shows.
type aboutPage struct {
	page

	Info    *dparetov1.GetServerInfoResponse
	Notices string // of third parties
}

// about shows the server's version, its algorithms, the reader, and the notices of third parties: /about.
func (s *site) about(w http.ResponseWriter, r *http.Request) error {
	frame, err := s.newPage(r, "About")
	if err != nil {
		return err
	}
	info, err := s.admin.GetServerInfo(outgoing(r), new(dparetov1.GetServerInfoRequest))
	if err != nil {
		return err
	}
	notices, err := static.ReadFile("static/NOTICES.txt")
	if err != nil {
		return err
	}
	s.render(w, http.StatusOK, "about", &aboutPage{page: *frame, Info: info, Notices: string(notices)})
	return nil
}
