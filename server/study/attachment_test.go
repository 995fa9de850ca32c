package study_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/limit"
	"github.com/dpareto/dpareto/server/servertest"
)

// attach updates the attributes and artifacts of a trial.
func attach(f *servertest.Fixture, trial string, attributes map[string]*structpb.Value, artifacts ...*dparetov1.Artifact) error {
	_, err := f.Studies.UpdateTrial(f.T.Context(), &dparetov1.UpdateTrialRequest{
		Trial:      &dparetov1.Trial{Name: trial, Attributes: attributes, Artifacts: artifacts},
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"attributes", "artifacts"}},
	})
	return err
}

// wantKept fails unless a trial has these attributes and artifacts.
func wantKept(t testing.TB, trial *dparetov1.Trial, attributes map[string]*structpb.Value, artifacts ...*dparetov1.Artifact) {
	t.Helper()
	got := &dparetov1.Trial{Attributes: trial.GetAttributes(), Artifacts: trial.GetArtifacts()}
	want := &dparetov1.Trial{Attributes: attributes, Artifacts: artifacts}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

// CreateTrial takes attributes and artifacts, UpdateTrial merges them in any state, and everything that
// shows a trial shows them: lists, a restarted server, and an export that is imported again.
func TestAttributesAndArtifacts(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("svt", servertest.SVTSpec())
	model := &dparetov1.Artifact{Id: "model", Uri: "s3://models/svt/1.pt", Sha256: strings.Repeat("0a", 32)}
	log := &dparetov1.Artifact{Id: "log", Uri: "studies/of-mine/1.log"} // not a study's name
	created, err := f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{
		Parameters: f.One(study, "w").GetParameters(),
		Attributes: servertest.Attributes(t, map[string]any{"host": "a", "gone": nil, "shape": []any{1.0, map[string]any{"x": nil}}}),
		Artifacts:  []*dparetov1.Artifact{model, log},
	}})
	require.NoError(t, err)
	name := created.GetTrial().GetName()
	wantKept(t, created.GetTrial(), servertest.Attributes(t, map[string]any{"host": "a", "shape": []any{1.0, map[string]any{"x": nil}}}), model, log)

	newer := &dparetov1.Artifact{Id: "model", Uri: "s3://models/svt/1b.pt"}
	curve := &dparetov1.Artifact{Id: "curve", Uri: "file:///curves/1.csv"}
	require.NoError(t, attach(f, name, servertest.Attributes(t, map[string]any{"host": nil, "loss": 0.25}), newer, curve, &dparetov1.Artifact{Id: "log"}, &dparetov1.Artifact{Id: "never"}))
	kept := servertest.Attributes(t, map[string]any{"loss": 0.25, "after": true, "shape": []any{1.0, map[string]any{"x": nil}}})
	if done := f.Tell(f.One(study, "v"), 0.5); done.GetName() != name {
		t.Fatalf("completed %s, want %s", done.GetName(), name)
	}
	if err := attach(f, name, servertest.Attributes(t, map[string]any{"after": true})); err != nil {
		t.Errorf("a complete trial: %v", err)
	}
	wantKept(t, f.Trial(name), kept, newer, curve)
	f.Restart()
	wantKept(t, f.Trial(name), kept, newer, curve)
	list, err := f.Studies.ListTrials(t.Context(), &dparetov1.ListTrialsRequest{Parent: study, Filter: "number = 2"})
	require.NoError(t, err)
	wantKept(t, list.GetTrials()[0], kept, newer, curve)

	records := f.Export(study)
	require.NoError(t, require.ErrOf(f.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: study})))
	require.NoError(t, require.ErrOf(f.ImportRecords(records)))
	wantKept(t, f.Trial(name), kept, newer, curve)
}

// Labels alone are changed where the mask names them alone, and "*" merges as "attributes" does.
func TestAttributesByMask(t *testing.T) {
	f := servertest.Start(t)
	trial := f.One(f.Create("svt", servertest.SVTSpec()), "w")
	artifact := &dparetov1.Artifact{Id: "a", Uri: "x"}
	require.NoError(t, attach(f, trial.GetName(), servertest.Attributes(t, map[string]any{"a": 1.0}), artifact))
	for _, path := range []string{"labels", "*"} {
		got, err := f.Studies.UpdateTrial(t.Context(), &dparetov1.UpdateTrialRequest{
			Trial:      &dparetov1.Trial{Name: trial.GetName(), Labels: map[string]string{"k": "v"}, Attributes: servertest.Attributes(t, map[string]any{"b": 2.0})},
			UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{path}},
		})
		require.NoError(t, err)
		want := map[string]any{"a": 1.0}
		if path == "*" {
			want["b"] = 2.0
		}
		wantKept(t, got.GetTrial(), servertest.Attributes(t, want), artifact)
	}
	_, err := f.Studies.UpdateTrial(t.Context(), &dparetov1.UpdateTrialRequest{
		Trial: &dparetov1.Trial{Name: trial.GetName()}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"attributes.a"}},
	})
	servertest.WantCode(t, err, codes.InvalidArgument, "is below attributes, which is set as a whole")
}

// Workers that add one key or artifact each do not undo each other's.
func TestAttachConcurrently(t *testing.T) {
	f := servertest.Start(t)
	trial := f.One(f.Create("svt", servertest.SVTSpec()), "w")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			id := fmt.Sprint("k", i)
			if err := attach(f, trial.GetName(), map[string]*structpb.Value{id: structpb.NewNumberValue(1)}, &dparetov1.Artifact{Id: id, Uri: id}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := f.Trial(trial.GetName()); len(got.GetAttributes()) != 8 || len(got.GetArtifacts()) != 8 {
		t.Errorf("%d attributes and %d artifacts, want 8", len(got.GetAttributes()), len(got.GetArtifacts()))
	}
}

func TestAttachmentsAreChecked(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("svt", servertest.SVTSpec())
	trial := f.One(study, "w")
	value := func(v any) map[string]*structpb.Value { return servertest.Attributes(t, map[string]any{"k": v}) }
	deep := func(levels int) *structpb.Value {
		v := structpb.NewNullValue()
		for range levels {
			v = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{v}})
		}
		return v
	}
	many := make(map[string]*structpb.Value)
	var artifacts []*dparetov1.Artifact
	for i := range 65 {
		many[fmt.Sprint(i)] = structpb.NewBoolValue(true)
		artifacts = append(artifacts, &dparetov1.Artifact{Id: fmt.Sprint(i), Uri: "x"})
	}
	for _, tt := range []struct {
		name       string
		attributes map[string]*structpb.Value
		artifacts  []*dparetov1.Artifact
		field      string // violated, "" for none
	}{
		{"NaN", value(math.NaN()), nil, `trial.attributes["k"]`},
		{"infinity in a list", value([]any{math.Inf(1)}), nil, `trial.attributes["k"]`},
		{"NaN in an object", value(map[string]any{"x": math.NaN()}), nil, `trial.attributes["k"]`},
		{"no value", map[string]*structpb.Value{"k": {}}, nil, `trial.attributes["k"]`},
		{"no value in a list", map[string]*structpb.Value{"k": structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{{}}})}, nil, `trial.attributes["k"]`},
		{"no key", map[string]*structpb.Value{"": structpb.NewBoolValue(true)}, nil, `trial.attributes[""]`},
		{"long key", map[string]*structpb.Value{strings.Repeat("k", 64): structpb.NewBoolValue(true)}, nil, fmt.Sprintf("trial.attributes[%q]", strings.Repeat("k", 63))},
		{"deep", map[string]*structpb.Value{"k": deep(16)}, nil, ""},
		{"too deep", map[string]*structpb.Value{"k": deep(17)}, nil, `trial.attributes["k"]`},
		{"most bytes", value(strings.Repeat("<", 9_998)), nil, ""},
		{"too many bytes", value(strings.Repeat("<", 9_999)), nil, "trial.attributes"},
		{"too many keys", many, nil, "trial.attributes"},
		{"artifact without id", nil, []*dparetov1.Artifact{{Uri: "x"}}, "trial.artifacts[0].id"},
		{"artifact without uri", nil, []*dparetov1.Artifact{{Id: "a", Sha256: strings.Repeat("0", 64)}}, "trial.artifacts[0].uri"},
		{"long uri", nil, []*dparetov1.Artifact{{Id: "a", Uri: strings.Repeat("x", 2_001)}}, "trial.artifacts[0].uri"},
		{"upper-case digest", nil, []*dparetov1.Artifact{{Id: "a", Uri: "x", Sha256: strings.Repeat("A", 64)}}, "trial.artifacts[0].sha256"},
		{"too many artifacts", nil, artifacts, "trial.artifacts"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, created := f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{
				Parent: study, Trial: &dparetov1.Trial{Parameters: trial.GetParameters(), Attributes: tt.attributes, Artifacts: tt.artifacts},
			})
			updated := attach(f, trial.GetName(), tt.attributes, tt.artifacts...)
			for _, err := range []error{created, updated} {
				if tt.field == "" && err != nil || tt.field != "" && !slices.Contains(servertest.Violated(err), tt.field) {
					t.Errorf("%v, want a violation of %q", err, tt.field)
				}
			}
			if tt.field == "" {
				return
			}
			records := f.Export(study)
			for _, r := range records {
				if r.GetTrial() != nil {
					r.GetTrial().GetTrial().Attributes, r.GetTrial().GetTrial().Artifacts = tt.attributes, tt.artifacts
				}
			}
			if _, err := f.ImportRecords(records); len(servertest.Violated(err)) != 1 || servertest.Violated(err)[0] != "record.trial."+tt.field {
				t.Errorf("import: %v, want a violation of record.trial.%s", err, tt.field)
			}
		})
	}
	if got := f.Trial(trial.GetName()); got.GetAttributes()["k"].GetStringValue() == "" || len(got.GetAttributes()) != 1 {
		t.Errorf("attributes %v after refused changes", got.GetAttributes())
	}
}

// Attributes count as part of the study, which takes none above its limit.
func TestAttributesCountAsBytes(t *testing.T) {
	f := servertest.StartWith(t, func(o *server.Options) { o.Limits = limit.Limits{StudyBytes: 30_000} })
	trial := f.One(f.Create("svt", servertest.SVTSpec()), "w")
	var err error
	for i := 0; i < 100 && err == nil; i++ {
		err = attach(f, trial.GetName(), servertest.Attributes(t, map[string]any{"k": strings.Repeat(string(rune('a'+i%26)), 9_000)}),
			&dparetov1.Artifact{Id: fmt.Sprint(i), Uri: strings.Repeat("u", 2_000)})
	}
	servertest.WantCode(t, err, codes.ResourceExhausted, "max-study-bytes")
}

// Artifacts hold no passwords and nothing that a browser runs; keys and ids are visible.
func TestHiddenInAttachments(t *testing.T) {
	f := servertest.Start(t)
	trial := f.One(f.Create("svt", servertest.SVTSpec()), "w")
	for uri, want := range map[string]bool{
		"s3://models/7.pt": true, "file:///a b/7.pt": true, "out/7.pt": true, `C:\models\7.pt`: true, "models:/svt/7": true,
		"https://h/a?x=1@2:3": true, "abfss://container@account.dfs.core.windows.net/7.pt": true, "scp://me@h/7.pt": true,
		"https://h/~me:x@y": true, "mailto:a@b": true,
		"https://me:pw@h/7.pt": false, "https://token@h/7.pt": false, "HTTP://me@h": false, `https:\\me:pw@h`: false,
		"ftp://me:pw@h/7.pt": false, "postgres://me:@h/d": false, "s3://key:secret@bucket/x": false,
		"javascript:alert(1)": false, "JavaScript://h/%0aalert(1)": false, "data:text/html,x": false, "vbscript:x": false,
		"s3://a\nb": false, "s3://a\u200bb": false, "s3://a\x1b[2J": false,
	} {
		err := attach(f, trial.GetName(), nil, &dparetov1.Artifact{Id: "a", Uri: uri})
		if want && err != nil || !want && !slices.Equal(servertest.Violated(err), []string{"trial.artifacts[0].uri"}) {
			t.Errorf("%q: %v", uri, err)
		}
		if err != nil && strings.Contains(err.Error(), "pw") {
			t.Errorf("the error has the password: %v", err)
		}
	}
	if err := attach(f, trial.GetName(), nil, &dparetov1.Artifact{Id: "a\u200b", Uri: "x"}); !slices.Equal(servertest.Violated(err), []string{"trial.artifacts[1].id"}) {
		t.Errorf("id: %v", err)
	}
	servertest.WantCode(t, attach(f, trial.GetName(), servertest.Attributes(t, map[string]any{"a\nb": 1.0})), codes.InvalidArgument, "visible")
}

// Studies that publish results under a guarantee keep no attributes, which could tell results.
func TestPublicationsKeepNoAttachments(t *testing.T) {
	for name, spec := range map[string]*dparetov1.StudySpec{"private": servertest.PrivateSpec(4, 3), "stopping": servertest.SearchSpec(5, 1)} {
		t.Run(name, func(t *testing.T) {
			f := servertest.Start(t)
			study := f.Create("p", spec)
			trial := f.One(study, "w")
			err := attach(f, trial.GetName(), servertest.Attributes(t, map[string]any{"loss": 0.1}), &dparetov1.Artifact{Id: "a", Uri: "x"})
			if got := servertest.Violated(err); name == "private" && !slices.Equal(got, []string{"trial.artifacts", "trial.attributes"}) {
				t.Errorf("UpdateTrial: %v, violations %q", err, got)
			} else if name == "stopping" {
				servertest.WantCode(t, err, codes.FailedPrecondition, "shows only its best trial")
			}
		})
	}
}

// A request with very many artifacts is refused before they are merged, which would take minutes.
func TestManyArtifactsAreRefusedAtOnce(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("svt", servertest.SVTSpec())
	trial := f.One(study, "w")
	artifacts := make([]*dparetov1.Artifact, 200_000)
	for i := range artifacts {
		artifacts[i] = &dparetov1.Artifact{Id: fmt.Sprint(i), Uri: "x"}
	}
	servertest.WantCode(t, attach(f, trial.GetName(), nil, artifacts...), codes.InvalidArgument, "must hold at most 64")
	_, err := f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{
		Parent: study, Trial: &dparetov1.Trial{Parameters: trial.GetParameters(), Artifacts: artifacts},
	})
	servertest.WantCode(t, err, codes.InvalidArgument, "must hold at most 64")
}
