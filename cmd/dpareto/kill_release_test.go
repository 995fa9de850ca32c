package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"google.golang.org/protobuf/proto"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/linearizability"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

// The server is killed at random moments while many ask for releases and others work on a private
// study. Every release that was handed out is charged, and its id gives it again; what the private
// study answered is kept, and counted.
func TestKilledWhileReleasing(t *testing.T) { killWhileReleasing(t, 5) }

// publishers ask for releases and work on a private study, and remember what they got.
type publishers struct {
	t       *testing.T
	client  *dpareto.Client
	private *dpareto.Study
	working sync.WaitGroup
	counts  *tally

	mu        sync.Mutex
	handedOut map[string]*dparetov1.Release // by the id of the request
	kept      map[string]*dparetov1.Trial   // completed ones of the private study, by name
}

// killWhileReleasing kills a server so many times, and compares in the end what it has with what it
// said.
func killWhileReleasing(t *testing.T, kills int) {
	t.Helper()
	const workers = 8
	storeFile := filepath.Join(t.TempDir(), "studies.db")
	srv := serve(t, storeFile, "127.0.0.1:0")
	history := linearizability.NewHistory()
	client, err := dpareto.Dial(srv.address, history.Listen())
	require.NoError(t, err)
	defer client.Close()
	for _, id := range []string{"l", "train"} {
		_, err = client.Releases.CreateLedger(t.Context(), &dparetov1.CreateLedgerRequest{LedgerId: id, Ledger: &dparetov1.Ledger{
			Records: privateRecords, Epsilon: 1e6, Delta: 1e-3, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
		}})
		require.NoError(t, err)
	}
	private, err := client.CreateStudy(t.Context(), "private", &dparetov1.Study{Spec: privateSpec()})
	require.NoError(t, err)
	p := &publishers{
		t: t, client: client, private: private, counts: newTally(),
		handedOut: make(map[string]*dparetov1.Release), kept: make(map[string]*dparetov1.Trial),
	}
	ctx, cancel := context.WithCancel(t.Context())
	for w := range workers {
		p.repeat(ctx, func(n int) error { return p.release(ctx, w, n) })
		p.repeat(ctx, func(n int) error { return p.work(ctx, w, n) })
	}
	random := rand.New(rand.NewPCG(*killSeed, 7))
	for range kills {
		p.counts.await(t, workers+random.IntN(10*workers), []*server{srv}, "release")
		p.counts.await(t, 1, []*server{srv}, "complete")
		srv.signal(syscall.SIGKILL)
		checkStore(t, storeFile)
		srv = serve(t, storeFile, srv.address)
	}
	p.counts.await(t, 1, []*server{srv}, "release", "complete")
	cancel()
	p.working.Wait()

	charged := p.compareReleases()
	p.compareTrials()
	history.CheckLedger(t, "ledgers/l", charged)
	history.Check(t)
	t.Logf("%d kills, %d releases, %d charges, %d private trials", kills, len(p.handedOut), len(charged), len(p.kept))
	srv.signal(syscall.SIGTERM)
	checkStore(t, storeFile)
}

// repeat calls fn with rising numbers until ctx ends.
func (p *publishers) repeat(ctx context.Context, fn func(int) error) {
	p.working.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			if err := fn(n); err != nil {
				if ctx.Err() == nil {
					p.t.Error(err)
				}
				return
			}
		}
	})
}

// selection returns the request for a release.
func selection(id string) *dparetov1.SelectPrivatelyRequest {
	return &dparetov1.SelectPrivatelyRequest{Utilities: make([]float64, 100), Sensitivity: 1, Epsilon: 0.1, Ledger: "ledgers/l", RequestId: id}
}

// release asks for a release until it is answered, and now and then reads the ledger.
func (p *publishers) release(ctx context.Context, worker, n int) error {
	id := fmt.Sprintf("%d-%d", worker, n)
	resp, err := p.client.Releases.SelectPrivately(ctx, selection(id))
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.handedOut[id] = resp.GetRelease()
	p.mu.Unlock()
	p.counts.add("release")
	if n%5 == 0 {
		_, err = p.client.Releases.GetLedger(ctx, &dparetov1.GetLedgerRequest{Name: "ledgers/l"})
	}
	return err
}

// work runs one trial of the private study.
func (p *publishers) work(ctx context.Context, worker, n int) error {
	trial, err := p.private.Ask(ctx, fmt.Sprintf("worker-%d", worker))
	if err != nil {
		return err
	}
	resp, err := p.client.Studies.CompleteTrial(ctx, &dparetov1.CompleteTrialRequest{
		Name: trial.Name(), LeaseToken: trial.Message().GetLease().GetToken(),
		Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: dpareto.Metrics{"error": {float64(n%10) / 10}}.Measurement(0, 0)},
	})
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.kept[trial.Name()] = resp.GetTrial()
	p.mu.Unlock()
	p.counts.add("complete")
	_, err = p.client.Studies.GetTrial(ctx, &dparetov1.GetTrialRequest{Name: trial.Name()})
	return err
}

// compareReleases compares the charges, whose resources it returns, and repeated requests with the
// releases that were handed out.
func (p *publishers) compareReleases() (charged map[string]bool) {
	charged = make(map[string]bool)
	for token := ""; ; {
		resp, err := p.client.Releases.ListCharges(p.t.Context(), &dparetov1.ListChargesRequest{Parent: "ledgers/l", PageToken: token})
		require.NoError(p.t, err)
		for _, c := range resp.GetCharges() {
			charged[c.GetResource()] = true
		}
		if token = resp.GetNextPageToken(); token == "" {
			break
		}
	}
	for id, release := range p.handedOut {
		if !charged[release.GetName()] {
			p.t.Errorf("%s was handed out and not charged", release.GetName())
		}
		again, err := p.client.Releases.SelectPrivately(p.t.Context(), selection(id))
		if err != nil || !proto.Equal(again.GetRelease(), release) {
			p.t.Errorf("%s gave %v, and now %v, %v", id, release, again.GetRelease(), err)
		}
	}
	return charged
}

// compareTrials compares what the private study has with what it answered: the same noise, and all of
// it counted.
func (p *publishers) compareTrials() {
	stored := make(map[string]*dparetov1.Trial)
	for _, trial := range trialsOf(p.t, p.private) {
		stored[trial.GetName()] = trial
	}
	for name, trial := range p.kept {
		if !proto.Equal(stored[name].GetFinalMeasurement(), trial.GetFinalMeasurement()) {
			p.t.Errorf("%s completed with %v, and has %v", name, trial.GetFinalMeasurement(), stored[name].GetFinalMeasurement())
		}
	}
	got, err := p.private.Get(p.t.Context())
	require.NoError(p.t, err)
	if spent := got.GetPublication().GetSpent().GetValues(); spent < int64(len(p.kept)) {
		p.t.Errorf("%d values are counted, and %d were kept", spent, len(p.kept))
	}
}

// privateRecords is the number of records of the ledgers.
const privateRecords = 10_000

// privateSpec returns a study with private_mode whose budgets outlast a test.
func privateSpec() *dparetov1.StudySpec {
	reference, worst := 10.0, 1.0
	return &dparetov1.StudySpec{
		Parameters: []*dparetov1.ParameterSpec{{
			Id: "sigma", Scale: dparetov1.Scale_SCALE_LOG,
			Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Min: 1, Max: 32}},
		}},
		Metrics: []*dparetov1.MetricSpec{
			{
				Id: "epsilon", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE,
				Transform: dparetov1.Transform_TRANSFORM_LOG, ReferenceValue: &reference,
				Source: &dparetov1.MetricSpec_Computed{Computed: &dparetov1.ComputedSource{Function: &dparetov1.ComputedSource_Privacy{Privacy: &dparetov1.PrivacySpec{
					Mechanism: &dparetov1.PrivacySpec_Gaussian{Gaussian: &dparetov1.GaussianMechanism{Sensitivity: "1", StandardDeviation: "sigma"}},
					Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE, Delta: 1e-6,
				}}}},
			},
			{
				Id: "error", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE,
				Transform: dparetov1.Transform_TRANSFORM_LOGIT, ReferenceValue: &worst,
				Source: &dparetov1.MetricSpec_Reported{Reported: new(dparetov1.ReportedSource)},
			},
		},
		Algorithm:   &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_RANDOM},
		Budget:      &dparetov1.Budget{MaxTrials: 100_000},
		PrivateMode: &dparetov1.PrivateModeSpec{TestSetSize: privateRecords, TestEpsilon: 1e4, TrainEpsilon: 1e5, Delta: 1e-6},
		TestLedger:  "ledgers/l", TrainLedger: "ledgers/train",
	}
}
