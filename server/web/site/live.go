package site

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

const (
	// liveEvery is the shortest time between two updates of a view. Where making one takes long,
	// the next one waits as many times as long as restFactor says.
	liveEvery  = time.Second
	restFactor = 4
	// writePatience is how long a reader may take to receive an update.
	writePatience = 30 * time.Second
	// leadPatience is how long other parts wait for the rest of a part whose beginning was sent.
	leadPatience = 2 * time.Second
	// aliveEvery is the time between signs of life where nothing changes, so that proxies keep the
	// stream open.
	aliveEvery = 20 * time.Second
)

// live streams the parts of a view named in the query, once now and again whenever the study has
// changed, as server-sent events named like the parts: /studies/{study}/live?part=state&part=front.
// Each part comes when it is ready. At first all wait a little for the part that "lead" names, if there
// is one: it is what readers came for, and the others would take its processors. The rest of the query are
// settings of the view. The stream ends when the server stops; browsers connect again.
func (s *Site) live(w http.ResponseWriter, r *http.Request) error {
	query, known := r.URL.Query(), s.parts
	names := slices.Compact(slices.Sorted(slices.Values(query["part"])))
	for _, name := range names {
		if known[name] == nil {
			return errNotFound
		}
	}
	ctx := Outgoing(r)
	study, err := s.Studies.GetStudy(ctx, &dparetov1.GetStudyRequest{Name: StudyName(r)})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := make([]chan struct{}, len(names))
	for i := range changes {
		changes[i] = make(chan struct{}, 1)
	}
	if err := s.watch(ctx, cancel, study.GetStudy(), changes); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/event-stream")
	events := &eventWriter{w: w, controller: http.NewResponseController(w), lead: query.Get("lead"), led: make(chan struct{})}
	if !slices.Contains(names, events.lead) {
		events.release()
	}
	var sending sync.WaitGroup
	for i, name := range names {
		request := &PartRequest{Study: study.GetStudy().GetName(), Query: query}
		sending.Go(func() {
			defer cancel() // without one of its parts a view would be half old
			if name != events.lead {
				select {
				case <-events.led:
				case <-ctx.Done():
					return
				}
			}
			s.keepSending(ctx, events, name, known[name], request, changes[i])
		})
	}
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	for ctx.Err() == nil {
		select {
		case <-alive.C:
			if events.comment("alive") != nil {
				cancel()
			}
		case <-ctx.Done():
		}
	}
	sending.Wait()
	return nil
}

// watch puts a value into every channel that has none whenever the study has changed. The context is
// cancelled when there will be no more.
func (s *Site) watch(ctx context.Context, cancel context.CancelFunc, study *dparetov1.Study, changes []chan struct{}) error {
	stream, err := s.Studies.WatchStudy(ctx, &dparetov1.WatchStudyRequest{
		Name: study.GetName(), AfterRevision: study.GetRevision(), StudyUid: study.GetUid(),
	})
	if err != nil {
		return err
	}
	go func() {
		defer cancel()
		for {
			if _, err := stream.Recv(); err != nil {
				return
			}
			for _, changed := range changes {
				select {
				case changed <- struct{}{}:
				default: // the reader will see this change with the last one
				}
			}
		}
	}()
	return nil
}

// keepSending sends a part now and after changes, until the context ends or the reader has gone.
func (s *Site) keepSending(ctx context.Context, events *eventWriter, name string, p Part, request *PartRequest, changes <-chan struct{}) {
	request.Early = func(data any) error {
		content, err := s.templates.bytes(name, data)
		if err != nil {
			return err
		}
		if name == events.lead {
			time.AfterFunc(leadPatience, events.release)
		}
		return events.send(name, content)
	}
	for {
		started := time.Now()
		if err := s.send(ctx, events, name, p, request); err != nil {
			return
		}
		if name == events.lead {
			events.release()
		}
		select {
		case <-time.After(max(liveEvery, restFactor*time.Since(started))):
		case <-ctx.Done():
			return
		}
		select {
		case <-changes:
		case <-ctx.Done():
			return
		}
	}
}

// send makes a part and sends it. A part that cannot be made is replaced by its error.
func (s *Site) send(ctx context.Context, events *eventWriter, name string, p Part, request *PartRequest) error {
	data, err := p(ctx, request)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		request.Last = data
	}
	content, err := s.content(name, data, err)
	if err != nil {
		return err
	}
	return events.send(name, content)
}

// eventWriter writes server-sent events. It is safe for concurrent use.
type eventWriter struct {
	mu         sync.Mutex
	w          io.Writer
	controller *http.ResponseController
	lead       string        // the part that others wait for, once
	led        chan struct{} // closed when they need not wait
	once       sync.Once
}

// release lets parts begin that wait for the lead.
func (e *eventWriter) release() { e.once.Do(func() { close(e.led) }) }

// send sends an event.
func (e *eventWriter) send(name string, data []byte) error {
	var event bytes.Buffer
	fmt.Fprintf(&event, "event: %s\n", name)
	// A carriage return alone also ends a line of an event, and would let text begin another.
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	data = bytes.ReplaceAll(data, []byte("\r"), []byte("\n"))
	for line := range bytes.Lines(data) {
		fmt.Fprintf(&event, "data: %s\n", bytes.TrimRight(line, "\n"))
	}
	event.WriteByte('\n')
	return e.write(event.Bytes())
}

// comment sends what browsers ignore.
func (e *eventWriter) comment(text string) error { return e.write([]byte(": " + text + "\n\n")) }

func (e *eventWriter) write(event []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	// Not every ResponseWriter supports deadlines; net/http's does.
	_ = e.controller.SetWriteDeadline(time.Now().Add(writePatience))
	if _, err := e.w.Write(event); err != nil {
		return fmt.Errorf("web: %w", err)
	}
	return e.controller.Flush()
}
