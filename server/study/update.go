package study

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/attachment"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
)

// labelsField is the name of the field with the labels of studies and trials.
const labelsField = "labels"

// wholeMask is the update mask path that stands for all fields.
const wholeMask = "*"

// Fields that clients may change. For the spec see checkSpecChange.
var (
	mutableStudyFields = []string{"display_name", "description", labelsField, "spec"}
	mutableTrialFields = []string{labelsField, "note", "attributes", "artifacts"}
)

// TouchStudy gives the study itself the next revision, after a change of its own fields.
func (c *Change) TouchStudy() {
	study := c.Study.GetStudy()
	study.Revision++
	c.Study.OwnRevision = study.GetRevision()
	// The random part tells apart two states with the same revision, after a crash lost the first.
	of := study.GetRevision()
	if c.Policy.Traits().Hidden {
		of = 1 // a revision counts the changes of trials
	}
	study.Etag = Etag(study.GetUid(), of) + "-" + NewToken()[:8]
	study.UpdateTime = timestamppb.New(c.Now)
}

// UpdateStudy implements StudyService.
func (s *Studies) UpdateStudy(ctx context.Context, req *dparetov1.UpdateStudyRequest) (*dparetov1.UpdateStudyResponse, error) {
	id, err := resource.ParseStudyName("study.name", req.GetStudy().GetName())
	if err != nil {
		return nil, err
	}
	resp := new(dparetov1.UpdateStudyResponse)
	r, err := NewRequest(req, resp)
	if err != nil {
		return nil, err
	}
	if done, err := r.answered(ctx, s, store.StudyScope(id)); err != nil || done {
		return resp, err
	}
	for raced := true; raced; {
		before, after, err := updatedStudy(ctx, s, id, req)
		if err != nil {
			return nil, err
		}
		err = s.Change(ctx, id, r, func(c *Change) error {
			study := c.Study.GetStudy()
			raced = study.GetEtag() != before.GetEtag()
			if raced {
				r.Effect = EffectNone
				return nil
			}
			r.Effect = EffectAll
			if !proto.Equal(before, after) {
				study.DisplayName, study.Description, study.Labels = after.GetDisplayName(), after.GetDescription(), after.GetLabels()
				c.noteDesignChange(after.GetSpec())
				study.Spec, study.Warnings = after.GetSpec(), after.GetWarnings()
				c.TouchStudy()
			}
			resp.Study = s.Present(proto.CloneOf(c.Study))
			return nil
		})
		if err != nil {
			s.cache.forget(before.GetUid()) // later changes in the failed commit may have cached the new spec
			return nil, err
		}
		raced = raced && !r.Repeated
	}
	return resp, nil
}

// updatedStudy returns a study before and after an update. It compiles the spec, which is too slow
// for a write transaction.
func updatedStudy(ctx context.Context, s *Studies, id string, req *dparetov1.UpdateStudyRequest) (before, after *dparetov1.Study, err error) {
	var record *storev1.StudyRecord
	err = s.store.View(ctx, func(tx *store.ReadTx) error {
		record, err = FindStudy(tx, id)
		before = record.GetStudy()
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if err := checkEtag(req.GetStudy().GetEtag(), before.GetEtag()); err != nil {
		return nil, nil, err
	}
	after = proto.CloneOf(before)
	if err := applyMask(after, req.GetStudy(), req.GetUpdateMask(), mutableStudyFields); err != nil {
		return nil, nil, err
	}
	var fields invalid.Fields
	ValidateStudy(id, after, &fields)
	if err := fields.Err(); err != nil {
		return nil, nil, err
	}
	if proto.Equal(before.GetSpec(), after.GetSpec()) {
		return before, after, nil
	}
	policy := s.Policy(before.GetSpec())
	if err := checkSpecChange(before.GetSpec(), after.GetSpec(), policy.Traits()); err != nil {
		return nil, nil, err
	}
	if namesLedger(after.GetSpec()) {
		if err := s.ledgers.CheckCaller(ctx, before.GetSpec(), after.GetSpec()); err != nil {
			return nil, nil, err
		}
		err = s.store.View(ctx, func(tx *store.ReadTx) error { return s.ledgers.Check(tx, after.GetSpec()) })
		if err != nil {
			return nil, nil, err
		}
	}
	compiled, err := spec.Compile("study.spec", after.GetSpec())
	if err != nil {
		return nil, nil, err
	}
	if err := policy.CheckUpdate(record, after.GetSpec()); err != nil {
		return nil, nil, err
	}
	after.Warnings = compiled.Warnings
	return before, after, nil
}

// UpdateTrial implements StudyService.
func (t Trials) UpdateTrial(ctx context.Context, req *dparetov1.UpdateTrialRequest) (*dparetov1.UpdateTrialResponse, error) {
	id, number, err := resource.ParseTrialName("trial.name", req.GetTrial().GetName())
	if err != nil {
		return nil, err
	}
	resp := new(dparetov1.UpdateTrialResponse)
	r, err := NewRequest(req, resp)
	if err != nil {
		return nil, err
	}
	err = t.Change(ctx, id, r, func(c *Change) error {
		tc, err := c.trial(number)
		if err != nil {
			return err
		}
		trial := tc.record.GetTrial()
		if err := checkEtag(req.GetTrial().GetEtag(), trial.GetEtag()); err != nil {
			return err
		}
		before := proto.CloneOf(trial)
		change := proto.CloneOf(req.GetTrial())
		change.Attributes = attachment.Attributes(trial.GetAttributes(), change.GetAttributes())
		change.Artifacts = attachment.Artifacts(trial.GetArtifacts(), change.GetArtifacts())
		if err := applyMask(trial, change, req.GetUpdateMask(), mutableTrialFields); err != nil {
			return err
		}
		if err := c.checkTrialFields(trial); err != nil {
			return err
		}
		resp.Trial = trial
		if proto.Equal(before, trial) {
			return c.spare(r)
		}
		if err := c.checkSize(); err != nil {
			return err
		}
		return tc.put(trial.GetState())
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// checkTrialFields checks the fields that clients may set besides configuration and result.
func (c *Change) checkTrialFields(trial *dparetov1.Trial) error {
	var fields invalid.Fields
	ValidateTrialFields("trial", trial, c.Compiled, &fields)
	return fields.Err()
}

// ValidateTrialFields adds violations by the fields of a trial at a path that clients may set besides
// configuration and result to fields.
func ValidateTrialFields(path string, trial *dparetov1.Trial, compiled *spec.Study, fields *invalid.Fields) {
	ValidateLabels(path+".labels", trial.GetLabels(), fields)
	if n := len([]rune(trial.GetNote())); n > MaxText {
		fields.Addf(path+".note", "must have at most %d characters, has %d", MaxText, n)
	}
	attachment.Check(path, trial, fields)
	if spec.IsPublication(compiled.Spec) {
		attachment.CheckNone(path, trial, fields)
	}
}

// PauseStudy implements StudyService.
func (s *Studies) PauseStudy(ctx context.Context, req *dparetov1.PauseStudyRequest) (*dparetov1.PauseStudyResponse, error) {
	id, err := resource.ParseStudyName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	resp := new(dparetov1.PauseStudyResponse)
	r, err := NewRequest(req, resp)
	if err != nil {
		return nil, err
	}
	err = s.Change(ctx, id, r, func(c *Change) error {
		resp.Study = c.setState(dparetov1.StudyState_STUDY_STATE_PAUSED)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// ResumeStudy implements StudyService.
func (s *Studies) ResumeStudy(ctx context.Context, req *dparetov1.ResumeStudyRequest) (*dparetov1.ResumeStudyResponse, error) {
	id, err := resource.ParseStudyName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	resp := new(dparetov1.ResumeStudyResponse)
	r, err := NewRequest(req, resp)
	if err != nil {
		return nil, err
	}
	err = s.Change(ctx, id, r, func(c *Change) error {
		resp.Study = c.setState(dparetov1.StudyState_STUDY_STATE_ACTIVE)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// setState sets the state of the study, and returns the study as clients see it.
func (c *Change) setState(state dparetov1.StudyState) *dparetov1.Study {
	if study := c.Study.GetStudy(); study.GetState() != state {
		study.State, study.StateReason = state, ""
		c.TouchStudy()
	}
	return c.studies.Present(proto.CloneOf(c.Study))
}

// applyMask copies the masked fields of src to dst. All of them must be allowed fields or below one.
func applyMask(dst, src proto.Message, mask *fieldmaskpb.FieldMask, allowed []string) error {
	paths := mask.GetPaths()
	if len(paths) == 0 {
		return invalid.Field("update_mask", "must name the fields to change")
	}
	if slices.Equal(paths, []string{wholeMask}) {
		paths = allowed
	}
	var fields invalid.Fields
	for _, path := range paths {
		if reason := unsettable(dst.ProtoReflect().Descriptor(), path, allowed); reason != "" {
			fields.Addf("update_mask", "%.200q %s", path, reason)
			continue
		}
		copyField(dst.ProtoReflect(), src.ProtoReflect(), strings.Split(path, "."))
	}
	return fields.Err()
}

// unsettable returns why an update mask path names no field that can be set, or "".
func unsettable(message protoreflect.MessageDescriptor, path string, allowed []string) string {
	names := strings.Split(path, ".")
	for i, name := range names {
		if message == nil {
			return "is below " + strings.Join(names[:i], ".") + ", which is set as a whole"
		}
		field := message.Fields().ByName(protoreflect.Name(name))
		if field == nil {
			return "is not a field"
		}
		if i == 0 && !slices.Contains(allowed, name) {
			return "cannot be changed, only " + strings.Join(allowed, ", ") + " can"
		}
		message = nil
		if !field.IsList() && !field.IsMap() {
			message = field.Message()
		}
	}
	return ""
}

// copyField copies the field of src at a path to dst.
func copyField(dst, src protoreflect.Message, names []string) {
	field := dst.Descriptor().Fields().ByName(protoreflect.Name(names[0]))
	switch {
	case len(names) > 1 && (dst.Has(field) || src.Has(field)):
		copyField(dst.Mutable(field).Message(), src.Get(field).Message(), names[1:])
	case len(names) > 1: // absent from both
	case src.Has(field):
		dst.Set(field, src.Get(field))
	default:
		dst.Clear(field)
	}
}

// checkSpecChange refuses changes that past trials depend on. Allowed are the budget, the lease,
// early stopping, units, growing domains, and a first ledger to charge releases to, as far as the
// traits of the policy allow them.
func checkSpecChange(before, after *dparetov1.StudySpec, traits Traits) error {
	var fields invalid.Fields
	allowed := proto.CloneOf(before)
	allowed.Budget, allowed.Lease, allowed.DisableEarlyStopping = after.GetBudget(), after.GetLease(), after.GetDisableEarlyStopping()
	if before.GetTestLedger() == "" && !traits.Prepaid {
		allowed.TestLedger = after.GetTestLedger()
	}
	if len(before.GetMetrics()) == len(after.GetMetrics()) {
		for i, m := range after.GetMetrics() {
			allowed.Metrics[i].Unit = m.GetUnit()
		}
	}
	if len(before.GetParameters()) == len(after.GetParameters()) {
		for i, p := range after.GetParameters() {
			field, reason, sameKind := missing(before.GetParameters()[i], p)
			if reason != "" {
				fields.Addf(fmt.Sprintf("study.spec.parameters[%d].%s", i, field), "%s: a domain can only grow", reason)
			}
			if sameKind && !traits.OwnDraws {
				allowed.Parameters[i].Domain = p.GetDomain()
			}
		}
	}
	for _, path := range Differences(allowed, after) {
		fields.Addf("study.spec."+path, "cannot be changed: the trials so far depend on it")
	}
	return fields.Err()
}

// missing returns which field of a parameter's new domain lacks a value of the old one and what it
// should be, "" if none does. Domains of different kinds cannot be compared.
func missing(before, after *dparetov1.ParameterSpec) (field, reason string, sameKind bool) {
	switch b := before.GetDomain().(type) {
	case *dparetov1.ParameterSpec_DoubleDomain:
		if a := after.GetDoubleDomain(); a != nil {
			field, reason = missingEnd("double_domain", b.DoubleDomain.GetMin(), b.DoubleDomain.GetMax(), a.GetMin(), a.GetMax())
			return field, reason, true
		}
	case *dparetov1.ParameterSpec_IntegerDomain:
		if a := after.GetIntegerDomain(); a != nil {
			field, reason = missingEnd("integer_domain", b.IntegerDomain.GetMin(), b.IntegerDomain.GetMax(), a.GetMin(), a.GetMax())
			return field, reason, true
		}
	case *dparetov1.ParameterSpec_DiscreteDomain:
		if a := after.GetDiscreteDomain(); a != nil {
			field, reason = missingValue("discrete_domain.values", b.DiscreteDomain.GetValues(), a.GetValues())
			return field, reason, true
		}
	case *dparetov1.ParameterSpec_CategoricalDomain:
		if a := after.GetCategoricalDomain(); a != nil {
			field, reason = missingValue("categorical_domain.categories", b.CategoricalDomain.GetCategories(), a.GetCategories())
			return field, reason, true
		}
	}
	return "", "", false
}

// missingEnd implements missing for intervals.
func missingEnd[T int64 | float64](domain string, oldMin, oldMax, newMin, newMax T) (field, reason string) {
	switch {
	case newMin > oldMin:
		return domain + ".min", fmt.Sprintf("must be at most %v, is %v", oldMin, newMin)
	case newMax < oldMax:
		return domain + ".max", fmt.Sprintf("must be at least %v, is %v", oldMax, newMax)
	default:
		return "", ""
	}
}

// missingValue implements missing for lists.
func missingValue[T comparable](field string, before, after []T) (string, string) {
	present := make(map[T]bool, len(after))
	for _, v := range after {
		present[v] = true
	}
	for _, v := range before {
		if !present[v] {
			return field, fmt.Sprintf("must hold %v, as before", v)
		}
	}
	return "", ""
}
