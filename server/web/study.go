package web

import (
	"context"
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

	State *stateData
}

// showStudy shows a study: /studies/{study}.
func (s *site) showStudy(w http.ResponseWriter, r *http.Request) error {
	p, err := s.newPage(r, "Front")
	if err != nil {
		return err
	}
	p.View = "study"
	s.render(w, http.StatusOK, "study", &studyPage{page: *p, State: newState(p.Study)})
	return nil
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
		Max:   study.GetSpec().GetBudget().GetMaxTrials(),
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
