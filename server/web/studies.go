package web

import (
	"net/http"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// studiesPage is what studies.html shows.
type studiesPage struct {
	page

	Studies []*dparetov1.Study
}

// showStudies lists the studies: /studies.
func (s *site) showStudies(w http.ResponseWriter, r *http.Request) error {
	p, err := s.newPage(r, "Studies")
	if err != nil {
		return err
	}
	resp, err := s.studies.ListStudies(outgoing(r), &dparetov1.ListStudiesRequest{})
	if err != nil {
		return err
	}
	s.render(w, http.StatusOK, "studies", &studiesPage{page: *p, Studies: resp.GetStudies()})
	return nil
}
