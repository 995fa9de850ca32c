package intercept

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/auth"
)

// hideLeaseTokens removes lease tokens from responses, except for methods that hand them out or move
// a study. Only the worker that holds a trial learns its token.
func hideLeaseTokens(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	resp, err := handler(ctx, req)
	return withoutLeaseTokens(info.FullMethod, resp), err
}

// withoutLeaseTokens returns a response, or a copy of it, without lease tokens.
func withoutLeaseTokens(method string, resp any) any {
	if m, _ := auth.Lookup(method); m.ShowsLeaseTokens || !slices.ContainsFunc(trialsOf(resp), hasToken) {
		return resp
	}
	clone := proto.Clone(resp.(proto.Message)) // others may share the response
	for _, trial := range trialsOf(clone) {
		if hasToken(trial) {
			trial.Lease.Token = ""
		}
	}
	return clone
}

func hasToken(trial *dparetov1.Trial) bool { return trial.GetLease().GetToken() != "" }

// trialsOf returns the trials in a response.
func trialsOf(resp any) []*dparetov1.Trial {
	switch r := resp.(type) {
	case interface{ GetTrials() []*dparetov1.Trial }:
		return r.GetTrials()
	case interface{ GetTrial() *dparetov1.Trial }:
		return []*dparetov1.Trial{r.GetTrial()}
	default:
		return nil
	}
}
