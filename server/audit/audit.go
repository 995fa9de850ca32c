package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// syncEvery is the time between two syncs.
const syncEvery = time.Second

// Record is what the log says of a call.
type Record struct {
	// Time is when the call was answered.
	Time time.Time `json:"time"`
	// Principal and Credential are who called.
	Principal  string `json:"principal"`
	Credential string `json:"credential,omitempty"`
	// Peer is the address that the call came from.
	Peer string `json:"peer,omitempty"`
	// Method is the full name of the method.
	Method string `json:"method"`
	// Resource is the name of the study or trial that the request is about.
	Resource string `json:"resource,omitempty"`
	// RequestID is the request_id of the caller.
	RequestID string `json:"request_id,omitempty"`
	// Code is the status code of the answer: OK, PermissionDenied, ...
	Code string `json:"code"`
	// Changed are the resources in the answer, as they are after the change.
	Changed []Changed `json:"changed,omitempty"`
}

// Changed is a resource after a change.
type Changed struct {
	Name string `json:"name"`
	Etag string `json:"etag,omitempty"`
	// Revision is that of the study, for studies.
	Revision int64 `json:"revision,omitempty"`
}

// maxName bounds names in records, in bytes, and maxChanged the resources of one record.
const (
	maxName    = 300
	maxChanged = 100
)

func truncate(s string) string {
	if len(s) > maxName {
		return s[:maxName]
	}
	return s
}

// RequestID returns the request_id of a request, "" if it has none.
func RequestID(request protoreflect.Message) string {
	return truncate(text(request, "request_id"))
}

// text returns the value of a field of type string, "" if there is none.
func text(m protoreflect.Message, name protoreflect.Name) string {
	field := m.Descriptor().Fields().ByName(name)
	if field == nil || field.Kind() != protoreflect.StringKind || field.IsList() {
		return ""
	}
	return m.Get(field).String()
}

// ChangedIn returns the studies and trials in an answer.
func ChangedIn(response protoreflect.Message) []Changed {
	var changed []Changed
	add := func(m protoreflect.Message) {
		if name := text(m, "name"); name != "" && len(changed) < maxChanged {
			c := Changed{Name: truncate(name), Etag: truncate(text(m, "etag"))}
			if field := m.Descriptor().Fields().ByName("revision"); field != nil && field.Kind() == protoreflect.Int64Kind {
				c.Revision = m.Get(field).Int()
			}
			changed = append(changed, c)
		}
	}
	for _, name := range []protoreflect.Name{"study", "trial", "trials"} {
		field := response.Descriptor().Fields().ByName(name)
		switch {
		case field == nil || field.Message() == nil || field.IsMap() || !response.Has(field):
		case field.IsList():
			for list, i := response.Get(field).List(), 0; i < list.Len(); i++ {
				add(list.Get(i).Message())
			}
		default:
			add(response.Get(field).Message())
		}
	}
	return changed
}

// Log is an audit log. It is safe for concurrent use.
type Log struct {
	logger *slog.Logger
	path   string // "" for a stream
	done   chan struct{}
	ended  sync.WaitGroup

	mu      sync.Mutex
	out     io.Writer
	file    *os.File // out, where it is a file of ours
	unsaved bool     // written and not synced
	pending []byte   // what could not be written
	broken  error    // why
}

// New returns a log on a stream, such as standard error. It is not synced.
func New(out io.Writer, logger *slog.Logger) *Log { return &Log{out: out, logger: logger} }

// Open returns a log at the end of a file, which is made if need be, readable by its owner
// only. When the file is renamed or removed, as programs that rotate logs do, the log goes
// on in a new one within a second. Close closes it.
func Open(path string, logger *slog.Logger) (*Log, error) {
	l := &Log{path: path, logger: logger, done: make(chan struct{})}
	if err := l.open(); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	l.ended.Go(l.keep)
	return l, nil
}

func (l *Log) open() error {
	file, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	l.file, l.out = file, file
	return nil
}

// keep syncs the file now and then until the log is closed.
func (l *Log) keep() {
	ticker := time.NewTicker(syncEvery)
	defer ticker.Stop()
	for {
		select {
		case <-l.done:
			return
		case <-ticker.C:
			l.mu.Lock()
			l.sync()
			l.reopen()
			l.mu.Unlock()
		}
	}
}

// sync syncs what was written. The caller holds the lock.
func (l *Log) sync() {
	if !l.unsaved {
		return
	}
	if err := l.file.Sync(); err != nil {
		l.fail(err)
		return
	}
	l.unsaved = false
}

// reopen goes on in a new file where the old one was moved away.
func (l *Log) reopen() {
	current, err := l.file.Stat()
	if err != nil {
		return
	}
	named, err := os.Stat(l.path)
	if err == nil && os.SameFile(current, named) || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return
	}
	old := l.file
	if err := l.open(); err != nil {
		l.fail(err)
		return
	}
	if err := old.Close(); err != nil {
		l.logger.Error("audit log", "error", err)
	}
}

// fail remembers that the log cannot be written, and says so once.
func (l *Log) fail(err error) {
	if l.broken == nil {
		l.logger.Error("THE AUDIT LOG CANNOT BE WRITTEN: changes are refused until it can", "file", l.path, "error", err)
	}
	l.broken = err
}

// Ready returns nil if a change that is made now can be recorded. After a failure it tries
// again to write what was left.
func (l *Log) Ready() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken == nil {
		return nil
	}
	l.flush()
	if l.broken == nil && l.file != nil {
		l.sync()
	}
	if l.broken == nil {
		l.logger.Info("the audit log can be written again", "file", l.path)
	}
	return l.broken
}

// flush writes what is pending.
func (l *Log) flush() {
	n, err := l.out.Write(l.pending)
	l.pending = l.pending[n:]
	if err != nil {
		l.fail(err)
		return
	}
	l.pending, l.broken = nil, nil
	l.unsaved = l.file != nil
}

// Write records a call. When it cannot be written the record is kept in memory, and
// written as soon as the log can be.
func (l *Log) Write(r Record) {
	r.Resource, r.RequestID, r.Method = truncate(r.Resource), truncate(r.RequestID), truncate(r.Method)
	var line bytes.Buffer
	encoder := json.NewEncoder(&line) // one line, for a newline in a name is escaped
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(r); err != nil {
		panic(fmt.Sprintf("audit: %v", err)) // strings and numbers always encode
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = append(l.pending, line.Bytes()...)
	if l.broken == nil {
		l.flush()
	}
}

// Close writes what is left, syncs and closes the file.
func (l *Log) Close() error {
	if l.file == nil {
		return nil
	}
	close(l.done)
	l.ended.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flush()
	l.sync()
	return errors.Join(l.broken, l.file.Close())
}
