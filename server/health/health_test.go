package health

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/reflect/protoreflect"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/background"
	"github.com/dpareto/dpareto/server/metrics"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/bolt"
)

// statusOf returns what health checks say of a service.
func statusOf(t *testing.T, h *Watch, service string) healthv1.HealthCheckResponse_ServingStatus {
	t.Helper()
	resp, err := h.Service().Check(t.Context(), &healthv1.HealthCheckRequest{Service: service})
	require.NoError(t, err)
	return resp.GetStatus()
}

// hookedKV calls a function before every Update.
type hookedKV struct {
	store.KV

	update func() error // an error fails the Update
}

func (k hookedKV) Update(ctx context.Context, scopes store.Scopes, fn func(store.ReadWriter) error) error {
	if err := k.update(); err != nil {
		return err
	}
	return k.KV.Update(ctx, scopes, fn)
}

// watchStore returns a watch of a store whose Updates call a function first.
func watchStore(t *testing.T, update func() error) (h *Watch, stop func()) {
	t.Helper()
	return watchStoreWithLog(t, slog.DiscardHandler, update)
}

// watchStoreWithLog is watchStore with a log.
func watchStoreWithLog(t *testing.T, log slog.Handler, update func() error) (h *Watch, stop func()) {
	t.Helper()
	db, err := bolt.Open(filepath.Join(t.TempDir(), "store.db"))
	require.NoError(t, err)
	records, err := store.New(t.Context(), hookedKV{KV: db, update: update})
	require.NoError(t, err)
	logger := slog.New(log)
	group := background.New(logger)
	h = New(records, logger, metrics.New("test"), group)
	group.Go(h.Run)
	return h, func() {
		group.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A server whose store cannot be written says so, and when it can be again.
func TestHealthFollowsTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var probes atomic.Int64
		var failure atomic.Pointer[error]
		fail := func(err error) error { failure.Store(&err); return err }
		_ = fail(nil)
		h, stop := watchStore(t, func() error { probes.Add(1); return *failure.Load() })
		defer stop()
		synctest.Wait()
		opened := probes.Load()
		time.Sleep(probeEvery - 1)
		if err := h.Ready(); err != nil || probes.Load() != opened {
			t.Errorf("at first: %v after %d probes", err, probes.Load()-opened)
		}

		full := fail(errors.New("no space left on device"))
		time.Sleep(probeEvery)
		synctest.Wait()
		if err := h.Ready(); !errors.Is(err, full) {
			t.Errorf("ready: %v while nothing can be written", err)
		}
		for service, want := range map[string]healthv1.HealthCheckResponse_ServingStatus{
			"":                          healthv1.HealthCheckResponse_NOT_SERVING,
			"dpareto.v1.StudyService":   healthv1.HealthCheckResponse_NOT_SERVING,
			"dpareto.v1.ReleaseService": healthv1.HealthCheckResponse_NOT_SERVING,
			"dpareto.v1.AdminService":   healthv1.HealthCheckResponse_NOT_SERVING,
			"dpareto.v1.FrontService":   healthv1.HealthCheckResponse_SERVING,
			"dpareto.v1.PrivacyService": healthv1.HealthCheckResponse_SERVING,
		} {
			if got := statusOf(t, h, service); got != want {
				t.Errorf("%q is %v, want %v", service, got, want)
			}
		}

		_ = fail(nil)
		time.Sleep(reprobeEvery)
		synctest.Wait()
		if err := h.Ready(); err != nil || statusOf(t, h, "") != healthv1.HealthCheckResponse_SERVING {
			t.Errorf("ready: %v, %v after it can be written again", err, statusOf(t, h, ""))
		}

		readOnly := fail(errors.New("read-only file system"))
		h.Suspect() // as after an update that failed: at once
		synctest.Wait()
		if err := h.Ready(); !errors.Is(err, readOnly) {
			t.Errorf("ready: %v after an update failed", err)
		}
	})
}

// A store that can be written now and then, as at a limit of its size, is a line in the log when it
// begins and one when it has ended, and not two a second.
func TestLogOfAFlappingStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var probes atomic.Int64
		var mended atomic.Bool
		var log bytes.Buffer
		_, stop := watchStoreWithLog(t, slog.NewTextHandler(&log, nil), func() error {
			if probes.Add(1)%2 == 0 && !mended.Load() {
				return errors.New("file too large")
			}
			return nil
		})
		time.Sleep(time.Hour)
		mended.Store(true)
		time.Sleep(2 * calm)
		synctest.Wait()
		stop()
		if begins, ends := strings.Count(log.String(), "cannot be written"), strings.Count(log.String(), "written again"); begins != 1 || ends != 1 {
			t.Errorf("%d and %d lines of %d probes", begins, ends, probes.Load())
		}
	})
}

// A write that hangs makes the server unready, and is not followed by others.
func TestHealthOfAHangingStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var probes atomic.Int64
		var hangs atomic.Bool
		h, stop := watchStore(t, func() error {
			if hangs.Load() {
				probes.Add(1)
				<-release
			}
			return nil
		})
		defer stop()
		synctest.Wait()
		hangs.Store(true)
		time.Sleep(probeEvery + probePatience)
		synctest.Wait()
		if err := h.Ready(); err == nil || !strings.Contains(err.Error(), "has not ended") {
			t.Errorf("ready: %v", err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if probes.Load() != 1 || h.Ready() == nil {
			t.Errorf("%d probes, ready: %v", probes.Load(), h.Ready())
		}
		close(release)
		time.Sleep(reprobeEvery)
		synctest.Wait()
		if err := h.Ready(); err != nil {
			t.Errorf("ready: %v after the write has ended", err)
		}
	})
}

// Every service is among those whose health is known.
func TestServices(t *testing.T) {
	var files = []protoreflect.FileDescriptor{
		dparetov1.File_dpareto_v1_study_service_proto, dparetov1.File_dpareto_v1_front_service_proto,
		dparetov1.File_dpareto_v1_privacy_service_proto, dparetov1.File_dpareto_v1_release_service_proto,
		dparetov1.File_dpareto_v1_admin_service_proto,
	}
	for _, file := range files {
		service := file.Services().Get(0)
		name := string(service.FullName())
		if !slices.Contains(writingServices, name) && !slices.Contains(readingServices, name) {
			t.Errorf("the health of %s is not told", name)
		}
	}
}
