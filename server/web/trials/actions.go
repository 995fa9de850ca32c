package trials

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/fieldmaskpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/web/site"
)

// Fields of forms, columns and the contract.
const (
	labelsField = "labels"
	noteField   = "note"
)

// fields returns the field of a form for a path below one of its fields in a request: labels for
// "study.labels[...]".
func fields(message string, names ...string) func(path string) string {
	return func(path string) string {
		for _, name := range names {
			if strings.HasPrefix(path, message+"."+name) {
				return name
			}
		}
		return ""
	}
}

// labelLines returns labels as lines that readers edit.
func labelLines(labels map[string]string) string {
	var lines []string
	for _, key := range sortedKeys(labels) {
		lines = append(lines, key+"="+labels[key])
	}
	return strings.Join(lines, "\n")
}

// labelsOf reads the field "labels" of a form, and notes its errors.
func labelsOf(f *site.Form) map[string]string {
	labels := make(map[string]string)
	for line := range strings.Lines(f.Value(labelsField)) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if key = strings.TrimSpace(key); !ok || key == "" {
			f.Add(labelsField, "write each label as key=value in its own line, not "+strconv.Quote(line))
			continue
		}
		labels[key] = strings.TrimSpace(value)
	}
	return labels
}

// done leads to a view after an action.
func done(w http.ResponseWriter, r *http.Request, path string) error {
	http.Redirect(w, r, path, http.StatusSeeOther) //nolint:gosec // a path of this site
	return nil
}

// studyPath returns the path of the study in a request's path.
func studyPath(r *http.Request) string { return "/studies/" + url.PathEscape(r.PathValue("study")) }

// pause stops handing out trials: POST /studies/{study}/pause.
func (s views) pause(w http.ResponseWriter, r *http.Request) error {
	_, err := s.Studies.PauseStudy(site.Outgoing(r), &dparetov1.PauseStudyRequest{Name: site.StudyName(r), RequestId: site.ValidText(r.PostFormValue("request_id"))})
	if err != nil {
		return err
	}
	return done(w, r, studyPath(r))
}

// resume hands out trials again: POST /studies/{study}/resume.
func (s views) resume(w http.ResponseWriter, r *http.Request) error {
	_, err := s.Studies.ResumeStudy(site.Outgoing(r), &dparetov1.ResumeStudyRequest{Name: site.StudyName(r), RequestId: site.ValidText(r.PostFormValue("request_id"))})
	if err != nil {
		return err
	}
	return done(w, r, studyPath(r))
}

// stopTrial asks the worker of a trial to end it: POST /studies/{study}/trials/{trial}/stop.
func (s views) stopTrial(w http.ResponseWriter, r *http.Request) error {
	_, err := s.Studies.StopTrial(site.Outgoing(r), &dparetov1.StopTrialRequest{
		Name: trialName(r), Reason: site.ValidText(r.PostFormValue("reason")), RequestId: site.ValidText(r.PostFormValue("request_id")),
	})
	if err != nil {
		return err
	}
	return done(w, r, studyPath(r)+"/trials/"+url.PathEscape(r.PathValue("trial")))
}

// labelTrial changes the labels and the note of a trial: POST /studies/{study}/trials/{trial}/labels.
func (s views) labelTrial(w http.ResponseWriter, r *http.Request) error {
	f, err := site.NewForm(r)
	if err != nil {
		return err
	}
	code := http.StatusUnprocessableEntity
	labels := labelsOf(f)
	if len(f.Errors) == 0 {
		_, err = s.Studies.UpdateTrial(site.Outgoing(r), &dparetov1.UpdateTrialRequest{
			Trial:      &dparetov1.Trial{Name: trialName(r), Etag: f.Value("etag"), Labels: labels, Note: f.Value(noteField)},
			UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{labelsField, noteField}}, RequestId: f.Value("request_id"),
		})
		if err == nil {
			return done(w, r, studyPath(r)+"/trials/"+url.PathEscape(r.PathValue("trial")))
		}
		var ok bool
		if code, ok = f.Refuse(err, fields("trial", labelsField, noteField)); !ok {
			return err
		}
	}
	return s.renderTrial(w, r, code, f)
}

// editPage is what edit.html shows: the forms that change a study.
type editPage struct {
	site.Page

	Details, Budget *site.Form
	// Changes says that another budget, after the first trial, ends what releases guarantee.
	Changes bool
}

// editStudy shows the forms that change a study: /studies/{study}/edit.
func (s views) editStudy(w http.ResponseWriter, r *http.Request) error {
	return s.renderEdit(w, r, http.StatusOK, nil, nil)
}

// renderEdit shows the forms that change a study, with one that was refused, or nil.
func (s views) renderEdit(w http.ResponseWriter, r *http.Request, code int, details, budget *site.Form) error {
	frame, err := s.NewPage(r, "Edit")
	if err != nil {
		return err
	}
	frame.View = "study"
	study := frame.Study
	p := &editPage{Page: *frame, Details: details, Budget: budget}
	if details == nil {
		p.Details = &site.Form{Values: url.Values{
			"display_name": {study.GetDisplayName()}, "description": {study.GetDescription()}, labelsField: {labelLines(study.GetLabels())},
		}}
	}
	if budget == nil {
		p.Budget = &site.Form{Values: url.Values{"max_trials": {strconv.FormatInt(study.GetSpec().GetBudget().GetMaxTrials(), 10)}}}
	}
	p.Changes = study.GetSpec().GetPrivateMode() == nil && study.GetSpec().GetRandomStopping() == nil
	s.Render(w, code, "edit", p)
	return nil
}

// saveDetails changes the name, the description and the labels of a study: POST /studies/{study}/edit.
func (s views) saveDetails(w http.ResponseWriter, r *http.Request) error {
	f, err := site.NewForm(r)
	if err != nil {
		return err
	}
	labels := labelsOf(f)
	if len(f.Errors) > 0 {
		return s.renderEdit(w, r, http.StatusUnprocessableEntity, f, nil)
	}
	code, err := s.update(r, f, &dparetov1.Study{DisplayName: f.Value("display_name"), Description: f.Value("description"), Labels: labels},
		"display_name", "description", labelsField)
	if err != nil {
		return err
	}
	if code != 0 {
		return s.renderEdit(w, r, code, f, nil)
	}
	return done(w, r, studyPath(r))
}

// saveBudget changes the number of trials of a study: POST /studies/{study}/budget.
func (s views) saveBudget(w http.ResponseWriter, r *http.Request) error {
	f, err := site.NewForm(r)
	if err != nil {
		return err
	}
	trials, err := strconv.ParseInt(strings.TrimSpace(f.Value("max_trials")), 10, 64)
	if err != nil {
		f.Add("max_trials", "must be a whole number, 0 for no limit")
		return s.renderEdit(w, r, http.StatusUnprocessableEntity, nil, f)
	}
	study := &dparetov1.Study{Spec: &dparetov1.StudySpec{Budget: &dparetov1.Budget{MaxTrials: trials}}}
	code, err := s.update(r, f, study, "spec.budget.max_trials")
	if err != nil {
		return err
	}
	if code != 0 {
		return s.renderEdit(w, r, code, nil, f)
	}
	return done(w, r, studyPath(r))
}

// update changes fields of a study. If the server refuses the form it notes why, and returns the status
// to answer with.
func (s views) update(r *http.Request, f *site.Form, study *dparetov1.Study, paths ...string) (refused int, err error) {
	study.Name, study.Etag = site.StudyName(r), f.Value("etag")
	_, err = s.Studies.UpdateStudy(site.Outgoing(r), &dparetov1.UpdateStudyRequest{
		Study: study, UpdateMask: &fieldmaskpb.FieldMask{Paths: paths}, RequestId: f.Value("request_id"),
	})
	if err == nil {
		return 0, nil
	}
	fieldOf := func(path string) string {
		if strings.HasPrefix(path, "study.spec.budget") {
			return "max_trials"
		}
		return fields("study", "display_name", "description", labelsField)(path)
	}
	if code, ok := f.Refuse(err, fieldOf); ok {
		return code, nil
	}
	return 0, err
}
