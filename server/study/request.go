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
	// RememberFor is how long the response to a request with an id is kept.
	RememberFor = 24 * time.Hour
)

// RequestID is the name of the idempotency key, a field of every request that changes something.
const RequestID protoreflect.Name = "request_id"

// Identified is a request with a request_id, which may be empty.
type Identified interface {
	proto.Message
	GetRequestId() string
}

// Request is a call that changes something. If it has a request_id, its response is stored in the
// same transaction as the change, and a repeated call gets the stored response.
type Request struct {
	ID     string      // of the request
	scope  store.Scope // where the response is stored: the study or ledger that changes
	key    string      // of the stored response within scope
	Kind   string      // full name of the request's message type
	asked  Identified
	policy Policy // decides what may be stored of the request
	resp   proto.Message

	// Effect says how much of the request the last transaction did; only SuggestTrials needs
	// several.
	Effect Effect
	// Repeated is set if the response is the stored one; Resumed if only a part of it was stored.
	Repeated, Resumed bool
}

// Effect says how much of a request a transaction has done.
type Effect int

// Values of Effect.
const (
	EffectAll  Effect = iota // the stored response is final
	EffectPart               // more transactions follow; a repeated request resumes
	EffectNone               // nothing is stored
)

// NewRequest returns the call of req, which fills in resp. It fails if the request_id is too long.
func NewRequest(req Identified, resp proto.Message) (*Request, error) {
	r := &Request{ID: req.GetRequestId(), asked: req, policy: Ordinary{}, resp: resp, Kind: string(req.ProtoReflect().Descriptor().FullName())}
	if n := len([]rune(r.ID)); n > MaxRequestID {
		return nil, invalid.Field(string(RequestID), "must have at most %d characters, has %d", MaxRequestID, n)
	}
	return r, nil
}

// Digest returns a hash of the redacted request without its id. It tells a repeated request from a
// reused id.
func (r *Request) Digest() ([]byte, error) {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(withoutID(r.policy.Redact(r.asked)))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(b)
	return sum[:], nil
}

// withoutID returns a shallow copy of a request without its id.
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

// Update runs fn in a transaction over a scope, and perhaps others, and stores the response. If a
// stored response exists, it sets that and does not call fn. fn may run more than once (see
// store.KV); each time the response starts empty.
func (s *Studies) Update(ctx context.Context, r *Request, scope store.Scope, others []store.Scope, fn func(*store.Tx) error) error {
	r.bind(ctx, scope)
	return s.store.Update(ctx, store.In(append(others, scope)...), func(tx *store.Tx) error {
		return r.once(tx, s.times.now(&tx.ReadTx), func() error { return fn(tx) })
	})
}

// once calls fn and stores the response, unless the request has a stored response already.
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

// wasAnswered sets the response to the one remembered for a study that is gone. Only requests that
// were not redacted are recognised: without the study its policy is not known.
func (r *Request) wasAnswered(tx *store.Tx, now time.Time) bool {
	r.policy, r.Repeated, r.Resumed = Ordinary{}, false, false
	return r.recall(&tx.ReadTx, now) == nil && r.Repeated
}

// answered sets the response to the stored one, if there is one. Calls ask it before expensive work
// that precedes their transaction; once checks again inside.
func (r *Request) answered(ctx context.Context, s *Studies, scope store.Scope) (bool, error) {
	if r.ID == "" {
		return false, nil
	}
	r.bind(ctx, scope)
	err := s.store.View(ctx, func(tx *store.ReadTx) error { return r.recall(tx, s.times.now(tx)) })
	return r.Repeated, err
}

// bind sets where the response is stored. Request ids of different callers, studies and ledgers are
// independent.
func (r *Request) bind(ctx context.Context, scope store.Scope) {
	r.scope = scope
	if r.ID != "" {
		r.key = auth.FromContext(ctx).Name + "\x00" + r.ID
	}
}

// recall sets the response to the stored one, if any.
func (r *Request) recall(tx *store.ReadTx, now time.Time) error {
	record, err := r.Find(tx, now)
	if err != nil || record == nil {
		return err
	}
	r.Repeated, r.Resumed = !record.GetPartial(), record.GetPartial()
	return r.Decode(record, r.resp)
}

// Find returns the stored record of the request, or nil. It fails if the id belonged to a different
// request.
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
		return nil, invalid.Field(string(RequestID), "%.100q was already used for a %s", r.ID, record.GetType())
	case string(record.GetDigest()) != string(digest):
		return nil, invalid.Field(string(RequestID), "%.100q was already used for a different %s", r.ID, record.GetType())
	default:
		return record, nil
	}
}

// Decode sets resp to the stored response.
func (r *Request) Decode(record *storev1.RequestRecord, resp proto.Message) error {
	if err := proto.Unmarshal(record.GetResponse(), resp); err != nil {
		return fmt.Errorf("decode the stored response to request %q: %w", r.ID, err)
	}
	return nil
}

// Remember stores the response, unless the request has no id or had no effect.
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
		return fmt.Errorf("encode the response to request %q: %w", r.ID, err)
	}
	return tx.PutRequest(r.scope, r.key, &storev1.RequestRecord{
		Type: r.Kind, Digest: digest, Response: encoded, Partial: effect == EffectPart, Time: timestamppb.New(now),
	})
}
