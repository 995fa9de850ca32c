package web

import (
	"context"
	"html/template"
	"net/http"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// studyView is a view of a study, in the order of the navigation.
type studyView struct {
	Name, Label string
	Path        string // below the study's
}

var studyViews = []studyView{
	{"study", "Front", ""},
	{"choose", "Choose a point", "/choose"},
	{"why", "Why", "/why"},
	{"trials", "Trials", "/trials"},
	{"report", "Report", "/report"},
}

// newPage returns the frame of a view, with the study of the request's path if it has one.
func (s *site) newPage(r *http.Request, title string) (*page, error) {
	p := &page{Title: title, SignIn: s.options.SignIn}
	asked := new(dparetov1.GetServerInfoRequest)
	if r.PathValue("study") != "" {
		resp, err := s.studies.GetStudy(outgoing(r), &dparetov1.GetStudyRequest{Name: studyName(r)})
		if err != nil {
			return nil, err
		}
		p.Study, asked.Study = resp.GetStudy(), studyName(r)
	}
	info, err := s.admin.GetServerInfo(outgoing(r), asked)
	if err != nil {
		return nil, err
	}
	p.Caller, p.Role = info.GetCaller(), info.GetCallerRole()
	return p, nil
}

// studyPage is what study.html shows.
type studyPage struct {
	page

	State    *stateData
	Settings *frontSettings
	// Hidden says why there is nothing to see but the study itself; empty for other studies.
	Hidden string
	// Live is the path of the stream of the parts, Wait that of the view with all of them at once.
	Live, Wait string
	// Parts are the parts that the view waited for.
	Parts map[string]template.HTML
}

// studyParts are the parts of the view of a study that come after its frame.
var studyParts = []string{"front", "running", hypervolumeName, "spent"}

// showStudy shows a study: /studies/{study}. Its frame comes at once and the parts follow on the
// stream; with wait=1 everything comes together.
func (s *site) showStudy(w http.ResponseWriter, r *http.Request) error {
	p, err := s.newPage(r, "Front")
	if err != nil {
		return err
	}
	p.View = "study"
	query := r.URL.Query()
	data := &studyPage{page: *p, State: newState(p.Study), Parts: make(map[string]template.HTML)}
	if data.Settings, err = parseFront(query, objectives(p.Study.GetSpec())); err != nil {
		return err
	}
	if p.Study.GetSpec().GetRandomStopping() != nil {
		data.Hidden = "This study shows only its best trial, once it is released: with random stopping the guarantee depends on everything else staying secret."
		s.render(w, http.StatusOK, "study", data)
		return nil
	}
	if query.Get("wait") == "1" {
		for _, name := range studyParts {
			if data.Parts[name], err = s.partNow(outgoing(r), name, &partRequest{Study: p.Study.GetName(), Query: query}); err != nil {
				return err
			}
		}
		s.render(w, http.StatusOK, "study", data)
		return nil
	}
	query.Set("wait", "1")
	data.Wait = p.Path() + "?" + query.Encode()
	query.Del("wait")
	query["part"] = append([]string{stateName}, studyParts...)
	data.Live = p.Path() + "/live?" + query.Encode()
	s.render(w, http.StatusOK, "study", data)
	return nil
}

// partNow makes a part. One that cannot be made is replaced by its error.
func (s *site) partNow(ctx context.Context, name string, request *partRequest) (template.HTML, error) {
	data, err := s.parts()[name](ctx, request)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		name, data = errorPart, s.errorOf(err)
	}
	content, err := s.templates.bytes(name, data)
	return template.HTML(content), err //nolint:gosec // made by a template
}

// Guarantees says what each ε of the study means.
func (p *studyPage) Guarantees() []string { return guarantees(p.Study.GetSpec()) }

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

// stateData is what the part "state" shows.
type stateData struct {
	Study     *dparetov1.Study
	Done, Max int64 // trials of the budget; Max is 0 without one
	Budget    string
}

func newState(study *dparetov1.Study) *stateData {
	counts := study.GetTrialCounts()
	return &stateData{
		Study: study,
		Done:  counts.GetSucceeded() + counts.GetInfeasible() + counts.GetFailed(),
		Max:   study.GetSpec().GetBudget().GetMaxTrials(), Budget: budgetText(study.GetSpec()),
	}
}

// statePart makes the part "state".
func (s *site) statePart(ctx context.Context, r *partRequest) (any, error) {
	resp, err := s.studies.GetStudy(ctx, &dparetov1.GetStudyRequest{Name: r.Study})
	if err != nil {
		return nil, err
	}
	return newState(resp.GetStudy()), nil
}
