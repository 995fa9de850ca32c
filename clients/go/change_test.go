package dpareto_test

import (
	"context"
	"errors"
	"iter"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dpareto "github.com/dpareto/dpareto/clients/go"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

// connect returns a client of a server with the toy study, and a function that starts the
// server again.
func connect(t *testing.T) (study *dpareto.Study, client *dpareto.Client, restart func()) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dpareto.db")
	address, stop, err := startServer("127.0.0.1:0", path)
	require.NoError(t, err)
	t.Cleanup(func() { stop() })
	if client, err = dpareto.Dial(address); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if study, err = client.CreateStudy(t.Context(), "toy", toyStudy(1000)); err != nil {
		t.Fatal(err)
	}
	return study, client, func() {
		t.Helper()
		stop()
		if _, stop, err = startServer(address, path); err != nil {
			t.Fatal(err)
		}
	}
}

// complete asks for a trial and completes it.
func complete(t *testing.T, study *dpareto.Study, loss float64) *dpareto.Trial {
	t.Helper()
	trial, err := study.Ask(t.Context(), "w")
	if err == nil {
		err = trial.Complete(t.Context(), dpareto.Metrics{"error": {loss}})
	}
	require.NoError(t, err)
	return trial
}

func TestChangeStudy(t *testing.T) {
	study, _, _ := connect(t)
	ctx := t.Context()
	before, err := study.Get(ctx)
	require.NoError(t, err)
	change := &dparetov1.Study{Description: "new", Etag: before.GetEtag(), Spec: &dparetov1.StudySpec{Budget: &dparetov1.Budget{MaxTrials: 7}}}
	after, err := study.Update(ctx, change, "description", "spec.budget.max_trials")
	if err != nil || after.GetDescription() != "new" || after.GetSpec().GetBudget().GetMaxTrials() != 7 || after.GetEtag() == before.GetEtag() {
		t.Errorf("%v, %v", after, err)
	}
	if change.GetName() != "" {
		t.Errorf("the caller's message is of %s now", change.GetName())
	}
	if _, err := study.Update(ctx, change, "description"); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "etag") {
		t.Errorf("with the etag from before: %v", err)
	}
	if _, err := study.Update(ctx, &dparetov1.Study{}, "seed"); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "update_mask") {
		t.Errorf("a field that cannot change: %v", err)
	}
	for range 2 {
		if s, err := study.Pause(ctx); err != nil || s.GetState() != dparetov1.StudyState_STUDY_STATE_PAUSED {
			t.Errorf("paused: %v, %v", s, err)
		}
	}
	for range 2 {
		if s, err := study.Resume(ctx); err != nil || s.GetState() != dparetov1.StudyState_STUDY_STATE_ACTIVE {
			t.Errorf("resumed: %v, %v", s, err)
		}
	}
	if err := study.Delete(ctx); err != nil {
		t.Error(err)
	}
	for action, call := range map[string]func() error{
		"update": func() error { _, err := study.Update(ctx, change, "description"); return err },
		"pause":  func() error { _, err := study.Pause(ctx); return err },
		"resume": func() error { _, err := study.Resume(ctx); return err },
		"delete": func() error { return study.Delete(ctx) },
	} {
		if err := call(); status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), action+" studies/toy") {
			t.Errorf("%s of no study: %v", action, err)
		}
	}
}

func TestChangeTrial(t *testing.T) {
	study, _, _ := connect(t)
	ctx := t.Context()
	complete(t, study, 0.5)
	trial, err := study.UpdateTrial(ctx, 1, &dparetov1.Trial{Note: "odd", Labels: map[string]string{"gpu": "a"}}, "note", "labels")
	if err != nil || trial.GetNote() != "odd" || trial.GetLabels()["gpu"] != "a" || trial.GetState() != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED {
		t.Errorf("%v, %v", trial, err)
	}
	if _, err := study.UpdateTrial(ctx, 1, &dparetov1.Trial{}, "state"); status.Code(err) != codes.InvalidArgument {
		t.Errorf("another state: %v", err)
	}
	if _, err := study.StopTrial(ctx, 1, "enough"); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("stop what has ended: %v", err)
	}
	held, err := study.Ask(ctx, "w")
	require.NoError(t, err)
	if trial, err := study.StopTrial(ctx, held.Number(), "enough"); err != nil || trial.GetState() != dparetov1.TrialState_TRIAL_STATE_STOPPING || trial.GetStateReason() != "enough" {
		t.Errorf("%v, %v", trial, err)
	}
	if err := study.DeleteTrial(ctx, held.Number()); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("delete what a worker holds: %v", err)
	}
	if err := study.DeleteTrial(ctx, 1); err != nil {
		t.Error(err)
	}
	if _, err := study.Trial(ctx, 1); status.Code(err) != codes.NotFound {
		t.Errorf("read what was deleted: %v", err)
	}
}

func TestFindStudies(t *testing.T) {
	_, client, _ := connect(t)
	ctx := t.Context()
	require.NoError(t, require.ErrOf(client.CreateStudy(ctx, "another", toyStudy(1))))
	var names []string
	for study, err := range client.FindStudies(ctx, dpareto.Query{Filter: "name:o", OrderBy: "name desc"}) {
		require.NoError(t, err)
		names = append(names, study.GetName())
	}
	if d := cmp.Diff([]string{"studies/toy", "studies/another"}, names); d != "" {
		t.Error(d)
	}
	for _, err := range client.FindStudies(ctx, dpareto.Query{Filter: "name ="}) {
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "list the studies") {
			t.Errorf("error %v", err)
		}
	}
}

// Lists come whole, however many pages they have, and changes from one list to the next
// are complete.
func TestFindTrials(t *testing.T) {
	study, _, _ := connect(t)
	ctx := t.Context()
	const trials = 150 // more than a page
	for i := range trials {
		complete(t, study, float64(i+1)/(2*trials))
	}
	numbers := func(found iter.Seq2[*dparetov1.Trial, error]) (numbers []int64) {
		t.Helper()
		for trial, err := range found {
			require.NoError(t, err)
			numbers = append(numbers, trial.GetNumber())
		}
		return numbers
	}
	if n := numbers(study.Trials(ctx)); len(n) != trials {
		t.Errorf("%d trials", len(n))
	}
	if n := numbers(study.FindTrials(ctx, dpareto.Query{Filter: "metrics.error <= 0.01", OrderBy: "metrics.error desc"})); !cmp.Equal(n, []int64{3, 2, 1}) {
		t.Errorf("trials %v", n)
	}
	all, err := study.Changes(ctx, 0, "")
	if err != nil || len(all.Trials) != trials {
		t.Fatalf("%d trials, %v", len(all.Trials), err)
	}
	require.NoError(t, study.DeleteTrial(ctx, 5))
	complete(t, study, 0.9)
	complete(t, study, 0.1)
	changes, err := study.Changes(ctx, all.Revision, "metrics.error < 0.5")
	if err != nil || len(changes.Trials) != 1 || changes.Trials[0].GetNumber() != trials+2 || !cmp.Equal(changes.Deleted, []string{"studies/toy/trials/5"}) {
		t.Errorf("%v, %v", changes, err)
	}
	if _, err := study.Changes(ctx, changes.Revision+1, ""); status.Code(err) != codes.OutOfRange {
		t.Errorf("changes after what was not: %v", err)
	}
}

// A watch goes on over restarts of the server, tells every change once, and does not take
// another study for the one that was deleted.
func TestWatch(t *testing.T) {
	study, client, restart := connect(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	next, stop := iter.Pull2(study.Watch(ctx, 0))
	defer stop()
	change, err, _ := next()
	if err != nil || change.GetStudy().GetName() != study.Name() {
		t.Fatalf("%v, %v", change, err)
	}
	for i := range int64(3) {
		restart()
		complete(t, study, 0.5)
		last := change.GetRevision()
		change, err, _ = next()
		if err != nil || change.GetTrial().GetNumber() != i+1 || change.GetTrial().GetState() != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED || change.GetRevision() <= last {
			t.Fatalf("%v, %v", change, err)
		}
	}
	fromThere, stopFromThere := iter.Pull2(study.Watch(ctx, change.GetRevision()))
	defer stopFromThere()
	require.NoError(t, study.DeleteTrial(ctx, 2))
	for _, next := range []func() (*dparetov1.WatchStudyResponse, error, bool){next, fromThere} {
		if deletion, err, _ := next(); err != nil || deletion.GetDeletedTrial() != "studies/toy/trials/2" {
			t.Errorf("%v, %v", deletion, err)
		}
	}
	for _, err := range study.Watch(ctx, change.GetRevision()+100) {
		if status.Code(err) != codes.OutOfRange {
			t.Errorf("from a revision that was not: %v", err)
		}
	}
	cancelled, giveUp := context.WithCancel(ctx)
	defer giveUp()
	for _, err := range study.Watch(cancelled, 0) {
		giveUp()
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("given up: %v", err)
		}
	}

	require.NoError(t, study.Delete(ctx))
	require.NoError(t, require.ErrOf(client.CreateStudy(ctx, "toy", toyStudy(1))))
	for _, next := range []func() (*dparetov1.WatchStudyResponse, error, bool){next, fromThere} {
		if _, err, _ := next(); status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), "watch studies/toy") {
			t.Errorf("of a deleted study: %v", err)
		}
		if _, _, ok := next(); ok {
			t.Error("the sequence goes on after an error")
		}
	}
}
