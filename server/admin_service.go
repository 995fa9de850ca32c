package server

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"runtime"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/timestamppb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/auth"
	"github.com/dpareto/dpareto/server/engine"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/transfer"
	"github.com/dpareto/dpareto/suggest/designers"
)

// adminService implements AdminService.
type adminService struct {
	dparetov1.UnsafeAdminServiceServer

	*transfer.Transfer // BackupStore, ExportStudy, ImportStudy
	options            Options
	started            time.Time
}

func (s adminService) GetServerInfo(ctx context.Context, req *dparetov1.GetServerInfoRequest) (*dparetov1.GetServerInfoResponse, error) {
	caller := auth.FromContext(ctx)
	role := caller.Role
	if name := req.GetStudy(); name != "" {
		id, err := resource.ParseStudyName("study", name)
		if err != nil {
			return nil, err
		}
		role = caller.On(id)
	}
	resp := &dparetov1.GetServerInfoResponse{
		Version:         s.options.Version,
		GoVersion:       runtime.Version(),
		StartTime:       timestamppb.New(s.started),
		StoreFormat:     store.Format,
		MaxRequestBytes: int64(s.options.Limits.RequestBytes),
		CallerRole:      dparetov1.Role(role), // of the same numbers
		PageUrl:         pageURL(ctx, s.options.PageURL),
	}
	if s.options.Auth != nil {
		resp.Caller = caller.Name
	}
	for _, algorithm := range spec.Algorithms {
		resp.Algorithms = append(resp.Algorithms, &dparetov1.AlgorithmInfo{
			Name:    algorithm,
			Version: engine.NewDesigner(algorithm, designers.Options{}).Version(),
		})
	}
	return resp, nil
}

// pageURL returns the URL of the page for a caller, given the URL with the address that the HTTP port
// listens on: other machines cannot reach a loopback address, and an unspecified address stands for
// all, of which the caller knows one.
func pageURL(ctx context.Context, listened string) string {
	u, err := url.Parse(listened)
	if err != nil || listened == "" {
		return ""
	}
	called := calledHost(ctx)
	calledAddress, _ := netip.ParseAddr(called) // invalid for a name
	address, err := netip.ParseAddr(u.Hostname())
	switch {
	case err != nil:
		return ""
	case address.IsLoopback() && called != "localhost" && !calledAddress.IsLoopback():
		return ""
	case address.IsUnspecified() && called == "":
		return ""
	case address.IsUnspecified():
		u.Host = net.JoinHostPort(called, u.Port())
	}
	return u.String()
}

// calledHost returns the host under which a caller reached the server, "" if it is not known. For calls
// over HTTP the gateway says it.
func calledHost(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	for _, key := range []string{"x-forwarded-host", ":authority"} {
		if values := md.Get(key); len(values) > 0 {
			// The same form as the host of a URL, which may lack a port.
			return (&url.URL{Host: values[0]}).Hostname()
		}
	}
	return ""
}
