package web

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
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
	// aliveEvery is the time between signs of life where nothing changes, so that proxies keep the
	// stream open.
	aliveEvery = 20 * time.Second
)

// live streams the parts of a view named in the query, once now and again whenever the study has
// changed, as server-sent events named like the parts: /studies/{study}/live?part=state&part=front.
// Parts come in the order of the query, each when it is ready. The rest of the query are settings of
// the view. The stream ends when the server stops; browsers connect again.
func (s *site) live(w http.ResponseWriter, r *http.Request) error {
	query, known := r.URL.Query(), s.parts()
	for _, name := range query["part"] {
		if known[name] == nil {
			return errNotFound
		}
	}
	ctx := outgoing(r)
	study, err := s.studies.GetStudy(ctx, &dparetov1.GetStudyRequest{Name: studyName(r)})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes, err := s.changes(ctx, cancel, study.GetStudy())
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/event-stream")
	events := &eventWriter{w: w, controller: http.NewResponseController(w)}
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	request := &partRequest{Study: study.GetStudy().GetName(), Query: query}
	for {
		started := time.Now()
		for _, name := range query["part"] {
			if err := s.send(ctx, events, name, known[name], request); err != nil {
				return nil // the reader has gone, or the server stops
			}
		}
		select {
		case <-time.After(max(liveEvery, restFactor*time.Since(started))):
		case <-ctx.Done():
			return nil
		}
		for changed := false; !changed; {
			select {
			case <-changes:
				changed = true
			case <-alive.C:
				if events.comment("alive") != nil {
					return nil
				}
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// changes returns a channel that holds a value when the study has changed since the last one was
// taken. The context is cancelled when there will be no more.
func (s *site) changes(ctx context.Context, cancel context.CancelFunc, study *dparetov1.Study) (<-chan struct{}, error) {
	stream, err := s.studies.WatchStudy(ctx, &dparetov1.WatchStudyRequest{
		Name: study.GetName(), AfterRevision: study.GetRevision(), StudyUid: study.GetUid(),
	})
	if err != nil {
		return nil, err
	}
	changes := make(chan struct{}, 1)
	go func() {
		defer cancel()
		for {
			if _, err := stream.Recv(); err != nil {
				return
			}
			select {
			case changes <- struct{}{}:
			default: // the reader will see this change with the last one
			}
		}
	}()
	return changes, nil
}

// send makes a part and sends it. A part that cannot be made is replaced by its error.
func (s *site) send(ctx context.Context, events *eventWriter, name string, p part, request *partRequest) error {
	data, err := p(ctx, request)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	template := name
	if err != nil {
		template, data = "error-part", s.errorOf(err)
	}
	var content bytes.Buffer
	if err := s.templates.write(&content, template, data); err != nil {
		return err
	}
	return events.send(name, content.Bytes())
}

// eventWriter writes server-sent events.
type eventWriter struct {
	w          io.Writer
	controller *http.ResponseController
}

// send sends an event.
func (e *eventWriter) send(name string, data []byte) error {
	var event bytes.Buffer
	fmt.Fprintf(&event, "event: %s\n", name)
	for line := range bytes.Lines(data) {
		fmt.Fprintf(&event, "data: %s\n", bytes.TrimRight(line, "\r\n"))
	}
	event.WriteByte('\n')
	return e.write(event.Bytes())
}

// comment sends what browsers ignore.
func (e *eventWriter) comment(text string) error { return e.write([]byte(": " + text + "\n\n")) }

func (e *eventWriter) write(event []byte) error {
	// Not every ResponseWriter supports deadlines; net/http's does.
	_ = e.controller.SetWriteDeadline(time.Now().Add(writePatience))
	if _, err := e.w.Write(event); err != nil {
		return fmt.Errorf("web: %w", err)
	}
	return e.controller.Flush()
}
