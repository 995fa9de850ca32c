// Package datasettest finds real datasets for tests, and counts in them. They are not part of the repository:
// each lies in NAME below the folder named by the environment variable DPARETO_DATA_DIR,
// as for the programs, or below a folder "shared/data" next to the clone.
package datasettest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
)

// Folder returns the folder of a dataset, and skips the test, naming the folder, where
// it does not exist.
func Folder(t testing.TB, name string) string {
	t.Helper()
	data := os.Getenv("DPARETO_DATA_DIR")
	if data == "" {
		data = filepath.Join(root(t), "..", "shared", "data")
	}
	folder := filepath.Join(data, name)
	if _, err := os.Stat(folder); err != nil {
		t.Skipf("no dataset %s: %v", name, err)
	}
	return folder
}

// root returns the folder of go.mod above the working directory.
func root(t testing.TB) string {
	t.Helper()
	folder, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			t.Fatal("no go.mod above the working directory")
		}
		folder = parent
	}
}

// Positives returns the number of labels that are positive.
func Positives(labels []float32) int {
	n := 0
	for _, label := range labels {
		if label > 0 {
			n++
		}
	}
	return n
}
