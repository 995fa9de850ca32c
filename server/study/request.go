package study

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
	// MaxRequestID bounds the length of a request_id, in characters.
	MaxRequestID = 100
	// RememberFor is how long the answer to a request is remembered.
	RememberFor = 24 * time.Hour
)

// RequestID is the name of the field of all requests by which repetitions are recognised.
const RequestID protoreflect.Name = "request_id"

// Identified is a request that may have an id.
type Identified interface {
	proto.Message
	GetRequestId() string
}

// Request is a call that changes something. If it has an id the response is written in the
// transaction that makes the change, and a call with the same id gets it from there.
type Request struct {
	ID     string      // of the request
	scope  store.Scope // where it is remembered: the study or ledger that it changes
	key    string      // under which it is remembered there
	Kind   string      // type of the request
	asked  Identified
	policy Policy // says what may be remembered of it
	resp   proto.Message

	// What the transaction did of it; only SuggestTrials takes several.
	Effect Effect
	// Set when the response is that of an earlier call, or its part so far.
	Repeated, Resumed bool
}

// Effect is what a transaction did of what a request asks for.
type Effect int

// The effects.
const (
	EffectAll  Effect = iota
	EffectPart        // the rest follows, also when the request is repeated
	EffectNone
)

// NewRequest returns the call with a request, whose answer will be in resp.
func NewRequest(req Identified, resp proto.Message) (*Request, error) {
	r := &Request{ID: req.GetRequestId(), asked: req, policy: Ordinary{}, resp: resp, Kind: string(req.ProtoReflect().Descriptor().FullName())}
	if n := len([]rune(r.ID)); n > MaxRequestID {
		return nil, invalid.Field(string(RequestID), "must have at most %d characters, has %d", MaxRequestID, n)
	}
	return r, nil
}

// Digest returns the digest by which a repetition of the request is recognised.
func (r *Request) Digest() ([]byte, error) {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(withoutID(r.policy.Redact(r.asked)))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(b)
	return sum[:], nil
}

// withoutID returns a request without its id, sharing everything else.
func withoutID(req proto.Message) proto.Message {
	other := req.ProtoReflect().New()
	req.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if field.Name() != RequestID {
			other.Set(field, value)
		}
		return true
	})
	return other.Interface()
}

// Update runs fn in a transaction that makes a change in a scope, perhaps in others too, and
// remembers its response. If the request was answered before, the response is that answer and
// fn is not called. fn may be called again (see store.KV); the response is empty then.
func (s *Studies) Update(ctx context.Context, r *Request, scope store.Scope, others []store.Scope, fn func(*store.Tx) error) error {
	r.bind(ctx, scope)
	return s.store.Update(ctx, store.In(append(others, scope)...), func(tx *store.Tx) error {
		return r.once(tx, s.now(), func() error { return fn(tx) })
	})
}

// once calls fn, unless the request was answered before, and remembers the response.
func (r *Request) once(tx *store.Tx, now time.Time, fn func() error) error {
	r.Repeated, r.Resumed = false, false
	if r.resp != nil {
		proto.Reset(r.resp)
	}
	if err := r.recall(&tx.ReadTx, now); err != nil || r.Repeated {
		return err
	}
	if err := fn(); err != nil {
		return err
	}
	return r.Remember(tx, r.resp, r.Effect, now)
}

// Answered sets the response to that of an earlier call, if there is one. Only calls that
// read something before their transaction begins must ask.
func (s *Studies) Answered(ctx context.Context, r *Request, scope store.Scope) (bool, error) {
	if r.ID == "" {
		return false, nil
	}
	r.bind(ctx, scope)
	err := s.store.View(ctx, func(tx *store.ReadTx) error { return r.recall(tx, s.now()) })
	return r.Repeated, err
}

// bind sets where the answer is kept: the ids of different callers, studies and ledgers are
// independent.
func (r *Request) bind(ctx context.Context, scope store.Scope) {
	r.scope = scope
	if r.ID != "" {
		r.key = auth.FromContext(ctx).Name + "\x00" + r.ID
	}
}

// recall sets the response to what is remembered of the request.
func (r *Request) recall(tx *store.ReadTx, now time.Time) error {
	record, err := r.Find(tx, now)
	if err != nil || record == nil {
		return err
	}
	r.Repeated, r.Resumed = !record.GetPartial(), record.GetPartial()
	return r.Decode(record, r.resp)
}

// Find returns what is remembered of the request, or nil.
func (r *Request) Find(tx *store.ReadTx, now time.Time) (*storev1.RequestRecord, error) {
	if r.ID == "" {
		return nil, nil
	}
	digest, err := r.Digest()
	if err != nil {
		return nil, err
	}
	record, err := tx.Request(r.scope, r.key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case now.Sub(record.GetTime().AsTime()) > RememberFor:
		return nil, nil
	case record.GetType() != r.Kind:
		return nil, invalid.Field(string(RequestID), "%.100q was the id of a %s", r.ID, record.GetType())
	case string(record.GetDigest()) != string(digest):
		return nil, invalid.Field(string(RequestID), "%.100q was the id of another %s", r.ID, record.GetType())
	default:
		return record, nil
	}
}

// Decode returns the response that is remembered.
func (r *Request) Decode(record *storev1.RequestRecord, resp proto.Message) error {
	if err := proto.Unmarshal(record.GetResponse(), resp); err != nil {
		return fmt.Errorf("the answer to request %q: %w", r.ID, err)
	}
	return nil
}

// Remember writes the response.
func (r *Request) Remember(tx *store.Tx, resp proto.Message, effect Effect, now time.Time) error {
	if r.ID == "" || effect == EffectNone {
		return nil
	}
	digest, err := r.Digest()
	if err != nil {
		return err
	}
	encoded, err := proto.Marshal(resp)
	if err != nil {
		return fmt.Errorf("the answer to request %q: %w", r.ID, err)
	}
	return tx.PutRequest(r.scope, r.key, &storev1.RequestRecord{
		Type: r.Kind, Digest: digest, Response: encoded, Partial: effect == EffectPart, Time: timestamppb.New(now),
	})
}
