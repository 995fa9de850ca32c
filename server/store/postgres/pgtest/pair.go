package pgtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpareto/dpareto/internal/require"
)

// Pair is a primary with a streaming standby: a commit waits until both have it on disk.
type Pair struct {
	t                testing.TB
	folder, programs string
	clusters         [2]string // names of their folders; the primary is the first
}

// NewPair starts a pair of clusters.
func NewPair(t testing.TB) *Pair {
	t.Helper()
	Database(t, "") // skips the test where there is no PostgreSQL
	folder, err := start()
	require.NoError(t, err)
	programs, err := findPrograms()
	require.NoError(t, err)
	p := &Pair{t: t, folder: folder, programs: programs, clusters: [2]string{"a", "b"}}
	p.run("initdb", "-D", p.data(0), "-U", "dpareto", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	settings := "\nlisten_addresses = ''\nmax_connections = 200\nsynchronous_standby_names = '*'\nwal_keep_size = '256MB'\n"
	configuration := filepath.Join(folder, p.data(0), "postgresql.conf")
	content, err := os.ReadFile(configuration)
	if err == nil {
		err = os.WriteFile(configuration, append(content, settings...), 0o600)
	}
	require.NoError(t, err)
	command(t, folder, "mkdir", p.socket(0), p.socket(1))
	p.begin(0)
	p.follow()
	t.Cleanup(func() {
		for i := range p.clusters {
			p.run("pg_ctl", "-D", p.data(i), "-m", "immediate", "stop")
		}
	})
	return p
}

// data returns the name of a cluster's data folder.
func (p *Pair) data(i int) string { return "data-" + p.clusters[i] }

// socket is the folder of a cluster's socket.
func (p *Pair) socket(i int) string { return filepath.Join(p.folder, "socket-"+p.clusters[i]) }

func (p *Pair) run(program string, arguments ...string) {
	p.t.Helper()
	command(p.t, p.folder, filepath.Join(p.programs, program), arguments...)
}

// begin starts a cluster.
func (p *Pair) begin(i int) {
	p.t.Helper()
	p.run("pg_ctl", "-D", p.data(i), "-l", "log-"+p.clusters[i], "-w", "-o", "-k "+p.socket(i), "start")
}

// follow makes the second cluster anew, as a standby of the first, and waits until commits wait for it.
func (p *Pair) follow() {
	p.t.Helper()
	require.NoError(p.t, os.RemoveAll(filepath.Join(p.folder, p.data(1))))
	p.run("pg_basebackup", "-D", p.data(1), "-R", "-c", "fast", "--no-sync", "-d", fmt.Sprintf("host=%s user=dpareto dbname=postgres", p.socket(0)))
	p.begin(1)
	conn, err := pgx.Connect(context.Background(), at(p.socket(0), ""))
	require.NoError(p.t, err)
	defer func() { _ = conn.Close(context.Background()) }() // it was only read
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		var synchronous bool
		err := conn.QueryRow(context.Background(), "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')").Scan(&synchronous)
		if synchronous {
			return
		}
		if err != nil || time.Since(began) > time.Minute {
			p.t.Fatalf("the standby does not follow: %v", err)
		}
	}
}

// Promote ends the primary like kill -9, makes the standby the primary, and the former primary a standby of
// it. It returns when the primary had ended.
func (p *Pair) Promote() (ended time.Time) {
	p.t.Helper()
	p.run("pg_ctl", "-D", p.data(0), "-m", "immediate", "stop")
	ended = time.Now()
	p.run("pg_ctl", "-D", p.data(1), "-w", "promote")
	p.clusters[0], p.clusters[1] = p.clusters[1], p.clusters[0]
	p.follow()
	return ended
}

// URL returns the URL of the database, with both clusters: clients look for the primary.
func (p *Pair) URL() string { return at(p.socket(0)+","+p.socket(1), "") }
