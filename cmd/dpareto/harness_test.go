package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/store/opentest"
)

// patience ends a test that hangs. No step takes as long on a machine that is thirty times slower than it should be.
const patience = 10 * time.Minute

// binary is the program under test.
var binary string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

// run builds the program and runs the tests.
func run(m *testing.M) int {
	folder, err := os.MkdirTemp("", "dpareto-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	binary = filepath.Join(folder, "dpareto")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		return 1
	}
	return m.Run()
}

// program returns the program with arguments, in a clean environment: no variable
// of ours, folders of the test, and no network.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(binary, args...)
	home := t.TempDir()
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "DPARETO_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "HOME="+home, "XDG_CACHE_HOME="+filepath.Join(home, "cache"), "XDG_CONFIG_HOME="+filepath.Join(home, "config"),
		"HTTPS_PROXY=http://127.0.0.1:1", "https_proxy=http://127.0.0.1:1", "NO_PROXY=", "no_proxy=")
	cmd.Dir = home
	return cmd
}

// result is what a program printed, and how it ended.
type result struct {
	stdout, stderr string
	code           int
}

// runProgram runs the program to its end.
func runProgram(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	return finish(t, program(t, args...), stdin)
}

func finish(t *testing.T, cmd *exec.Cmd, stdin string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	require.NoError(t, cmd.Start())
	timer := time.AfterFunc(2*patience, func() { cmd.Process.Kill() })
	defer timer.Stop()
	err := cmd.Wait()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// must runs the program and fails the test unless it succeeds. It returns the output.
func must(t *testing.T, args ...string) string {
	t.Helper()
	r := runProgram(t, "", args...)
	if r.code != 0 {
		t.Fatalf("dpareto %s: exit code %d\n%s", strings.Join(args, " "), r.code, r.stderr)
	}
	return r.stdout
}

// process is a program that goes on.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // set before ended is closed

	mu    sync.Mutex
	log   []string      // lines on standard error
	grown chan struct{} // closed and replaced at every line
}

// start starts the program. It is killed at the end of the test.
func start(t *testing.T, cmd *exec.Cmd, stdout io.Writer) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, ended: make(chan struct{}), grown: make(chan struct{})}
	cmd.Stdout = stdout
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	go func() {
		defer close(p.ended)
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			p.add(lines.Text())
		}
		p.err = cmd.Wait()
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("%s:\n%s", strings.Join(cmd.Args[1:], " "), strings.Join(p.lines(), "\n"))
		}
	})
	return p
}

func (p *process) add(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, line)
	close(p.grown)
	p.grown = make(chan struct{})
}

// lines returns what the program has written to standard error so far.
func (p *process) lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.log...)
}

// await waits until at least n lines on standard error match.
func (p *process) await(n int, pattern *regexp.Regexp) {
	p.t.Helper()
	deadline := time.After(patience)
	for {
		p.mu.Lock()
		grown := p.grown
		p.mu.Unlock()
		matches := 0
		for _, line := range p.lines() {
			if pattern.MatchString(line) {
				matches++
			}
		}
		if matches >= n {
			return
		}
		select {
		case <-grown:
		case <-p.ended:
			if len(p.lines()) > 0 && p.err == nil {
				select {
				case <-grown:
					continue
				default:
				}
			}
			p.t.Fatalf("the program ended with %d of %d lines that match %v", matches, n, pattern)
		case <-deadline:
			p.t.Fatalf("%d of %d lines match %v", matches, n, pattern)
		}
	}
}

// wait waits until the program has ended and returns its exit code.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(2 * patience):
		p.t.Fatalf("%s goes on", strings.Join(p.cmd.Args[1:], " "))
		return -1
	}
}

// signal sends a signal and waits until the program has ended. It returns the exit code.
func (p *process) signal(s os.Signal) int {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s))
	return p.wait()
}

// server is a running server.
type server struct {
	*process
	address string
}

// serve starts a server on a store and waits until it listens.
func serve(t *testing.T, storeFile, listen string) *server {
	t.Helper()
	return serveStore(t, opentest.Name(t, storeFile), listen)
}

// serveStore is serve for a store with a name, such as a URL.
func serveStore(t *testing.T, name, listen string) *server {
	t.Helper()
	reader, writer := io.Pipe()
	t.Cleanup(func() { reader.Close() })
	p := start(t, program(t, "serve", "--store", name, "--create", "--listen", listen), writer)
	go func() {
		<-p.ended
		writer.Close()
	}()
	line, err := bufio.NewReader(reader).ReadString('\n')
	if err != nil {
		t.Fatalf("the server printed %q: %v\n%s", line, err, strings.Join(p.lines(), "\n"))
	}
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !ok {
		t.Fatalf("the server printed %q", line)
	}
	go io.Copy(io.Discard, reader)
	return &server{p, address}
}

// runningPrograms returns the process ids of the program under test, or skips the test
// where they cannot be found.
func runningPrograms(t *testing.T) []int {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil || len(links) == 0 {
		t.Skip("no /proc to find processes in")
	}
	var ids []int
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && target == binary {
			id, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
			require.NoError(t, err)
			ids = append(ids, id)
		}
	}
	return ids
}

// awaitPrograms waits until a condition on the number of running programs holds.
func awaitPrograms(t *testing.T, what string, condition func(n int) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		ids := runningPrograms(t)
		if condition(len(ids)) {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("%s; running: %v", what, ids)
		}
	}
}
