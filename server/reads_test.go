package server_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/enginetest"
	"github.com/dpareto/dpareto/server/servertest"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/bolt"
)

// readers are the clients of a server that reads a store.
type readers struct {
	studies dparetov1.StudyServiceClient
	fronts  dparetov1.FrontServiceClient
	privacy dparetov1.PrivacyServiceClient
}

// newReaders starts a server that has read nothing yet.
func newReaders(b *testing.B, records *store.Store) (r *readers, stop func()) {
	b.Helper()
	s := server.New(server.Options{Store: records})
	g := s.GRPC()
	listener := bufconn.Listen(1 << 20)
	go func() { _ = g.Serve(listener) }() // it ends with Stop
	conn, err := grpc.NewClient("passthrough:///bufconn", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)))
	require.NoError(b, err)
	r = &readers{dparetov1.NewStudyServiceClient(conn), dparetov1.NewFrontServiceClient(conn), dparetov1.NewPrivacyServiceClient(conn)}
	return r, func() {
		if err := conn.Close(); err != nil {
			b.Error(err)
		}
		g.Stop()
		s.Close()
	}
}

// newRun lets a server make the study "big" with one complete run, measured at a number of steps.
func newRun(b *testing.B, records *store.Store, spec *dparetov1.StudySpec, steps int) *enginetest.Run {
	b.Helper()
	calls, stop := newReaders(b, records)
	defer stop()
	if _, err := calls.studies.CreateStudy(b.Context(), &dparetov1.CreateStudyRequest{StudyId: "big", Study: &dparetov1.Study{Spec: spec}}); err != nil {
		b.Fatal(err)
	}
	resp, err := calls.studies.CreateTrial(b.Context(), &dparetov1.CreateTrialRequest{Parent: "studies/big", Trial: runOf(steps, 1)})
	require.NoError(b, err)
	return enginetest.ReadRun(b, records, "big", resp.GetTrial().GetNumber())
}

// runOf returns a complete run from elsewhere with a noise. One step stands for a run without
// checkpoints.
func runOf(steps int, noise float64) *dparetov1.Trial {
	number := func(v float64) *dparetov1.Value {
		return &dparetov1.Value{Kind: &dparetov1.Value_DoubleValue{DoubleValue: v}}
	}
	integer := func(v int64) *dparetov1.Value { return &dparetov1.Value{Kind: &dparetov1.Value_IntValue{IntValue: v}} }
	if steps == 1 {
		return &dparetov1.Trial{
			Parameters:       map[string]*dparetov1.Value{"cutoff": integer(5), "noise_scale": number(noise)},
			FinalMeasurement: servertest.Measurement(0, 0.5),
		}
	}
	return &dparetov1.Trial{
		Parameters:       map[string]*dparetov1.Value{"epochs": integer(int64(steps)), "lot_size": integer(64), "variance": number(noise)},
		FinalMeasurement: servertest.Measurement(int64(steps), 0.5),
	}
}

// reads are the calls that a page makes.
func reads() map[string]func(context.Context, *readers) error {
	const name = "studies/big"
	front := func(kind dparetov1.FrontKind, others int32) func(context.Context, *readers) error {
		return func(ctx context.Context, r *readers) error {
			_, err := r.fronts.GetFront(ctx, &dparetov1.GetFrontRequest{Name: name, Kind: kind, MaxOthers: others})
			return err
		}
	}
	trials := func(filter, order string) func(context.Context, *readers) error {
		return func(ctx context.Context, r *readers) error {
			_, err := r.studies.ListTrials(ctx, &dparetov1.ListTrialsRequest{Parent: name, PageSize: 50, Filter: filter, OrderBy: order})
			return err
		}
	}
	return map[string]func(context.Context, *readers) error{
		"GetStudy": func(ctx context.Context, r *readers) error {
			_, err := r.studies.GetStudy(ctx, &dparetov1.GetStudyRequest{Name: name})
			return err
		},
		"ListStudies": func(ctx context.Context, r *readers) error {
			_, err := r.studies.ListStudies(ctx, new(dparetov1.ListStudiesRequest))
			return err
		},
		"ListTrials/first":    trials("", ""),
		"ListTrials/newest":   trials("", "number desc"),
		"ListTrials/best":     trials("", "metrics.error"),
		"ListTrials/filtered": trials("metrics.epsilon < 1", "number desc"),
		"ListTrials/rare":     trials("metrics.error < 0.0001", "number desc"),
		"front/observed":      front(dparetov1.FrontKind_FRONT_KIND_OBSERVED, 0),
		"front/others":        front(dparetov1.FrontKind_FRONT_KIND_OBSERVED, 5000),
		"front/posterior":     front(dparetov1.FrontKind_FRONT_KIND_POSTERIOR, 5000),
		"hypervolumes": func(ctx context.Context, r *readers) error {
			_, err := r.fronts.ListHypervolumes(ctx, &dparetov1.ListHypervolumesRequest{Name: name})
			return err
		},
		"ledger": func(ctx context.Context, r *readers) error {
			_, err := r.privacy.GetPrivacyLedger(ctx, &dparetov1.GetPrivacyLedgerRequest{Name: name})
			return err
		},
		"watch": watchLatest,
	}
}

// watchLatest reads the revision of a study, and watches it until the latest change has come.
func watchLatest(ctx context.Context, r *readers) error {
	resp, err := r.studies.GetStudy(ctx, &dparetov1.GetStudyRequest{Name: "studies/big"})
	if err != nil {
		return err
	}
	stream, err := r.studies.WatchStudy(ctx, &dparetov1.WatchStudyRequest{Name: "studies/big", AfterRevision: resp.GetStudy().GetRevision() - 1})
	if err != nil {
		return err
	}
	_, err = stream.Recv()
	return err
}

// BenchmarkReads measures what a page reads of a study: from a server that has read nothing yet
// (cold), again (warm), and after each time another run was complete (changed).
func BenchmarkReads(b *testing.B) {
	for _, size := range []struct {
		trials int64
		steps  int
	}{{100, 1}, {10_000, 1}, {100_000, 1}, {10_000, 10}} {
		name := strconv.FormatInt(size.trials, 10)
		spec := servertest.SVTSpec()
		if size.steps > 1 {
			name += fmt.Sprintf("x%d", size.steps)
			spec = servertest.SGDSpec()
		}
		b.Run(name, func(b *testing.B) {
			db, err := bolt.Open(filepath.Join(b.TempDir(), "dpareto.db"))
			require.NoError(b, err)
			defer func() {
				if err := db.Close(); err != nil {
					b.Error(err)
				}
			}()
			records, err := store.New(b.Context(), db)
			require.NoError(b, err)
			run := newRun(b, records, spec, size.steps)
			run.Fill(b, records, size.trials)
			calls := reads()
			for _, call := range slices.Sorted(maps.Keys(calls)) {
				b.Run(call, func(b *testing.B) { benchmarkRead(b, records, calls[call], size.steps) })
			}
		})
	}
}

// benchmarkRead measures one call.
func benchmarkRead(b *testing.B, records *store.Store, read func(context.Context, *readers) error, steps int) {
	// Each call has a context: its end closes what streams there are.
	once := func(b *testing.B, calls *readers) {
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		require.NoError(b, read(ctx, calls))
	}
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			calls, stop := newReaders(b, records)
			b.StartTimer()
			once(b, calls)
			b.StopTimer()
			stop()
			b.StartTimer()
		}
	})
	calls, stop := newReaders(b, records)
	defer stop()
	once(b, calls)
	b.Run("warm", func(b *testing.B) {
		for b.Loop() {
			once(b, calls)
		}
	})
	rng := rand.New(rand.NewPCG(1, 2))
	b.Run("changed", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			another := &dparetov1.CreateTrialRequest{Parent: "studies/big", Trial: runOf(steps, 0.2+50*rng.Float64())}
			if _, err := calls.studies.CreateTrial(b.Context(), another); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			once(b, calls)
		}
	})
}
