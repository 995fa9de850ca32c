package dpareto

import (
	"context"
	"fmt"
	"time"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// askAgain is how long Ask waits if the server does not say.
const askAgain = time.Second

// Study is a handle of a study. It is safe for concurrent use.
type Study struct {
	client *Client
	name   string
}

// Name returns the resource name of the study: studies/{study}.
func (s *Study) Name() string { return s.name }

// Get reads the study.
func (s *Study) Get(ctx context.Context) (*dparetov1.Study, error) {
	resp, err := s.client.Studies.GetStudy(ctx, &dparetov1.GetStudyRequest{Name: s.name})
	if err != nil {
		return nil, newCallError(ctx, "read "+s.name, err)
	}
	return resp.GetStudy(), nil
}

// Ask returns a trial for a worker to run. It waits while the study is paused or other
// workers hold all trials that its budget allows. It returns ErrDone when the study hands
// out no more trials.
//
// The id names the worker among all workers of the study and should survive a restart: a
// worker that already holds a trial gets it again, under a new lease, to run from the
// beginning. Two workers must not share an id.
func (s *Study) Ask(ctx context.Context, workerID string) (*Trial, error) {
	request := &dparetov1.SuggestTrialsRequest{Parent: s.name, Count: 1, WorkerId: workerID}
	action := "ask for a trial of " + s.name
	for {
		resp, err := s.client.Studies.SuggestTrials(ctx, request)
		if err != nil {
			return nil, newCallError(ctx, action, err)
		}
		if trials := resp.GetTrials(); len(trials) > 0 {
			return newTrial(s, trials[0]), nil
		}
		pause := resp.GetRetryAfter().AsDuration()
		if pause <= 0 {
			if isDone(resp) {
				return nil, fmt.Errorf("%s: %w (%v, %v)", action, ErrDone, resp.GetEndReason(), resp.GetStudyState())
			}
			pause = askAgain
		}
		if err := wait(ctx, pause); err != nil {
			return nil, fmt.Errorf("%s: %w (waiting because of %v)", action, err, resp.GetEndReason())
		}
	}
}

// isDone reports whether an answer without a trial, and without a time to ask again, is
// final.
func isDone(resp *dparetov1.SuggestTrialsResponse) bool {
	switch resp.GetEndReason() {
	case dparetov1.EndReason_END_REASON_BUDGET_SPENT,
		dparetov1.EndReason_END_REASON_STAGNANT,
		dparetov1.EndReason_END_REASON_SPACE_EXHAUSTED,
		dparetov1.EndReason_END_REASON_PRIVACY_BUDGET_SPENT:
		return true
	default:
		return resp.GetStudyState() == dparetov1.StudyState_STUDY_STATE_COMPLETED
	}
}

// Trial reads a trial by its number, with its past attempts, which lists of trials leave out.
func (s *Study) Trial(ctx context.Context, number int64) (*dparetov1.Trial, error) {
	name := s.trialName(number)
	resp, err := s.client.Studies.GetTrial(ctx, &dparetov1.GetTrialRequest{Name: name})
	if err != nil {
		return nil, newCallError(ctx, "read "+name, err)
	}
	return resp.GetTrial(), nil
}

// Replicate queues a trial that runs the configuration of another trial, given by its
// resource name, with new randomness. If the study has a checkpoint parameter, parameters
// can describe an intermediate state of that trial, as points of the front do; nil takes
// the trial's parameters. A replicate can be created when the study's budget is spent.
func (s *Study) Replicate(ctx context.Context, of string, parameters map[string]*dparetov1.Value) (*dparetov1.Trial, error) {
	resp, err := s.client.Studies.CreateTrial(ctx, &dparetov1.CreateTrialRequest{
		Parent: s.name, Trial: &dparetov1.Trial{ReplicateOf: of, Parameters: parameters},
	})
	if err != nil {
		return nil, newCallError(ctx, "replicate "+of, err)
	}
	return resp.GetTrial(), nil
}

// Front reads the Pareto front of the study, chosen by the given kind of values.
func (s *Study) Front(ctx context.Context, kind dparetov1.FrontKind) (*dparetov1.Front, error) {
	resp, err := s.client.Fronts.GetFront(ctx, &dparetov1.GetFrontRequest{Name: s.name, Kind: kind})
	if err != nil {
		return nil, newCallError(ctx, "read the front of "+s.name, err)
	}
	return resp.GetFront(), nil
}

// Hypervolumes reads the hypervolume of a kind of front after every completed trial, in
// the order of completion; for the posterior front, after a few of them. The answer also has the reference
// values within which they are measured.
func (s *Study) Hypervolumes(ctx context.Context, kind dparetov1.FrontKind) (*dparetov1.ListHypervolumesResponse, error) {
	resp, err := s.client.Fronts.ListHypervolumes(ctx, &dparetov1.ListHypervolumesRequest{Name: s.name, Kind: kind})
	if err != nil {
		return nil, newCallError(ctx, "read the hypervolumes of "+s.name, err)
	}
	return resp, nil
}
