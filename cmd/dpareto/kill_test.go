package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/linearizability"
	"github.com/dpareto/dpareto/cmd/internal/studyfile"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

// killSeed is the seed of when the server is killed and of what workers do.
var killSeed = flag.Uint64("kill-seed", 1, "seed of the tests that kill the server under load")

// The server is killed at random moments under the load of many workers, a few times
// here and often in TestKilledOften.
func TestKilledUnderLoad(t *testing.T) { killUnderLoad(t, 8, 32, 100) }

// killUnderLoad kills a server so many times, each time after a random number of completed trials of this mean, and
// compares in the end what it has with what the workers remember.
func killUnderLoad(t *testing.T, kills, workers, mean int) {
	t.Helper()
	const lease = 2 * time.Second
	storeFile := filepath.Join(t.TempDir(), "studies.db")
	srv := serve(t, storeFile, "127.0.0.1:0")
	client, err := dpareto.Dial(srv.address)
	require.NoError(t, err)
	defer client.Close()
	// One whose suggestions are drawn in a transaction, one whose are not.
	ids := []string{"drawn", "learned"}
	for i, algorithm := range []dparetov1.Algorithm{dparetov1.Algorithm_ALGORITHM_RANDOM, dparetov1.Algorithm_ALGORITHM_NSGA2} {
		require.NoError(t, require.ErrOf(client.CreateStudy(t.Context(), ids[i], killedStudy(t, algorithm, lease))))
	}

	random := rand.New(rand.NewPCG(*killSeed, 0))
	c := &crowd{
		t: t, memory: newMemory(lease), history: linearizability.NewHistory(), studies: ids,
		dial: func(options ...dpareto.Option) (*dpareto.Client, error) { return dpareto.Dial(srv.address, options...) },
	}
	ctx, cancel := context.WithCancel(t.Context())
	c.start(ctx, workers, *killSeed)
	for range kills {
		c.memory.counts.await(t, 1+random.IntN(2*mean), []*server{srv}, "complete")
		srv.signal(syscall.SIGKILL)
		checkStore(t, storeFile)
		srv = serve(t, storeFile, srv.address)
	}
	c.memory.counts.await(t, 1, []*server{srv}, kinds...)
	cancel()
	c.working.Wait()

	trials := c.compare(client)
	t.Logf("%d kills, %d trials, acknowledged calls: %v", kills, trials, c.memory.counts.calls)
	if code := srv.signal(syscall.SIGTERM); code != 0 {
		t.Errorf("the server ended with exit code %d", code)
	}
	checkStore(t, storeFile)
}

// compare finishes what is left over, compares all trials with what the workers remember, and returns their
// number.
func (c *crowd) compare(client *dpareto.Client) int {
	c.t.Helper()
	var trials []*dparetov1.Trial
	for _, id := range c.studies {
		trials = append(trials, drain(c.t, client.Study(id), c.memory)...)
	}
	for _, fault := range c.memory.compare(trials) {
		c.t.Error(fault)
	}
	c.history.Check(c.t)
	return len(trials)
}

// killedStudy returns a study with a designer and a lease, without an end.
func killedStudy(t *testing.T, algorithm dparetov1.Algorithm, lease time.Duration) *dparetov1.Study {
	t.Helper()
	content, err := os.ReadFile("studies/svt.yaml")
	require.NoError(t, err)
	text := strings.Replace(string(content), "lease: {duration: 60s}", fmt.Sprintf("lease: {duration: %gs, max_attempts: 4}", lease.Seconds()), 1)
	file, err := studyfile.Parse([]byte(text))
	require.NoError(t, err)
	file.Study.Spec.Algorithm = &dparetov1.AlgorithmSpec{Name: algorithm}
	file.Study.Spec.Budget, file.Study.Spec.Replicates = nil, 1
	return file.Study
}

// drain asks as the only worker for what is left over and completes it, until no trial is
// open, and returns all trials. Leases of workers that are gone end meanwhile.
func drain(t *testing.T, study *dpareto.Study, m *memory) []*dparetov1.Trial {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for n := 0; ; n++ {
		state, err := study.Get(ctx)
		require.NoError(t, err)
		counts := state.GetTrialCounts()
		if counts.GetQueued()+counts.GetActive()+counts.GetStopping() == 0 {
			trials := trialsOf(t, study)
			for i, trial := range trials { // lists leave past attempts out
				if trials[i], err = study.Trial(ctx, trial.GetNumber()); err != nil {
					t.Fatal(err)
				}
			}
			return trials
		}
		asked := time.Now()
		trial, err := study.Ask(ctx, "last")
		require.NoError(t, err)
		h := m.handedOut("last", trial.Message(), asked, time.Now())
		value := 1 - 1/float64(n+2)
		m.sends(trial.Name(), h, value, "", true)
		if err := trial.Complete(ctx, dpareto.Metrics{"error": {value}}); err != nil {
			t.Errorf("%s: %v", trial.Name(), err)
		}
		if counts.GetQueued() > 0 {
			continue // there is more at once
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("%s is stuck: %v", study.Name(), counts)
		}
	}
}
