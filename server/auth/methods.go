package auth

import (
	"fmt"
	"strings"
	"sync"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// Scope is where a caller needs a method's role.
type Scope int

// Values of Scope.
const (
	// Public methods are open to everyone, even without authentication.
	Public Scope = iota
	// Anywhere methods concern no study, or leave out resources that the caller may not see. The
	// caller needs the role on anything.
	Anywhere
	// Study methods concern the study that the request names.
	Study
	// WholeServer methods concern all studies.
	WholeServer
)

// Method holds the rules of a method (see dparetov1.MethodRules).
type Method struct {
	// Role is the least role that may call the method.
	Role Role
	// Scope is where the caller needs the role.
	Scope Scope
	// Resource is the path of the request field that names the resource, a study or something in one
	// ("name", "study.name"). A field study_id holds the id of a study instead.
	Resource string
	// Audited methods change something or export whole studies.
	Audited bool
	// Endless methods stream until the caller ends the call.
	Endless bool
	// RevealsNoResults methods can be called about a study with random stopping.
	RevealsNoResults bool
}

// methods returns all methods that can be called, by full name.
var methods = sync.OnceValue(readMethods)

// readMethods reads the rules in the contract, and adds rules for the standard services.
func readMethods() map[string]Method {
	all := map[string]Method{
		healthv1.Health_Check_FullMethodName: {Scope: Public},
		healthv1.Health_List_FullMethodName:  {Scope: Public},
		healthv1.Health_Watch_FullMethodName: {Scope: Public, Endless: true},

		reflectionv1.ServerReflection_ServerReflectionInfo_FullMethodName:      {Role: Viewer, Scope: Anywhere, Endless: true},
		reflectionv1alpha.ServerReflection_ServerReflectionInfo_FullMethodName: {Role: Viewer, Scope: Anywhere, Endless: true},
	}
	contract := dparetov1.File_dpareto_v1_method_proto.Package()
	protoregistry.GlobalFiles.RangeFilesByPackage(contract, func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				d := service.Methods().Get(j)
				if m, ok := methodOf(d); ok {
					all[fmt.Sprintf("/%s/%s", service.FullName(), d.Name())] = m
				}
			}
		}
		return true
	})
	return all
}

var (
	roleOf = map[dparetov1.Role]Role{
		dparetov1.Role_ROLE_VIEWER: Viewer,
		dparetov1.Role_ROLE_WORKER: Worker,
		dparetov1.Role_ROLE_ADMIN:  Admin,
	}
	scopeOf = map[dparetov1.Scope]Scope{
		dparetov1.Scope_SCOPE_ANYWHERE: Anywhere,
		dparetov1.Scope_SCOPE_STUDY:    Study,
		dparetov1.Scope_SCOPE_SERVER:   WholeServer,
	}
)

// methodOf returns the rules of a method in the contract. It returns false unless they have a role
// and a scope.
func methodOf(d protoreflect.MethodDescriptor) (Method, bool) {
	rules, _ := proto.GetExtension(d.Options(), dparetov1.E_Rules).(*dparetov1.MethodRules)
	role, hasRole := roleOf[rules.GetRole()]
	scope, hasScope := scopeOf[rules.GetScope()]
	return Method{
		Role:             role,
		Scope:            scope,
		Resource:         rules.GetResource(),
		Audited:          rules.GetAudited(),
		Endless:          rules.GetEndless(),
		RevealsNoResults: rules.GetRevealsNoResults(),
	}, hasRole && hasScope
}

// Lookup returns the rules of a method by its full name, "/package.Service/Method". Methods without
// rules cannot be called.
func Lookup(fullMethod string) (Method, bool) {
	m, ok := methods()[fullMethod]
	return m, ok
}

// ResourceOf returns the name of the resource that a request is about, by the field Resource, "" if
// that is not set.
func (m Method) ResourceOf(request protoreflect.Message) string {
	if m.Resource == "" {
		return ""
	}
	path := strings.Split(m.Resource, ".")
	for _, name := range path[:len(path)-1] {
		field := request.Descriptor().Fields().ByName(protoreflect.Name(name))
		if field == nil || field.Message() == nil || field.IsList() || field.IsMap() {
			return ""
		}
		request = request.Get(field).Message()
	}
	last := path[len(path)-1]
	field := request.Descriptor().Fields().ByName(protoreflect.Name(last))
	if field == nil || field.Kind() != protoreflect.StringKind || field.IsList() {
		return ""
	}
	value := request.Get(field).String()
	if last == "study_id" && value != "" {
		return studyPrefix + value
	}
	return value
}

const studyPrefix = "studies/"
