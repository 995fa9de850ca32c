package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dpareto/dpareto/internal/require"
)

// The licences of a folder and of those above apply to a package, and no others.
func TestLicences(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{
		"LICENSE", "license.go", "licensed.txt", "COPYING.lib", "third_party_licenses/Sun", "third_party_licenses/deeper/not",
		"a/NOTICE.md", "a/b/Unlicense", "a/b/c/LICENCE", "other/LICENSE",
	} {
		path := filepath.Join(dir, filepath.FromSlash(file))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
	}
	m := &module{name: "m", dir: dir, folders: []string{filepath.FromSlash("a/b"), "a"}}
	got, err := m.licences()
	require.NoError(t, err)
	for i := range got {
		got[i] = filepath.ToSlash(got[i])
	}
	want := []string{"COPYING.lib", "LICENSE", "a/NOTICE.md", "a/b/Unlicense", "third_party_licenses/Sun"}
	if !slices.Equal(got, want) {
		t.Errorf("licences %q, want %q", got, want)
	}
	m.dir = filepath.Join(dir, "a", "b", "c", "..", "..", "..", "third_party_licenses", "deeper")
	m.folders = nil
	if _, err := m.licences(); err == nil || !strings.Contains(err.Error(), "m has no licence") {
		t.Errorf("a module without a licence: %v", err)
	}
}

func TestProgram(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run([]string{"github.com/dpareto/dpareto/cmd/dpareto"}, &out))
	for _, want := range []string{"\nGo go1.", "\ngo.etcd.io/bbolt v", "\ngonum.org/v1/gonum v", "\nhtmx.org ", "Permission is hereby granted"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the notices lack %q", want)
		}
	}
	if !utf8.Valid(out.Bytes()) {
		t.Error("the notices are not in UTF-8")
	}
	if strings.Contains(out.String(), "\ngithub.com/dpareto/") {
		t.Error("the program is its own third party")
	}
}
