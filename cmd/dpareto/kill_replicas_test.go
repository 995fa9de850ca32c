package main

import (
	"context"
	"flag"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/linearizability"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/store/opentest"
	"github.com/dpareto/dpareto/server/store/postgres/pgtest"
)

// How often servers that share a database are killed, or the database, and how often its standby is promoted.
var (
	killRounds = flag.Int("kill-rounds", 5, "kills in the test of servers that share a database")
	promotions = flag.Int("promotions", 0, "promotions of a standby")
)

// replicaSet are servers on one database, and a crowd whose calls go to all in turn.
type replicaSet struct {
	t         *testing.T
	store     string
	servers   []*server
	addresses []resolver.Address
	crowd     *crowd
	cancel    context.CancelFunc
	random    *rand.Rand
}

// startReplicas starts servers, two studies, and workers on them.
func startReplicas(t *testing.T, store string, servers, workers int) *replicaSet {
	t.Helper()
	const lease = 2 * time.Second
	r := &replicaSet{t: t, store: store, random: rand.New(rand.NewPCG(*killSeed, 1))}
	var starting sync.WaitGroup
	r.servers = make([]*server, servers)
	for i := range servers { // at once, on an empty database
		starting.Go(func() { r.servers[i] = serveStore(t, store, "127.0.0.1:0") })
	}
	starting.Wait()
	for _, srv := range r.servers {
		r.addresses = append(r.addresses, resolver.Address{Addr: srv.address})
	}
	client, err := r.dial()
	require.NoError(t, err)
	defer client.Close()
	ids := []string{"drawn", "learned"} // as in killUnderLoad
	for i, algorithm := range []dparetov1.Algorithm{dparetov1.Algorithm_ALGORITHM_RANDOM, dparetov1.Algorithm_ALGORITHM_NSGA2} {
		require.NoError(t, require.ErrOf(client.CreateStudy(t.Context(), ids[i], killedStudy(t, algorithm, lease))))
	}
	r.crowd = &crowd{t: t, memory: newMemory(lease), history: linearizability.NewHistory(), studies: ids, dial: r.dial}
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(t.Context())
	r.crowd.start(ctx, workers, *killSeed)
	return r
}

// dial returns a client whose calls go to all servers in turn.
func (r *replicaSet) dial(options ...dpareto.Option) (*dpareto.Client, error) {
	all := manual.NewBuilderWithScheme("all")
	all.InitialState(resolver.State{Addresses: r.addresses})
	return dpareto.Dial("all:///"+r.addresses[0].Addr, append(options, dpareto.WithTimeout(patience), dpareto.WithDialOptions(
		grpc.WithResolvers(all), grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]}`)))...)
}

// wait waits for a random number of completed trials, of this mean. It fails the test if a server ends meanwhile.
func (r *replicaSet) wait(mean int) {
	r.t.Helper()
	r.crowd.memory.counts.await(r.t, 1+r.random.IntN(2*mean), r.servers, "complete")
}

// kill kills a server, and starts it again.
func (r *replicaSet) kill() {
	r.t.Helper()
	i := r.random.IntN(len(r.servers))
	r.servers[i].signal(syscall.SIGKILL)
	r.servers[i] = serveStore(r.t, r.store, r.servers[i].address)
}

// finish ends the work, and compares what was said with what is stored.
func (r *replicaSet) finish() (trials int) {
	r.t.Helper()
	r.crowd.memory.counts.await(r.t, 1, r.servers, kinds...)
	r.cancel()
	r.crowd.working.Wait()
	client, err := r.dial()
	require.NoError(r.t, err)
	defer client.Close()
	trials = r.crowd.compare(client)
	for _, srv := range r.servers {
		if code := srv.signal(syscall.SIGTERM); code != 0 {
			r.t.Errorf("a server ended with exit code %d", code)
		}
	}
	must(r.t, "check", "--store", r.store)
	return trials
}

// report logs how long calls that were under way at some moments took from there on.
func (r *replicaSet) report(what string, moments []time.Time) {
	if len(moments) == 0 {
		return
	}
	var delays []time.Duration
	for _, moment := range moments {
		delays = append(delays, r.crowd.history.Delay(moment))
	}
	slices.Sort(delays)
	at := func(share float64) time.Duration {
		return delays[min(len(delays)-1, int(share*float64(len(delays))))].Round(time.Millisecond)
	}
	r.t.Logf("%d %s; until all calls under way were answered: median %v, p99 %v, longest %v", len(moments), what, at(0.5), at(0.99), at(1))
}

// Three servers on a database are killed one by one under load, and every fifth time the database itself.
// Nothing that was acknowledged is lost, nothing happens twice, and an order explains all answers.
func TestReplicasKilled(t *testing.T) {
	opentest.OnPostgres(t)
	r := startReplicas(t, pgtest.URL(t), 3, 16)
	var servers, databases []time.Time
	for n := range *killRounds {
		r.wait(100)
		if n%5 == 4 {
			databases = append(databases, pgtest.Crash(t))
			continue
		}
		servers = append(servers, time.Now())
		r.kill()
	}
	r.wait(100)
	trials := r.finish()
	r.report("kills of a server", servers)
	r.report("kills of the database", databases)
	t.Logf("%d trials, acknowledged calls: %v", trials, r.crowd.memory.counts.calls)
}

// The standby of a database is promoted under load: with synchronous replication nothing is lost.
func TestReplicasPromoted(t *testing.T) {
	if *promotions == 0 {
		t.Skip("takes minutes: make soak-postgres runs it with -promotions")
	}
	opentest.OnPostgres(t)
	pair := pgtest.NewPair(t)
	r := startReplicas(t, pair.URL(), 3, 16)
	var moments []time.Time
	for range *promotions {
		r.wait(200)
		moments = append(moments, pair.Promote())
	}
	r.wait(200)
	trials := r.finish()
	r.report("promotions", moments)
	t.Logf("%d trials, acknowledged calls: %v", trials, r.crowd.memory.counts.calls)
}
