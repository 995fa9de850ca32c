package transfer

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// fill sets every field of a message, also of those within down to some depth.
func fill(m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		value := func() protoreflect.Value {
			switch field.Kind() {
			case protoreflect.StringKind:
				return protoreflect.ValueOfString("text")
			case protoreflect.BytesKind:
				return protoreflect.ValueOfBytes([]byte("bytes"))
			case protoreflect.Int64Kind:
				return protoreflect.ValueOfInt64(int64(i + 1))
			case protoreflect.DoubleKind:
				return protoreflect.ValueOfFloat64(float64(i) + 0.5)
			default:
				return protoreflect.Value{}
			}
		}
		switch {
		case field.IsMap(), field.ContainingOneof() != nil:
		case field.IsList() && field.Message() != nil:
			element := m.Mutable(field).List().AppendMutable().Message()
			fill(element, depth-1)
		case field.IsList():
			if v := value(); v.IsValid() {
				m.Mutable(field).List().Append(v)
			}
		case field.Message() != nil:
			if depth > 0 {
				fill(m.Mutable(field).Message(), depth-1)
			}
		default:
			if v := value(); v.IsValid() {
				m.Set(field, v)
			}
		}
	}
}

// Whatever a record holds is exported: a field that is new in the records has to be new in
// the contract, too. The end of a lease alone means nothing elsewhere.
func TestExportIsComplete(t *testing.T) {
	study := new(storev1.StudyRecord)
	fill(study.ProtoReflect(), 1)
	study.Lineage = 0                                  // of an import
	study.PrivateMode, study.RandomStopping = nil, nil // exported, but never imported
	if diff := cmp.Diff(study, studyRecord(exportedStudy(study).GetStudy()), protocmp.Transform()); diff != "" {
		t.Errorf("study: %s", diff)
	}
	trial := new(storev1.TrialRecord)
	fill(trial.ProtoReflect(), 1)
	trial.LeaseEnd, trial.PrivateMode = nil, nil
	trial.PastMeasurements = 0 // counted at the import
	if diff := cmp.Diff(trial, trialRecord(exportedTrial(trial, true).GetTrial()), protocmp.Transform()); diff != "" {
		t.Errorf("trial: %s", diff)
	}
	release := new(storev1.ReleaseRecord)
	fill(release.ProtoReflect(), 1)
	if diff := cmp.Diff(release, releaseRecord(exportedRelease(release).GetRelease()), protocmp.Transform()); diff != "" {
		t.Errorf("release: %s", diff)
	}
	left := []protoreflect.Name{"measurement_records", "past_attempts", "past_measurements", "lease_end", "lineage"} // counted, or begun anew, at the import
	for _, pair := range []struct {
		record, exported proto.Message
		extra            int
	}{
		{&storev1.StudyRecord{}, &dparetov1.ExportedStudy{}, -1}, // lineage
		{&storev1.RandomStopping{}, &dparetov1.ExportedRandomStopping{}, 0},
		{&storev1.PrivateModeRecord{}, &dparetov1.ExportedPrivateMode{}, 0},
		{&storev1.Stagnation{}, &dparetov1.ExportedStagnation{}, 0},
		{&storev1.FrontCosts{}, &dparetov1.ExportedPoint{}, 0},
		{&storev1.TrialRecord{}, &dparetov1.ExportedTrial{}, 2 - len(left)}, // deleted is part of the key
		{&storev1.ReleaseRecord{}, &dparetov1.ExportedRelease{}, 0},
	} {
		record, exported := pair.record.ProtoReflect().Descriptor(), pair.exported.ProtoReflect().Descriptor()
		for i := range record.Fields().Len() {
			name := record.Fields().Get(i).Name()
			if exported.Fields().ByName(name) == nil && !slices.Contains(left, name) {
				t.Errorf("%s is not exported", record.Fields().Get(i).FullName())
			}
		}
		if got, want := exported.Fields().Len(), record.Fields().Len()+pair.extra; got != want {
			t.Errorf("%s has %d fields, want %d", exported.FullName(), got, want)
		}
	}
}
