package report

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server/web/words"
)

// Clients make the calls behind a report, with their reader's credentials.
type Clients struct {
	Studies  dparetov1.StudyServiceClient
	Fronts   dparetov1.FrontServiceClient
	Privacy  dparetov1.PrivacyServiceClient
	Releases dparetov1.ReleaseServiceClient
	Admin    dparetov1.AdminServiceClient
}

// Options choose the contents of a report.
type Options struct {
	// Epsilons are the largest ε to recommend a configuration for, all positive and finite. Default: those
	// of 0.5, 1, 2, 4 and 8 that the front spans, or its ends if it spans none.
	Epsilons []float64
	// Now is when the report is made.
	Now time.Time
}

// usualEpsilons are the ε to recommend for where a reader names none.
var usualEpsilons = []float64{0.5, 1, 2, 4, 8}

// maxEpsilons bounds the recommendations, each of which searches the model.
const maxEpsilons = 20

// New makes the report of a study, studies/{study}. Where the server does not show something, such as the
// front of a study with random_stopping, the report says so. Other failed calls give their errors.
func New(ctx context.Context, c *Clients, study string, o Options) (*Report, error) {
	if len(o.Epsilons) > maxEpsilons {
		return nil, fmt.Errorf("report: at most %d values of ε, not %d", maxEpsilons, len(o.Epsilons))
	}
	for _, e := range o.Epsilons {
		if !(e > 0) || math.IsInf(e, 1) {
			return nil, fmt.Errorf("report: ε must be positive and finite, is %v", e)
		}
	}
	resp, err := c.Studies.GetStudy(ctx, &dparetov1.GetStudyRequest{Name: study})
	if err != nil {
		return nil, err
	}
	r := &Report{Study: resp.GetStudy(), Made: o.Now}
	if r.Info, err = c.Admin.GetServerInfo(ctx, new(dparetov1.GetServerInfoRequest)); err != nil {
		return nil, err
	}
	if r.Specification, err = specification(r.Study); err != nil {
		return nil, err
	}
	front, err := c.Fronts.GetFront(ctx, &dparetov1.GetFrontRequest{Name: study, Kind: dparetov1.FrontKind_FRONT_KIND_POSTERIOR})
	r.Front = front.GetFront()
	if r.FrontProblem, err = problem(err); err != nil {
		return nil, err
	}
	if err := r.recommend(ctx, c.Fronts, o.Epsilons); err != nil {
		return nil, err
	}
	if show.PrivacyMetric(r.Study.GetSpec()) != nil {
		r.Ledger, err = c.Privacy.GetPrivacyLedger(ctx, &dparetov1.GetPrivacyLedgerRequest{Name: study})
		if r.LedgerProblem, err = problem(err); err != nil {
			return nil, err
		}
	}
	return r, r.listReleases(ctx, c.Releases)
}

// problem returns the message of a call that the study or the reader's role does not allow, and other
// errors as they are.
func problem(err error) (string, error) {
	switch status.Code(err) {
	case codes.FailedPrecondition, codes.PermissionDenied:
		return status.Convert(err).Message(), nil
	default:
		return "", err
	}
}

// recommend asks for configurations at some ε.
func (r *Report) recommend(ctx context.Context, fronts dparetov1.FrontServiceClient, epsilons []float64) error {
	m := epsilonObjective(r.Study.GetSpec())
	if m == nil || len(r.Front.GetPoints()) == 0 {
		return nil
	}
	if len(epsilons) == 0 {
		epsilons = spanned(r.Front, m)
	}
	for _, e := range epsilons {
		resp, err := fronts.QueryFront(ctx, &dparetov1.QueryFrontRequest{Name: r.Study.GetName(), Bounds: map[string]float64{m.GetId(): e}})
		if err != nil {
			return err
		}
		r.Recommendations = append(r.Recommendations, Recommendation{e, resp})
		if len(resp.GetTrials()) > 0 {
			continue
		}
		run, err := fronts.QueryFront(ctx, &dparetov1.QueryFrontRequest{Name: r.Study.GetName(), Bounds: map[string]float64{m.GetId(): e}, MeasuredOnly: true})
		if err != nil {
			return err
		}
		if run.GetReachable() && len(run.GetTrials()) > 0 {
			r.Recommendations = append(r.Recommendations, Recommendation{e, run})
		}
	}
	return nil
}

// spanned returns the usual ε that a front spans, or its ends.
func spanned(front *dparetov1.Front, m *dparetov1.MetricSpec) []float64 {
	low, high := math.Inf(1), math.Inf(-1)
	for _, p := range front.GetPoints() {
		if e := p.GetValues()[m.GetId()].GetValue(); !math.IsInf(e, 0) && p.GetConstantPoint() == "" {
			low, high = min(low, e), max(high, e)
		}
	}
	within := slices.DeleteFunc(slices.Clone(usualEpsilons), func(e float64) bool { return e < low || e > high })
	switch {
	case len(within) > 0:
		return within
	case low > high:
		return nil
	}
	if low, high = words.Loosened(m, low), words.Loosened(m, high); low == high {
		return []float64{low}
	}
	return []float64{low, high}
}

// listReleases reads the publications of the study.
func (r *Report) listReleases(ctx context.Context, releases dparetov1.ReleaseServiceClient) error {
	for token := ""; ; {
		resp, err := releases.ListReleases(ctx, &dparetov1.ListReleasesRequest{Parent: r.Study.GetName(), PageToken: token})
		if message, err := problem(err); err != nil || message != "" {
			return err
		}
		r.Releases = append(r.Releases, resp.GetReleases()...)
		if token = resp.GetNextPageToken(); token == "" {
			return nil
		}
	}
}

// specification returns a study as the JSON that creates it again, with the seed that it drew.
func specification(study *dparetov1.Study) (string, error) {
	again := &dparetov1.Study{DisplayName: study.GetDisplayName(), Description: study.GetDescription(), Labels: study.GetLabels(), Spec: proto.CloneOf(study.GetSpec())}
	if again.GetSpec().GetRandomStopping() == nil {
		again.Spec.Seed = new(study.GetSeed())
	}
	compact, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(again)
	if err != nil {
		return "", fmt.Errorf("report: %w", err)
	}
	// protojson varies its white space on purpose.
	var text bytes.Buffer
	if err := json.Indent(&text, compact, "", "  "); err != nil {
		return "", fmt.Errorf("report: %w", err)
	}
	return text.String(), nil
}
