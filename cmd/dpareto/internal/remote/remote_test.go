package remote

import (
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dpareto/dpareto/internal/require"
)

// A server that is there is not said to be missing.
func TestUnreachableError(t *testing.T) {
	for message, want := range map[string]string{
		`connection error: desc = "transport: Error while dialing: connect: connection refused"`:                                      "start one with dpareto serve",
		`name resolver error: produced zero addresses`:                                                                                "start one with dpareto serve",
		`connection error: desc = "error reading server preface: EOF"`:                                                                "--tls-ca",
		`connection error: desc = "transport: authentication handshake failed: tls: first record does not look like a TLS handshake"`: "--plaintext",
		`connection error: desc = "transport: authentication handshake failed: x509: certificate has expired"`:                        "no secure connection with",
		`the server cannot write its store (no space is left on the device)`:                                                          "is not available: the server cannot write",
	} {
		err := &UnreachableError{"127.0.0.1:1", status.Error(codes.Unavailable, message)}
		if got := err.Error(); !strings.Contains(got, want) || !strings.Contains(got, cause(message)) || strings.Contains(got, "Error while dialing") || !strings.Contains(got, "127.0.0.1:1") {
			t.Errorf("%q, want it to contain %q", got, want)
		}
	}
}

// The answer of a server to a raw call is shown with every field that it names.
func TestCallError(t *testing.T) {
	s, err := status.New(codes.InvalidArgument, "first of two").WithDetails(&errdetails.BadRequest{
		FieldViolations: []*errdetails.BadRequest_FieldViolation{
			{Field: "name", Description: "must be set"}, {Field: "page_size", Description: "is negative"},
		},
	})
	require.NoError(t, err)
	failed := &CallError{"list the studies", s.Err()}
	if got, want := failed.Error(), "list the studies: InvalidArgument: name: must be set; page_size: is negative"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
	if status.Code(failed) != codes.InvalidArgument {
		t.Errorf("code %v", status.Code(failed))
	}
}
