package site_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
)

// zippedSize returns the size of a file, compressed as the server does it.
func zippedSize(t *testing.T, file string) int {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	var zipped bytes.Buffer
	z, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	require.NoError(t, err)
	require.NoError(t, require.ErrOf(z.Write(content)))
	require.NoError(t, z.Close())
	return zipped.Len()
}

// Scripts, styles and fonts of all views together have at most 60,000 bytes, compressed.
func TestSize(t *testing.T) {
	const limit = 60_000
	files, err := filepath.Glob("static/*")
	require.NoError(t, err)
	files = append(files, "../look/page.css")
	total := 0
	for _, file := range files {
		if filepath.Ext(file) == ".txt" { // not loaded by the page
			continue
		}
		size := zippedSize(t, file)
		t.Logf("%s: %d bytes, compressed", file, size)
		total += size
	}
	t.Logf("together: %d bytes", total)
	if total > limit {
		t.Errorf("scripts and styles have %d bytes, compressed, more than %d", total, limit)
	}
}

// The scripts and styles of others are those that npm has under these names and versions.
func TestLibrariesAreThosePublished(t *testing.T) {
	for _, library := range []struct{ file, source, digest string }{
		{"htmx.min.js", "htmx.org@2.0.7/dist/htmx.min.js", "60231ae6ba9db3825eb15a261122d5f55921c4d53b66bf637dc18b4ee27c79f9"},
		{"sse.min.js", "htmx-ext-sse@2.2.3/dist/sse.min.js", "204a17ec2bf490b7df592f55ebe547e44b099fb53c88b442d0bced0e10327e12"},
	} {
		content, err := os.ReadFile(filepath.Join("static", library.file))
		require.NoError(t, err)
		if digest := sha256.Sum256(content); hex.EncodeToString(digest[:]) != library.digest {
			t.Errorf("%s is not %s of npm: its SHA-256 is %x", library.file, library.source, digest)
		}
	}
}
