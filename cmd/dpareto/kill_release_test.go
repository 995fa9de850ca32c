package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	dpareto "github.com/dpareto/dpareto/clients/go"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// The server is killed at random moments while many ask for releases. Every one that was
// handed out is charged, and its id gives it again.
func TestKilledWhileReleasing(t *testing.T) {
	const kills, workers = 5, 8
	storeFile := filepath.Join(t.TempDir(), "studies.db")
	srv := serve(t, storeFile, "127.0.0.1:0")
	client, err := dpareto.Dial(srv.address)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_, err = client.Releases.CreateLedger(t.Context(), &dparetov1.CreateLedgerRequest{LedgerId: "l", Ledger: &dparetov1.Ledger{
		Records: 10, Epsilon: 1000, Delta: 1e-3, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
	}})
	if err != nil {
		t.Fatal(err)
	}
	request := func(id string) *dparetov1.SelectPrivatelyRequest {
		return &dparetov1.SelectPrivatelyRequest{Utilities: make([]float64, 100), Sensitivity: 1, Epsilon: 0.1, Ledger: "ledgers/l", RequestId: id}
	}
	var mu sync.Mutex
	handedOut := make(map[string]*dparetov1.Release)
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	for w := range workers {
		working.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				id := fmt.Sprintf("%d-%d", w, n)
				resp, err := client.Releases.SelectPrivately(ctx, request(id)) // repeated until it is answered
				if err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				mu.Lock()
				handedOut[id] = resp.GetRelease()
				mu.Unlock()
			}
		})
	}
	random := rand.New(rand.NewPCG(*killSeed, 7))
	for range kills {
		timer := time.NewTimer(200*time.Millisecond + time.Duration(random.Int64N(int64(400*time.Millisecond))))
		select {
		case <-timer.C:
		case <-srv.ended:
			t.Fatal("the server has ended by itself")
		}
		srv.signal(syscall.SIGKILL)
		checkStore(t, storeFile)
		srv = serve(t, storeFile, srv.address)
	}
	timer := time.NewTimer(500 * time.Millisecond)
	<-timer.C
	cancel()
	working.Wait()

	charged := make(map[string]bool)
	for token := ""; ; {
		resp, err := client.Releases.ListCharges(t.Context(), &dparetov1.ListChargesRequest{Parent: "ledgers/l", PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range resp.GetCharges() {
			charged[c.GetResource()] = true
		}
		if token = resp.GetNextPageToken(); token == "" {
			break
		}
	}
	for id, release := range handedOut {
		if !charged[release.GetName()] {
			t.Errorf("%s was handed out and not charged", release.GetName())
		}
		again, err := client.Releases.SelectPrivately(t.Context(), request(id))
		if err != nil || !proto.Equal(again.GetRelease(), release) {
			t.Errorf("%s gave %v, and now %v, %v", id, release, again.GetRelease(), err)
		}
	}
	if len(handedOut) < workers*kills {
		t.Errorf("%d releases under %d kills: the test shows little", len(handedOut), kills)
	}
	t.Logf("%d kills, %d releases, %d charges", kills, len(handedOut), len(charged))
	srv.signal(syscall.SIGTERM)
	checkStore(t, storeFile)
}
