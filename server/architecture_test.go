package server_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every file that docs/architecture.md names exists, and it names every package of the server.
func TestArchitectureIsDescribed(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	document := string(text)
	roots := []string{"..", ".", filepath.Join("..", "cmd")}
	for _, quoted := range regexp.MustCompile("`([a-z][\\w./-]*/[\\w./-]*)`").FindAllStringSubmatch(document, -1) {
		found := false
		for _, root := range roots {
			_, err := os.Stat(filepath.Join(root, filepath.FromSlash(quoted[1])))
			found = found || err == nil
		}
		if !found {
			t.Errorf("%s does not exist", quoted[1])
		}
	}
	err = filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() || path == "." {
			return err
		}
		files, err := filepath.Glob(filepath.Join(path, "*.go"))
		name := filepath.Base(path)
		if len(files) > 0 && !strings.HasSuffix(name, "test") && name != "fault" && !regexp.MustCompile(`\b`+name+`\b`).MatchString(document) {
			t.Errorf("%s is not described", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
