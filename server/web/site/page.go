package site

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server/web/words"
)

// Page is the content of the frame around every view. The data of views embed it.
type Page struct {
	Title  string // of the view
	SignIn bool   // there is a sign-in, so offer to sign out
	// Caller is the reader; empty where everybody may do everything.
	Caller string
	// Study is the study that the view is about; nil for others.
	Study *dparetov1.Study
	// View names the current view of the study.
	View string
	// Live is the path of the stream of the view's parts; "" for a view that stays as it is.
	Live string
	// Role is the reader's role in the study, or on the whole server.
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
	{"study", "Overview", ""},
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

// State is the content of the template "state": how far a study has come.
type State struct {
	Study     *dparetov1.Study
	Done, Max int64 // trials of the budget; Max is 0 without one
	Budget    string
}

// Kind is the class of the pill that names the state.
func (s *State) Kind() string {
	switch s.Study.GetState() {
	case dparetov1.StudyState_STUDY_STATE_COMPLETED:
		return "ok"
	case dparetov1.StudyState_STUDY_STATE_PAUSED:
		return "warn"
	default:
		return "run"
	}
}

// Progress says how many trials ended, and how, and what is to come.
func (s *State) Progress() string {
	counts := s.Study.GetTrialCounts()
	if counts == nil {
		return ""
	}
	parts := []string{strconv.FormatInt(counts.GetSucceeded(), 10) + " succeeded"}
	if s.Max > 0 {
		parts[0] = fmt.Sprintf("%d of %s succeeded", counts.GetSucceeded(), show.Count(s.Max, "trial"))
	}
	for _, part := range []struct {
		n    int64
		what string
	}{{counts.GetActive() + counts.GetStopping(), "running"}, {counts.GetQueued(), "queued"}, {counts.GetInfeasible(), "infeasible"}, {counts.GetFailed(), "failed"}} {
		if part.n > 0 {
			parts = append(parts, strconv.FormatInt(part.n, 10)+" "+part.what)
		}
	}
	return strings.Join(parts, ", ") + "."
}

// Reason says why the study is in its state where that adds something.
func (s *State) Reason() string {
	if reason := s.Study.GetStateReason(); !strings.HasPrefix(reason, "the budget of ") {
		return reason
	}
	return ""
}

// Spent says why the study takes no more trials; "" while it does. The server also counts deleted trials.
// It may therefore refuse a trial before this says so.
func (s *State) Spent() string {
	counts := s.Study.GetTrialCounts()
	switch {
	case s.Study.GetState() == dparetov1.StudyState_STUDY_STATE_COMPLETED && s.Study.GetStateReason() != "":
		return s.Study.GetStateReason()
	case s.Study.GetState() == dparetov1.StudyState_STUDY_STATE_COMPLETED:
		return "the study is complete"
	case s.Max > 0 && s.Done+counts.GetActive()+counts.GetStopping()+counts.GetQueued() >= s.Max:
		return fmt.Sprintf("the budget of %d trials is spent", s.Max) // as the server says it
	default:
		return ""
	}
}

// CanGoOn reports whether a larger number of trials lets the study go on.
// One with private_mode cannot: its privacy is planned for the budget.
func (s *State) CanGoOn() bool {
	return s.Study.GetSpec().GetPrivateMode() == nil && strings.HasSuffix(s.Spent(), " trials is spent")
}

// Limits are the limits of the budget besides the number of trials.
func (s *State) Limits() string {
	trials := fmt.Sprintf("%d trials", s.Max)
	return strings.TrimPrefix(strings.TrimPrefix(s.Budget, trials), ", ")
}

// State returns the state of the view's study.
func (p *Page) State() *State { return NewState(p.Study) }

// NewState returns the state of a study.
func NewState(study *dparetov1.Study) *State {
	counts := study.GetTrialCounts()
	return &State{
		Study: study,
		Done:  counts.GetSucceeded() + counts.GetInfeasible() + counts.GetFailed(),
		Max:   study.GetSpec().GetBudget().GetMaxTrials(), Budget: words.Budget(study),
	}
}
