package server_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// One ledger cannot be that of both the test and the training records: a study has one
// charge for each.
func TestOneLedgerForBoth(t *testing.T) {
	f := start(t)
	for id, records := range map[string]int64{"private": 10_000, "search": 50} {
		if _, err := f.releases().CreateLedger(t.Context(), &dparetov1.CreateLedgerRequest{LedgerId: id, Ledger: &dparetov1.Ledger{
			Records: records, Epsilon: 100, Delta: 1e-3, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
		}}); err != nil {
			t.Fatal(err)
		}
	}
	for id, spec := range map[string]*dparetov1.StudySpec{"private": privateSpec(4, 0.5), "search": single(noisySpec(), "0.25")} {
		spec.TestLedger, spec.TrainLedger = "ledgers/"+id, "ledgers/"+id
		_, err := f.studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: id, Study: &dparetov1.Study{Spec: spec}})
		wantCode(t, err, codes.InvalidArgument, "study.spec.train_ledger")
	}
}

// What an imported study with random stopping says of its guarantees must follow from its
// spec: it is what the ledgers are charged.
func TestImportedPublicationOfRandomStopping(t *testing.T) {
	t.Parallel()
	f := start(t)
	study := f.create("search", single(noisySpec(), "0.25"))
	text := lines(t, f.export(study))
	for field, change := range map[string]func(*dparetov1.Publication){
		"test":    func(p *dparetov1.Publication) { p.Test.Epsilon /= 10 },
		"test.":   func(p *dparetov1.Publication) { p.Test.Delta = 0 },
		"test..":  func(p *dparetov1.Publication) { p.Test = nil },
		"test...": func(p *dparetov1.Publication) { p.Test.Adjacency = dparetov1.Adjacency_ADJACENCY_ADD_REMOVE },
		"train":   func(p *dparetov1.Publication) { p.Train.Adjacency = dparetov1.Adjacency_ADJACENCY_ADD_REMOVE },
		"train.":  func(p *dparetov1.Publication) { p.Train = nil },
		"":        func(p *dparetov1.Publication) { p.Assumptions = []string{strings.Repeat("a", 1<<20)} },
		".":       func(p *dparetov1.Publication) { p.NotCovered = make([]string, 100_000) },
		"..":      func(p *dparetov1.Publication) { p.Spent = new(dparetov1.PrivateModeOdometers) },
	} {
		records := parse(t, text)
		change(records[0].GetStudy().GetStudy().GetPublication())
		want := strings.TrimRight("record.study.study.publication."+field, ".")
		if _, err := start(t).importRecords(records); !slices.Contains(violated(err), want) {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := start(t).importRecords(parse(t, text)); err != nil {
		t.Error(err)
	}
}

// An import that leaves out trials of a study with random stopping, or has some that it would
// not have drawn, is refused: the best would be that of others than the guarantee is about.
func TestImportedTrialsOfRandomStopping(t *testing.T) {
	f := start(t)
	study := f.create("search", searchSpec(10, 1))
	records := f.export(study)
	records[0].GetStudy().GetRandomStopping().Trials = 3
	if _, err := f.studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: study}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.importRecords(records); err != nil {
		t.Fatal(err)
	}
	f.runAll(study, func(*dparetov1.Trial) float64 { return 0.5 })
	text := lines(t, f.export(study))
	without := parse(t, text)
	without[0].GetStudy().GetStudy().GetTrialCounts().Succeeded--
	_, err := start(t).importRecords(slices.Delete(without, 1, 2))
	wantCode(t, err, codes.InvalidArgument, "record.study.next_trial_number")
	cheap := parse(t, text)
	for i := range cheap[0].GetStudy().GetRandomStopping().GetListed() {
		cheap[0].GetStudy().GetRandomStopping().Listed[i] = 100
	}
	cheap[0].GetStudy().GetStudy().Publication.Train.Epsilon = 100
	_, err = start(t).importRecords(cheap)
	wantCode(t, err, codes.InvalidArgument, "record.trial.trial.parameters")
}

// A trial that was measured was handed out, and paid.
func TestImportOfUnpaidTrial(t *testing.T) {
	f := start(t)
	study := f.create("s", privateSpec(4, 5))
	f.tell(f.one(study, "w"), 0.25)
	records := f.export(study)
	trial := records[1].GetTrial()
	trial.Trial.Attempt, trial.Trial.TrainingShard, trial.LeaseTokens, trial.PrivateMode = 0, 0, nil, nil
	trial.CompletionToken, trial.CompletionDigest = "", nil
	mode := records[0].GetStudy().GetPrivateMode()
	mode.ShardCosts, mode.Values, mode.StartedTrials = []float64{0}, 0, 0
	_, err := start(t).importRecords(records)
	wantCode(t, err, codes.InvalidArgument, "record.trial.private_mode")
}

// A study whose publication was paid once is not taken back to an earlier state: what it
// published since would be paid by nobody.
func TestEarlierStateIsNotImported(t *testing.T) {
	f := start(t)
	for id, spec := range map[string]*dparetov1.StudySpec{"private": privateSpec(4, 5), "search": searchSpec(10, 1)} {
		study := f.create(id, spec)
		earlier := f.export(study)
		f.tell(f.one(study, "w"), 0.25)
		later := f.export(study)
		remove := func() {
			t.Helper()
			if _, err := f.studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: study}); err != nil {
				t.Fatal(err)
			}
		}
		remove()
		for range 2 {
			_, err := f.importRecords(earlier)
			wantCode(t, err, codes.FailedPrecondition, "an earlier state")
			f.restart()
		}
		if _, err := f.importRecords(later); err != nil {
			t.Fatal(err)
		}
		remove()
		if _, err := f.importRecords(later); err != nil {
			t.Fatal(err)
		}
	}
}
