package child

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// Process is a running child. It is safe for concurrent use.
type Process struct {
	name  string
	cmd   *exec.Cmd
	stdin io.Closer
	line  chan string // the first line of its output
	done  chan struct{}
	err   error // why it ended, set before done is closed
}

// Start starts a program, whose log goes to stderr. The environment is a list of "key=value",
// or nil for ours. The name is used in errors.
func Start(name string, stderr io.Writer, environment []string, program string, args ...string) (*Process, error) {
	cmd := exec.Command(program, args...) //nolint:noctx // Stop ends it, in an orderly way
	cmd.Env = environment
	p := &Process{name: name, cmd: cmd, line: make(chan string, 1), done: make(chan struct{})}
	p.cmd.Stdout = &firstLine{found: p.line}
	p.cmd.Stderr = stderr
	p.cmd.SysProcAttr = ownGroup()
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p.stdin = stdin
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	go func() {
		defer close(p.done)
		if err := p.cmd.Wait(); err != nil {
			p.err = fmt.Errorf("%s: %w", name, err)
		}
	}()
	return p, nil
}

// Line returns a channel that yields the first line that the child prints, once.
func (p *Process) Line() <-chan string { return p.line }

// Done returns a channel that is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns why the child ended: nil for an exit status of 0. It must not be called
// before Done is closed.
func (p *Process) Err() error { return p.err }

// Stop asks the child to stop and waits until it has ended; after the grace it is killed.
// It returns what Err does. It can be called again, and after the end.
func (p *Process) Stop(grace time.Duration) error {
	// Closing twice, or after the end, fails, which does not matter.
	_ = p.stdin.Close()
	select {
	case <-p.done:
	case <-time.After(grace):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	return p.err
}

// Supervised is called by a child. It returns a context that is done when the parent wants
// the child to stop, or is gone: both end the child's standard input.
//
// From then on the child ignores interrupts, which a terminal also sends to the parent, and
// survives the loss of its output.
func Supervised(ctx context.Context, stdin io.Reader) context.Context {
	signal.Ignore(os.Interrupt, syscall.SIGPIPE)
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		// An error means the end as well.
		_, _ = io.Copy(io.Discard, stdin)
		cancel()
	}()
	return ctx
}

// firstLine sends the first line that is written to it and drops the rest.
type firstLine struct {
	mu    sync.Mutex
	head  []byte
	found chan<- string // nil after it was sent
}

// Write implements io.Writer.
func (f *firstLine) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.found == nil {
		return len(p), nil
	}
	f.head = append(f.head, p...)
	if line, _, ok := bytes.Cut(f.head, []byte("\n")); ok {
		f.found <- string(line)
		f.found, f.head = nil, nil
	}
	return len(p), nil
}
