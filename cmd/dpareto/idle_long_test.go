//go:build long && linux

package main

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dpareto "github.com/dpareto/dpareto/clients/go"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

// Types and flags of HTTP/2 frames (RFC 9113).
const (
	frameHeader   = 9
	frameSettings = 4
	framePing     = 6
	flagAck       = 1
)

// idle opens an HTTP/2 connection from 127.0.0.2, makes no call, and answers pings until the
// server closes it.
func idle(address string, opened, open *atomic.Int64) error {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}, Timeout: patience}
	conn, err := dialer.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	settings := append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 0, 0, 0, frameSettings, 0, 0, 0, 0, 0)
	if _, err := conn.Write(settings); err != nil {
		return err
	}
	var header [frameHeader]byte
	for isOpen := false; ; {
		if _, err := io.ReadFull(conn, header[:]); err != nil {
			return err
		}
		payload := make([]byte, int(header[0])<<16|int(header[1])<<8|int(header[2]))
		if _, err := io.ReadFull(conn, payload); err != nil {
			return err
		}
		if !isOpen { // the server has taken it
			isOpen = true
			opened.Add(1)
			open.Add(1)
			defer open.Add(-1)
		}
		if header[3] == framePing && header[4]&flagAck == 0 {
			header[4] = flagAck
			if _, err := conn.Write(append(header[:], payload...)); err != nil {
				return err
			}
		}
	}
}

// pairs asks and completes n times and returns the latencies of the pairs, sorted.
func pairs(t *testing.T, client *dpareto.Client, n int) []time.Duration {
	t.Helper()
	study := client.Study("flood")
	var took []time.Duration
	for range n {
		start := time.Now()
		trial, err := study.Ask(t.Context(), "worker")
		if err == nil {
			err = trial.Complete(t.Context(), dpareto.Metrics{"error": {0.5}})
		}
		require.NoError(t, err)
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return took
}

// 12,000 idle connections of one address lock nobody else out, and end. None says who it is.
func TestIdleConnections(t *testing.T) {
	const connections, calls = 12_000, 1000
	server := serve(t, filepath.Join(t.TempDir(), "flood.db"), "127.0.0.1:0")
	dial := func() *dpareto.Client {
		client, err := dpareto.Dial(server.address)
		require.NoError(t, err)
		t.Cleanup(func() { client.Close() })
		return client
	}
	worker := dial()
	_, err := worker.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "flood", Study: &dparetov1.Study{Spec: &dparetov1.StudySpec{
		Parameters: []*dparetov1.ParameterSpec{{Id: "x", Scale: dparetov1.Scale_SCALE_LINEAR, Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Max: 1}}}},
		Metrics: []*dparetov1.MetricSpec{{
			Id: "error", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE, ReferenceValue: new(1.0),
			Transform: dparetov1.Transform_TRANSFORM_IDENTITY, Source: &dparetov1.MetricSpec_Reported{Reported: &dparetov1.ReportedSource{}},
		}},
		Algorithm: &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_RANDOM},
	}}})
	require.NoError(t, err)
	report := func(when string) {
		took := pairs(t, worker, calls)
		refused := 0
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			_, err := dial().Studies.GetStudy(ctx, &dparetov1.GetStudyRequest{Name: "studies/flood"})
			cancel()
			if code := status.Code(err); code == codes.Unavailable || code == codes.DeadlineExceeded || errors.Is(err, context.DeadlineExceeded) {
				refused++
			} else if err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%s: pairs p50 %v, p99 %v, max %v; %d of 20 new connections refused", when, took[calls/2], took[calls*99/100], took[calls-1], refused)
		if refused > 0 {
			t.Errorf("%s: %d of 20 new connections of another address were refused", when, refused)
		}
	}
	report("before")
	var opened, open, ended atomic.Int64
	var all sync.WaitGroup
	gate := make(chan struct{}, 200)
	begin := time.Now()
	for range connections {
		gate <- struct{}{}
		all.Go(func() {
			time.AfterFunc(20*time.Millisecond, func() { <-gate })
			_ = idle(server.address, &opened, &open)
			ended.Add(1)
		})
	}
	t.Logf("%d connections in %v: %d taken, %d open", connections, time.Since(begin).Round(time.Second), opened.Load(), open.Load())
	report("among idle connections")
	time.Sleep(time.Until(begin.Add(150 * time.Second)))
	t.Logf("after %v: %d open", time.Since(begin).Round(time.Second), open.Load())
	if n := open.Load(); n > 0 {
		t.Errorf("%d idle connections are still open", n)
	}
	report("afterwards")
	server.process.cmd.Process.Kill()
	all.Wait()
}
