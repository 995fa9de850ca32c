package overview

import (
	"context"
	"html/template"
	"net/http"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server/web/site"
	"github.com/dpareto/dpareto/server/web/words"
)

// studyPage is what study.html shows.
type studyPage struct {
	site.Page

	Settings *frontSettings
	// Hidden says why there is nothing to see but the study itself; empty for other studies.
	Hidden string
	// Releases are the publications of a study with Hidden, at most the first page of them.
	Releases []*dparetov1.Release
	// Wait is the path of the view with all parts at once.
	Wait string
	// Parts are the parts that the view waited for.
	Parts map[string]template.HTML
}

// studyParts are the parts of the view of a study that come after its frame.
var studyParts = []string{"tiles", "tile-trials", frontName, "running", hypervolumeName, "spent"}

// showStudy shows a study: /studies/{study}. Its frame comes at once and the parts follow on the
// stream; with wait=1 everything comes together.
func (s views) showStudy(w http.ResponseWriter, r *http.Request) error {
	p, err := s.NewPage(r, "Overview")
	if err != nil {
		return err
	}
	p.View = "study"
	query := r.URL.Query()
	data := &studyPage{Page: *p, Parts: make(map[string]template.HTML)}
	if data.Settings, err = parseFront(query, show.Objectives(p.Study.GetSpec())); err != nil {
		return err
	}
	if p.Study.GetSpec().GetRandomStopping() != nil {
		data.Hidden = "This study shows only its best trial, once it is released: with random stopping the guarantee depends on everything else staying secret."
		data.Releases = s.releases(site.Outgoing(r), p.Study.GetName())
		s.Render(w, http.StatusOK, "study", data)
		return nil
	}
	if query.Get("wait") == "1" {
		for _, name := range append([]string{"tile-gain", "tile-spent"}, studyParts...) {
			if data.Parts[name], err = s.Part(site.Outgoing(r), name, &site.PartRequest{Study: p.Study.GetName(), Query: query}); err != nil {
				return err
			}
		}
		s.Render(w, http.StatusOK, "study", data)
		return nil
	}
	query.Set("wait", "1")
	data.Wait = p.Path() + "?" + query.Encode()
	query.Del("wait")
	query["part"] = append([]string{stateName}, studyParts...)
	query.Set("lead", frontName)
	data.Live = p.Path() + "/live?" + query.Encode()
	s.Render(w, http.StatusOK, "study", data)
	return nil
}

// Guarantees says what each ε of the study means.
func (p *studyPage) Guarantees() []string { return words.Guarantees(p.Study.GetSpec()) }

// Plain states in a sentence the limit that an ε of the study sets.
func (p *studyPage) Plain() string { return words.Plain(p.Study.GetSpec()) }

// Picture names the picture of the front.
func (p *studyPage) Picture() string {
	metrics := show.Objectives(p.Study.GetSpec())
	if len(metrics) != 2 {
		return "Front"
	}
	return words.Title(words.Metric(metrics[1])) + " against " + words.Metric(metrics[0])
}

// Features says what models see of DP-SGD.
func (p *studyPage) Features() string { return show.Features(p.Study.GetSpec()) }

// Labels returns the labels of the study, which lead to all studies that have them.
func (p *studyPage) Labels() []label {
	return labelsOf(p.Study.GetLabels(), func(key, value string) string {
		return studiesPath(nil, "label", labelField(key, value))
	})
}

// Trainer returns the settings of the trainer.
func (p *studyPage) Trainer() []label {
	return labelsOf(p.Study.GetSpec().GetTrainer().GetSettings(), func(string, string) string { return "" })
}

// statePart makes the part "state".
func (s views) statePart(ctx context.Context, r *site.PartRequest) (any, error) {
	resp, err := s.Studies.GetStudy(ctx, &dparetov1.GetStudyRequest{Name: r.Study})
	if err != nil {
		return nil, err
	}
	return site.NewState(resp.GetStudy()), nil
}
