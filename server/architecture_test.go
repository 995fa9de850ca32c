package server_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
)

// Every file that docs/explanation/architecture.md, internals.md and docs/how-to/extend.md name exists, and the
// first names every package of the server, as code or in the picture: a word of a sentence is no name.
func TestArchitectureIsDescribed(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("..", "docs", "explanation", name))
		require.NoError(t, err)
		return string(text)
	}
	document := read("architecture.md")
	roots := []string{"..", ".", filepath.Join("..", "cmd")}
	for _, quoted := range regexp.MustCompile("`([a-z][\\w./-]*/[\\w./-]*)`").FindAllStringSubmatch(document+read("internals.md")+read("../how-to/extend.md"), -1) {
		found := false
		for _, root := range roots {
			_, err := os.Stat(filepath.Join(root, filepath.FromSlash(quoted[1])))
			found = found || err == nil
		}
		if !found {
			t.Errorf("%s does not exist", quoted[1])
		}
	}
	described := make(map[string]bool)
	name := regexp.MustCompile(`\w+`)
	for _, code := range regexp.MustCompile("`[^`\n]+`").FindAllString(document, -1) {
		for _, word := range name.FindAllString(code, -1) {
			described[word] = true
		}
	}
	for _, line := range regexp.MustCompile(`(?m)^    \S.*$`).FindAllString(document, -1) {
		columns := regexp.MustCompile(`\s{2,}`).Split(strings.TrimSpace(line), -1)
		for _, column := range columns[:max(1, len(columns)-1)] { // the last says what the others are
			for _, word := range name.FindAllString(column, -1) {
				described[word] = true
			}
		}
	}
	require.NoError(t, filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() || path == "." {
			return err
		}
		files, err := filepath.Glob(filepath.Join(path, "*.go"))
		name := filepath.Base(path)
		if len(files) > 0 && !strings.HasSuffix(name, "test") && name != "fault" && !described[name] {
			t.Errorf("%s is not described", path)
		}
		return err
	}))
}

// Every test that SECURITY.md or docs/reference/publishing.md names, or the Makefile for PostgreSQL, exists.
func TestNamedTestsExist(t *testing.T) {
	document, err := os.ReadFile(filepath.Join("..", "SECURITY.md"))
	require.NoError(t, err)
	publishing, err := os.ReadFile(filepath.Join("..", "docs", "reference", "publishing.md"))
	require.NoError(t, err)
	makefile, err := os.ReadFile(filepath.Join("..", "Makefile"))
	require.NoError(t, err)
	tests := map[string]bool{}
	require.NoError(t, filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || entry.IsDir() && path == "..":
			return err
		case entry.IsDir() && entry.Name()[0] == '.': // what was built
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		code, err := os.ReadFile(path)
		for _, test := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(code, -1) {
			tests[string(test[1])] = true
		}
		return err
	}))
	named := regexp.MustCompile("`(Test\\w+)`").FindAllSubmatch(append(document, publishing...), -1)
	if len(named) < 10 {
		t.Fatalf("the documents name %d tests", len(named))
	}
	lists := regexp.MustCompile(`(?m)^\w+_ON_POSTGRES = (?:.*\\\n)*.*`).FindAllString(string(makefile), -1)
	listed := regexp.MustCompile(`\b(Test\w+)`).FindAllStringSubmatch(strings.Join(lists, "\n"), -1)
	if len(listed) < 30 {
		t.Fatalf("the Makefile lists %d tests", len(listed))
	}
	for _, name := range listed {
		if !tests[name[1]] {
			t.Errorf("there is no %s", name[1])
		}
	}
	for _, name := range named {
		if !tests[string(name[1])] {
			t.Errorf("there is no %s", name[1])
		}
	}
}
