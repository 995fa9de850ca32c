package intercept

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/study"
)

// What a request is about, wherever its name stands.
func TestSubject(t *testing.T) {
	for _, tt := range []struct {
		request      any
		study, trial string
	}{
		{&dparetov1.GetStudyRequest{Name: "studies/a"}, "a", ""},
		{&dparetov1.CompleteTrialRequest{Name: "studies/a/trials/7"}, "a", "7"},
		{&dparetov1.CreateTrialRequest{Parent: "studies/a", Trial: &dparetov1.Trial{Name: "ignored"}}, "a", ""},
		{&dparetov1.CreateStudyRequest{StudyId: "a"}, "a", ""},
		{&dparetov1.UpdateStudyRequest{Study: &dparetov1.Study{Name: "studies/a"}}, "a", ""},
		{&dparetov1.UpdateTrialRequest{Trial: &dparetov1.Trial{Name: "studies/a/trials/7"}}, "a", "7"},
		{&dparetov1.UpdateTrialRequest{}, "", ""},
		{&dparetov1.ListStudiesRequest{}, "", ""},
		{&dparetov1.GetStudyRequest{Name: "elsewhere/a"}, "", ""},
	} {
		if study, trial := subject(tt.request); study != tt.study || trial != tt.trial {
			t.Errorf("%T: study %q, trial %q, want %q and %q", tt.request, study, trial, tt.study, tt.trial)
		}
	}
}

// Whether a method is audited is told as its request says: what changes something has a
// request_id.
func TestMethods(t *testing.T) {
	var files = []protoreflect.FileDescriptor{
		dparetov1.File_dpareto_v1_study_service_proto, dparetov1.File_dpareto_v1_front_service_proto,
		dparetov1.File_dpareto_v1_privacy_service_proto, dparetov1.File_dpareto_v1_release_service_proto,
		dparetov1.File_dpareto_v1_admin_service_proto,
	}
	for _, file := range files {
		service := file.Services().Get(0)
		name := string(service.FullName())
		for i := range service.Methods().Len() {
			method := service.Methods().Get(i)
			takes := slices.Contains([]protoreflect.Name{"BackupStore", "ExportStudy"}, method.Name())
			want := takes || method.Input().Fields().ByName(study.RequestID) != nil || method.IsStreamingClient()
			if got := isAudited("/" + name + "/" + string(method.Name())); got != want {
				t.Errorf("%s: audited %t, want %t", method.FullName(), got, want)
			}
		}
	}
}
