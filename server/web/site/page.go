package site

import (
	"net/http"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/web/words"
)

// Page is what the frame around every view shows. The data of views embed it.
type Page struct {
	Title  string // of the view
	SignIn bool   // there is a sign-in, so offer to sign out
	// Caller is the reader; empty where everybody may do everything.
	Caller string
	// Study is the study that the view is about; nil for others.
	Study *dparetov1.Study
	// View names the current view of the study.
	View string
	// Role is what the reader may do with the study, or on the whole server.
	Role dparetov1.Role
}

// CanWork reports whether the reader may create, stop and annotate trials.
func (p *Page) CanWork() bool { return p.Role >= dparetov1.Role_ROLE_WORKER }

// CanAdminister reports whether the reader may change the study.
func (p *Page) CanAdminister() bool { return p.Role >= dparetov1.Role_ROLE_ADMIN }

// Path returns the path of the study.
func (p *Page) Path() string { return "/studies/" + ID(p.Study.GetName()) }

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

// NewPage returns the frame of a view, with the study of the request's path if it has one.
func (s *Site) NewPage(r *http.Request, title string) (*Page, error) {
	p := &Page{Title: title, SignIn: s.options.SignIn}
	asked := new(dparetov1.GetServerInfoRequest)
	if r.PathValue("study") != "" {
		resp, err := s.Studies.GetStudy(Outgoing(r), &dparetov1.GetStudyRequest{Name: StudyName(r)})
		if err != nil {
			return nil, err
		}
		p.Study, asked.Study = resp.GetStudy(), StudyName(r)
	}
	info, err := s.Admin.GetServerInfo(Outgoing(r), asked)
	if err != nil {
		return nil, err
	}
	p.Caller, p.Role = info.GetCaller(), info.GetCallerRole()
	return p, nil
}

// State is what the template "state" shows: how far a study has come.
type State struct {
	Study     *dparetov1.Study
	Done, Max int64 // trials of the budget; Max is 0 without one
	Budget    string
}

// NewState returns the state of a study.
func NewState(study *dparetov1.Study) *State {
	counts := study.GetTrialCounts()
	return &State{
		Study: study,
		Done:  counts.GetSucceeded() + counts.GetInfeasible() + counts.GetFailed(),
		Max:   study.GetSpec().GetBudget().GetMaxTrials(), Budget: words.Budget(study),
	}
}
