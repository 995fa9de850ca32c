package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// clockMargin is by how much an overlap of two leases must exceed the truth to be told:
// clocks are corrected now and then.
const clockMargin = 200 * time.Millisecond

// memory is what the workers of a test were told by the server and what they asked of it,
// kept independently of the server. It is compared with what the server says at the end.
type memory struct {
	lease time.Duration // of all studies

	mu      sync.Mutex
	trials  map[string]*remembered // by resource name
	notes   map[string]string      // of acknowledged CreateTrial calls: the trial's name by its note
	counts  *tally                 // of acknowledged calls
	faults  []string
	reports int // faults found, also those that are not kept
}

// remembered is what is known of one trial.
type remembered struct {
	parameters map[string]*dparetov1.Value // as they were handed out
	holds      []*hold
	values     map[float64]bool // that were sent for it, acknowledged or not
	reasons    map[string]bool  // likewise
	ended      *dparetov1.Trial // the first acknowledged end; nil before
}

// hold is one hand-out of a trial that a worker was told of.
type hold struct {
	worker   string
	token    string
	attempt  int32
	answered time.Time // when the worker knew of it
	renewed  time.Time // when it sent what the server last took as a sign of life
	gone     time.Time // when it first sent anything that ends the hold; zero before

	measured map[int64]float64 // what was acknowledged, by step
}

// tally counts acknowledged calls, by what they did. Tests that kill servers go by it and not by time, so that every
// life of a server shows as much on a slow machine.
type tally struct {
	mu    sync.Mutex
	calls map[string]int
	grown chan struct{} // closed and replaced at every call
}

func newTally() *tally { return &tally{calls: make(map[string]int), grown: make(chan struct{})} }

// add counts a call.
func (c *tally) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[what]++
	close(c.grown)
	c.grown = make(chan struct{})
}

// read returns the counts, and a channel that is closed when they have grown.
func (c *tally) read() (calls map[string]int, grown <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.calls), c.grown
}

// await waits until each of some calls was made so many times more. It fails the test if a server ends by itself.
func (c *tally) await(t *testing.T, more int, servers []*server, calls ...string) {
	t.Helper()
	before, _ := c.read()
	for {
		now, grown := c.read()
		if !slices.ContainsFunc(calls, func(what string) bool { return now[what] < before[what]+more }) {
			break
		}
		select {
		case <-grown:
		case <-time.After(patience):
			t.Fatalf("no call is acknowledged any more after %v", now)
		}
	}
	for _, srv := range servers {
		select {
		case <-srv.ended:
			t.Fatal("a server has ended by itself")
		default:
		}
	}
}

// kinds are the calls without which a test shows too little.
var kinds = []string{"suggest", "measure", "renew", "create", "complete", "release", "infeasible", "fail", "retryable"}

func newMemory(lease time.Duration) *memory {
	return &memory{lease: lease, trials: make(map[string]*remembered), notes: make(map[string]string), counts: newTally()}
}

// faultf notes that a promise was broken.
func (m *memory) faultf(format string, args ...any) {
	m.reports++
	if len(m.faults) < 20 {
		m.faults = append(m.faults, fmt.Sprintf(format, args...))
	}
}

// trial returns what is known of a trial. The caller holds the lock.
func (m *memory) trial(name string) *remembered {
	if m.trials[name] == nil {
		m.trials[name] = &remembered{values: make(map[float64]bool), reasons: make(map[string]bool)}
	}
	return m.trials[name]
}

// handedOut notes that a worker asked and was given a trial.
func (m *memory) handedOut(worker string, trial *dparetov1.Trial, asked, answered time.Time) *hold {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts.add("suggest")
	r := m.trial(trial.GetName())
	if r.parameters == nil {
		r.parameters = trial.GetParameters()
	}
	h := &hold{
		worker: worker, token: trial.GetLease().GetToken(), attempt: trial.GetAttempt(),
		answered: answered, renewed: asked, measured: make(map[int64]float64),
	}
	r.holds = append(r.holds, h)
	return h
}

// alive notes that the server took a message that was sent then for a sign of life.
func (m *memory) alive(h *hold, sent time.Time, what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts.add(what)
	if sent.After(h.renewed) {
		h.renewed = sent
	}
}

// sends notes that a worker is about to send a value or a reason, which may become the
// trial's whether or not it is acknowledged; ends tells that it ends the hold.
func (m *memory) sends(name string, h *hold, value float64, reason string, ends bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.trial(name)
	if reason == "" {
		r.values[value] = true
	} else {
		r.reasons[reason] = true
	}
	if ends && h != nil && h.gone.IsZero() {
		h.gone = time.Now()
	}
}

// measured notes an acknowledged measurement.
func (m *memory) measured(h *hold, step int64, value float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h.measured[step] = value
}

// ended notes an acknowledged end of a trial, as the server described it.
func (m *memory) ended(trial *dparetov1.Trial, what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts.add(what)
	r := m.trial(trial.GetName())
	switch {
	case trial.GetEndTime() == nil: // it is queued again
	case r.ended == nil:
		r.ended = trial
	case outcome(r.ended) != outcome(trial):
		m.faultf("%s ended with %s and later with %s", trial.GetName(), outcome(r.ended), outcome(trial))
	}
}

// refused notes that the server refused a worker's word on its trial. A worker whose lease
// cannot have run out is refused only if another one ended the trial.
func (m *memory) refused(name string, h *hold, answered time.Time, why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts.add("refused")
	if !h.gone.IsZero() || !answered.Add(clockMargin).Before(h.renewed.Add(m.lease)) {
		return
	}
	for _, other := range m.trial(name).holds {
		if other != h && (!other.gone.IsZero() || other.worker == h.worker) {
			return
		}
	}
	if len(m.trial(name).reasons) == 0 {
		m.faultf("%s: attempt %d was refused under a lease that lasts: %v", name, h.attempt, why)
	}
}

// created notes an acknowledged CreateTrial.
func (m *memory) created(trial *dparetov1.Trial) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts.add("create")
	m.notes[trial.GetNote()] = trial.GetName()
	m.trial(trial.GetName()).parameters = trial.GetParameters()
}

// outcome describes how a trial ended.
func outcome(trial *dparetov1.Trial) string {
	return fmt.Sprintf("%v %q %v", trial.GetState(), trial.GetStateReason(), finalError(trial))
}

// finalError returns the one value that a trial's final measurement has.
func finalError(trial *dparetov1.Trial) float64 {
	if runs := trial.GetFinalMeasurement().GetMetrics()["error"].GetRuns(); len(runs) > 0 {
		return runs[0]
	}
	return -1
}

// compare compares all trials that a server has with what is remembered, and returns every
// fault.
func (m *memory) compare(trials []*dparetov1.Trial) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	stored := make(map[string]*dparetov1.Trial, len(trials))
	notes := make(map[string]string)
	for _, trial := range trials {
		if stored[trial.GetName()] != nil {
			m.faultf("%s exists twice", trial.GetName())
		}
		stored[trial.GetName()] = trial
		if note := trial.GetNote(); note != "" {
			if other, ok := notes[note]; ok && m.notes[note] != "" {
				m.faultf("%s and %s are of one request", other, trial.GetName())
			}
			notes[note] = trial.GetName()
		}
	}
	for note, name := range m.notes {
		if stored[name].GetNote() != note {
			m.faultf("%s was created with the note %q and has %q", name, note, stored[name].GetNote())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.trials)) {
		trial := stored[name]
		if trial == nil {
			m.faultf("%s is gone", name)
			continue
		}
		m.compareTrial(trial, m.trials[name])
	}
	if m.reports > len(m.faults) {
		return append(m.faults, fmt.Sprintf("and %d more", m.reports-len(m.faults)))
	}
	return m.faults
}

// compareTrial compares one trial.
func (m *memory) compareTrial(trial *dparetov1.Trial, r *remembered) {
	name := trial.GetName()
	for id, value := range r.parameters {
		if !proto.Equal(trial.GetParameters()[id], value) {
			m.faultf("%s: parameter %s was %v and is %v", name, id, value, trial.GetParameters()[id])
		}
	}
	if r.ended != nil && outcome(r.ended) != outcome(trial) {
		m.faultf("%s ended with %s and has %s", name, outcome(r.ended), outcome(trial))
	}
	switch trial.GetState() {
	case dparetov1.TrialState_TRIAL_STATE_SUCCEEDED:
		if !r.values[finalError(trial)] {
			m.faultf("%s has the value %g, which no call sent", name, finalError(trial))
		}
	case dparetov1.TrialState_TRIAL_STATE_INFEASIBLE, dparetov1.TrialState_TRIAL_STATE_FAILED:
		if !r.reasons[trial.GetStateReason()] && !strings.HasSuffix(trial.GetStateReason(), "times without a result") {
			m.faultf("%s is %v because of %q, which no call sent", name, trial.GetState(), trial.GetStateReason())
		}
	default:
		m.faultf("%s is still %v", name, trial.GetState())
	}
	m.compareHolds(trial, r)
}

// compareHolds compares the hand-outs of one trial, with the trial and among each other.
func (m *memory) compareHolds(trial *dparetov1.Trial, r *remembered) {
	name := trial.GetName()
	slices.SortStableFunc(r.holds, func(a, b *hold) int { return int(a.attempt - b.attempt) })
	tokens := make(map[string]bool)
	for i, h := range r.holds {
		if tokens[h.token] {
			m.faultf("%s: the token of attempt %d was used before", name, h.attempt)
		}
		tokens[h.token] = true
		if h.attempt > trial.GetAttempt() {
			m.faultf("%s: attempt %d was handed out, the trial says %d", name, h.attempt, trial.GetAttempt())
		}
		for _, earlier := range r.holds[:i] {
			if earlier.attempt == h.attempt {
				m.faultf("%s: attempt %d was handed out to %s and to %s", name, h.attempt, earlier.worker, h.worker)
			}
			// The earlier lease lasted at least until then, unless it was ended before.
			until := earlier.renewed.Add(m.lease)
			if !earlier.gone.IsZero() && earlier.gone.Before(until) {
				until = earlier.gone
			}
			if earlier.worker != h.worker && h.answered.Add(clockMargin).Before(until) {
				m.faultf("%s: attempt %d was handed to %s while %s held attempt %d for another %v",
					name, h.attempt, h.worker, earlier.worker, earlier.attempt, until.Sub(h.answered))
			}
		}
		measurements := measuredBy(trial, h.attempt)
		for step, value := range h.measured {
			i, found := slices.BinarySearchFunc(measurements, step, func(m *dparetov1.Measurement, step int64) int { return int(m.GetStep() - step) })
			if !found || measurements[i].GetMetrics()["error"].GetRuns()[0] != value {
				m.faultf("%s: the measurement %g of attempt %d at step %d is not there", name, value, h.attempt, step)
			}
		}
	}
}

// measuredBy returns the measurements of an attempt: those that the trial shows, unless it is a past one.
func measuredBy(trial *dparetov1.Trial, attempt int32) []*dparetov1.Measurement {
	for _, past := range trial.GetPastAttempts() {
		if past.GetNumber() == attempt {
			return past.GetMeasurements()
		}
	}
	return trial.GetMeasurements()
}
