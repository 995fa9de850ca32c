package web

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/dpareto/dpareto/server/web/site"
	"github.com/dpareto/dpareto/server/web/statement"
)

// statementPolicy is the policy of pages, except for the style in the document: it can be kept as a file.
const statementPolicy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"

// showStatement shows a statement to print: /studies/{study}/statement?trial=7&sampler=poisson. A study with
// private_mode or random_stopping takes no trial.
func (s views) showStatement(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	o := statement.Options{Sampler: query.Get("sampler"), Price: true, Now: time.Now()}
	if text := query.Get("trial"); text != "" {
		var err error
		if o.Trial, err = strconv.ParseInt(text, 10, 64); err != nil || o.Trial < 1 {
			return site.Invalid(errors.New("the trial must be a positive number, is " + strconv.Quote(text)))
		}
	}
	made, err := statement.New(site.Outgoing(r), &statement.Clients{
		Studies: s.Studies, Fronts: s.Fronts, Privacy: s.Privacy, Releases: s.Releases, Admin: s.Admin,
	}, site.StudyName(r), o)
	if _, isRefusal := errors.AsType[statement.RefusalError](err); isRefusal {
		return site.Invalid(err)
	}
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", statementPolicy)
	return made.HTML(w)
}
