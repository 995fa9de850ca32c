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

// syncEvery is the time between syncs of the log file.
const syncEvery = time.Second

// Record is the log's entry for a call.
type Record struct {
	// Time is when the call was answered.
	Time time.Time `json:"time"`
	// Principal and Credential say who called.
	Principal  string `json:"principal"`
	Credential string `json:"credential,omitempty"`
	// Peer is the address of the caller.
	Peer string `json:"peer,omitempty"`
	// Method is the full name of the method.
	Method string `json:"method"`
	// Resource is the name of the resource in the request.
	Resource string `json:"resource,omitempty"`
	// RequestID is the request_id in the request.
	RequestID string `json:"request_id,omitempty"`
	// Code is the status code of the response: OK, PermissionDenied, ...
	Code string `json:"code"`
	// Changed lists the resources in the response, in their state after the change.
	Changed []Changed `json:"changed,omitempty"`
}

// Changed is a resource after a change.
type Changed struct {
	Name string `json:"name"`
	Etag string `json:"etag,omitempty"`
	// Revision is the revision of a study or trial.
	Revision int64 `json:"revision,omitempty"`
}

// maxName bounds names in a record, in bytes; maxChanged bounds its resources.
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

// RequestID returns the request_id of a request, "" if it has none, cut to 300 bytes.
func RequestID(request protoreflect.Message) string {
	return truncate(text(request, "request_id"))
}

// text returns the value of a string field, "" if there is no such field.
func text(m protoreflect.Message, name protoreflect.Name) string {
	field := m.Descriptor().Fields().ByName(name)
	if field == nil || field.Kind() != protoreflect.StringKind || field.IsList() {
		return ""
	}
	return m.Get(field).String()
}

// ChangedIn returns the studies and trials in a response, at most 100.
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
	file    *os.File // same as out if Open made it, else nil
	unsaved bool     // written but not synced
	pending []byte   // records that could not be written
	broken  error    // cause of the last failure, nil if writing works
}

// New returns a log on a stream, such as standard error. It never syncs.
func New(out io.Writer, logger *slog.Logger) *Log { return &Log{out: out, logger: logger} }

// Open returns a log that appends to a file, created if necessary and readable by its owner only. If
// the file is renamed or removed, as log rotation does, the log continues in a new file within a
// second. Close closes it.
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

// keep syncs the file, and follows rotation, until the log is closed.
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

// sync syncs the written records. The caller holds the lock.
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

// reopen switches to a new file if the old one was moved away.
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

// fail records a failure. It logs the first one in a row.
func (l *Log) fail(err error) {
	if l.broken == nil {
		l.logger.Error("THE AUDIT LOG CANNOT BE WRITTEN: changes are refused until it can", "file", l.path, "error", err)
	}
	l.broken = err
}

// Ready returns nil if the log can record a change now. After a failure it retries the pending
// records first.
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

// flush writes the pending records.
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

// Write records a call. If writing fails, the record waits in memory until the log works again.
func (l *Log) Write(r Record) {
	r.Resource, r.RequestID, r.Method = truncate(r.Resource), truncate(r.RequestID), truncate(r.Method)
	var line bytes.Buffer
	encoder := json.NewEncoder(&line) // one line: newlines in names are escaped
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

// Close writes the pending records, syncs and closes the file.
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
