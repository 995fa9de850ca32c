package server

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/reflect/protoreflect"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/bolt"
	"github.com/dpareto/dpareto/suggest"
)

// statusOf returns what health checks say of a service.
func statusOf(t *testing.T, s *Server, service string) healthv1.HealthCheckResponse_ServingStatus {
	t.Helper()
	resp, err := s.health.Check(t.Context(), &healthv1.HealthCheckRequest{Service: service})
	if err != nil {
		t.Fatal(err)
	}
	return resp.GetStatus()
}

// probedServer returns a server over a store whose Updates call a function first.
func probedServer(t *testing.T, update func() error) (s *Server, stop func()) {
	t.Helper()
	db, err := bolt.Open(filepath.Join(t.TempDir(), "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	records, err := store.New(t.Context(), hookedKV{KV: db, update: update})
	if err != nil {
		t.Fatal(err)
	}
	s = New(Options{Store: records, Logger: slog.New(slog.DiscardHandler)})
	s.inBackground(s.watchHealth)
	return s, func() {
		s.Close()
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
		s, stop := probedServer(t, func() error { probes.Add(1); return *failure.Load() })
		defer stop()
		synctest.Wait()
		opened := probes.Load()
		time.Sleep(probeEvery - 1)
		if err := s.Ready(); err != nil || probes.Load() != opened {
			t.Errorf("at first: %v after %d probes", err, probes.Load()-opened)
		}

		full := fail(errors.New("no space left on device"))
		time.Sleep(probeEvery)
		synctest.Wait()
		if err := s.Ready(); !errors.Is(err, full) {
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
			if got := statusOf(t, s, service); got != want {
				t.Errorf("%q is %v, want %v", service, got, want)
			}
		}

		_ = fail(nil)
		time.Sleep(reprobeEvery)
		synctest.Wait()
		if err := s.Ready(); err != nil || statusOf(t, s, "") != healthv1.HealthCheckResponse_SERVING {
			t.Errorf("ready: %v, %v after it can be written again", err, statusOf(t, s, ""))
		}

		readOnly := fail(errors.New("read-only file system"))
		s.suspectStore() // as after an update that failed: at once
		synctest.Wait()
		if err := s.Ready(); !errors.Is(err, readOnly) {
			t.Errorf("ready: %v after an update failed", err)
		}
	})
}

// A write that hangs makes the server unready, and is not followed by others.
func TestHealthOfAHangingStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var probes atomic.Int64
		var hangs atomic.Bool
		s, stop := probedServer(t, func() error {
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
		if err := s.Ready(); err == nil || !strings.Contains(err.Error(), "has not ended") {
			t.Errorf("ready: %v", err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if probes.Load() != 1 || s.Ready() == nil {
			t.Errorf("%d probes, ready: %v", probes.Load(), s.Ready())
		}
		close(release)
		time.Sleep(reprobeEvery)
		synctest.Wait()
		if err := s.Ready(); err != nil {
			t.Errorf("ready: %v after the write has ended", err)
		}
	})
}

// Every service is among those whose health is known, and every method is told to be a
// mutation or not as its request says: mutations have a request_id.
func TestServicesAndMethods(t *testing.T) {
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
		for i := range service.Methods().Len() {
			method := service.Methods().Get(i)
			takes := slices.Contains([]protoreflect.Name{"BackupStore", "ExportStudy"}, method.Name())
			want := takes || method.Input().Fields().ByName(requestID) != nil || method.IsStreamingClient()
			if got := isAudited("/" + name + "/" + string(method.Name())); got != want {
				t.Errorf("%s: audited %t, want %t", method.FullName(), got, want)
			}
		}
	}
}

// Who completes a trial does not wait until the hypervolumes are computed.
func TestHypervolumesKeepNobodyWaiting(t *testing.T) {
	s := serviceWith(t, fakeDesigner{suggest: suggest.NewRandom().Suggest})
	study := runs(t, s, nil)
	completeRun(t, s, askRun(t, s), errorAt(0, 0.5))
	trial := askRun(t, s)
	cached, err := s.studies.get(study)
	if err != nil {
		t.Fatal(err)
	}
	cached.history.mu.Lock() // the computation waits
	var computing sync.WaitGroup
	computing.Go(func() {
		if _, err := s.totals(context.Background()); err != nil {
			t.Error(err)
		}
	})
	for s.recent.computing.TryLock() {
		s.recent.computing.Unlock()
		runtime.Gosched()
	}
	completeRun(t, s, trial, errorAt(0, 0.4))
	cached.history.mu.Unlock()
	computing.Wait()
}

func TestRecentStudies(t *testing.T) {
	var r recentStudies
	for i := range 2 * maxRecent {
		id := string(rune('a' + i))
		r.add(id, id)
		r.add(id, id)
	}
	r.add("z", "z")
	if len(r.studies) != maxRecent || r.studies[0].id != "z" || r.studies[1].id != string(rune('a'+2*maxRecent-1)) {
		t.Errorf("%d studies, the last ones %s and %s", len(r.studies), r.studies[0].id, r.studies[1].id)
	}
}
