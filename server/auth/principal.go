package auth

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"time"
)

// Role is a set of permissions of a principal. Each role includes the roles below it.
type Role int

// The roles, in ascending order.
const (
	// None may do nothing.
	None Role = iota
	// Viewer reads studies, trials, fronts and ledgers.
	Viewer
	// Worker also requests trials, reports results, and creates, stops and annotates trials.
	Worker
	// Admin does everything: it creates, changes and deletes studies, publishes results and, on the
	// whole server, backs up and imports.
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
	// Studies is a pattern for study ids, in which "*" matches any characters.
	Studies string `json:"studies"`
	// Role is the role on these studies.
	Role Role `json:"role"`
}

// studyPattern matches valid values of Grant.Studies.
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

// Principal is a caller. The zero value may do nothing.
type Principal struct {
	// Name is the name given by the operator. Several credentials may share it.
	Name string
	// Credential is the id of the presented credential.
	Credential string
	// Role is the role on the whole server, including every study.
	Role Role
	// Grants are roles on some studies only.
	Grants []Grant
	// Metrics lets the principal read the server's metrics, whatever its role.
	Metrics bool

	expires time.Time // zero: never
}

// Anonymous returns the principal of every call to a server without authentication. It may do
// everything.
func Anonymous() Principal { return Principal{Name: "anonymous", Role: Admin} }

// On returns the role on a study, whether it exists or not.
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

// FromContext returns the principal of a call. Without one it returns the zero Principal, which may
// do nothing.
func FromContext(ctx context.Context) Principal {
	p, ok := ctx.Value(principalKey{}).(Principal)
	if !ok {
		return Principal{}
	}
	return p
}

// CanRead reports whether the caller may know about a study. Lists leave out all others.
func CanRead(ctx context.Context, study string) bool {
	return FromContext(ctx).On(study) >= Viewer
}
