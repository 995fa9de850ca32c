package web

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// labelsField is the field of labels, in forms and in the contract.
const labelsField = "labels"

// form is what a reader has entered, and what is wrong with it.
type form struct {
	Values url.Values
	// Errors are messages by field; those of "" are of the whole form.
	Errors map[string]string
}

// Value returns the value of a field.
func (f *form) Value(field string) string { return f.Values.Get(field) }

// Error returns what is wrong with a field, "" for nothing.
func (f *form) Error(field string) string { return f.Errors[field] }

// newForm reads a form that was sent. The text of its fields has the encoding that calls need.
func newForm(r *http.Request) (*form, error) {
	if err := r.ParseForm(); err != nil {
		return nil, inputError{err}
	}
	f := &form{Values: make(url.Values), Errors: make(map[string]string)}
	for field, values := range r.PostForm {
		for _, value := range values {
			f.Values.Add(field, validText(strings.ReplaceAll(value, "\r\n", "\n")))
		}
	}
	return f, nil
}

// add adds a message of a field.
func (f *form) add(field, message string) {
	if before := f.Errors[field]; before != "" {
		message = before + "; " + message
	}
	f.Errors[field] = message
}

// refuse takes over what a server says of a form: fieldOf returns the field of the form for the path of a
// violated field, "" for none. It returns the status to answer with, and false if the error is
// about something else, such as a missing role.
func (s *site) refuse(f *form, err error, fieldOf func(path string) string) (code int, ok bool) {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.FailedPrecondition, codes.OutOfRange, codes.ResourceExhausted, codes.Aborted:
	default:
		return 0, false
	}
	told := s.errorOf(err)
	for _, v := range told.Fields {
		field := fieldOf(v.GetField())
		message := v.GetDescription()
		if field == "" {
			message = v.GetField() + " " + message
		}
		f.add(field, message)
	}
	if len(told.Fields) == 0 {
		f.add("", told.Message)
	}
	return codesOf[status.Code(err)], true
}

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

// labels reads the field "labels", and notes what is wrong with it.
func (f *form) labels() map[string]string {
	labels := make(map[string]string)
	for line := range strings.Lines(f.Value(labelsField)) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if key = strings.TrimSpace(key); !ok || key == "" {
			f.add(labelsField, "write each label as key=value in its own line, not "+strconv.Quote(line))
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
func (s *site) pause(w http.ResponseWriter, r *http.Request) error {
	_, err := s.studies.PauseStudy(outgoing(r), &dparetov1.PauseStudyRequest{Name: studyName(r), RequestId: validText(r.PostFormValue("request_id"))})
	if err != nil {
		return err
	}
	return done(w, r, studyPath(r))
}

// resume hands out trials again: POST /studies/{study}/resume.
func (s *site) resume(w http.ResponseWriter, r *http.Request) error {
	_, err := s.studies.ResumeStudy(outgoing(r), &dparetov1.ResumeStudyRequest{Name: studyName(r), RequestId: validText(r.PostFormValue("request_id"))})
	if err != nil {
		return err
	}
	return done(w, r, studyPath(r))
}

// stopTrial asks the worker of a trial to end it: POST /studies/{study}/trials/{trial}/stop.
func (s *site) stopTrial(w http.ResponseWriter, r *http.Request) error {
	_, err := s.studies.StopTrial(outgoing(r), &dparetov1.StopTrialRequest{
		Name: trialName(r), Reason: validText(r.PostFormValue("reason")), RequestId: validText(r.PostFormValue("request_id")),
	})
	if err != nil {
		return err
	}
	return done(w, r, studyPath(r)+"/trials/"+url.PathEscape(r.PathValue("trial")))
}

// labelTrial changes the labels and the note of a trial: POST /studies/{study}/trials/{trial}/labels.
func (s *site) labelTrial(w http.ResponseWriter, r *http.Request) error {
	f, err := newForm(r)
	if err != nil {
		return err
	}
	code := http.StatusUnprocessableEntity
	labels := f.labels()
	if len(f.Errors) == 0 {
		_, err = s.studies.UpdateTrial(outgoing(r), &dparetov1.UpdateTrialRequest{
			Trial:      &dparetov1.Trial{Name: trialName(r), Etag: f.Value("etag"), Labels: labels, Note: f.Value("note")},
			UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{labelsField, "note"}}, RequestId: f.Value("request_id"),
		})
		if err == nil {
			return done(w, r, studyPath(r)+"/trials/"+url.PathEscape(r.PathValue("trial")))
		}
		var ok bool
		if code, ok = s.refuse(f, err, fields("trial", labelsField, "note")); !ok {
			return err
		}
	}
	return s.renderTrial(w, r, code, f)
}

// editPage is what edit.html shows: the forms that change a study.
type editPage struct {
	page

	Details, Budget *form
	// Changes says that another budget, after the first trial, ends what releases guarantee.
	Changes bool
}

// editStudy shows the forms that change a study: /studies/{study}/edit.
func (s *site) editStudy(w http.ResponseWriter, r *http.Request) error {
	return s.renderEdit(w, r, http.StatusOK, nil, nil)
}

// renderEdit shows the forms that change a study, with one that was refused, or nil.
func (s *site) renderEdit(w http.ResponseWriter, r *http.Request, code int, details, budget *form) error {
	frame, err := s.newPage(r, "Edit")
	if err != nil {
		return err
	}
	frame.View = studyViews[0].Name
	study := frame.Study
	p := &editPage{page: *frame, Details: details, Budget: budget}
	if details == nil {
		p.Details = &form{Values: url.Values{
			"display_name": {study.GetDisplayName()}, "description": {study.GetDescription()}, labelsField: {labelLines(study.GetLabels())},
		}}
	}
	if budget == nil {
		p.Budget = &form{Values: url.Values{"max_trials": {strconv.FormatInt(study.GetSpec().GetBudget().GetMaxTrials(), 10)}}}
	}
	p.Changes = study.GetSpec().GetPrivateMode() == nil && study.GetSpec().GetRandomStopping() == nil
	s.render(w, code, "edit", p)
	return nil
}

// saveDetails changes the name, the description and the labels of a study: POST /studies/{study}/edit.
func (s *site) saveDetails(w http.ResponseWriter, r *http.Request) error {
	f, err := newForm(r)
	if err != nil {
		return err
	}
	labels := f.labels()
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
func (s *site) saveBudget(w http.ResponseWriter, r *http.Request) error {
	f, err := newForm(r)
	if err != nil {
		return err
	}
	trials, err := strconv.ParseInt(strings.TrimSpace(f.Value("max_trials")), 10, 64)
	if err != nil {
		f.add("max_trials", "must be a whole number, 0 for no limit")
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
func (s *site) update(r *http.Request, f *form, study *dparetov1.Study, paths ...string) (refused int, err error) {
	study.Name, study.Etag = studyName(r), f.Value("etag")
	_, err = s.studies.UpdateStudy(outgoing(r), &dparetov1.UpdateStudyRequest{
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
	if code, ok := s.refuse(f, err, fieldOf); ok {
		return code, nil
	}
	return 0, err
}

// fieldView is what the template "field" shows: one field of a form.
type fieldView struct {
	Form              *form
	Name, Label, Hint string
	Kind              string // text, lines or number
}

// newFieldView is what templates call to show a field of a form.
func newFieldView(f *form, name, kind, label, hint string) *fieldView {
	return &fieldView{f, name, label, hint, kind}
}
