package auth

import (
	"regexp"
	"strings"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/protobuf/reflect/protoreflect"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// Scope is where a method's role must be held.
type Scope int

// The scopes.
const (
	// Public methods are for everybody, also without authentication.
	Public Scope = iota
	// Anywhere methods concern no study, or leave out what the caller may not see: the
	// role must be held on something.
	Anywhere
	// Study methods concern the study that the request names.
	Study
	// WholeServer methods concern all studies.
	WholeServer
)

// Method says what a method takes.
type Method struct {
	// Role is the least role.
	Role Role
	// Scope is where it must be held.
	Scope Scope
	// Resource is the path of the field of the request that names the resource, a study
	// or something in one ("name", "study.name"). An id in a field study_id counts as the
	// name of that study.
	Resource string
	// Audited methods change something or hand out whole studies.
	Audited bool
	// Endless methods stream until the caller has enough.
	Endless bool
}

// The fields that name the resource in most requests.
const (
	inName   = "name"
	inParent = "parent"
)

// methods is the whole decision. A method that is not here is nobody's.
var methods = map[string]Method{
	dparetov1.StudyService_CreateStudy_FullMethodName: {Role: Admin, Scope: Study, Resource: "study_id", Audited: true},
	dparetov1.StudyService_GetStudy_FullMethodName:    {Role: Viewer, Scope: Study, Resource: inName},
	dparetov1.StudyService_ListStudies_FullMethodName: {Role: Viewer, Scope: Anywhere}, // filtered by CanRead
	dparetov1.StudyService_UpdateStudy_FullMethodName: {Role: Admin, Scope: Study, Resource: "study.name", Audited: true},
	dparetov1.StudyService_DeleteStudy_FullMethodName: {Role: Admin, Scope: Study, Resource: inName, Audited: true},
	dparetov1.StudyService_PauseStudy_FullMethodName:  {Role: Admin, Scope: Study, Resource: inName, Audited: true},
	dparetov1.StudyService_ResumeStudy_FullMethodName: {Role: Admin, Scope: Study, Resource: inName, Audited: true},
	dparetov1.StudyService_WatchStudy_FullMethodName:  {Role: Viewer, Scope: Study, Resource: inName, Endless: true},

	dparetov1.StudyService_SuggestTrials_FullMethodName:  {Role: Worker, Scope: Study, Resource: inParent, Audited: true},
	dparetov1.StudyService_CreateTrial_FullMethodName:    {Role: Worker, Scope: Study, Resource: inParent, Audited: true},
	dparetov1.StudyService_GetTrial_FullMethodName:       {Role: Viewer, Scope: Study, Resource: inName},
	dparetov1.StudyService_ListTrials_FullMethodName:     {Role: Viewer, Scope: Study, Resource: inParent},
	dparetov1.StudyService_UpdateTrial_FullMethodName:    {Role: Worker, Scope: Study, Resource: "trial.name", Audited: true},
	dparetov1.StudyService_DeleteTrial_FullMethodName:    {Role: Admin, Scope: Study, Resource: inName, Audited: true},
	dparetov1.StudyService_AddMeasurement_FullMethodName: {Role: Worker, Scope: Study, Resource: inName, Audited: true},
	dparetov1.StudyService_RenewLeases_FullMethodName:    {Role: Worker, Scope: Study, Resource: inParent, Audited: true},
	dparetov1.StudyService_CompleteTrial_FullMethodName:  {Role: Worker, Scope: Study, Resource: inName, Audited: true},
	dparetov1.StudyService_ReleaseTrial_FullMethodName:   {Role: Worker, Scope: Study, Resource: inName, Audited: true},
	dparetov1.StudyService_StopTrial_FullMethodName:      {Role: Worker, Scope: Study, Resource: inName, Audited: true},

	dparetov1.FrontService_GetFront_FullMethodName:         {Role: Viewer, Scope: Study, Resource: inName},
	dparetov1.FrontService_QueryFront_FullMethodName:       {Role: Viewer, Scope: Study, Resource: inName},
	dparetov1.FrontService_ListHypervolumes_FullMethodName: {Role: Viewer, Scope: Study, Resource: inName},
	dparetov1.FrontService_PredictMetrics_FullMethodName:   {Role: Viewer, Scope: Study, Resource: inName},

	dparetov1.PrivacyService_ComputeEpsilon_FullMethodName:     {Role: Viewer, Scope: Anywhere},
	dparetov1.PrivacyService_CalibrateMechanism_FullMethodName: {Role: Viewer, Scope: Anywhere},
	dparetov1.PrivacyService_GetPrivacyLedger_FullMethodName:   {Role: Viewer, Scope: Study, Resource: inName},
	dparetov1.PrivacyService_ReaccountStudy_FullMethodName:     {Role: Admin, Scope: Study, Resource: inName, Audited: true},

	dparetov1.ReleaseService_CreateLedger_FullMethodName:    {Role: Admin, Scope: WholeServer, Resource: "ledger_id", Audited: true},
	dparetov1.ReleaseService_GetLedger_FullMethodName:       {Role: Viewer, Scope: WholeServer},
	dparetov1.ReleaseService_ListLedgers_FullMethodName:     {Role: Viewer, Scope: WholeServer},
	dparetov1.ReleaseService_ListCharges_FullMethodName:     {Role: Viewer, Scope: WholeServer},
	dparetov1.ReleaseService_GetRelease_FullMethodName:      {Role: Viewer, Scope: Study, Resource: inName},
	dparetov1.ReleaseService_ListReleases_FullMethodName:    {Role: Viewer, Scope: Study, Resource: inParent},
	dparetov1.ReleaseService_ReleaseBest_FullMethodName:     {Role: Admin, Scope: Study, Resource: inName, Audited: true},
	dparetov1.ReleaseService_ReleaseFront_FullMethodName:    {Role: Admin, Scope: Study, Resource: inName, Audited: true},
	dparetov1.ReleaseService_SelectPrivately_FullMethodName: {Role: Admin, Scope: WholeServer, Resource: "ledger", Audited: true},

	dparetov1.AdminService_GetServerInfo_FullMethodName: {Role: Viewer, Scope: Anywhere},
	dparetov1.AdminService_BackupStore_FullMethodName:   {Role: Admin, Scope: WholeServer, Audited: true},
	dparetov1.AdminService_ExportStudy_FullMethodName:   {Role: Admin, Scope: Study, Resource: inName, Audited: true},
	dparetov1.AdminService_ImportStudy_FullMethodName:   {Role: Admin, Scope: WholeServer, Resource: "record.study.study.name", Audited: true},

	healthv1.Health_Check_FullMethodName: {Scope: Public},
	healthv1.Health_List_FullMethodName:  {Scope: Public},
	healthv1.Health_Watch_FullMethodName: {Scope: Public, Endless: true},

	reflectionv1.ServerReflection_ServerReflectionInfo_FullMethodName:      {Role: Viewer, Scope: Anywhere, Endless: true},
	reflectionv1alpha.ServerReflection_ServerReflectionInfo_FullMethodName: {Role: Viewer, Scope: Anywhere, Endless: true},
}

// Lookup returns what the method with a full name ("/package.Service/Method") takes.
func Lookup(fullMethod string) (Method, bool) {
	m, ok := methods[fullMethod]
	return m, ok
}

// ResourceOf returns the name of the resource that a request is about: what the field
// Resource holds, "" if it is not set.
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

// studyID is the form of a study's id. The services refuse every other.
var studyID = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)

// studyOf returns the id of the study in a resource name, "" if there is none.
func studyOf(name string) string {
	rest, ok := strings.CutPrefix(name, studyPrefix)
	if !ok {
		return ""
	}
	id, _, _ := strings.Cut(rest, "/")
	if !studyID.MatchString(id) {
		return ""
	}
	return id
}
