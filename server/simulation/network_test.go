package simulation

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/dpareto/dpareto/server/auth"
	"github.com/dpareto/dpareto/server/failure"
)

// patience is how long a client waits for an answer.
const patience = 5 * time.Second

// errGone says that there is no answer, for whatever reason.
var errGone = status.Error(codes.Unavailable, "no answer")

// services are the methods of a server by their full names. It is the grpc.ServiceRegistrar that
// the server registers with in place of a listening one.
type services map[string]service

// service is a method and what implements it.
type service struct {
	implementation any
	unary          grpc.MethodHandler // or
	stream         grpc.StreamHandler
}

// RegisterService implements grpc.ServiceRegistrar.
func (s services) RegisterService(about *grpc.ServiceDesc, implementation any) {
	for _, m := range about.Methods {
		s["/"+about.ServiceName+"/"+m.MethodName] = service{implementation: implementation, unary: m.Handler}
	}
	for _, m := range about.Streams {
		s["/"+about.ServiceName+"/"+m.StreamName] = service{implementation: implementation, stream: m.Handler}
	}
}

// call is a call as the server got and answered it.
type call struct {
	principal  string
	method     string
	req, resp  proto.Message // resp is nil if err is not
	err        error
	start, end time.Time // true time
}

// connection is a principal's way to the server: a grpc.ClientConnInterface that loses, doubles and
// delays. Its actor makes one call after the other.
type connection struct {
	source

	world     *world
	principal auth.Principal
	trace     trace
}

// Invoke implements grpc.ClientConnInterface.
func (c *connection) Invoke(_ context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	req := proto.Clone(args.(proto.Message))
	answers := make(chan answer, 2)
	journeys := []journey{c.journey()}
	if c.world.rough.Load() && c.chance(0.05) {
		journeys = append(journeys, c.journey())
	}
	gaveUp := time.NewTimer(patience + c.upTo(time.Second))
	defer gaveUp.Stop()
	for _, j := range journeys { // from here on, others may act
		c.world.calls.Go(func() { c.travel(method, req, j, answers) })
	}
	select {
	case a := <-answers:
		if a.err != nil {
			return a.err
		}
		proto.Reset(reply.(proto.Message))
		proto.Merge(reply.(proto.Message), a.resp)
		return nil
	case <-gaveUp.C:
		return errGone
	}
}

// journey is how a call travels.
type journey struct {
	there, back         time.Duration
	lostThere, lostBack bool
}

// journey draws one.
func (c *connection) journey() journey {
	j := journey{there: c.upTo(50 * time.Millisecond), back: c.upTo(50 * time.Millisecond)}
	if !c.world.rough.Load() {
		return j
	}
	if c.chance(0.05) {
		j.there = c.upTo(2 * patience)
	}
	if c.chance(0.05) {
		j.back = c.upTo(2 * patience)
	}
	j.lostThere, j.lostBack = c.chance(0.02), c.chance(0.04)
	return j
}

// answer is what comes back.
type answer struct {
	resp proto.Message
	err  error
}

// travel takes a request to the server and its answer back, unless one of them is lost.
func (c *connection) travel(method string, req proto.Message, j journey, answers chan<- answer) {
	if time.Sleep(j.there); j.lostThere {
		return
	}
	resp, err := c.deliver(method, req)
	if time.Sleep(j.back); j.lostBack {
		return
	}
	select {
	case answers <- answer{resp, err}:
	default:
	}
}

// deliver makes a call at the server, and shows it to the model.
func (c *connection) deliver(method string, req proto.Message) (proto.Message, error) {
	p := c.world.process.Load()
	if p == nil || p.kv.dead.Load() {
		return nil, errGone
	}
	if err := c.principal.Authorize(method, req.ProtoReflect()); err != nil {
		return nil, status.Error(codes.PermissionDenied, err.Error())
	}
	ctx, cancel := context.WithTimeout(auth.NewContext(context.Background(), c.principal), 2*patience)
	defer cancel()
	seen := call{principal: c.principal.Name, method: method, req: req, start: time.Now()}
	s := p.services[method]
	resp, err := s.unary(s.implementation, ctx, func(into any) error {
		proto.Merge(into.(proto.Message), req)
		return nil
	}, nil)
	if p.kv.dead.Load() {
		c.trace.addf("%s %T died", c.principal.Name, req)
		c.world.model.unanswered(seen)
		return nil, errGone
	}
	seen.end = time.Now()
	if seen.err = failure.Status(err); err == nil {
		seen.resp = proto.Clone(resp.(proto.Message)) // the server may still change what it caches
	}
	c.trace.call(&seen)
	c.world.model.answered(seen)
	return seen.resp, seen.err
}

// NewStream implements grpc.ClientConnInterface for streams of answers to one request.
func (c *connection) NewStream(ctx context.Context, _ *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	ctx, cancel := context.WithCancelCause(auth.NewContext(ctx, c.principal))
	return &stream{ctx: ctx, cancel: cancel, connection: c, method: method, messages: make(chan proto.Message)}, nil
}

// stream is both ends of a stream of answers.
type stream struct {
	ctx        context.Context
	cancel     context.CancelCauseFunc
	connection *connection
	method     string
	request    proto.Message
	messages   chan proto.Message
	once       sync.Once
}

// SendMsg implements grpc.ClientStream: it sends the request.
func (s *stream) SendMsg(m any) error {
	s.request = proto.Clone(m.(proto.Message))
	return nil
}

// CloseSend implements grpc.ClientStream: the server begins.
func (s *stream) CloseSend() error {
	s.once.Do(func() { s.connection.world.calls.Go(s.serve) })
	return nil
}

// serve runs the method until the stream ends.
func (s *stream) serve() {
	err := errGone
	if p := s.connection.world.process.Load(); p != nil && !p.kv.dead.Load() {
		method := p.services[s.method]
		err = failure.Status(method.stream(method.implementation, (*serverEnd)(s)))
	}
	if err == nil {
		err = io.EOF
	}
	s.cancel(err)
}

// RecvMsg implements grpc.ClientStream.
func (s *stream) RecvMsg(m any) error {
	select {
	case message := <-s.messages:
		proto.Reset(m.(proto.Message))
		proto.Merge(m.(proto.Message), message)
		return nil
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
}

// Context implements grpc.ClientStream.
func (s *stream) Context() context.Context { return s.ctx }

// Header implements grpc.ClientStream.
func (s *stream) Header() (metadata.MD, error) { return metadata.MD{}, nil }

// Trailer implements grpc.ClientStream.
func (s *stream) Trailer() metadata.MD { return nil }

// serverEnd is the server's end of a stream.
type serverEnd stream

// RecvMsg implements grpc.ServerStream.
func (s *serverEnd) RecvMsg(m any) error {
	proto.Merge(m.(proto.Message), s.request)
	return nil
}

// SendMsg implements grpc.ServerStream.
func (s *serverEnd) SendMsg(m any) error {
	select {
	case s.messages <- proto.Clone(m.(proto.Message)):
		return nil
	case <-s.ctx.Done():
		return errors.Join(context.Canceled, context.Cause(s.ctx))
	}
}

// Context implements grpc.ServerStream.
func (s *serverEnd) Context() context.Context { return s.ctx }

// SetHeader implements grpc.ServerStream.
func (s *serverEnd) SetHeader(metadata.MD) error { return nil }

// SendHeader implements grpc.ServerStream.
func (s *serverEnd) SendHeader(metadata.MD) error { return nil }

// SetTrailer implements grpc.ServerStream.
func (s *serverEnd) SetTrailer(metadata.MD) {}
