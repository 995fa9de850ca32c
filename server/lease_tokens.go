package server

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// showsLeaseTokens are the methods whose answers hold lease tokens: the one that hands them
// out, and the one that moves a study. Nobody else learns the token under which a worker
// holds a trial.
var showsLeaseTokens = map[string]bool{
	dparetov1.StudyService_SuggestTrials_FullMethodName: true,
	dparetov1.AdminService_ExportStudy_FullMethodName:   true,
}

// hideLeaseTokens takes lease tokens out of answers.
func hideLeaseTokens(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	resp, err := handler(ctx, req)
	return withoutLeaseTokens(info.FullMethod, resp), err
}

// withoutLeaseTokens returns an answer, or a copy of it, without lease tokens.
func withoutLeaseTokens(method string, resp any) any {
	if showsLeaseTokens[method] || !slices.ContainsFunc(trialsOf(resp), hasToken) {
		return resp
	}
	clone := proto.Clone(resp.(proto.Message)) // others may hold the answer
	for _, trial := range trialsOf(clone) {
		if hasToken(trial) {
			trial.Lease.Token = ""
		}
	}
	return clone
}

func hasToken(trial *dparetov1.Trial) bool { return trial.GetLease().GetToken() != "" }

// trialsOf returns the trials of an answer.
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
