package study_test

import (
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
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/servertest"
)

// withID returns a request with an id.
func withID[M proto.Message](req M, id string) M {
	req = proto.CloneOf(req)
	message := req.ProtoReflect()
	message.Set(message.Descriptor().Fields().ByName("request_id"), protoreflect.ValueOfString(id))
	return req
}

// changes are requests for every kind of change to a study, by the name of the method.
var changes = map[string]func(f *servertest.Fixture, study string) proto.Message{
	"CreateStudy": func(*servertest.Fixture, string) proto.Message {
		return &dparetov1.CreateStudyRequest{StudyId: "once-more", Study: &dparetov1.Study{Spec: servertest.SVTSpec()}}
	},
	"DeleteStudy": func(_ *servertest.Fixture, study string) proto.Message {
		return &dparetov1.DeleteStudyRequest{Name: study}
	},
	"SuggestTrials": func(_ *servertest.Fixture, study string) proto.Message {
		return &dparetov1.SuggestTrialsRequest{Parent: study, WorkerId: "w", Count: 20} // in two passes
	},
	"CreateTrial": func(_ *servertest.Fixture, study string) proto.Message {
		return &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{Parameters: sgdParameters(3)}}
	},
	"DeleteTrial": func(f *servertest.Fixture, study string) proto.Message {
		return &dparetov1.DeleteTrialRequest{Name: f.Tell(f.One(study, "w"), 0.5).GetName()}
	},
	"AddMeasurement": func(f *servertest.Fixture, study string) proto.Message {
		trial := f.One(study, "w")
		return &dparetov1.AddMeasurementRequest{Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: servertest.Measurement(1, 0.5)}
	},
	"RenewLeases": func(f *servertest.Fixture, study string) proto.Message {
		trial := f.One(study, "w")
		return &dparetov1.RenewLeasesRequest{Parent: study, LeaseTokens: map[string]string{trial.GetName(): trial.GetLease().GetToken()}}
	},
	"CompleteTrial": func(f *servertest.Fixture, study string) proto.Message {
		return servertest.Completion(f.One(study, "w"), 0.5)
	},
	"ReleaseTrial": func(f *servertest.Fixture, study string) proto.Message {
		trial := f.One(study, "w")
		return &dparetov1.ReleaseTrialRequest{Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Reason: "why"}
	},
	"StopTrial": func(f *servertest.Fixture, study string) proto.Message {
		return &dparetov1.StopTrialRequest{Name: f.One(study, "w").GetName(), Reason: "why"}
	},
	"UpdateStudy": func(_ *servertest.Fixture, study string) proto.Message {
		return &dparetov1.UpdateStudyRequest{
			Study: &dparetov1.Study{Name: study, Description: "x"}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"description"}},
		}
	},
	"UpdateTrial": func(f *servertest.Fixture, study string) proto.Message {
		return &dparetov1.UpdateTrialRequest{
			Trial: &dparetov1.Trial{Name: f.One(study, "w").GetName(), Note: "x"}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"note"}},
		}
	},
	"PauseStudy": func(_ *servertest.Fixture, study string) proto.Message {
		return &dparetov1.PauseStudyRequest{Name: study}
	},
	"ResumeStudy": func(f *servertest.Fixture, study string) proto.Message {
		require.NoError(f.T, require.ErrOf(f.Studies.PauseStudy(f.T.Context(), &dparetov1.PauseStudyRequest{Name: study})))
		return &dparetov1.ResumeStudyRequest{Name: study}
	},
}

// sgdParameters returns a configuration of sgdSpec.
func sgdParameters(epochs int64) map[string]*dparetov1.Value {
	return map[string]*dparetov1.Value{"epochs": servertest.IntValue(epochs), "lot_size": servertest.IntValue(64), "variance": servertest.DoubleValue(2)}
}

// Every change with an id takes effect once and has one answer, after others and after
// a restart, for a day.
func TestRequestIDs(t *testing.T) {
	const id = "id of the test"
	for name, request := range changes {
		t.Run(name, func(t *testing.T) {
			f := servertest.Start(t)
			study := f.Create("once", servertest.SGDSpec())
			elsewhere := f.Create("elsewhere", servertest.SGDSpec())
			req := withID(request(f, study), id)
			first, err := f.Call(t.Context(), req)
			require.NoError(t, err)
			// Others go on.
			if name == "DeleteStudy" {
				f.Create("once", servertest.SVTSpec())
			}
			created := &dparetov1.CreateTrialRequest{Parent: elsewhere, Trial: &dparetov1.Trial{Parameters: sgdParameters(3)}}
			require.NoError(t, require.ErrOf(f.Call(t.Context(), withID(created, "another id"))))
			revision := f.Revision(study)
			for range 2 {
				again, err := f.Call(t.Context(), req)
				require.NoError(t, err)
				if d := cmp.Diff(first, again, protocmp.Transform()); d != "" {
					t.Errorf("another answer: %s", d)
				}
				if got := f.Revision(study); got != revision {
					t.Errorf("the study has revision %d, want %d", got, revision)
				}
				f.Restart()
				f.Clock.Advance(12 * time.Hour)
			}
			if other := changed(req); other != nil {
				_, err = f.Call(t.Context(), other)
				servertest.WantCode(t, err, codes.InvalidArgument, `"id of the test" was already used for a different dpareto.v1.`+name)
				if got := servertest.Violated(err); !slices.Equal(got, []string{"request_id"}) {
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
			if _, err := f.Call(t.Context(), withID(created, id)); err != nil {
				t.Errorf("in another study: %v", err)
			}
			_, err = f.Call(t.Context(), reused)
			servertest.WantCode(t, err, codes.InvalidArgument, `request_id: "id of the test" was already used for a dpareto.v1.`+name)
			f.Clock.Advance(time.Nanosecond) // more than a day after the first
			if _, err := f.Call(t.Context(), reused); err != nil {
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
			f := servertest.Start(t)
			study := f.Create("once", servertest.SGDSpec())
			req := withID(request(f, study), "id of the test")
			first, err := f.Call(t.Context(), req)
			require.NoError(t, err)
			require.NoError(t, require.ErrOf(f.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: study})))
			again, err := f.Call(t.Context(), req)
			require.NoError(t, err)
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
	f := servertest.Start(t)
	study := f.Create("s", servertest.SVTSpec())
	req := &dparetov1.CreateTrialRequest{Parent: study, RequestId: "x", Trial: &dparetov1.Trial{Parameters: map[string]*dparetov1.Value{
		"cutoff": servertest.IntValue(31), "noise_scale": servertest.DoubleValue(1),
	}}}
	_, err := f.Studies.CreateTrial(t.Context(), req)
	servertest.WantCode(t, err, codes.InvalidArgument, "cutoff")
	req.Trial.Parameters["cutoff"] = servertest.IntValue(30)
	if _, err := f.Studies.CreateTrial(t.Context(), req); err != nil {
		t.Error(err)
	}
	req.RequestId = strings.Repeat("ä", 101)
	_, err = f.Studies.CreateTrial(t.Context(), req)
	servertest.WantCode(t, err, codes.InvalidArgument, "request_id: must have at most 100 characters, has 101")
	req.RequestId = strings.Repeat("ä", 100)
	if _, err := f.Studies.CreateTrial(t.Context(), req); err != nil {
		t.Error(err)
	}
}

// Calls at the same time with the same id have one effect and one answer.
func TestRequestIDAtTheSameTime(t *testing.T) {
	for _, name := range []string{"SuggestTrials", "CreateTrial"} {
		t.Run(name, func(t *testing.T) {
			f := servertest.Start(t)
			study := f.Create("once", servertest.SGDSpec())
			req := withID(changes[name](f, study), "x")
			answers := make([]proto.Message, 8)
			var calls sync.WaitGroup
			for i := range answers {
				calls.Go(func() {
					var err error
					if answers[i], err = f.Call(t.Context(), req); err != nil {
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
			resp, err := f.Studies.ListTrials(t.Context(), &dparetov1.ListTrialsRequest{Parent: study})
			if err != nil || len(resp.GetTrials()) != want {
				t.Errorf("%d trials, want %d: %v", len(resp.GetTrials()), want, err)
			}
		})
	}
}

// A repeated demand without resumption gets its trials again, under the same leases, and
// a demand with another id others.
func TestRequestIDOfDemand(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("s", servertest.SVTSpec())
	no := false
	req := &dparetov1.SuggestTrialsRequest{Parent: study, WorkerId: "w", Count: 2, Resume: &no, RequestId: "first"}
	first, err := f.Studies.SuggestTrials(t.Context(), req)
	require.NoError(t, err)
	req.RequestId = "second"
	second, err := f.Studies.SuggestTrials(t.Context(), req)
	require.NoError(t, err)
	if n := second.GetTrials()[0].GetNumber(); n != 3 {
		t.Errorf("trial %d for another request, want 3", n)
	}
	req.RequestId = "first"
	again, err := f.Studies.SuggestTrials(t.Context(), req)
	require.NoError(t, err)
	if d := cmp.Diff(first, again, protocmp.Transform()); d != "" {
		t.Error(d)
	}
}
