package auth

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/reload"
)

// A method without a role and a scope cannot be called.
func TestMethodWithoutRules(t *testing.T) {
	for _, rules := range []*dparetov1.MethodRules{
		nil,
		{Resource: "name", Audited: true},
		{Role: dparetov1.Role_ROLE_VIEWER},
		{Scope: dparetov1.Scope_SCOPE_ANYWHERE},
		{Role: 7, Scope: dparetov1.Scope_SCOPE_ANYWHERE},
		{Role: dparetov1.Role_ROLE_VIEWER, Scope: 7},
	} {
		options := new(descriptorpb.MethodOptions)
		if rules != nil {
			proto.SetExtension(options, dparetov1.E_Rules, rules)
		}
		file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
			Name:        new("x.proto"),
			MessageType: []*descriptorpb.DescriptorProto{{Name: new("M")}},
			Service: []*descriptorpb.ServiceDescriptorProto{{
				Name:   new("S"),
				Method: []*descriptorpb.MethodDescriptorProto{{Name: new("Do"), InputType: new(".M"), OutputType: new(".M"), Options: options}},
			}},
		}, nil)
		require.NoError(t, err)
		if m, ok := methodOf(file.Services().Get(0).Methods().Get(0)); ok {
			t.Errorf("rules %v: %+v", rules, m)
		}
	}
	if err := (Principal{Role: Admin}).Authorize("/S/Do", nil); err == nil {
		t.Error("a method without rules can be called")
	}
}

// fixture is an authenticator with a clock that tests move.
type fixture struct {
	*Authenticator
	t    *testing.T
	path string
	now  time.Time
	log  bytes.Buffer
}

// open returns an authenticator of a file with the given credentials and a new token for
// each of them that has no certificate.
func open(t *testing.T, credentials ...Credential) (*fixture, []string) {
	t.Helper()
	f := &fixture{t: t, path: filepath.Join(t.TempDir(), "auth.yaml"), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	tokens := f.add(credentials...)
	var err error
	f.Authenticator, err = Open(f.path, Options{Logger: slog.New(slog.NewTextHandler(&f.log, nil)), Now: func() time.Time { return f.now }})
	require.NoError(t, err)
	return f, tokens
}

// add adds credentials to the file and lets the authenticator find out.
func (f *fixture) add(credentials ...Credential) []string {
	f.t.Helper()
	var tokens []string
	require.NoError(f.t, Change(f.path, func(old []*Credential) ([]*Credential, error) {
		for _, c := range credentials {
			token := ""
			if c.CertificateSAN+c.CertificateSubject == "" {
				made, secret, err := NewToken(c)
				if err != nil {
					return nil, err
				}
				c, token = *made, secret
			}
			tokens = append(tokens, token)
			old = append(old, &c)
		}
		return old, nil
	}))
	f.now = f.now.Add(2 * reload.Every)
	return tokens
}

// write replaces the file by other content.
func (f *fixture) write(content string) {
	f.t.Helper()
	require.NoError(f.t, os.WriteFile(f.path, []byte(content), 0o600))
	f.now = f.now.Add(2 * reload.Every)
}

func (f *fixture) want(token string, peer *x509.Certificate, name string, want error) {
	f.t.Helper()
	p, err := f.Authenticate(f.t.Context(), token, peer)
	if p.Name != name && want == nil || !errors.Is(err, want) {
		f.t.Errorf("authenticated %q with %v, want %q with %v", p.Name, err, name, want)
	}
	if want != nil && (p.Role != None || len(p.Grants) > 0) {
		f.t.Errorf("a refused caller has rights: %+v", p)
	}
}

func TestTokens(t *testing.T) {
	f, tokens := open(t, Credential{Name: "ann", Role: Admin}, Credential{Name: "bob", Role: Viewer})
	f.want(tokens[0], nil, "ann", nil)
	f.want(tokens[1], nil, "bob", nil)
	f.want("", nil, "", ErrMissing)
	other, _ := newToken()
	mixed := tokens[0][:len(tokenPrefix)+2*idBytes] + tokens[1][len(tokenPrefix)+2*idBytes:]
	for _, wrong := range []string{
		other, mixed, tokens[0] + "x", tokens[0][:len(tokens[0])-1], strings.ToUpper(tokens[0]),
		"dpareto_", "dpareto_00", "x", strings.Repeat("a", 1<<16), "\x00", tokens[0][len(tokenPrefix):],
	} {
		f.want(wrong, nil, "", ErrInvalid)
	}
}

// The file keeps what sha256sum says of the token, and the token has 256 random bits.
func TestTokenForm(t *testing.T) {
	c, token, err := NewToken(Credential{Name: "ann", Role: Admin})
	require.NoError(t, err)
	sum := sha256.Sum256([]byte(token))
	if c.TokenHash != hex.EncodeToString(sum[:]) || tokenID(token) != c.ID {
		t.Errorf("credential %+v of token %q", c, token)
	}
	if secret := token[len(tokenPrefix)+len(c.ID)+1:]; len(secret) != 43 { // 256 bits in base64
		t.Errorf("secret %q", secret)
	}
	if _, again, _ := NewToken(Credential{Name: "ann", Role: Admin}); again == token {
		t.Error("the same token twice")
	}
	if _, _, err := NewToken(Credential{Name: "ann"}); err == nil {
		t.Error("a token without rights")
	}
}

func TestFileHoldsNoToken(t *testing.T) {
	f, tokens := open(t, Credential{Name: "ann", Role: Admin})
	content, err := os.ReadFile(f.path)
	require.NoError(t, err)
	secret := tokens[0][len(tokenPrefix)+2*idBytes+1:]
	if strings.Contains(string(content), secret) || strings.Contains(f.log.String(), secret) {
		t.Error("the file or the log holds the token")
	}
	info, err := os.Stat(f.path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestExpiry(t *testing.T) {
	f, tokens := open(t, Credential{Name: "ann", Role: Admin, ExpireTime: new(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC))})
	f.want(tokens[0], nil, "ann", nil)
	p, err := f.Authenticate(t.Context(), tokens[0], nil)
	require.NoError(t, err)
	f.now = time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	f.want(tokens[0], nil, "", ErrExpired)
	if _, err := f.Renew(p); !errors.Is(err, ErrExpired) {
		t.Errorf("renewed with %v", err)
	}
}

func TestReload(t *testing.T) {
	f, tokens := open(t, Credential{Name: "ann", Role: Admin})
	ann, err := f.Authenticate(t.Context(), tokens[0], nil)
	require.NoError(t, err)
	tokens = append(tokens, f.add(Credential{Name: "bob", Role: Viewer})...)
	f.want(tokens[1], nil, "bob", nil)

	// A broken file, however it is broken, leaves things as they are, and the log says so
	// once.
	for _, broken := range []string{"credentials: [", "credential: []", "credentials: [{name: x}]", "\x00"} {
		f.log.Reset()
		f.write(broken)
		for range 3 {
			f.now = f.now.Add(2 * reload.Every)
			f.want(tokens[1], nil, "bob", nil)
		}
		if n := strings.Count(f.log.String(), "the old state stays valid"); n != 1 {
			t.Errorf("%q: %d messages in the log: %s", broken, n, f.log.String())
		}
	}
	require.NoError(t, os.Remove(f.path))
	f.now = f.now.Add(2 * reload.Every)
	f.want(tokens[1], nil, "bob", nil)

	// A file that others can write to counts as broken.
	f.write("credentials: []")
	require.NoError(t, os.Chmod(f.path, 0o666))
	f.want(tokens[1], nil, "bob", nil)

	// An empty one revokes all.
	require.NoError(t, os.Chmod(f.path, 0o600))
	f.now = f.now.Add(2 * reload.Every)
	f.want(tokens[1], nil, "", ErrInvalid)
	if _, err := f.Renew(ann); !errors.Is(err, ErrInvalid) {
		t.Errorf("a revoked credential was renewed: %v", err)
	}
}

// A role that was taken away is gone for calls that last, too.
func TestRenewFindsTheNewRole(t *testing.T) {
	f, tokens := open(t, Credential{Name: "ann", Role: Admin})
	p, err := f.Authenticate(t.Context(), tokens[0], nil)
	require.NoError(t, err)
	require.NoError(t, Change(f.path, func(all []*Credential) ([]*Credential, error) {
		all[0].Role = Viewer
		return all, nil
	}))
	f.now = f.now.Add(2 * reload.Every)
	if renewed, err := f.Renew(p); err != nil || renewed.Role != Viewer {
		t.Errorf("renewed %+v, %v", renewed, err)
	}
}

func TestMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "auth.yaml")
	require.NoError(t, os.WriteFile(path, []byte("credentials: []"), 0o600))
	for mode, want := range map[os.FileMode]string{0o600: "", 0o400: "", 0o640: "", 0o440: "", 0o644: "warn", 0o620: "error", 0o602: "error"} {
		require.NoError(t, os.Chmod(path, mode))
		var log bytes.Buffer
		_, err := Open(path, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		got := ""
		switch {
		case err != nil && strings.Contains(err.Error(), "chmod 600"):
			got = "error"
		case strings.Contains(log.String(), "use mode 600"):
			got = "warn"
		}
		if got != want {
			t.Errorf("mode %#o: %q (%v), want %q", mode, got, err, want)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none"), Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("opened a file that does not exist: %v", err)
	}
}

func TestInvalidFiles(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	for content, want := range map[string]string{
		"credentials: [{id: a, name: x, token_sha256: " + sum + ", role: king}]":                                                          `role "king"`,
		"credentials: [{id: a, name: x, token_sha256: " + sum + "}]":                                                                      "role, grants or metrics",
		"credentials: [{id: a, name: x, token_sha256: 12, role: admin}]":                                                                  "token_sha256",
		"credentials: [{id: a, name: x, role: admin}]":                                                                                    "one of token_sha256",
		"credentials: [{id: a, name: x, role: admin, certificate_san: 'dns:a', certificate_subject: CN=a}]":                               "one of token_sha256",
		"credentials: [{id: a, name: x, role: admin, certificate_san: a.example}]":                                                        "certificate_san",
		"credentials: [{id: a, name: x, token_sha256: " + sum + ", grants: [{studies: 'A/*', role: worker}]}]":                            "studies",
		"credentials: [{id: a, name: x, token_sha256: " + sum + ", grants: [{studies: 'a*'}]}]":                                           "role is missing",
		"credentials: [{id: a, name: x, certificate_san: 'dns:a', role: admin}, {id: a, name: x, certificate_san: 'dns:b', role: admin}]": "duplicate id a",
		"credentials: [{id: a, name: x, certificate_san: 'dns:a', role: admin}, {id: b, name: y, certificate_san: 'dns:a', role: admin}]": "duplicate certificate_san dns:a",
		"credentials: [{id: a, name: x, token: secret, role: admin}]":                                                                     "unknown field",
		"credentials: [{id: [a], name: x}]":                                                                                               "credentials.id: must not be of type array",
		"credentials: [null]":                                                                                                             "is empty",
		"credentials: [{id: a, name: \"x\\ny\", token_sha256: " + sum + ", role: admin}]":                                                 "control characters",
	} {
		if _, err := parse("f", []byte(content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", content, err, want)
		}
	}
}

// Names, ids and hashes are texts, also where YAML would read numbers; a byte order mark is no text.
func TestTextsOfTheFile(t *testing.T) {
	digits := strings.Repeat("12", 31) + "e1"
	all, err := parse("f", []byte("\ufeffcredentials: [{id: 007, name: 3.10, token_sha256: "+digits+", role: admin}]"))
	require.NoError(t, err)
	if c := all[0]; c.ID != "007" || c.Name != "3.10" || c.TokenHash != digits {
		t.Errorf("read %+v", c)
	}
	if _, err := parse("f", []byte("credentials: []\ncredentials: []")); err == nil || !strings.Contains(err.Error(), "line 2: credentials: is given twice") {
		t.Errorf("a repeated key: %v", err)
	}
}

// Two changes at once do not lose one: the second fails.
func TestChangeExcludesOthers(t *testing.T) {
	f, _ := open(t, Credential{Name: "ann", Role: Admin})
	err := Change(f.path, func([]*Credential) ([]*Credential, error) {
		inner := Change(f.path, func(all []*Credential) ([]*Credential, error) { return all, nil })
		if inner == nil || !strings.Contains(inner.Error(), "in progress") {
			t.Errorf("a change within a change: %v", inner)
		}
		return nil, errors.New("stop")
	})
	if err == nil || err.Error() != "stop" {
		t.Errorf("error %v", err)
	}
	if all, err := Read(f.path); err != nil || len(all) != 1 {
		t.Errorf("a failed change left %v, %v", all, err)
	}
	f.add(Credential{Name: "bob", Role: Viewer}) // the lock is gone
}

func TestCertificates(t *testing.T) {
	f, tokens := open(t,
		Credential{ID: "a", Name: "ann", Role: Admin, CertificateSubject: "CN=ann,O=Example"},
		Credential{ID: "b", Name: "bob", Role: Worker, CertificateSAN: "dns:bob.example"},
		Credential{ID: "c", Name: "col", Role: Worker, CertificateSAN: "uri:spiffe://example/col"},
		Credential{Name: "tok", Role: Viewer})
	until := f.now.Add(time.Hour)
	ann := &x509.Certificate{Subject: pkix.Name{CommonName: "ann", Organization: []string{"Example"}}, NotAfter: until}
	f.want("", ann, "ann", nil)
	f.want("", &x509.Certificate{Subject: pkix.Name{CommonName: "ann"}, NotAfter: until}, "", ErrCertificate)
	f.want("", &x509.Certificate{DNSNames: []string{"x", "bob.example"}, NotAfter: until}, "bob", nil)
	f.want("", &x509.Certificate{EmailAddresses: []string{"bob.example"}, NotAfter: until}, "", ErrCertificate)
	f.want("", &x509.Certificate{URIs: []*url.URL{{Scheme: "spiffe", Host: "example", Path: "/col"}}, NotAfter: until}, "col", nil)
	// A subject cannot pass for a name of another kind.
	f.want("", &x509.Certificate{DNSNames: []string{"CN=ann,O=Example"}, NotAfter: until}, "", ErrCertificate)
	// A token decides where there is one.
	f.want(tokens[3], ann, "tok", nil)
	f.want("dpareto_wrong", ann, "", ErrInvalid)

	p, err := f.Authenticate(t.Context(), "", ann)
	require.NoError(t, err)
	ticket := f.Ticket(p)
	f.want(ticket, nil, "ann", nil)
	// The connection outlives the certificate, its rights do not.
	f.now = until.Add(time.Second)
	f.want("", ann, "", ErrExpired)
	if _, err := f.Renew(p); !errors.Is(err, ErrExpired) {
		t.Errorf("renewed with %v", err)
	}
}

func TestTickets(t *testing.T) {
	f, tokens := open(t, Credential{Name: "ann", Role: Worker, Grants: []Grant{{"adult-*", Admin}}})
	p, err := f.Authenticate(t.Context(), tokens[0], nil)
	require.NoError(t, err)
	ticket := f.Ticket(p)
	f.want(ticket, nil, "ann", nil)
	if strings.Contains(ticket, tokens[0]) {
		t.Error("the ticket holds the token")
	}
	for _, wrong := range []string{ticket + "x", ticketPrefix, ticketPrefix + ".", ticketPrefix + "YQ.1.2.x", ticket[:len(ticket)-2], strings.Replace(ticket, ".", "..", 1)} {
		f.want(wrong, nil, "", ErrInvalid)
	}
	other, _ := open(t, Credential{Name: "ann", Role: Admin})
	f.want(other.Ticket(p), nil, "", ErrInvalid) // of another process
	f.now = f.now.Add(ticketLife)
	f.want(ticket, nil, "", ErrExpired)
	ticket = f.Ticket(p)
	f.write("credentials: []")
	f.want(ticket, nil, "", ErrInvalid)
}

func TestBearer(t *testing.T) {
	for header, want := range map[string]string{
		"Bearer abc": "abc", "bearer  abc ": "abc", "BEARER abc": "abc",
		"": "", "Bearer": "", "Bearer ": "", "Basic abc": "", "abc": "", "Bearerabc": "",
	} {
		got, err := Bearer(header)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", header, got, err)
		}
	}
}

func TestRolesOnStudies(t *testing.T) {
	p := Principal{Grants: []Grant{{"adult-*", Worker}, {"adult-final", Admin}, {"*-shared", Viewer}}}
	for study, want := range map[string]Role{
		"adult-1": Worker, "adult-": Worker, "adult": None, "adult-final": Admin, "adult-shared": Worker,
		"x-shared": Viewer, "my-adult-1": None, "": None, "adult-1/trials": None,
	} {
		if got := p.On(study); got != want {
			t.Errorf("on %q: %v, want %v", study, got, want)
		}
	}
	if p.Highest() != Admin || p.Role != None {
		t.Errorf("highest %v", p.Highest())
	}
	if FromContext(context.Background()).Highest() != None || CanRead(context.Background(), "adult-1") {
		t.Error("nobody has rights")
	}
	if ctx := NewContext(t.Context(), p); !CanRead(ctx, "x-shared") || CanRead(ctx, "x") {
		t.Error("CanRead differs from On")
	}
}

// Every method names a resource that its request has, and a role where it takes one.
func TestMethodsFitTheContract(t *testing.T) {
	for name, m := range methods() {
		service, method, _ := strings.Cut(strings.TrimPrefix(name, "/"), "/")
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service + "." + method))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if (m.Scope == Public) != (m.Role == None) {
			t.Errorf("%s: role %v, scope %v", name, m.Role, m.Scope)
		}
		if m.Scope == Study && m.Resource == "" {
			t.Errorf("%s: no resource", name)
		}
		if m.Resource == "" {
			continue
		}
		input := d.(protoreflect.MethodDescriptor).Input()
		path := strings.Split(m.Resource, ".")
		for i, part := range path {
			field := input.Fields().ByName(protoreflect.Name(part))
			if field == nil || field.IsList() || field.IsMap() || (i == len(path)-1) != (field.Kind() == protoreflect.StringKind) {
				t.Fatalf("%s: the request has no %s", name, m.Resource)
			}
			input = field.Message()
		}
	}
}

// What each role may do, against a table written by hand.
func TestAuthorizeByRole(t *testing.T) {
	const (
		view  = "GetStudy ListStudies WatchStudy GetTrial ListTrials GetFront QueryFront ListHypervolumes PredictMetrics ComputeEpsilon CalibrateMechanism ComputeTradeoff PriceSearch GetPrivacyLedger GetServerInfo ServerReflectionInfo GetLedger ListLedgers ListCharges GetRelease ListReleases"
		work  = "SuggestTrials CreateTrial UpdateTrial AddMeasurement RenewLeases CompleteTrial ReleaseTrial StopTrial"
		admin = "CreateStudy UpdateStudy DeleteStudy PauseStudy ResumeStudy DeleteTrial ReaccountStudy CreateLedger ReleaseBest ReleaseFront SelectPrivately BackupStore ExportStudy ImportStudy"
		none  = "Check List Watch"
	)
	least := map[string]Role{}
	for role, names := range map[Role]string{None: none, Viewer: view, Worker: work, Admin: admin} {
		for name := range strings.FieldsSeq(names) {
			least[name] = role
		}
	}
	for full := range methods() {
		name := full[strings.LastIndex(full, "/")+1:]
		want, ok := least[name]
		if !ok {
			t.Logf("%s is not in the table of this test", name)
			continue
		}
		for _, role := range []Role{None, Viewer, Worker, Admin} {
			if err := (Principal{Role: role}).Authorize(full, nil); (err == nil) != (role >= want) {
				t.Errorf("%s as %q: %v", full, role, err)
			}
		}
	}
	if err := Anonymous().Authorize("/dpareto.v1.StudyService/Unheard", nil); err == nil {
		t.Error("a method that is not in the table can be called")
	}
}

func TestAuthorizeByGrant(t *testing.T) {
	limited := Principal{Name: "limited", Grants: []Grant{{"adult-*", Worker}, {"shared", Viewer}, {"mine-*", Admin}}}
	study := func(name string) *dparetov1.Study { return &dparetov1.Study{Name: name} }
	prior := func(names ...string) *dparetov1.Study {
		return &dparetov1.Study{Spec: &dparetov1.StudySpec{PriorStudies: names}}
	}
	const s, f, a = "/dpareto.v1.StudyService/", "/dpareto.v1.FrontService/", "/dpareto.v1.AdminService/"
	for _, tt := range []struct {
		method  string
		request proto.Message
		allowed bool
	}{
		{s + "GetStudy", &dparetov1.GetStudyRequest{Name: "studies/adult-1"}, true},
		{s + "GetStudy", &dparetov1.GetStudyRequest{Name: "studies/shared"}, true},
		{s + "GetStudy", &dparetov1.GetStudyRequest{Name: "studies/secret"}, false},
		{s + "GetStudy", &dparetov1.GetStudyRequest{Name: "studies/adult-1/../secret"}, true}, // about adult-1; the service refuses the form
		{s + "GetStudy", &dparetov1.GetStudyRequest{Name: "studies/Adult-1"}, false},
		{s + "GetStudy", &dparetov1.GetStudyRequest{Name: "adult-1"}, false},
		{s + "GetStudy", &dparetov1.GetStudyRequest{}, false},
		{s + "ListStudies", &dparetov1.ListStudiesRequest{}, true},
		{s + "GetTrial", &dparetov1.GetTrialRequest{Name: "studies/secret/trials/1"}, false},
		{s + "ListTrials", &dparetov1.ListTrialsRequest{Parent: "studies/secret"}, false},
		{s + "WatchStudy", &dparetov1.WatchStudyRequest{Name: "studies/secret"}, false},
		{f + "GetFront", &dparetov1.GetFrontRequest{Name: "studies/secret"}, false},
		{f + "GetFront", &dparetov1.GetFrontRequest{Name: "studies/shared"}, true},
		{s + "SuggestTrials", &dparetov1.SuggestTrialsRequest{Parent: "studies/adult-1"}, true},
		{s + "SuggestTrials", &dparetov1.SuggestTrialsRequest{Parent: "studies/shared"}, false},
		{s + "PauseStudy", &dparetov1.PauseStudyRequest{Name: "studies/adult-1"}, false},
		{s + "PauseStudy", &dparetov1.PauseStudyRequest{Name: "studies/mine-1"}, true},
		{s + "UpdateStudy", &dparetov1.UpdateStudyRequest{Study: study("studies/mine-1")}, true},
		{s + "UpdateStudy", &dparetov1.UpdateStudyRequest{Study: study("studies/adult-1")}, false},
		{s + "UpdateStudy", &dparetov1.UpdateStudyRequest{}, false},
		// Other studies in the request.
		{s + "CreateStudy", &dparetov1.CreateStudyRequest{StudyId: "mine-1"}, true},
		{s + "CreateStudy", &dparetov1.CreateStudyRequest{StudyId: "adult-9"}, false},
		{s + "CreateStudy", &dparetov1.CreateStudyRequest{StudyId: "mine-1", Study: study("studies/secret")}, false},
		{s + "CreateStudy", &dparetov1.CreateStudyRequest{StudyId: "mine-1", Study: prior("studies/shared", "studies/adult-1")}, true},
		{s + "CreateStudy", &dparetov1.CreateStudyRequest{StudyId: "mine-1", Study: prior("studies/shared", "studies/secret")}, false},
		{s + "UpdateStudy", &dparetov1.UpdateStudyRequest{Study: &dparetov1.Study{Name: "studies/mine-1", Spec: prior("studies/secret").GetSpec()}}, false},
		{s + "CreateStudy", &dparetov1.CreateStudyRequest{StudyId: "mine-1", Study: &dparetov1.Study{
			Description: "studies/secret was a mistake", Labels: map[string]string{"studies/secret": "studies/secret"}}}, true},
		{s + "CreateTrial", &dparetov1.CreateTrialRequest{Parent: "studies/adult-1", Trial: &dparetov1.Trial{ReplicateOf: "studies/shared/trials/1"}}, true},
		{s + "CreateTrial", &dparetov1.CreateTrialRequest{Parent: "studies/adult-1", Trial: &dparetov1.Trial{ReplicateOf: "studies/secret/trials/1"}}, false},
		{s + "CreateTrial", &dparetov1.CreateTrialRequest{Parent: "studies/adult-1", Trial: &dparetov1.Trial{Name: "studies/shared/trials/1"}}, false},
		{s + "RenewLeases", &dparetov1.RenewLeasesRequest{Parent: "studies/adult-1", LeaseTokens: map[string]string{"studies/adult-1/trials/1": "t"}}, true},
		{s + "RenewLeases", &dparetov1.RenewLeasesRequest{Parent: "studies/adult-1", LeaseTokens: map[string]string{"studies/shared/trials/1": "t"}}, false},
		// Beside studies.
		{a + "GetServerInfo", &dparetov1.GetServerInfoRequest{}, true},
		{a + "BackupStore", &dparetov1.BackupStoreRequest{}, false},
		{a + "ImportStudy", &dparetov1.ImportStudyRequest{Record: &dparetov1.ExportedRecord{Record: &dparetov1.ExportedRecord_Study{Study: &dparetov1.ExportedStudy{Study: study("studies/mine-1")}}}}, false},
		{a + "ExportStudy", &dparetov1.ExportStudyRequest{Name: "studies/mine-1"}, true},
		{a + "ExportStudy", &dparetov1.ExportStudyRequest{Name: "studies/adult-1"}, false},
	} {
		err := limited.Authorize(tt.method, tt.request.ProtoReflect())
		if (err == nil) != tt.allowed {
			t.Errorf("%s %v: %v, want allowed %v", tt.method, tt.request, err, tt.allowed)
		}
		if _, ok := errors.AsType[*DeniedError](err); err != nil && !ok {
			t.Errorf("%s %v: error %T", tt.method, tt.request, err)
		}
	}
	if err := (Principal{}).Authorize(s+"ListStudies", (&dparetov1.ListStudiesRequest{}).ProtoReflect()); err == nil {
		t.Error("nobody can list studies")
	}
}
