package study_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/internal/require"
)

// The URL of a study's page is printed when it is created and on demand, and given to a browser.
func TestPage(t *testing.T) {
	address, _ := clitest.StartServer(t, "--listen", "127.0.0.1:0")
	t.Setenv("DPARETO_SERVER", address)
	_, log := clitest.Must(t, clitest.SmallStudy, "study", "create", "-")
	page := strings.TrimSpace(clitest.Succeed(t, "study page small"))
	if !strings.HasPrefix(page, "http://127.0.0.1:") || !strings.HasSuffix(page, "/studies/small") || !strings.Contains(log, "page: "+page+"\n") {
		t.Errorf("page %q, log %q", page, log)
	}
	clitest.Fail(t, command.ExitNotFound, "study page other")
	if runtime.GOOS == "linux" {
		folder := t.TempDir()
		opened := filepath.Join(folder, "opened")
		require.NoError(t, os.WriteFile(filepath.Join(folder, "xdg-open"), []byte("#!/bin/sh\necho \"$@\" > "+opened+"\n"), 0o700))
		t.Setenv("PATH", folder)
		clitest.Succeed(t, "study page small --open")
		if got, err := os.ReadFile(opened); err != nil || string(got) != page+"\n" {
			t.Errorf("the browser got %q, %v", got, err)
		}
		t.Setenv("PATH", "")
		if _, stderr := clitest.Fail(t, command.ExitFailure, "study page small --open"); !strings.Contains(stderr, "xdg-open") {
			t.Errorf("without a browser: %s", stderr)
		}
	}
}

// A server without an HTTP port has no page.
func TestNoPage(t *testing.T) {
	address, _ := clitest.StartServer(t, "--listen", "127.0.0.1:0", "--http-listen", "none")
	t.Setenv("DPARETO_SERVER", address)
	if _, log := clitest.Must(t, clitest.SmallStudy, "study", "create", "-"); strings.Contains(log, "page: ") {
		t.Errorf("log %q", log)
	}
	if _, stderr := clitest.Fail(t, command.ExitFailure, "study page small"); !strings.Contains(stderr, "http-listen") {
		t.Errorf("error %q", stderr)
	}
}
