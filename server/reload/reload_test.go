package reload

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dpareto/dpareto/internal/require"
)

func TestValue(t *testing.T) {
	folder := t.TempDir()
	paths := []string{filepath.Join(folder, "a"), filepath.Join(folder, "b")}
	write := func(i int, text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(paths[i], []byte(text), 0o600))
	}
	write(0, "1")
	write(1, "1")
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var log bytes.Buffer
	loads := 0
	v, err := New(Options{What: "it", Paths: paths, Logger: slog.New(slog.NewTextHandler(&log, nil)), Now: func() time.Time { return now }},
		func() (string, error) {
			loads++
			var all string
			for _, path := range paths {
				text, err := os.ReadFile(path)
				if err != nil {
					return "", err
				}
				all += string(text)
			}
			if strings.Contains(all, "broken") {
				return "", errors.New("broken")
			}
			return all, nil
		})
	require.NoError(t, err)
	want := func(text string, n int) {
		t.Helper()
		if got := v.Get(); got != text || loads != n {
			t.Errorf("%q after %d loads, want %q after %d", got, loads, text, n)
		}
	}
	want("11", 1)
	write(1, "22")
	want("11", 1) // not yet
	now = now.Add(Every)
	want("122", 2)
	now = now.Add(Every)
	want("122", 2)                 // nothing new
	now = now.Add(-24 * time.Hour) // the clock is set back
	write(1, "2")
	want("12", 3)
	write(1, "22")
	now = now.Add(Every)
	want("122", 4)
	write(0, "broken")
	for range 3 {
		now = now.Add(Every)
		want("122", 5)
	}
	require.NoError(t, os.Remove(paths[1]))
	for range 3 {
		now = now.Add(Every)
		want("122", 5)
	}
	if n := strings.Count(log.String(), "stays valid"); n != 2 {
		t.Errorf("%d messages: %s", n, log.String())
	}
	write(0, "x")
	write(1, "y")
	now = now.Add(Every)
	want("xy", 6)
}

func TestNewFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	load := func() (int, error) { return 0, errors.New("broken") }
	if _, err := New(Options{Paths: []string{path}}, load); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	if _, err := New(Options{Paths: []string{path}}, load); err == nil || err.Error() != "broken" {
		t.Errorf("error %v", err)
	}
}

func TestConcurrently(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	var mu sync.Mutex
	now := time.Now()
	v, err := New(Options{Paths: []string{path}, Logger: slog.New(slog.DiscardHandler), Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(Every)
		return now
	}}, func() ([]byte, error) { return os.ReadFile(path) })
	require.NoError(t, err)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 100 {
				if i == 0 {
					if err := os.Chtimes(path, time.Now(), time.Now()); err != nil {
						t.Error(err)
					}
				}
				if got := v.Get(); string(got) != "x" {
					t.Errorf("%q", got)
				}
			}
		})
	}
	wg.Wait()
}
