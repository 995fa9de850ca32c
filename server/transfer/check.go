package transfer

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/publish/ledger"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/specchange"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest/space"
)

// Limits on imported fields that clients cannot set otherwise.
const (
	maxWarnings   = 1000
	maxProvenance = 10_000
	maxToken      = 128
	maxAttempts   = 100 + study.MaxReturns // the first: the most that max_attempts can be
	digestBytes   = 32
	maxReplicates = 10_000
	// maxDesignChange bounds the design change of a study, in bytes. The longest names the ends of all
	// domains.
	maxDesignChange = 64 << 10
	// maxNumber bounds counters: they keep counting after the import, and every JSON reader must
	// represent them exactly.
	maxNumber = 1 << 53
)

// studyUID matches a study's uid.
var studyUID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// etagRandom matches the random part of a changed study's etag.
var etagRandom = regexp.MustCompile(`^[0-9a-f]{8}$`)

// study checks the study record of an import.
func (i *studyImport) study(exported *dparetov1.ExportedStudy) error {
	const path = "record.study.study"
	asked := exported.GetStudy()
	id, err := resource.ParseStudyName(path+".name", asked.GetName())
	if err != nil {
		return err
	}
	if ledger.IsPrepaid(asked.GetSpec()) {
		return invalid.Field(path+".spec", "must not have private_mode or random_stopping, because only its own server counts what such a study spends; "+
			"to move %s, copy its whole store with \"dpareto store copy\"", asked.GetName())
	}
	var fields invalid.Fields
	study.ValidateStudy(id, asked, &fields)
	asked.Spec = spec.WithDefaults(asked.GetSpec())
	compiled := spec.CompileInto(&fields, path+".spec", asked.GetSpec(), false)
	if err := fields.Err(); err != nil {
		return err
	}
	if !studyUID.MatchString(asked.GetUid()) {
		fields.Addf(path+".uid", "must be 32 hexadecimal digits, is %.100q", asked.GetUid())
	} else {
		checkImportedEtag(path, asked.GetEtag(), asked.GetUid(), asked.GetRevision(), &fields)
	}
	if n := asked.GetRevision(); n < 1 || n > maxNumber {
		fields.Addf(path+".revision", "must be in [1, %d], is %d", int64(maxNumber), n)
	}
	switch asked.GetState() {
	case dparetov1.StudyState_STUDY_STATE_ACTIVE, dparetov1.StudyState_STUDY_STATE_PAUSED, dparetov1.StudyState_STUDY_STATE_COMPLETED:
	default:
		fields.Addf(path+".state", "is %v", asked.GetState())
	}
	study.CheckReason(path+".state_reason", asked.GetStateReason(), false, &fields)
	checkTime(path+".create_time", asked.GetCreateTime(), true, &fields)
	checkTime(path+".update_time", asked.GetUpdateTime(), true, &fields)
	checkWarnings(path+".warnings", asked.GetWarnings(), &fields)
	if asked.GetTrialCounts() == nil {
		fields.Addf(path+".trial_counts", "must be set")
	}
	if c := asked.GetDesignChange(); c != nil {
		checkTime(path+".design_change.time", c.GetTime(), true, &fields)
		if n := proto.Size(c); n > maxDesignChange || len(c.GetFields()) == 0 {
			fields.Addf(path+".design_change", "must name fields, in at most %d bytes, has %d bytes", maxDesignChange, n)
		}
	}
	if asked.GetSpec().Seed != nil && asked.GetSpec().GetSeed() != asked.GetSeed() {
		fields.Addf(path+".seed", "must equal spec.seed, %d", asked.GetSpec().GetSeed())
	}
	if n := len(asked.GetSpec().GetPriorStudies()); n > specchange.MaxPriorStudies {
		fields.Addf(path+".spec.prior_studies", "must hold at most %d studies, holds %d", specchange.MaxPriorStudies, n)
	}
	for j, name := range asked.GetSpec().GetPriorStudies() { // they may have been deleted
		if _, err := resource.ParseStudyName("", name); err != nil || name == asked.GetName() {
			fields.Addf(fmt.Sprintf("%s.spec.prior_studies[%d]", path, j), "is not the name of another study: %.200q", name)
		}
	}
	if own := exported.GetOwnRevision(); own < 1 || own > asked.GetRevision() {
		fields.Addf("record.study.own_revision", "must be in [1, %d], the revision of the study, is %d", asked.GetRevision(), own)
	}
	i.revisions[exported.GetOwnRevision()] = true
	next, completed := exported.GetNextTrialNumber(), exported.GetCompletedTrials()
	if next < 1 || next > maxNumber {
		fields.Addf("record.study.next_trial_number", "must be in [1, %d], is %d", int64(maxNumber), next)
	}
	if next >= 1 && (completed < 0 || completed >= next) {
		fields.Addf("record.study.completed_trials", "must be in [0, %d], is %d", next-1, completed)
	}
	checkStagnation(exported, len(compiled.Objectives()), &fields)
	i.id, i.record, i.compiled = id, studyRecord(exported), compiled
	if asked.GetPublication() != nil || exported.GetPrivateMode() != nil || exported.GetRandomStopping() != nil {
		fields.Addf(path+".publication", "and record.study.private_mode and random_stopping must not be set")
	}
	return fields.Err()
}

func checkStagnation(exported *dparetov1.ExportedStudy, objectives int, fields *invalid.Fields) {
	const path = "record.study.stagnation"
	stagnation := exported.GetStagnation()
	if stagnation.GetTrials() < 0 || stagnation.GetTrials() > exported.GetCompletedTrials() {
		fields.Addf(path+".trials", "must be in [0, %d], is %d", exported.GetCompletedTrials(), stagnation.GetTrials())
	}
	if v := stagnation.GetHypervolume(); !(v >= 0 && v <= math.MaxFloat64) {
		fields.Addf(path+".hypervolume", "must be finite and not negative, is %g", v)
	}
	for j, point := range stagnation.GetFront() {
		finite := func(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
		if len(point.GetCosts()) != objectives || !all(point.GetCosts(), finite) {
			fields.Addf(fmt.Sprintf("%s.front[%d].costs", path, j), "must hold %d finite numbers", objectives)
		}
	}
}

// all reports whether a condition holds for all elements.
func all[E any](s []E, holds func(E) bool) bool {
	return !slices.ContainsFunc(s, func(e E) bool { return !holds(e) })
}

// trial checks a trial record of an import.
func (i *studyImport) trial(exported *dparetov1.ExportedTrial) error {
	const path = "record.trial.trial"
	trial := exported.GetTrial()
	if err := i.number(exported); err != nil {
		return err
	}
	point, err := i.compiled.Points.Parse(path+".parameters", trial.GetParameters())
	if err != nil {
		return err
	}
	if err := i.compiled.Points.CheckAllowed(path+".parameters", point); err != nil {
		return err
	}
	var fields invalid.Fields
	if r := trial.GetRevision(); r < 1 || r > i.record.GetStudy().GetRevision() {
		fields.Addf(path+".revision", "must be in [1, %d], up to the study's revision, is %d", i.record.GetStudy().GetRevision(), r)
	} else if i.revisions[r] {
		fields.Addf(path+".revision", "%d is also the revision of another trial, or of the study", r)
	} else {
		i.revisions[r] = true
		checkImportedEtag(path, trial.GetEtag(), i.record.GetStudy().GetUid(), r, &fields)
	}
	if trial.GetOrigin() == dparetov1.TrialOrigin_TRIAL_ORIGIN_UNSPECIFIED || dparetov1.TrialOrigin_name[int32(trial.GetOrigin())] == "" {
		fields.Addf(path+".origin", "is %v", trial.GetOrigin())
	}
	if n := trial.GetReplicates(); n < 1 || n > maxReplicates {
		fields.Addf(path+".replicates", "must be in [1, %d], is %d", maxReplicates, n)
	}
	study.ValidateTrialFields(path, trial, &fields)
	if name := trial.GetReplicateOf(); name != "" {
		of, number, err := resource.ParseTrialName(path+".replicate_of", name)
		if err != nil || of != i.id || number >= trial.GetNumber() {
			fields.Addf(path+".replicate_of", "must be an earlier trial of the study, is %.200q", name)
		}
	}
	study.CheckReason(path+".state_reason", trial.GetStateReason(), false, &fields)
	checkTime(path+".create_time", trial.GetCreateTime(), true, &fields)
	checkTime(path+".start_time", trial.GetStartTime(), false, &fields)
	checkTime("record.trial.change_time", exported.GetChangeTime(), false, &fields)
	checkTime(path+".end_time", trial.GetEndTime(), study.IsTerminal(trial.GetState()), &fields)
	checkWarnings(path+".warnings", trial.GetWarnings(), &fields)
	i.provenance(path+".provenance", trial.GetProvenance(), &fields)
	if err := checkAttempts(exported); err != nil { // later checks rely on their numbers
		return err
	}
	i.leases(exported, &fields)
	i.completion(exported, &fields)
	if exported.GetPrivateMode() != nil || trial.GetTrainingShard() != 0 {
		fields.Addf("record.trial.private_mode", "and training shards must not be set")
	}
	if err := fields.Err(); err != nil {
		return err
	}
	study.MarkSeeded(trial)
	return i.measurements(path, trial, point)
}

// number checks and records the number of a trial.
func (i *studyImport) number(exported *dparetov1.ExportedTrial) error {
	const path = "record.trial.trial"
	trial := exported.GetTrial()
	number := trial.GetNumber()
	before := i.deleted
	if !exported.GetDeleted() && len(i.live) > 0 {
		before = i.live[len(i.live)-1]
	}
	switch {
	case number < 1 || number >= i.record.GetNextTrialNumber():
		return invalid.Field(path+".number", "must be in [1, next_trial_number - 1 = %d], is %d", i.record.GetNextTrialNumber()-1, number)
	case !exported.GetDeleted() && i.deleted > 0:
		return invalid.Field("record.trial.deleted", "must be true: deleted trials come last")
	case number <= before:
		return invalid.Field(path+".number", "must be above the previous trial's, %d, is %d", before, number)
	case exported.GetDeleted() && i.isLive(number):
		return invalid.Field(path+".number", "%d is also the number of a trial that is not deleted", number)
	case trial.GetName() != resource.TrialName(i.id, number):
		return invalid.Field(path+".name", "must be %q, is %.200q", resource.TrialName(i.id, number), trial.GetName())
	}
	state := trial.GetState()
	if state == dparetov1.TrialState_TRIAL_STATE_UNSPECIFIED || dparetov1.TrialState_name[int32(state)] == "" {
		return invalid.Field(path+".state", "is %v", state)
	}
	if exported.GetDeleted() {
		i.deleted = number
		return nil
	}
	i.live = append(i.live, number)
	store.AddToCounts(i.counts, state, 1)
	return nil
}

// leases checks the current and former leases of a trial.
func (i *studyImport) leases(exported *dparetov1.ExportedTrial, fields *invalid.Fields) {
	const path = "record.trial.lease_tokens"
	trial := exported.GetTrial()
	tokens := exported.GetLeaseTokens()
	if len(tokens) > maxAttempts || int64(len(tokens)) != int64(trial.GetAttempt()) {
		fields.Addf(path, "must hold one token for each of %d attempts, holds %d", trial.GetAttempt(), len(tokens))
		return
	}
	seen := make(map[string]bool, len(tokens))
	for j, token := range tokens {
		if token == "" || len(token) > maxToken || seen[token] {
			fields.Addf(fmt.Sprintf("%s[%d]", path, j), "must have 1 to %d bytes and differ from the others", maxToken)
		}
		seen[token] = true
	}
	if n := exported.GetReleases(); n < 0 || n > int64(len(tokens)) {
		fields.Addf("record.trial.releases", "must be in [0, %d], is %d", len(tokens), n)
	}
	lease := trial.GetLease()
	held := trial.GetState() == dparetov1.TrialState_TRIAL_STATE_ACTIVE || trial.GetState() == dparetov1.TrialState_TRIAL_STATE_STOPPING
	switch {
	case len(trial.GetWorkerId()) > study.MaxWorkerID:
		fields.Addf("record.trial.trial.worker_id", "must have at most %d bytes, has %d", study.MaxWorkerID, len(trial.GetWorkerId()))
	case held != (lease != nil):
		fields.Addf("record.trial.trial.lease", "must be set if the state is ACTIVE or STOPPING, and only then")
	case !held:
	case exported.GetDeleted():
		fields.Addf("record.trial.deleted", "must be false: a worker holds the trial")
	case len(tokens) == 0:
		fields.Addf(path, "must hold the token of the lease")
	case lease.GetToken() != "":
		fields.Addf("record.trial.trial.lease.token", "must be unset: it is the last of lease_tokens")
	case len(lease.GetWorkerId()) < 1 || len(lease.GetWorkerId()) > study.MaxWorkerID:
		fields.Addf("record.trial.trial.lease.worker_id", "must have 1 to %d bytes, has %d", study.MaxWorkerID, len(lease.GetWorkerId()))
	case lease.GetWorkerId() != trial.GetWorkerId():
		fields.Addf("record.trial.trial.worker_id", "must be the worker of the lease, %q, is %.200q", lease.GetWorkerId(), trial.GetWorkerId())
	default:
		checkTime("record.trial.trial.lease.expire_time", lease.GetExpireTime(), true, fields)
	}
}

// completion checks how a trial completed.
func (i *studyImport) completion(exported *dparetov1.ExportedTrial, fields *invalid.Fields) {
	trial := exported.GetTrial()
	order, last := exported.GetCompletionOrder(), i.record.GetCompletedTrials()
	switch terminal := study.IsTerminal(trial.GetState()); {
	case !terminal && order != 0:
		fields.Addf("record.trial.completion_order", "must be 0: the trial is %v", trial.GetState())
	case terminal && (order < 1 || order > last):
		fields.Addf("record.trial.completion_order", "must be in [1, completed_trials = %d], is %d", last, order)
	case terminal && i.orders[order]:
		fields.Addf("record.trial.completion_order", "%d is also the order of another trial", order)
	case terminal:
		i.orders[order] = true
	}
	token, digest := exported.GetCompletionToken(), exported.GetCompletionDigest()
	if token != "" && !slices.Contains(exported.GetLeaseTokens(), token) {
		fields.Addf("record.trial.completion_token", "must be one of lease_tokens")
	}
	if n := len(digest); n != 0 && n != digestBytes || (n == 0) != (token == "") {
		fields.Addf("record.trial.completion_digest", "must have %d bytes with a completion_token, and none without; has %d", digestBytes, n)
	}
	succeeded := trial.GetState() == dparetov1.TrialState_TRIAL_STATE_SUCCEEDED
	if succeeded != (trial.GetFinalMeasurement() != nil) {
		fields.Addf("record.trial.trial.final_measurement", "must be set if the state is SUCCEEDED, and only then")
	}
}

// measurements checks the measured and computed metrics of a trial.
func (i *studyImport) measurements(path string, trial *dparetov1.Trial, point space.Point) error {
	if err := i.compiled.Measurements.CheckComputed(path+".computed_metrics", trial.GetComputedMetrics()); err != nil {
		return err
	}
	if err := i.steps(path, trial.GetMeasurements(), trial, point); err != nil {
		return err
	}
	for j, a := range trial.GetPastAttempts() {
		if err := i.steps(fmt.Sprintf("%s[%d]", attemptsPath, j), a.GetMeasurements(), trial, point); err != nil {
			return err
		}
	}
	if trial.GetFinalMeasurement() == nil {
		return nil
	}
	return i.measurement(path+".final_measurement", trial.GetFinalMeasurement(), trial, point, true)
}

// measurement checks a measurement of a trial.
func (i *studyImport) measurement(path string, m *dparetov1.Measurement, trial *dparetov1.Trial, point space.Point, final bool) error {
	if err := i.compiled.Measurements.CheckRuns(path, m, trial.GetReplicates()); err != nil {
		return err
	}
	return i.compiled.Measurements.CheckStored(path, point, m, final)
}

// steps checks the intermediate measurements of an attempt at a trial.
func (i *studyImport) steps(path string, measurements []*dparetov1.Measurement, trial *dparetov1.Trial, point space.Point) error {
	if n := len(measurements); n > study.MaxMeasurements {
		return invalid.Field(path+".measurements", "must hold at most %d, holds %d", study.MaxMeasurements, n)
	}
	before := int64(-1)
	for j, m := range measurements {
		field := fmt.Sprintf("%s.measurements[%d]", path, j)
		if m.GetStep() <= before {
			return invalid.Field(field+".step", "must be above the previous measurement's, %d, is %d", before, m.GetStep())
		}
		before = m.GetStep()
		if err := i.measurement(field, m, trial, point, false); err != nil {
			return err
		}
	}
	return nil
}

// provenance checks how a suggestion was made.
func (i *studyImport) provenance(path string, p *dparetov1.Provenance, fields *invalid.Fields) {
	if p == nil {
		return
	}
	if len(p.GetAlgorithm())+len(p.GetAlgorithmVersion())+len(p.GetServerVersion())+len(p.GetFallbackReason()) > maxProvenance {
		fields.Addf(path, "must have at most %d bytes of text", maxProvenance)
	}
	for id, prediction := range p.GetPredictions() {
		field := fmt.Sprintf("%s.predictions[%q]", path, id)
		if !slices.ContainsFunc(i.record.GetStudy().GetSpec().GetMetrics(), func(m *dparetov1.MetricSpec) bool { return m.GetId() == id }) {
			fields.Addf(field, "is not a metric of the study")
		}
		if math.IsNaN(prediction.GetMedian()) || math.IsNaN(prediction.GetLower()) || math.IsNaN(prediction.GetUpper()) {
			fields.Addf(field, "is not a number")
		}
	}
	if math.IsNaN(p.GetAcquisitionValue()) {
		fields.Addf(path+".acquisition_value", "is not a number")
	}
}

// checkImportedEtag checks that the study can have had an etag.
func checkImportedEtag(path, actual, uid string, revision int64, fields *invalid.Fields) {
	_, rest, _ := strings.Cut(actual, "-")
	digits, random, hasRandom := strings.Cut(rest, "-")
	of, err := strconv.ParseInt(digits, 16, 64)
	if err != nil || of < 1 || of > revision || strings.TrimSuffix(actual, "-"+random) != study.Etag(uid, of) || hasRandom != etagRandom.MatchString(random) {
		fields.Addf(path+".etag", "must be of a revision up to %d, such as %q; is %.100q", revision, study.Etag(uid, revision), actual)
	}
}

func checkTime(field string, t *timestamppb.Timestamp, required bool, fields *invalid.Fields) {
	switch {
	case t == nil && required:
		fields.Addf(field, "must be set")
	case t != nil && t.CheckValid() != nil:
		fields.Addf(field, "is not a valid time")
	}
}

func checkWarnings(field string, warnings []*dparetov1.Warning, fields *invalid.Fields) {
	if n := len(warnings); n > maxWarnings {
		fields.Addf(field, "must hold at most %d, holds %d", maxWarnings, n)
	}
	for j, w := range warnings {
		if len(w.GetCode()) > study.MaxLabelValue || len([]rune(w.GetMessage())) > study.MaxText {
			fields.Addf(fmt.Sprintf("%s[%d]", field, j), "must have a code of at most %d bytes and a message of at most %d characters", study.MaxLabelValue, study.MaxText)
		}
	}
}
