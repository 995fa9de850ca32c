package server

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/noise"
	laws "github.com/dpareto/dpareto/privacy/stopping"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// A study with random stopping is the mechanism of Liu and Talwar ("Private selection from
// private candidates", 2019) in the version of Papernot and Steinke ("Hyperparameter tuning
// with Rényi differential privacy", 2022). A candidate is a configuration, drawn from a fixed
// law, with what its run measured. The number K of candidates is drawn when the study is
// created, and nothing but the best of them is shown, when all have been run.
//
// Whoever knew the sequence of configurations could tell from the best one how many came
// before it, and with that something of K. So each comes from entropy of its own, and not
// from a seed and a number as in other studies, and the best is shown without its number.

// prepareSearch draws and computes what a new study with random stopping needs, and says in
// the study what it guarantees. It takes as long as the cost of 10,000 configurations does,
// and so has no place in a transaction.
func (s *Server) prepareSearch(ctx context.Context, record *storev1.StudyRecord, compiled *spec.Study) error {
	bound, err := compiled.SearchBound(ctx)
	if err != nil {
		return err
	}
	study := record.GetStudy()
	if study.Publication, err = searchPublication(compiled, bound); err != nil {
		return err
	}
	study.Seed = 0 // nothing is drawn from it
	law, err := lawOfTrials(study.GetSpec().GetRandomStopping())
	if err != nil {
		return err
	}
	trials, err := law.Draw(s.entropy) // which nobody can repeat
	record.RandomStopping = &storev1.RandomStopping{
		Trials: trials,
		Order:  bound.Order, Divergence: bound.Divergence,
		SecondOrder: bound.SecondOrder, SecondDivergence: bound.SecondDivergence, Delta: bound.Delta,
	}
	return err
}

// lawOfTrials returns the law of the number of trials of a study with random stopping.
func lawOfTrials(asked *dparetov1.RandomStoppingSpec) (laws.Law, error) {
	if _, isPoisson := asked.GetLaw().(*dparetov1.RandomStoppingSpec_Poisson); isPoisson {
		return laws.Poisson{Mean: asked.GetMeanTrials()}, nil
	}
	return laws.ByMean(asked.GetEta(), asked.GetMeanTrials())
}

// boundOf returns the bound on the cost of trials that was found when a study was created.
func boundOf(r *storev1.RandomStopping) privacy.SearchBound {
	return privacy.SearchBound{
		Order: r.GetOrder(), Divergence: r.GetDivergence(),
		SecondOrder: r.GetSecondOrder(), SecondDivergence: r.GetSecondDivergence(), Delta: r.GetDelta(),
	}
}

// isSearch reports whether a study has random stopping.
func isSearch(study *dparetov1.Study) bool { return study.GetSpec().GetRandomStopping() != nil }

// searchLeft returns how many trials a study with random stopping has still to create.
func searchLeft(record *storev1.StudyRecord) int64 {
	return record.GetRandomStopping().GetTrials() - record.GetNextTrialNumber() + 1
}

// isSearched reports whether all trials of a study with random stopping are complete, also
// if it was paused since.
func isSearched(record *storev1.StudyRecord) bool {
	return searchLeft(record) <= 0 && openTrials(record.GetStudy().GetTrialCounts()) == 0
}

// withoutSecrets returns a copy of a study with random stopping without what follows from
// its trials.
func withoutSecrets(study *dparetov1.Study) *dparetov1.Study {
	shown := proto.CloneOf(study)
	shown.TrialCounts, shown.Revision, shown.Seed = nil, 0, 0
	return shown
}

// independent draws every configuration of a study with random stopping from a generator of
// its own, which entropy seeds: the first one of its draws that the bound on the cost admits.
// All are drawn by one law, whatever their numbers.
type independent struct {
	entropy  *noise.Source
	compiled *spec.Study
	bound    privacy.SearchBound
}

// Name implements suggest.Designer.
func (independent) Name() string { return "independent" }

// Version implements suggest.Designer.
func (independent) Version() string { return suggest.NewRandom().Version() }

// Suggest implements suggest.Designer. It passes over the seed and the number of the request.
func (d independent) Suggest(ctx context.Context, p *suggest.Problem, _ *suggest.History, r suggest.Request) ([]suggest.Suggestion, error) {
	admitted := *p
	admitted.Allowed = func(point space.Point) bool { return ctx.Err() == nil && d.compiled.SearchAdmits(d.bound, point) }
	var all []suggest.Suggestion
	for range r.Count {
		one, err := suggest.NewRandom().Suggest(ctx, &admitted, new(suggest.History), suggest.Request{Count: 1, Seed: d.entropy.Uint64(), Number: 1})
		all = append(all, one...)
		if err := cmp.Or(ctx.Err(), err); err != nil {
			return all, err
		}
	}
	return all, nil
}

// designerFor returns the designer of a study.
func (s *Server) designerFor(record *storev1.StudyRecord, compiled *spec.Study) suggest.Designer {
	if isSearch(record.GetStudy()) {
		return independent{s.entropy, compiled, boundOf(record.GetRandomStopping())}
	}
	return s.designer(compiled)
}

// score returns what is kept of a measurement of a trial of a study with random stopping, as
// measured does: nothing but that at the end of the run, with noise where test records are
// protected.
func (c *change) score(path string, point space.Point, m *dparetov1.Measurement, final bool) (*dparetov1.Measurement, []*dparetov1.Warning, bool, error) {
	if !final {
		return nil, nil, false, nil
	}
	sigma := c.study.GetStudy().GetPublication().GetNoiseStandardDeviation()
	kept, warnings, err := c.compiled.Score(path, point, m, sigma, func(value float64) float64 { return c.entropy.Gaussian(value, sigma) })
	return kept, warnings, true, err
}

// candidate is what decides which trial is the best.
type candidate struct {
	score float64 // larger is better
	token string  // of its completion
}

// betterThan reports whether a candidate is better than another. Of those with the same
// score that with the larger token is: tokens are independent of everything and uniform, so
// that the order of the trials says nothing about which of them is released.
func (c candidate) betterThan(other candidate) bool {
	return c.score > other.score || c.score == other.score && c.token > other.token
}

// best returns the best trial of a study with random stopping whose trials are all complete,
// or nil if none succeeded.
func best(ctx context.Context, tx *store.ReadTx, id string, study *dparetov1.Study) (found *dparetov1.Trial, err error) {
	metric, sign := study.GetSpec().GetRandomStopping().GetMetric(), 1.0
	for _, m := range study.GetSpec().GetMetrics() {
		if m.GetId() == metric && m.GetGoal() == dparetov1.Goal_GOAL_MINIMIZE {
			sign = -1
		}
	}
	var first candidate
	err = tx.Trials(id, 0, func(record *storev1.TrialRecord) (bool, error) {
		trial := record.GetTrial()
		if trial.GetState() != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED {
			return true, ctx.Err()
		}
		c := candidate{sign * trial.GetFinalMeasurement().GetMetrics()[metric].GetValue(), record.GetCompletionToken()}
		if found == nil || c.betterThan(first) {
			found, first = trial, c
		}
		return true, ctx.Err()
	})
	return found, err
}

// bestOfRandomStopping returns what a study with random stopping publishes, the same at every
// call: the release without a name and a time. FAILED_PRECONDITION as long as a trial is
// missing.
func (s *Server) bestOfRandomStopping(ctx context.Context, tx *store.ReadTx, id string, record *storev1.StudyRecord) (*dparetov1.Release, error) {
	study := record.GetStudy()
	if !isSearched(record) {
		return nil, status.Errorf(codes.FailedPrecondition, "%s is not completed: it shows its best trial when all have been run, and nothing before", study.GetName())
	}
	trial, err := best(ctx, tx, id, study)
	if err != nil {
		return nil, err
	}
	publication, asked := study.GetPublication(), study.GetSpec().GetRandomStopping()
	release := &dparetov1.Release{
		Guarantee:              publication.GetTest(),
		TrainingGuarantee:      publication.GetTrain(),
		Assumptions:            publication.GetAssumptions(),
		NotCovered:             publication.GetNotCovered(),
		Mechanism:              "the best of a random number of runs: " + lawText(asked),
		NoiseStandardDeviation: publication.GetNoiseStandardDeviation(),
	}
	if n := asked.GetTestSetSize(); n > 0 {
		release.Protects = fmt.Sprintf("the %d test records", n)
	}
	if trial == nil {
		return release, nil
	}
	point := &dparetov1.ReleasedPoint{Parameters: trial.GetParameters(), Values: make(map[string]float64), StandardDeviations: make(map[string]float64)}
	for metric, value := range trial.GetComputedMetrics() {
		if value.Value != nil {
			point.Values[metric] = value.GetValue()
		}
	}
	point.Values[asked.GetMetric()] = trial.GetFinalMeasurement().GetMetrics()[asked.GetMetric()].GetValue()
	if sigma := publication.GetNoiseStandardDeviation(); sigma > 0 {
		point.StandardDeviations[asked.GetMetric()] = sigma
	}
	release.Points = []*dparetov1.ReleasedPoint{point}
	release.Warnings = []*dparetov1.Warning{{
		Code:    warnSelectionBias,
		Message: "the best of several measured values is better on average than a fresh run",
	}}
	return release, nil
}

// lawText names the law of the number of trials.
func lawText(asked *dparetov1.RandomStoppingSpec) string {
	if _, isPoisson := asked.GetLaw().(*dparetov1.RandomStoppingSpec_Poisson); isPoisson {
		return fmt.Sprintf("Poisson, mean %g", asked.GetMeanTrials())
	}
	return fmt.Sprintf("truncated negative binomial, η = %g, mean %g", asked.GetEta(), asked.GetMeanTrials())
}

// searchPublication says what a study with random stopping guarantees.
func searchPublication(compiled *spec.Study, bound privacy.SearchBound) (*dparetov1.Publication, error) {
	asked, delta := compiled.Spec.GetRandomStopping(), compiled.SearchDelta()
	g, err := compiled.SearchLaw().Guarantee(bound, delta)
	if err != nil {
		return nil, err
	}
	_, function := compiled.Mechanism("")
	p := &dparetov1.Publication{
		Train: searchGuarantee(g, function.Adjacency()),
		Assumptions: []string{
			"workers and operators of the server are trusted: they see trials, logs, metrics and exports, and tell nobody; on a server without authentication everybody is an operator",
			"a run learns of the training records by the mechanism that is accounted alone, and its score is computed from what that released",
			"runs are independent, and one that failed, was lost or was given back was so for reasons that do not depend on the data; otherwise every attempt counts as a trial, and the guarantee does not hold",
			"the study was not abandoned, paused or deleted for good because of its results",
		},
		NotCovered: []string{
			"how long the study took",
			"everything else that was run on the same data, a copy of the study from a backup or an export included",
		},
	}
	if n := asked.GetTestSetSize(); n > 0 {
		var sigma float64
		if sigma, g, err = searchNoise(compiled.SearchLaw(), n, asked.GetTestEpsilon(), delta); err != nil {
			return nil, err
		}
		p.NoiseStandardDeviation = sigma
		p.Test = searchGuarantee(g, dparetov1.Adjacency_ADJACENCY_REPLACE_ONE)
		p.Assumptions = append(p.Assumptions, fmt.Sprintf("%s is an average over %d test records, which runs learn nothing else of", asked.GetMetric(), n),
			"nobody is both in the training and in the test set; then the larger ε holds for everybody")
	} else {
		p.NotCovered = append(p.NotCovered, "the test records, of which the score of the best trial tells as it is")
	}
	return p, nil
}

// searchGuarantee converts the guarantee of a search.
func searchGuarantee(g privacy.Guarantee, adjacency dparetov1.Adjacency) *dparetov1.PrivacyGuarantee {
	m := &dparetov1.PrivacyGuarantee{
		Epsilon: g.Epsilon, Delta: g.Delta, Adjacency: adjacency, Order: g.Order, Steps: g.Steps,
		Accountant: dparetov1.Accountant_ACCOUNTANT_RDP, Conversion: dparetov1.Conversion_CONVERSION_IMPROVED,
		Assumptions: g.Assumptions,
	}
	for _, w := range g.Warnings {
		m.Warnings = append(m.Warnings, &dparetov1.Warning{Code: string(w.Code), Message: w.Message})
	}
	return m
}

// searchNoise returns the least standard deviation of Gaussian noise in a score, an average
// over n records, with which the best of a random number of scores costs each record at most
// epsilon, and that guarantee.
func searchNoise(law privacy.SearchLaw, n int64, epsilon, delta float64) (float64, privacy.Guarantee, error) {
	gamma := 0.0
	if !law.Poisson {
		var err error
		if gamma, err = privacy.SelectionGamma(law.Eta, law.Mean); err != nil {
			return 0, privacy.Guarantee{}, err
		}
	}
	// In units of 1/n. The grid of the noise adds less than 2^-39 of the deviation to the
	// sensitivity, and less than 1e-20 to every δ, for which the last digits of ε make up.
	family := func(sigma float64) privacy.Mechanism {
		base := privacy.Gaussian{Sensitivity: 1 + 0x1p-39*sigma, Sigma: sigma, Neighbours: privacy.ReplaceOne}
		if law.Poisson {
			return privacy.PoissonSelection{Base: base, Steps: 1, Mean: law.Mean}
		}
		return privacy.RepeatedSelection{Base: base, Steps: 1, Eta: law.Eta, Gamma: gamma}
	}
	sigma, g, err := privacy.CalibrateNoise(privacy.RDP{}, family, 1, epsilon*(1-1e-9), delta)
	g.Epsilon = epsilon
	return sigma / float64(n), g, err
}

// shown are the methods that can be called about a study with random stopping: they answer
// nothing that depends on its trials, or only to whoever has the lease of one. All others
// are refused.
var shown = map[string]bool{
	dparetov1.StudyService_CreateStudy_FullMethodName:    true,
	dparetov1.StudyService_GetStudy_FullMethodName:       true,
	dparetov1.StudyService_UpdateStudy_FullMethodName:    true,
	dparetov1.StudyService_DeleteStudy_FullMethodName:    true,
	dparetov1.StudyService_PauseStudy_FullMethodName:     true,
	dparetov1.StudyService_ResumeStudy_FullMethodName:    true,
	dparetov1.StudyService_SuggestTrials_FullMethodName:  true,
	dparetov1.StudyService_AddMeasurement_FullMethodName: true,
	dparetov1.StudyService_RenewLeases_FullMethodName:    true,
	dparetov1.StudyService_CompleteTrial_FullMethodName:  true,
	dparetov1.StudyService_ReleaseTrial_FullMethodName:   true,
	dparetov1.ReleaseService_ReleaseBest_FullMethodName:  true,
	dparetov1.ReleaseService_ReleaseFront_FullMethodName: true, // which says that there is none
	dparetov1.ReleaseService_GetRelease_FullMethodName:   true,
	dparetov1.ReleaseService_ListReleases_FullMethodName: true,
	dparetov1.AdminService_ImportStudy_FullMethodName:    true,
}

// errSecret says that a study with random stopping does not answer.
func errSecret(name string) error {
	return status.Errorf(codes.FailedPrecondition,
		"%s shows nothing but its best trial, see ReleaseBest: with random_stopping its guarantee rests on the secrecy of everything else", name)
}

// studyIn returns the id of the study that a resource is, or is in, or "".
func studyIn(resource string) string {
	rest, ok := strings.CutPrefix(resource, studyName(""))
	if !ok {
		return ""
	}
	id, _, _ := strings.Cut(rest, "/")
	return id
}
