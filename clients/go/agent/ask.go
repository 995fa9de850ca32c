package agent

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// askGrace is how long to wait for the answer to a request for trials after its caller
// has gone.
const askGrace = 2 * time.Second

// GiveBack returns a client of the study service for workers that may be stopped while
// they ask for a trial. When the context of SuggestTrials is done, the call continues for
// up to two seconds and releases any trial that arrives; the error is still the
// context's. Otherwise a trial handed out in the meantime would stay unused until its
// lease runs out. Use it for the client of an agent's study:
//
//	client.Studies = agent.GiveBack(client.Studies)
func GiveBack(studies dparetov1.StudyServiceClient) dparetov1.StudyServiceClient {
	return &giveBack{studies}
}

type giveBack struct{ dparetov1.StudyServiceClient }

// SuggestTrials implements dparetov1.StudyServiceClient.
func (g *giveBack) SuggestTrials(ctx context.Context, request *dparetov1.SuggestTrialsRequest, options ...grpc.CallOption) (*dparetov1.SuggestTrialsResponse, error) {
	if err := ctx.Err(); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	longer, cancel := linger(ctx, askGrace)
	defer cancel()
	response, err := g.StudyServiceClient.SuggestTrials(longer, request, options...)
	if ctx.Err() == nil {
		return response, err
	}
	for _, trial := range response.GetTrials() {
		// A trial that cannot be given back is handed out again after its lease.
		_, _ = g.ReleaseTrial(longer, &dparetov1.ReleaseTrialRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Reason: stopped,
		})
	}
	return nil, status.FromContextError(ctx.Err()).Err()
}
