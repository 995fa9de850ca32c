package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// model is what clients know of the server: every call with its answer, in true time.
type model struct {
	mu     sync.Mutex
	faults []string

	ended   map[string]*dparetov1.Trial // as it was first answered, by identity
	holds   map[string]*hold            // by token
	values  map[float64]*value          // errors that were sent
	answers map[string]proto.Message    // of requests with ids, by principal and body
	first   map[string]time.Time        // when such a request first reached the server
	workers map[string]string           // the principal of a worker, by the study's identity and worker id
	created map[string]string           // trials by their notes

	readable time.Time                     // when the first result of the fixed study was answered
	changed  time.Time                     // when its design was changed after that
	privates []*dparetov1.Study            // the private study, each time that it was created
	released map[string]*dparetov1.Release // by name
	final    map[string][]*dparetov1.Trial // what the studies have in the end
}

// identity returns the name of a trial, or of a study, with the beginning of the study's uid, which
// its etag begins with. The trials of a study that is created anew have the names of the earlier ones.
func identity(of interface {
	GetName() string
	GetEtag() string
}) string {
	uid, _, _ := strings.Cut(of.GetEtag(), "-")
	return of.GetName() + " of " + uid
}

// hold is a hand-out of a trial that was answered.
type hold struct {
	trial    string // its identity
	run      string // its start and shard
	holder   string // principal and worker id
	attempt  int32
	answered time.Time
	alive    time.Time // the latest sign of life that was accepted
	gone     time.Time // when something that ends the hold first arrived; zero before
	measured map[int64]float64
}

// value is an error that a worker sent.
type value struct {
	token string // of the lease that it was made under
	kept  bool   // a call with it was not refused
}

func newModel() *model {
	return &model{
		ended: make(map[string]*dparetov1.Trial), holds: make(map[string]*hold), values: make(map[float64]*value), answers: make(map[string]proto.Message),
		first: make(map[string]time.Time), workers: make(map[string]string), created: make(map[string]string),
		released: make(map[string]*dparetov1.Release), final: make(map[string][]*dparetov1.Trial),
	}
}

// faultf notes that an invariant, which it names in a word, does not hold.
func (m *model) faultf(invariant, format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.notef(invariant, format, args...)
}

// notef is faultf for those who hold the lock.
func (m *model) notef(invariant, format string, args ...any) {
	m.faults = append(m.faults, invariant+": "+fmt.Sprintf(format, args...))
}

// unanswered notes a call that was cut off by a crash. It may have taken effect.
func (m *model) unanswered(c call) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.arrived(&c, true)
}

// answered notes a call with its answer.
func (m *model) answered(c call) {
	m.mu.Lock()
	defer m.mu.Unlock()
	code := status.Code(c.err)
	m.arrived(&c, code == codes.OK || code == codes.Canceled || code == codes.DeadlineExceeded)
	switch code {
	case codes.OK:
		m.repeated(&c)
		m.learn(&c)
	case codes.Internal, codes.Unknown, codes.DataLoss:
		m.notef("errors", "%s: %v", c.method, c.err)
	default:
	}
}

// arrived notes what a request may do, whatever its answer.
func (m *model) arrived(c *call, mayHold bool) {
	if key := keyOf(c); m.first[key].IsZero() {
		m.first[key] = c.start
	}
	sends := func(token string, measurement *dparetov1.Measurement) {
		if measurement == nil {
			return
		}
		v := errorOf(measurement)
		if m.values[v] == nil {
			m.values[v] = &value{token: token}
		}
		m.values[v].kept = m.values[v].kept || mayHold
	}
	ends := func(token string) {
		if h := m.holds[token]; mayHold && h != nil && h.gone.IsZero() {
			h.gone = c.start
		}
	}
	switch r := c.req.(type) {
	case *dparetov1.AddMeasurementRequest:
		sends(r.GetLeaseToken(), r.GetMeasurement())
	case *dparetov1.CompleteTrialRequest:
		sends(r.GetLeaseToken(), r.GetMeasurement())
		ends(r.GetLeaseToken())
	case *dparetov1.ReleaseTrialRequest:
		ends(r.GetLeaseToken())
	}
}

// keyOf identifies a request with its principal, id and body.
func keyOf(c *call) string {
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(c.req)
	must(err)
	return c.principal + c.method + string(body)
}

// repeated compares the answer to a request with an id with the one that it had before. No trials
// are no answer that is kept.
func (m *model) repeated(c *call) {
	if requestID(c.req) == "" {
		return
	}
	if r, ok := c.resp.(*dparetov1.SuggestTrialsResponse); ok && len(r.GetTrials()) == 0 {
		return
	}
	key := keyOf(c)
	before := m.answers[key]
	if m.answers[key] = c.resp; before != nil && !proto.Equal(before, c.resp) {
		m.notef("repeated", "%s {%v} was answered %v, and later %v", c.method, c.req, before, c.resp)
	}
}

// learn notes what an answer says.
func (m *model) learn(c *call) {
	switch r := c.resp.(type) {
	case *dparetov1.SuggestTrialsResponse:
		m.handedOut(c, c.req.(*dparetov1.SuggestTrialsRequest), r)
	case *dparetov1.AddMeasurementResponse:
		m.measured(c, c.req.(*dparetov1.AddMeasurementRequest))
	case *dparetov1.RenewLeasesResponse:
		for name, result := range r.GetResults() {
			if result.GetHeld() {
				m.sawAlive(c.req.(*dparetov1.RenewLeasesRequest).GetLeaseTokens()[name], m.took(c))
			}
		}
	case *dparetov1.CompleteTrialResponse:
		if strings.HasPrefix(r.GetTrial().GetName(), fixed) && m.readable.IsZero() {
			m.readable = c.end
		}
		m.end(r.GetTrial())
		if h := m.holds[c.req.(*dparetov1.CompleteTrialRequest).GetLeaseToken()]; h != nil && r.GetTrial().GetEndTime() != nil && h.run != runOf(r.GetTrial()) {
			m.notef("runs", "%s shows %s, and was completed by attempt %d, %s", r.GetTrial().GetName(), runOf(r.GetTrial()), h.attempt, h.run)
		}
	case *dparetov1.ReleaseTrialResponse:
		m.end(r.GetTrial())
	case *dparetov1.StopTrialResponse:
		m.end(r.GetTrial())
	case *dparetov1.CreateTrialResponse:
		m.created[r.GetTrial().GetNote()] = r.GetTrial().GetName()
	case *dparetov1.CreateStudyResponse:
		m.createdStudy(r.GetStudy())
	case *dparetov1.UpdateStudyResponse:
		if r.GetStudy().GetName() == fixed && !m.readable.IsZero() && m.readable.Before(m.took(c)) && m.changed.IsZero() {
			m.changed = c.end
		}
	case *dparetov1.ReleaseBestResponse:
		if first := m.first[keyOf(c)]; !m.changed.IsZero() && first.After(m.changed) && r.GetRelease().GetLedger() != "" {
			m.notef("design", "%s was published although the design of %s was changed after a result could be read", r.GetRelease().GetName(), fixed)
		}
		m.released[r.GetRelease().GetName()] = r.GetRelease()
	case *dparetov1.SelectPrivatelyResponse:
		m.released[r.GetRelease().GetName()] = r.GetRelease()
	}
}

// handedOut notes the trials that a worker got.
func (m *model) handedOut(c *call, req *dparetov1.SuggestTrialsRequest, resp *dparetov1.SuggestTrialsResponse) {
	for _, t := range resp.GetTrials() {
		_, uid, _ := strings.Cut(identity(t), " of ")
		key := req.GetWorkerId() + " of " + req.GetParent() + " " + uid
		if other, ok := m.workers[key]; ok && other != c.principal {
			m.notef("worker ids", "%s belongs to %s, and %s got %s under it", key, other, c.principal, t.GetName())
		} else {
			m.workers[key] = c.principal
		}
		if m.holds[t.GetLease().GetToken()] != nil {
			continue // a repeated answer
		}
		m.holds[t.GetLease().GetToken()] = &hold{
			trial: identity(t), run: runOf(t), holder: c.principal + " " + req.GetWorkerId(), attempt: t.GetAttempt(),
			answered: c.end, alive: m.took(c), measured: make(map[int64]float64),
		}
	}
}

// took returns the earliest time at which a call can have taken effect: a remembered answer has none.
func (m *model) took(c *call) time.Time {
	if requestID(c.req) == "" {
		return c.start
	}
	return m.first[keyOf(c)]
}

// sawAlive notes a sign of life that the server accepted.
func (m *model) sawAlive(token string, at time.Time) {
	if h := m.holds[token]; h != nil && h.alive.Before(at) {
		h.alive = at
	}
}

// measured notes an acknowledged measurement.
func (m *model) measured(c *call, req *dparetov1.AddMeasurementRequest) {
	m.sawAlive(req.GetLeaseToken(), m.took(c))
	if h := m.holds[req.GetLeaseToken()]; h != nil {
		h.measured[req.GetMeasurement().GetStep()] = errorOf(req.GetMeasurement())
	}
}

// end notes how a trial ended, if it did.
func (m *model) end(t *dparetov1.Trial) {
	before := m.ended[identity(t)]
	switch {
	case t.GetEndTime() == nil:
	case before == nil:
		m.ended[identity(t)] = t
	case outcome(before) != outcome(t):
		m.notef("completion", "%s ended with %s, and later with %s", t.GetName(), outcome(before), outcome(t))
	}
}

// outcome describes how a trial ended.
func outcome(t *dparetov1.Trial) string {
	return fmt.Sprintf("%v %q %v %s", t.GetState(), t.GetStateReason(), t.GetFinalMeasurement(), runOf(t))
}

// runOf describes what a trial shows of the run of one attempt, beside its measurements.
func runOf(t *dparetov1.Trial) string {
	return fmt.Sprintf("begun %v by %s on shard %d", t.GetStartTime().AsTime(), t.GetWorkerId(), t.GetTrainingShard())
}

// createdStudy notes a private study. One that was run before, and did not pay from a ledger, says
// so.
func (m *model) createdStudy(s *dparetov1.Study) {
	if s.GetSpec().GetPrivateMode() == nil || slices.ContainsFunc(m.privates, func(o *dparetov1.Study) bool { return o.GetUid() == s.GetUid() }) {
		return
	}
	ran := false
	for _, h := range m.holds {
		ran = ran || strings.HasPrefix(h.trial, private) && !strings.HasSuffix(h.trial, s.GetUid()[:8])
	}
	if len(m.privates) > 0 && ran && s.GetSpec().GetTestLedger() == "" && guarantee(m.privates[0]) == guarantee(s) {
		m.notef("budget", "%s was run, deleted and created anew, without a ledger, with the guarantee of the first", s.GetName())
	}
	m.privates = append(m.privates, s)
}

// guarantee returns all that a study says about what publishing it reveals.
func guarantee(s *dparetov1.Study) string {
	p := proto.CloneOf(s.GetPublication())
	p.Spent = nil
	return fmt.Sprint(p, s.GetWarnings())
}

// compareStudy compares what a study has in the end with what was answered.
func (m *model) compareStudy(s *dparetov1.Study, trials []*dparetov1.Trial, releases []*dparetov1.Release) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.final[s.GetName()] = trials
	stored := make(map[string]*dparetov1.Trial, len(trials))
	counts := make(map[dparetov1.TrialState]int64)
	notes := make(map[string]string)
	completed := int64(0)
	for _, t := range trials {
		stored[t.GetName()] = t
		counts[t.GetState()]++
		if other := notes[t.GetNote()]; other != "" {
			m.notef("lost", "%s and %s are of one request", other, t.GetName())
		}
		if t.GetNote() != "" {
			notes[t.GetNote()] = t.GetName()
		}
	}
	c := s.GetTrialCounts()
	for state, n := range map[dparetov1.TrialState]int64{
		dparetov1.TrialState_TRIAL_STATE_QUEUED: c.GetQueued(), dparetov1.TrialState_TRIAL_STATE_ACTIVE: c.GetActive(),
		dparetov1.TrialState_TRIAL_STATE_STOPPING: c.GetStopping(), dparetov1.TrialState_TRIAL_STATE_SUCCEEDED: c.GetSucceeded(),
		dparetov1.TrialState_TRIAL_STATE_INFEASIBLE: c.GetInfeasible(), dparetov1.TrialState_TRIAL_STATE_FAILED: c.GetFailed(),
	} {
		if counts[state] != n {
			m.notef("counts", "%s counts %d trials that are %v, and has %d", s.GetName(), n, state, counts[state])
		}
	}
	for _, known := range slices.Sorted(maps.Keys(m.ended)) {
		name, uid, _ := strings.Cut(known, " of ")
		if !strings.HasPrefix(name, s.GetName()+"/") || !strings.HasPrefix(s.GetUid(), uid) {
			continue
		}
		if before, t := m.ended[known], stored[name]; outcome(before) != outcome(t) {
			m.notef("completion", "%s ended with %s, and has %s", name, outcome(before), outcome(t))
		} else if t.GetState() == dparetov1.TrialState_TRIAL_STATE_SUCCEEDED {
			completed++
		}
	}
	m.compareHolds(s, stored)
	for _, t := range trials {
		m.compareAttempts(s, t)
		if s.GetName() != private && t.GetState() == dparetov1.TrialState_TRIAL_STATE_SUCCEEDED {
			m.compareRun(t)
		}
	}
	for note, name := range m.created {
		if strings.HasPrefix(name, s.GetName()+"/") && notes[note] != name {
			m.notef("lost", "%s was created with the note %q, which %q has", name, note, notes[note])
		}
	}
	for name := range m.released {
		if strings.HasPrefix(name, s.GetName()+"/") && !slices.ContainsFunc(releases, func(r *dparetov1.Release) bool { return r.GetName() == name }) {
			m.notef("lost", "%s was published and is gone", name)
		}
	}
	if s.GetName() == private {
		m.compareSpent(s, stored, completed)
	}
}

// compareSpent compares what a private study says that it has spent with the hand-outs of its trials:
// each costs one run of the Gaussian mechanism with noise σ, for a Gaussian filter 1/σ².
func (m *model) compareSpent(s *dparetov1.Study, stored map[string]*dparetov1.Trial, completed int64) {
	spent := s.GetPublication().GetSpent()
	if spent.GetValues() < completed {
		m.notef("ledgers", "%s says that it keeps %d values, and has %d", s.GetName(), spent.GetValues(), completed)
	}
	least := 0.0
	for _, h := range m.holds {
		name, _, _ := strings.Cut(h.trial, " of ")
		if t := stored[name]; t != nil && h.trial == identity(t) {
			sigma := t.GetParameters()["sigma"].GetDoubleValue()
			least += 1 / (sigma * sigma)
		}
	}
	total := 0.0
	for _, cost := range spent.GetShardCosts() {
		total += cost
	}
	if total < least*(1-1e-9) {
		m.notef("ledgers", "%s says that its runs cost %v, and the hand-outs that were answered cost %v", s.GetName(), total, least)
	}
}

// compareHolds compares the hand-outs of trials, each with the one before: another holder gets the
// trial when the earlier lease has run out in true time, or was given up.
func (m *model) compareHolds(s *dparetov1.Study, stored map[string]*dparetov1.Trial) {
	byTrial := make(map[string][]*hold)
	for _, h := range m.holds {
		if strings.HasPrefix(h.trial, s.GetName()+"/") && strings.HasSuffix(h.trial, s.GetUid()[:8]) {
			byTrial[h.trial] = append(byTrial[h.trial], h)
		}
	}
	for _, known := range slices.Sorted(maps.Keys(byTrial)) {
		name, _, _ := strings.Cut(known, " of ")
		holds := byTrial[known]
		slices.SortFunc(holds, func(a, b *hold) int { return cmp.Compare(a.attempt, b.attempt) })
		if last := holds[len(holds)-1].attempt; last > stored[name].GetAttempt() {
			m.notef("lost", "%s: attempt %d was handed out, and it says %d", name, last, stored[name].GetAttempt())
		}
		for i, h := range holds[1:] {
			before := holds[i]
			if before.attempt == h.attempt {
				m.notef("leases", "%s: attempt %d was handed to %s and to %s", name, h.attempt, before.holder, h.holder)
			}
			ends := before.alive.Add(s.GetSpec().GetLease().GetDuration().AsDuration())
			if !before.gone.IsZero() && before.gone.Before(ends) {
				ends = before.gone
			}
			if before.holder != h.holder && h.answered.Before(ends) {
				m.notef("leases", "%s: attempt %d was handed to %s, %v before the lease of %s ended", name, h.attempt, h.holder, ends.Sub(h.answered), before.holder)
			}
		}
	}
}

// compareRun compares the measurements of a successful trial: they are of one run, and complete.
func (m *model) compareRun(t *dparetov1.Trial) {
	final := m.values[errorOf(t.GetFinalMeasurement())]
	if final == nil || !final.kept {
		m.notef("lost", "%s has the value %v, which was refused or never sent", t.GetName(), errorOf(t.GetFinalMeasurement()))
		return
	}
	steps := make(map[int64]float64)
	for _, measurement := range t.GetMeasurements() {
		v := m.values[errorOf(measurement)]
		steps[measurement.GetStep()] = errorOf(measurement)
		switch {
		case v == nil || !v.kept:
			m.notef("lost", "%s has the value %v, which was refused or never sent", t.GetName(), errorOf(measurement))
		case v.token != final.token:
			m.notef("runs", "%s: the measurement at step %d is of another attempt than the final one", t.GetName(), measurement.GetStep())
		}
	}
	if h := m.holds[final.token]; h != nil {
		for step, value := range h.measured {
			if steps[step] != value {
				m.notef("runs", "%s: the measurement %v at step %d of the attempt that completed it is gone", t.GetName(), value, step)
			}
		}
	}
}

// compareAttempts compares the attempts at a trial with its hand-outs: each is there once, as a past
// one or as the one that the trial shows, and has the measurements that were acknowledged.
func (m *model) compareAttempts(s *dparetov1.Study, t *dparetov1.Trial) {
	measured := make(map[int32][]*dparetov1.Measurement)
	for _, a := range t.GetPastAttempts() {
		measured[a.GetNumber()] = a.GetMeasurements()
	}
	if n := len(t.GetPastAttempts()); n != len(measured) || n > 0 && n != int(t.GetAttempt()) && n != int(t.GetAttempt())-1 {
		m.notef("attempts", "%s has %d past attempts of %d", t.GetName(), n, t.GetAttempt())
	}
	isShown := len(measured) < int(t.GetAttempt())
	if !isShown && t.GetState() == dparetov1.TrialState_TRIAL_STATE_SUCCEEDED {
		m.notef("attempts", "%s succeeded, and all of its %d attempts are past", t.GetName(), t.GetAttempt())
	}
	for number := int32(1); isShown && number <= t.GetAttempt(); number++ {
		if _, isPast := measured[number]; !isPast {
			measured[number] = t.GetMeasurements()
		}
	}
	for _, h := range m.holds {
		if s.GetName() == private || h.trial != identity(t) {
			continue
		}
		for step, value := range h.measured {
			if !slices.ContainsFunc(measured[h.attempt], func(k *dparetov1.Measurement) bool { return k.GetStep() == step && errorOf(k) == value }) {
				m.notef("attempts", "%s: the measurement %v at step %d of attempt %d is gone", t.GetName(), value, step, h.attempt)
			}
		}
	}
}

// compareLedger compares a ledger with the charges that were answered.
func (m *model) compareLedger(l *dparetov1.Ledger, charges []*dparetov1.Charge) {
	m.mu.Lock()
	defer m.mu.Unlock()
	has := make(map[string]float64)
	for _, c := range charges {
		has[c.GetResource()+c.GetStudyUid()] = c.GetGuarantee().GetEpsilon()
	}
	sum, squares := 0.0, 0.0
	charged := func(resource string, epsilon float64) {
		sum += epsilon
		squares += epsilon * epsilon
		found := false
		for key, e := range has {
			found = found || strings.HasPrefix(key, resource) && e >= epsilon
		}
		if !found {
			m.notef("ledgers", "%s has no charge of %v for %s", l.GetName(), epsilon, resource)
		}
	}
	for name, r := range m.released {
		if r.GetLedger() == l.GetName() {
			charged(name, r.GetGuarantee().GetEpsilon())
		}
	}
	for _, s := range m.privates {
		switch l.GetName() {
		case s.GetSpec().GetTestLedger():
			charged(s.GetName()+s.GetUid(), s.GetPublication().GetTest().GetEpsilon())
		case s.GetSpec().GetTrainLedger():
			charged(s.GetName()+s.GetUid(), s.GetPublication().GetTrain().GetEpsilon())
		}
	}
	// Whitehouse, Ramdas, Rogers and Wu (2023), Theorem 1, with half of δ as slack.
	least := min(sum, math.Sqrt(2*math.Log(2/l.GetDelta())*squares)+squares/2)
	if l.GetCharges() != int64(len(charges)) || l.GetSpent().GetEpsilon() < least*(1-1e-9) {
		m.notef("ledgers", "%s says that it has spent %v for %d charges; %d are there, of at least %v",
			l.GetName(), l.GetSpent().GetEpsilon(), l.GetCharges(), len(charges), least)
	}
}

// watched compares what a watcher saw of a study last with what the study has.
func (m *model) watched(study string, seen map[string]*dparetov1.Trial) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.final[study] {
		if last := seen[t.GetName()]; last.GetRevision() != t.GetRevision() || last.GetState() != t.GetState() {
			m.notef("watch", "%s is %v at revision %d; a watcher saw it last as %v at revision %d",
				t.GetName(), t.GetState(), t.GetRevision(), last.GetState(), last.GetRevision())
		}
	}
}
