package child_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dpareto/dpareto/cmd/internal/child"
	"github.com/dpareto/dpareto/internal/require"
)

// roleVariable makes the test binary play a child or a parent.
const roleVariable = "DPARETO_CHILD_TEST_ROLE"

// patience ends a test that hangs.
const patience = 10 * time.Minute

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "":
		os.Exit(m.Run())
	case "obedient":
		ctx := child.Supervised(context.Background(), os.Stdin)
		fmt.Fprintln(os.Stdout, "ready", os.Getpid())
		fmt.Fprintln(os.Stdout, "more output")
		<-ctx.Done()
		fmt.Fprintln(os.Stderr, "stopping")
	case "stubborn":
		fmt.Fprintln(os.Stdout, "ready", os.Getpid())
		select {}
	case "failing":
		os.Exit(3)
	case "parent":
		os.Setenv(roleVariable, "obedient")
		p, err := child.Start("grandchild", os.Stderr, nil, os.Args[0])
		if err != nil {
			panic(err)
		}
		fmt.Fprintln(os.Stdout, <-p.Line())
		select {} // until it is killed
	}
}

func start(t *testing.T, role string, stderr io.Writer) *child.Process {
	t.Helper()
	t.Setenv(roleVariable, role)
	p, err := child.Start(role, stderr, nil, os.Args[0])
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Stop(0) })
	return p
}

// ended waits until a process has ended.
func ended(t *testing.T, p *child.Process) {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(patience):
		t.Fatal("the child goes on")
	}
}

func TestStop(t *testing.T) {
	var stderr bytes.Buffer
	p := start(t, "obedient", &stderr)
	if line := <-p.Line(); !strings.HasPrefix(line, "ready ") {
		t.Errorf("first line %q", line)
	}
	for range 2 {
		if err := p.Stop(patience); err != nil {
			t.Errorf("Stop: %v", err)
		}
	}
	if got := stderr.String(); got != "stopping\n" {
		t.Errorf("stderr %q", got)
	}
}

func TestStopKills(t *testing.T) {
	p := start(t, "stubborn", io.Discard)
	<-p.Line()
	if err := p.Stop(time.Millisecond); err == nil || !strings.Contains(err.Error(), "stubborn: ") {
		t.Errorf("Stop: %v, want an error that names the process", err)
	}
}

func TestFailure(t *testing.T) {
	p := start(t, "failing", io.Discard)
	ended(t, p)
	if err := p.Err(); err == nil || err.Error() != "failing: exit status 3" {
		t.Errorf("Err: %v", err)
	}
}

func TestNoProgram(t *testing.T) {
	if _, err := child.Start("server", io.Discard, nil, "/nonexistent/program"); err == nil || !strings.HasPrefix(err.Error(), "server: ") {
		t.Errorf("Start: %v", err)
	}
}

// A child ends when its parent is killed, and cannot do anything about it.
func TestParentKilled(t *testing.T) {
	reader, writer, err := os.Pipe() // held open by parent and grandchild
	require.NoError(t, err)
	parent := start(t, "parent", writer)
	writer.Close()
	line := <-parent.Line()
	if _, err := strconv.Atoi(strings.TrimPrefix(line, "ready ")); err != nil {
		t.Fatalf("first line %q", line)
	}
	_ = parent.Stop(0) // it does not watch its standard input: this kills it
	reader.SetReadDeadline(time.Now().Add(patience))
	if got, err := bufio.NewReader(reader).ReadString('\n'); got != "stopping\n" || err != nil {
		t.Errorf("grandchild wrote %q, %v; want that it stops", got, err)
	}
}
