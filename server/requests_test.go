package server_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// call calls a method of StudyService by the type of its request.
func (f *fixture) call(ctx context.Context, req proto.Message) (proto.Message, error) {
	name := strings.TrimSuffix(string(req.ProtoReflect().Descriptor().Name()), "Request")
	method := dparetov1.File_dpareto_v1_study_service_proto.Services().Get(0).Methods().ByName(protoreflect.Name(name))
	resp := map[string]proto.Message{
		"CreateStudy": new(dparetov1.CreateStudyResponse), "DeleteStudy": new(dparetov1.DeleteStudyResponse),
		"SuggestTrials": new(dparetov1.SuggestTrialsResponse), "CreateTrial": new(dparetov1.CreateTrialResponse),
		"DeleteTrial": new(dparetov1.DeleteTrialResponse), "AddMeasurement": new(dparetov1.AddMeasurementResponse),
		"RenewLeases": new(dparetov1.RenewLeasesResponse), "CompleteTrial": new(dparetov1.CompleteTrialResponse),
		"ReleaseTrial": new(dparetov1.ReleaseTrialResponse), "StopTrial": new(dparetov1.StopTrialResponse),
		"UpdateStudy": new(dparetov1.UpdateStudyResponse), "PauseStudy": new(dparetov1.PauseStudyResponse),
		"ResumeStudy": new(dparetov1.ResumeStudyResponse), "UpdateTrial": new(dparetov1.UpdateTrialResponse),
	}[name]
	return resp, f.conn.Invoke(ctx, fmt.Sprintf("/%s/%s", method.Parent().FullName(), name), req, resp)
}

// withID returns a request with an id.
func withID[M proto.Message](req M, id string) M {
	req = proto.CloneOf(req)
	message := req.ProtoReflect()
	message.Set(message.Descriptor().Fields().ByName("request_id"), protoreflect.ValueOfString(id))
	return req
}

// revision reads the revision of a study, 0 if there is none.
func (f *fixture) revision(study string) int64 {
	resp, err := f.studies.GetStudy(f.t.Context(), &dparetov1.GetStudyRequest{Name: study})
	if err != nil {
		return 0
	}
	return resp.GetStudy().GetRevision()
}

// changes are requests for every kind of change to a study, by the name of the method.
var changes = map[string]func(f *fixture, study string) proto.Message{
	"CreateStudy": func(*fixture, string) proto.Message {
		return &dparetov1.CreateStudyRequest{StudyId: "once-more", Study: &dparetov1.Study{Spec: svtSpec()}}
	},
	"DeleteStudy": func(_ *fixture, study string) proto.Message { return &dparetov1.DeleteStudyRequest{Name: study} },
	"SuggestTrials": func(_ *fixture, study string) proto.Message {
		return &dparetov1.SuggestTrialsRequest{Parent: study, WorkerId: "w", Count: 20} // in two passes
	},
	"CreateTrial": func(_ *fixture, study string) proto.Message {
		return &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{Parameters: sgdParameters(3)}}
	},
	"DeleteTrial": func(f *fixture, study string) proto.Message {
		return &dparetov1.DeleteTrialRequest{Name: f.tell(f.one(study, "w"), 0.5).GetName()}
	},
	"AddMeasurement": func(f *fixture, study string) proto.Message {
		trial := f.one(study, "w")
		return &dparetov1.AddMeasurementRequest{Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: measurement(1, 0.5)}
	},
	"RenewLeases": func(f *fixture, study string) proto.Message {
		trial := f.one(study, "w")
		return &dparetov1.RenewLeasesRequest{Parent: study, LeaseTokens: map[string]string{trial.GetName(): trial.GetLease().GetToken()}}
	},
	"CompleteTrial": func(f *fixture, study string) proto.Message { return completion(f.one(study, "w"), 0.5) },
	"ReleaseTrial": func(f *fixture, study string) proto.Message {
		trial := f.one(study, "w")
		return &dparetov1.ReleaseTrialRequest{Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Reason: "why"}
	},
	"StopTrial": func(f *fixture, study string) proto.Message {
		return &dparetov1.StopTrialRequest{Name: f.one(study, "w").GetName(), Reason: "why"}
	},
	"UpdateStudy": func(_ *fixture, study string) proto.Message {
		return &dparetov1.UpdateStudyRequest{
			Study: &dparetov1.Study{Name: study, Description: "x"}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"description"}},
		}
	},
	"UpdateTrial": func(f *fixture, study string) proto.Message {
		return &dparetov1.UpdateTrialRequest{
			Trial: &dparetov1.Trial{Name: f.one(study, "w").GetName(), Note: "x"}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"note"}},
		}
	},
	"PauseStudy": func(_ *fixture, study string) proto.Message { return &dparetov1.PauseStudyRequest{Name: study} },
	"ResumeStudy": func(f *fixture, study string) proto.Message {
		if _, err := f.studies.PauseStudy(f.t.Context(), &dparetov1.PauseStudyRequest{Name: study}); err != nil {
			f.t.Fatal(err)
		}
		return &dparetov1.ResumeStudyRequest{Name: study}
	},
}

// sgdParameters returns a configuration of sgdSpec.
func sgdParameters(epochs int64) map[string]*dparetov1.Value {
	return map[string]*dparetov1.Value{"epochs": intValue(epochs), "lot_size": intValue(64), "variance": doubleValue(2)}
}

// Every change with an id takes effect once and has one answer, after others and after
// a restart, for a day.
func TestRequestIDs(t *testing.T) {
	const id = "id of the test"
	for name, request := range changes {
		t.Run(name, func(t *testing.T) {
			f := start(t)
			study := f.create("once", sgdSpec())
			elsewhere := f.create("elsewhere", sgdSpec())
			req := withID(request(f, study), id)
			first, err := f.call(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			// Others go on.
			if name == "DeleteStudy" {
				f.create("once", svtSpec())
			}
			created := &dparetov1.CreateTrialRequest{Parent: elsewhere, Trial: &dparetov1.Trial{Parameters: sgdParameters(3)}}
			if _, err := f.call(t.Context(), withID(created, "another id")); err != nil {
				t.Fatal(err)
			}
			revision := f.revision(study)
			for range 2 {
				again, err := f.call(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(first, again, protocmp.Transform()); d != "" {
					t.Errorf("another answer: %s", d)
				}
				if got := f.revision(study); got != revision {
					t.Errorf("the study has revision %d, want %d", got, revision)
				}
				f.restart()
				f.clock.Advance(12 * time.Hour)
			}
			if other := changed(req); other != nil {
				_, err = f.call(t.Context(), other)
				wantCode(t, err, codes.InvalidArgument, `"id of the test" was already used for a different dpareto.v1.`+name)
				if got := violated(err); !slices.Equal(got, []string{"request_id"}) {
					t.Errorf("violated fields %q", got)
				}
			}
			reused := withID(proto.Message(&dparetov1.DeleteStudyRequest{Name: study}), id)
			switch name {
			case "CreateStudy":
				reused = withID(proto.Message(&dparetov1.DeleteStudyRequest{Name: "studies/once-more"}), id)
			case "DeleteStudy":
				reused = withID(proto.Message(&dparetov1.PauseStudyRequest{Name: study}), id)
			}
			// Ids of another study mean nothing to this one.
			if _, err := f.call(t.Context(), withID(created, id)); err != nil {
				t.Errorf("in another study: %v", err)
			}
			_, err = f.call(t.Context(), reused)
			wantCode(t, err, codes.InvalidArgument, `request_id: "id of the test" was already used for a dpareto.v1.`+name)
			f.clock.Advance(time.Nanosecond) // more than a day after the first
			if _, err := f.call(t.Context(), reused); err != nil {
				t.Errorf("after a day: %v", err)
			}
		})
	}
}

// A repetition gets its answer also when its study was deleted meanwhile.
func TestRequestIDsOutliveTheStudy(t *testing.T) {
	for name, request := range changes {
		if name == "DeleteStudy" {
			continue // see TestRequestIDs
		}
		t.Run(name, func(t *testing.T) {
			f := start(t)
			study := f.create("once", sgdSpec())
			req := withID(request(f, study), "id of the test")
			first, err := f.call(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: study}); err != nil {
				t.Fatal(err)
			}
			again, err := f.call(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(first, again, protocmp.Transform()); d != "" {
				t.Errorf("another answer: %s", d)
			}
		})
	}
}

// changed returns a request with another content for the same study, or nil where there is none.
func changed(req proto.Message) proto.Message {
	switch r := proto.Clone(req).(type) {
	case *dparetov1.CreateStudyRequest:
		r.Study.Description = "another"
		return r
	case *dparetov1.DeleteStudyRequest:
		r.Etag = "another"
		return r
	case *dparetov1.SuggestTrialsRequest:
		r.WorkerId = "another"
		return r
	case *dparetov1.CreateTrialRequest:
		r.Trial.Note = "another"
		return r
	case *dparetov1.DeleteTrialRequest:
		r.Etag = "another"
		return r
	case *dparetov1.AddMeasurementRequest:
		r.Measurement.Step++
		return r
	case *dparetov1.RenewLeasesRequest:
		r.LeaseTokens["studies/once/trials/9"] = "another"
		return r
	case *dparetov1.CompleteTrialRequest:
		r.LeaseToken = "another"
		return r
	case *dparetov1.ReleaseTrialRequest:
		r.Reason = "another"
		return r
	case *dparetov1.StopTrialRequest:
		r.Reason = "another"
		return r
	case *dparetov1.UpdateStudyRequest:
		r.Study.Description = "another"
		return r
	case *dparetov1.UpdateTrialRequest:
		r.Trial.Note = "another"
		return r
	default:
		return nil // names a study and nothing else
	}
}

// A call that failed leaves its id free, and a long id is refused.
func TestRequestIDOfFailedCall(t *testing.T) {
	f := start(t)
	study := f.create("s", svtSpec())
	req := &dparetov1.CreateTrialRequest{Parent: study, RequestId: "x", Trial: &dparetov1.Trial{Parameters: map[string]*dparetov1.Value{
		"cutoff": intValue(31), "noise_scale": doubleValue(1),
	}}}
	_, err := f.studies.CreateTrial(t.Context(), req)
	wantCode(t, err, codes.InvalidArgument, "cutoff")
	req.Trial.Parameters["cutoff"] = intValue(30)
	if _, err := f.studies.CreateTrial(t.Context(), req); err != nil {
		t.Error(err)
	}
	req.RequestId = strings.Repeat("ä", 101)
	_, err = f.studies.CreateTrial(t.Context(), req)
	wantCode(t, err, codes.InvalidArgument, "request_id: must have at most 100 characters, has 101")
	req.RequestId = strings.Repeat("ä", 100)
	if _, err := f.studies.CreateTrial(t.Context(), req); err != nil {
		t.Error(err)
	}
}

// Calls at the same time with the same id have one effect and one answer.
func TestRequestIDAtTheSameTime(t *testing.T) {
	for _, name := range []string{"SuggestTrials", "CreateTrial"} {
		t.Run(name, func(t *testing.T) {
			f := start(t)
			study := f.create("once", sgdSpec())
			req := withID(changes[name](f, study), "x")
			answers := make([]proto.Message, 8)
			var calls sync.WaitGroup
			for i := range answers {
				calls.Go(func() {
					var err error
					if answers[i], err = f.call(t.Context(), req); err != nil {
						t.Error(err)
					}
				})
			}
			calls.Wait()
			for _, answer := range answers[1:] {
				if d := cmp.Diff(answers[0], answer, protocmp.Transform()); d != "" {
					t.Error(d)
				}
			}
			want := map[string]int{"SuggestTrials": 20, "CreateTrial": 1}[name]
			resp, err := f.studies.ListTrials(t.Context(), &dparetov1.ListTrialsRequest{Parent: study})
			if err != nil || len(resp.GetTrials()) != want {
				t.Errorf("%d trials, want %d: %v", len(resp.GetTrials()), want, err)
			}
		})
	}
}

// A repeated demand without resumption gets its trials again, under the same leases, and
// a demand with another id others.
func TestRequestIDOfDemand(t *testing.T) {
	f := start(t)
	study := f.create("s", svtSpec())
	no := false
	req := &dparetov1.SuggestTrialsRequest{Parent: study, WorkerId: "w", Count: 2, Resume: &no, RequestId: "first"}
	first, err := f.studies.SuggestTrials(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	req.RequestId = "second"
	second, err := f.studies.SuggestTrials(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if n := second.GetTrials()[0].GetNumber(); n != 3 {
		t.Errorf("trial %d for another request, want 3", n)
	}
	req.RequestId = "first"
	again, err := f.studies.SuggestTrials(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(first, again, protocmp.Transform()); d != "" {
		t.Error(d)
	}
}
