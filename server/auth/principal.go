package auth

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"time"
)

// Role is what a principal may do. Each includes those below it.
type Role int

// The roles.
const (
	// None may do nothing.
	None Role = iota
	// Viewer reads studies, trials, fronts and ledgers.
	Viewer
	// Worker also asks for trials, tells results, and creates, stops and annotates
	// trials.
	Worker
	// Admin does everything: it creates, changes and deletes studies, publishes, and, on
	// the whole server, backs up and imports.
	Admin
)

var roleNames = []string{Viewer: "viewer", Worker: "worker", Admin: "admin"}

// Roles returns the names of the roles in ascending order.
func Roles() []string { return slices.Clone(roleNames[Viewer:]) }

// String returns the role's name, "" for None.
func (r Role) String() string {
	if r < None || int(r) >= len(roleNames) {
		return fmt.Sprintf("Role(%d)", int(r))
	}
	return roleNames[r]
}

// MarshalText implements encoding.TextMarshaler.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler: the inverse of String.
func (r *Role) UnmarshalText(text []byte) error {
	i := slices.Index(roleNames, string(text))
	if i < 0 {
		return fmt.Errorf("role %q, want viewer, worker or admin", text)
	}
	*r = Role(i)
	return nil
}

// Grant gives a role on the studies whose ids match a pattern.
type Grant struct {
	// Studies is the id of a study; each "*" stands for any characters.
	Studies string `json:"studies"`
	// Role is the role there.
	Role Role `json:"role"`
}

// studyPattern is the form of Grant.Studies.
var studyPattern = regexp.MustCompile(`^[a-z0-9*-]{1,200}$`)

func (g Grant) validate() error {
	if !studyPattern.MatchString(g.Studies) {
		return fmt.Errorf(`studies %q: want lower-case letters, digits, hyphens and "*"`, g.Studies)
	}
	if g.Role == None {
		return fmt.Errorf("studies %q: role is missing", g.Studies)
	}
	return nil
}

// Principal is somebody who calls. The zero value may do nothing.
type Principal struct {
	// Name is the name that the operator gave; several credentials may share it.
	Name string
	// Credential is the id of the credential that was presented.
	Credential string
	// Role is the role on the whole server: on every study and beside them.
	Role Role
	// Grants are roles on some studies only.
	Grants []Grant

	expires time.Time // zero: never
}

// Anonymous is the principal of every call to a server without authentication: it may do
// everything.
func Anonymous() Principal { return Principal{Name: "anonymous", Role: Admin} }

// On returns the role on the study with an id, whether it exists or not.
func (p Principal) On(study string) Role {
	role := p.Role
	for _, g := range p.Grants {
		if ok, err := path.Match(g.Studies, study); ok && err == nil {
			role = max(role, g.Role)
		}
	}
	return role
}

// Highest returns the highest role on anything.
func (p Principal) Highest() Role {
	role := p.Role
	for _, g := range p.Grants {
		role = max(role, g.Role)
	}
	return role
}

type principalKey struct{}

// NewContext returns a context that carries a principal.
func NewContext(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// FromContext returns the principal of a call. Where nobody was authenticated it may do
// nothing.
func FromContext(ctx context.Context) Principal {
	p, ok := ctx.Value(principalKey{}).(Principal)
	if !ok {
		return Principal{}
	}
	return p
}

// CanRead reports whether the caller may know of the study with an id. Lists leave out
// all others.
func CanRead(ctx context.Context, study string) bool {
	return FromContext(ctx).On(study) >= Viewer
}
