package web

import (
	"errors"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/status"

	"github.com/dpareto/dpareto/server/web/report"
	"github.com/dpareto/dpareto/server/web/site"
)

// reportPage is what report.html shows.
type reportPage struct {
	site.Page

	Epsilons string // as the reader has entered them
	Report   template.HTML
	Download string // URL of the report as a file
}

// showReport shows the report of a study, or downloads it: /studies/{study}/report?epsilon=0.5+1&download=1.
func (s views) showReport(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	options := report.Options{Now: time.Now()}
	for _, text := range strings.FieldsFunc(query.Get("epsilon"), func(c rune) bool { return c == ' ' || c == ',' || c == ';' }) {
		epsilon, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return site.Invalid(errors.New("ε must be a number, is " + strconv.Quote(text)))
		}
		options.Epsilons = append(options.Epsilons, epsilon)
	}
	frame, err := s.NewPage(r, "Report")
	if err != nil {
		return err
	}
	made, err := report.New(site.Outgoing(r), &report.Clients{
		Studies: s.Studies, Fronts: s.Fronts, Privacy: s.Privacy, Releases: s.Releases, Admin: s.Admin,
	}, site.StudyName(r), options)
	if _, isCall := status.FromError(err); err != nil && !isCall {
		return site.Invalid(err)
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
	p := &reportPage{Page: *frame, Epsilons: query.Get("epsilon")}
	if p.Report, err = made.Body(); err != nil {
		return err
	}
	query.Set("download", "1")
	p.Download = frame.Path() + "/report?" + query.Encode()
	s.Render(w, http.StatusOK, "report", p)
	return nil
}
