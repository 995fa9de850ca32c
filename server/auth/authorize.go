package auth

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpareto/dpareto/server/resource"
)

// DeniedError says that a principal may not make a call. Its text depends only on the request, not
// on what exists.
type DeniedError struct {
	// Resource is the resource that needs the role, "" for the whole server.
	Resource string
	// Role is the role needed.
	Role Role
	// OrMetrics says that the right to read metrics suffices.
	OrMetrics bool
}

// Error implements error.
func (e *DeniedError) Error() string {
	switch {
	case e.Role == None:
		return "this method cannot be called"
	case e.OrMetrics:
		return fmt.Sprintf("requires a credential with metrics, or the role %s on the whole server", e.Role)
	case e.Resource == "":
		return fmt.Sprintf("requires the role %s on the whole server", e.Role)
	default:
		return fmt.Sprintf("requires the role %s on %.200q", e.Role, e.Resource)
	}
}

// Authorize returns nil if the principal may make a call, otherwise a *DeniedError. The call needs
// the method's role on the resource it is about. It also needs a role on every other study that the
// request names: viewer for studies that it only reads, such as prior studies, otherwise the
// method's.
//
// request is nil for a stream whose first request has not arrived.
func (p Principal) Authorize(fullMethod string, request protoreflect.Message) error {
	m, ok := Lookup(fullMethod)
	switch {
	case !ok:
		return &DeniedError{}
	case m.Scope == Public:
		return nil
	case p.Role >= m.Role: // on the whole server
		return nil
	case m.Scope == WholeServer:
		return &DeniedError{Role: m.Role}
	case m.Scope == Anywhere:
		if p.Highest() < m.Role {
			return &DeniedError{Role: m.Role, Resource: "any study"}
		}
		return nil
	}
	if request == nil {
		if p.Highest() < m.Role {
			return &DeniedError{Role: m.Role, Resource: "any study"}
		}
		return nil
	}
	name := m.ResourceOf(request)
	if study := resource.StudyID(name); study == "" || p.On(study) < m.Role {
		return &DeniedError{Role: m.Role, Resource: name}
	}
	return p.authorizeReferences(m, request)
}

// readOnly are the fields through which a request only reads another study.
var readOnly = map[protoreflect.Name]bool{"prior_studies": true, "replicate_of": true}

// prose are the fields with free text of users, which may look like a study's name. All other fields
// count as references if they look like one, so a field added later leaves no gap.
var prose = map[protoreflect.Name]bool{
	"display_name": true, "description": true, "labels": true, "note": true, "reason": true,
	"unit": true, "string_value": true, "settings": true, "categories": true,
	"attributes": true, "artifacts": true,
}

// authorizeReferences checks every study name in a message.
func (p Principal) authorizeReferences(m Method, message protoreflect.Message) error {
	var denied error
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if prose[field.Name()] {
			return true
		}
		role := m.Role
		if readOnly[field.Name()] {
			role = Viewer
		}
		single := func(kind protoreflect.Kind, v protoreflect.Value) bool {
			switch kind {
			case protoreflect.StringKind:
				denied = p.authorizeReference(role, v.String())
			case protoreflect.MessageKind, protoreflect.GroupKind:
				denied = p.authorizeReferences(m, v.Message())
			default:
			}
			return denied == nil
		}
		switch {
		case field.IsMap():
			value.Map().Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
				return single(field.MapKey().Kind(), key.Value()) && single(field.MapValue().Kind(), v)
			})
		case field.IsList():
			for i := 0; i < value.List().Len() && single(field.Kind(), value.List().Get(i)); i++ {
			}
		default:
			single(field.Kind(), value)
		}
		return denied == nil
	})
	return denied
}

// authorizeReference checks a string that may name a study or something in one.
func (p Principal) authorizeReference(role Role, text string) error {
	if strings.HasPrefix(text, studyPrefix) && p.On(resource.StudyID(text)) < role {
		return &DeniedError{Role: role, Resource: text}
	}
	return nil
}
