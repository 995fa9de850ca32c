package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	"github.com/dpareto/dpareto/server/auth"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/store"
)

const (
	// maxRequestID bounds the length of a request_id, in characters.
	maxRequestID = 100
	// rememberFor is how long the answer to a request is remembered.
	rememberFor = 24 * time.Hour
)

// requestID is the name of the field of all mutations by which repetitions are recognised.
const requestID protoreflect.Name = "request_id"

// mutation is a call that changes something. If its request has an id the response is
// written in the transaction that makes the change, and a call with the same id gets it
// from there.
type mutation struct {
	id     string      // of the request
	scope  store.Scope // where it is remembered: the study or ledger that it changes
	key    string      // under which it is remembered there
	kind   string      // type of the request
	digest []byte
	resp   proto.Message

	// What the transaction did of it; only SuggestTrials takes several.
	effect effect
	// Set when the response is that of an earlier call, or its part so far.
	repeated, resumed bool
}

// effect is what a transaction did of what a request asks for.
type effect int

const (
	everything effect = iota
	somewhat          // the rest follows, also when the request is repeated
	nothing
)

// newMutation returns the call with a request, whose answer will be in resp.
func newMutation(req interface {
	proto.Message
	GetRequestId() string
}, resp proto.Message) (*mutation, error) {
	m := &mutation{id: req.GetRequestId(), resp: resp}
	if m.id == "" {
		return m, nil
	}
	if n := len([]rune(m.id)); n > maxRequestID {
		return nil, invalid.Field(string(requestID), "must have at most %d characters, has %d", maxRequestID, n)
	}
	m.kind = string(req.ProtoReflect().Descriptor().FullName())
	var err error
	m.digest, err = digestOf(withoutID(req))
	return m, err
}

// withoutID returns a request without its id, sharing everything else.
func withoutID(req proto.Message) proto.Message {
	other := req.ProtoReflect().New()
	req.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if field.Name() != requestID {
			other.Set(field, value)
		}
		return true
	})
	return other.Interface()
}

// digestOf returns the digest of a request, by which a repetition is recognised.
func digestOf(req proto.Message) ([]byte, error) {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(req)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(b)
	return sum[:], nil
}

// update runs fn in a transaction that makes a change in a scope, perhaps in others too, and
// remembers its response. If the request was answered before, the response is that answer and
// fn is not called. fn may be called again (see store.KV); the response is empty then.
func (s *Server) update(ctx context.Context, m *mutation, scope store.Scope, others []store.Scope, fn func(*store.Tx) error) error {
	m.bind(ctx, scope)
	return s.store.Update(ctx, store.In(append(others, scope)...), func(tx *store.Tx) error {
		m.repeated, m.resumed = false, false
		if m.resp != nil {
			proto.Reset(m.resp)
		}
		if err := m.recall(&tx.ReadTx, s.now()); err != nil || m.repeated {
			return err
		}
		if err := fn(tx); err != nil {
			return err
		}
		return m.remember(tx, m.resp, m.effect, s.now())
	})
}

// answered sets the response to that of an earlier call, if there is one. Only calls that
// read something before their transaction begins must ask.
func (s *Server) answered(ctx context.Context, m *mutation, scope store.Scope) (bool, error) {
	if m.id == "" {
		return false, nil
	}
	m.bind(ctx, scope)
	err := s.store.View(ctx, func(tx *store.ReadTx) error { return m.recall(tx, s.now()) })
	return m.repeated, err
}

// bind sets where the answer is kept: the ids of different callers, studies and ledgers are
// independent.
func (m *mutation) bind(ctx context.Context, scope store.Scope) {
	m.scope = scope
	if m.id != "" {
		m.key = auth.FromContext(ctx).Name + "\x00" + m.id
	}
}

// recall sets the response to what is remembered of the request.
func (m *mutation) recall(tx *store.ReadTx, now time.Time) error {
	record, err := m.find(tx, now)
	if err != nil || record == nil {
		return err
	}
	m.repeated, m.resumed = !record.GetPartial(), record.GetPartial()
	return m.decode(record, m.resp)
}

// find returns what is remembered of the request, or nil.
func (m *mutation) find(tx *store.ReadTx, now time.Time) (*storev1.RequestRecord, error) {
	if m.id == "" {
		return nil, nil
	}
	record, err := tx.Request(m.scope, m.key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case now.Sub(record.GetTime().AsTime()) > rememberFor:
		return nil, nil
	case record.GetType() != m.kind:
		return nil, invalid.Field(string(requestID), "%.100q was the id of a %s", m.id, record.GetType())
	case string(record.GetDigest()) != string(m.digest):
		return nil, invalid.Field(string(requestID), "%.100q was the id of another %s", m.id, record.GetType())
	default:
		return record, nil
	}
}

// decode returns the response that is remembered.
func (m *mutation) decode(record *storev1.RequestRecord, resp proto.Message) error {
	if err := proto.Unmarshal(record.GetResponse(), resp); err != nil {
		return fmt.Errorf("the answer to request %q: %w", m.id, err)
	}
	return nil
}

// remember writes the response.
func (m *mutation) remember(tx *store.Tx, resp proto.Message, effect effect, now time.Time) error {
	if m.id == "" || effect == nothing {
		return nil
	}
	encoded, err := proto.Marshal(resp)
	if err != nil {
		return fmt.Errorf("the answer to request %q: %w", m.id, err)
	}
	return tx.PutRequest(m.scope, m.key, &storev1.RequestRecord{
		Type: m.kind, Digest: m.digest, Response: encoded, Partial: effect == somewhat, Time: timestamppb.New(now),
	})
}
