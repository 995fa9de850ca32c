package web

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"google.golang.org/grpc/status"

	"github.com/dpareto/dpareto/server/web/report"
)

// reportPage is what report.html shows.
type reportPage struct {
	page

	Epsilons string // as the reader has entered them
	Report   bare
	Download string // URL of the report as a file
}

// showReport shows the report of a study, or downloads it: /studies/{study}/report?epsilon=0.5+1&download=1.
func (s *site) showReport(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	options := report.Options{Now: s.now()}
	for _, text := range strings.FieldsFunc(query.Get("epsilon"), func(c rune) bool { return c == ' ' || c == ',' || c == ';' }) {
		epsilon, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return inputError{errors.New("ε must be a number, is " + strconv.Quote(text))}
		}
		options.Epsilons = append(options.Epsilons, epsilon)
	}
	frame, err := s.newPage(r, "Report")
	if err != nil {
		return err
	}
	made, err := report.New(outgoing(r), &report.Clients{
		Studies: s.studies, Fronts: s.fronts, Privacy: s.privacy, Releases: s.releases, Admin: s.admin,
	}, studyName(r), options)
	if _, isCall := status.FromError(err); err != nil && !isCall {
		return inputError{err}
	}
	if err != nil {
		return err
	}
	if query.Get("download") != "" {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Disposition", `attachment; filename="`+made.ID()+`.html"`)
		return made.Write(w)
	}
	frame.View = "report"
	p := &reportPage{page: *frame, Epsilons: query.Get("epsilon")}
	if p.Report, err = made.Body(); err != nil {
		return err
	}
	query.Set("download", "1")
	p.Download = frame.Path() + "/report?" + query.Encode()
	s.render(w, http.StatusOK, "report", p)
	return nil
}
