package data_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset/datasettest"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/internal/require"
)

// freshCache gives the test an empty home and returns the cache folder of datasets.
func freshCache(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	t.Setenv("HOME", folder)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(folder, "cache"))
	return filepath.Join(folder, "cache", "dpareto")
}

func TestDataList(t *testing.T) {
	cache := freshCache(t)
	dir := t.TempDir()
	for _, path := range []string{
		filepath.Join(dir, "wdbc.data"),
		filepath.Join(cache, "mnist", "t10k-labels-idx1-ubyte.gz"),
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
	stdout, stderr, code := clitest.Invoke(t, "", "data", "list", "--data-dir", dir)
	if code != command.ExitOK || stderr != "" {
		t.Fatalf("exit code %d, error %q", code, stderr)
	}
	want := map[string]string{
		"dataset":                "dataset train test features classes megabytes licence state folder",
		"adult":                  "adult 30956 1605 123 2 5.824 CC BY 4.0 absent",
		"adult-raw":              "adult-raw 32561 16281 123 2 5.977 CC BY 4.0 absent",
		"mnist":                  "mnist 60000 10000 784 10 11.59 CC BY-SA 3.0 partial " + filepath.Join(cache, "mnist"),
		"kddcup99":               "kddcup99 494021 311029 123 2 3.554 CC BY 4.0 absent",
		"gisette":                "gisette 6000 1000 5000 2 CC BY 4.0 absent (has to be in --data-dir)",
		"covertype":              "covertype 581012 54 2 CC BY 4.0 absent (has to be in --data-dir)",
		"breast-cancer":          "breast-cancer 569 30 2 0.1241 CC BY 4.0 complete " + dir,
		"breast-cancer-original": "breast-cancer-original 699 9 2 0.01989 CC BY 4.0 absent",
	}
	got := make(map[string]string)
	for line := range strings.Lines(stdout) {
		fields := strings.Fields(line)
		got[fields[0]] = strings.Join(fields, " ")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}

	stdout, _, code = clitest.Invoke(t, "", "data", "list", "--data-dir", dir, "--output", "json")
	var list []struct {
		Name  string `json:"name"`
		State string `json:"state"`
		Files []struct {
			Path string `json:"path"`
		} `json:"files"`
	}
	if err := json.Unmarshal([]byte(stdout), &list); err != nil || code != command.ExitOK {
		t.Fatalf("exit code %d, error %v", code, err)
	}
	if seventh := list[6]; seventh.Name != "breast-cancer" || seventh.State != "complete" || seventh.Files[0].Path != filepath.Join(dir, "wdbc.data") {
		t.Errorf("seventh dataset %+v", seventh)
	}

	if _, stderr, code := clitest.Invoke(t, "", "data", "list", "--data-dir", filepath.Join(dir, "none")); code != command.ExitFailure || !strings.Contains(stderr, "--data-dir") {
		t.Errorf("folder that does not exist: exit code %d, error %q", code, stderr)
	}
}

func TestDataFetch(t *testing.T) {
	folder := datasettest.Folder(t, "breast-cancer")
	cache := freshCache(t)
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		http.StripPrefix("/data/breast-cancer", http.FileServer(http.Dir(folder))).ServeHTTP(w, r)
	}))
	defer server.Close()
	t.Setenv("DPARETO_MIRROR", server.URL+"/data")
	path := filepath.Join(cache, "breast-cancer", "wdbc.data")
	for range 2 { // the second time from the cache
		stdout, stderr, code := clitest.Invoke(t, "", "data", "fetch", "breast-cancer", "--output", "csv")
		if want := "dataset,file\nbreast-cancer," + path + "\n"; code != command.ExitOK || stdout != want {
			t.Errorf("exit code %d, output %q, want %q, error %q", code, stdout, want, stderr)
		}
	}
	if requests != 1 {
		t.Errorf("%d requests, want 1", requests)
	}
	// What has changed is downloaded again.
	require.NoError(t, os.WriteFile(path, []byte("changed"), 0o600))
	_, stderr, code := clitest.Invoke(t, "", "data", "fetch", "breast-cancer")
	if code != command.ExitOK || requests != 2 || !strings.Contains(stderr, "downloading breast-cancer: 124 of 124 kB") {
		t.Errorf("exit code %d, %d requests, error %q", code, requests, stderr)
	}
	// One that fails, and one that cannot be downloaded, do not keep the others from it.
	stdout, stderr, code := clitest.Invoke(t, "", "data", "fetch", "--all", "--output", "json")
	if code != command.ExitFailure || !strings.Contains(stdout, path) || !strings.Contains(stderr, "gisette is left out") ||
		!strings.Contains(stderr, "dpareto: download "+server.URL+"/data/adult/a1a.t: 404 Not Found download") {
		t.Errorf("exit code %d, output %q, error %q", code, stdout, stderr)
	}
	if _, stderr, code := clitest.Invoke(t, "", "data", "fetch", "gisette"); code != command.ExitFailure || !strings.Contains(stderr, "gisette_train.data") {
		t.Errorf("exit code %d, error %q", code, stderr)
	}
}
