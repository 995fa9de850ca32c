package statement

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
	"github.com/dpareto/dpareto/internal/show"
)

// Clients make the calls behind a statement, with its reader's credentials.
type Clients struct {
	Studies  dparetov1.StudyServiceClient
	Fronts   dparetov1.FrontServiceClient
	Privacy  dparetov1.PrivacyServiceClient
	Releases dparetov1.ReleaseServiceClient
	Admin    dparetov1.AdminServiceClient
}

// Options choose the contents of a statement.
type Options struct {
	// Epsilon is the largest ε to state, 0 for none. In an ordinary study it chooses the trial: the best
	// measured one within it.
	Epsilon float64
	// Trial is the number of the trial to state, 0 for none. An ordinary study needs it or Epsilon.
	Trial int64
	// Sampler is how the trainer of DP-SGD drew its lots, as a person attests it: one
	// of [Samplers]. Required where the study does not name a bundled trainer.
	Sampler string
	// Price computes the cost of a planned search of as many runs, which takes seconds.
	Price bool
	// Now is when the statement is made.
	Now time.Time
}

// RefusalError is the reason why a study does not support a statement.
type RefusalError string

// Error implements error.
func (r RefusalError) Error() string { return "no statement: " + string(r) }

func refuse(format string, args ...any) error { return RefusalError(fmt.Sprintf(format, args...)) }

// maker makes one statement.
type maker struct {
	*Clients

	options Options
	study   *dparetov1.Study
	privacy *dparetov1.PrivacySpec
	records string // number of training records, "" if the mechanism does not say it
	perUser string // the most records of a user, "" for a guarantee for records
	s       *Statement
}

// New makes a statement about a study, studies/{study}. The error is a [RefusalError], or the error of a call.
func New(ctx context.Context, c *Clients, study string, o Options) (*Statement, error) {
	if !(o.Epsilon >= 0) || math.IsInf(o.Epsilon, 1) {
		return nil, refuse("ε must be positive and finite, is %g", o.Epsilon)
	}
	resp, err := c.Studies.GetStudy(ctx, &dparetov1.GetStudyRequest{Name: study})
	if err != nil {
		return nil, err
	}
	m := &maker{Clients: c, options: o, study: resp.GetStudy()}
	metric := show.PrivacyMetric(m.study.GetSpec())
	if metric == nil {
		return nil, refuse("the study has no metric that is the ε of a mechanism")
	}
	m.privacy = metric.GetComputed().GetPrivacy()
	m.s = &Statement{Study: m.study.GetName(), StudyUID: m.study.GetUid(), Revision: m.study.GetRevision(), Made: o.Now.UTC()}
	sampler, err := m.sampler()
	if err != nil {
		return nil, err
	}
	if err := m.users(); err != nil {
		return nil, err
	}
	info, err := c.Admin.GetServerInfo(ctx, new(dparetov1.GetServerInfoRequest))
	if err != nil {
		return nil, err
	}
	if spec := m.study.GetSpec(); spec.GetPrivateMode() != nil || spec.GetRandomStopping() != nil {
		err = m.published(ctx, sampler)
	} else {
		err = m.ordinary(ctx, metric.GetId(), sampler)
	}
	if err != nil {
		return nil, err
	}
	m.data()
	m.versions(info)
	m.s.Registry = m.registry()
	m.s.Questions = m.questions()
	return m.s, nil
}

// Samplers are the names of samplers.
var Samplers = []string{
	"fixed-size", samplerPoisson, samplerTruncated, samplerBanded, "shuffled", samplerAllocation, samplerAllocationOnce,
}

const (
	samplerPoisson        = "poisson"
	samplerTruncated      = "truncated-poisson"      // a uniform subset of a lot that is larger than the physical batch
	samplerBanded         = "banded-poisson"         // from one of as many groups as there are bands
	samplerAllocation     = "random-allocation"      // anew in every epoch
	samplerAllocationOnce = "random-allocation-once" // the same in every epoch
)

// execution is the mechanism that a bundled trainer executes.
type execution struct {
	mechanisms []string // names on the command line
	sampler    string   // "" for none
	adjacency  dparetov1.Adjacency
}

// What commands call mechanisms; dpSGD is a trainer too.
const (
	dpSGD  = "dp-sgd"
	dpFTRL = "dp-ftrl"
)

// executed returns the mechanism that the study's trainer executes, nil for one that is not bundled.
func (m *maker) executed() *execution {
	t := m.study.GetSpec().GetTrainer()
	setting := func(name, or string) string {
		if value := t.GetSettings()[name]; value != "" {
			return value
		}
		return or
	}
	switch t.GetName() {
	case dpSGD, "dp-adam":
		e := &execution{[]string{dpSGD, "random-allocation"}, setting("sampling", Samplers[0]), dparetov1.Adjacency_ADJACENCY_REPLACE_ONE}
		if e.sampler != Samplers[0] && setting("adjacency", "") != enum.Name(e.adjacency) {
			e.adjacency = dparetov1.Adjacency_ADJACENCY_ADD_REMOVE
		}
		return e
	case "dp-mf":
		if setting("matrix", "banded") != "banded" {
			return &execution{mechanisms: []string{dpFTRL}, adjacency: dparetov1.Adjacency_ADJACENCY_ADD_REMOVE}
		}
		return &execution{[]string{dpSGD}, samplerBanded, dparetov1.Adjacency_ADJACENCY_ADD_REMOVE}
	case "output-perturbation", "objective-perturbation", "sparse-vector":
		return &execution{mechanisms: []string{t.GetName()}}
	default:
		return nil
	}
}

// sampler compares the accounted with the executed sampler, and returns both in words.
func (m *maker) sampler() (Item, error) {
	accounted := samplings(m.privacy)
	const name = "Sampler"
	if len(accounted) > 1 {
		return Item{}, refuse("the mechanism has several samplers (%s), and the order of their execution is unknown", strings.Join(accounted, ", "))
	}
	executed, by := m.options.Sampler, "as the person who asked for this statement attests; nobody has checked it"
	e, trainer := m.executed(), m.study.GetSpec().GetTrainer().GetName()
	if e != nil {
		if other := slices.DeleteFunc(mechanisms(m.privacy), func(name string) bool { return slices.Contains(e.mechanisms, name) }); len(other) > 0 {
			return Item{}, refuse("ε is accounted for the mechanism %s, but the trainer %s executes another one", other[0], trainer)
		}
		if m.options.Sampler != "" && m.options.Sampler != e.sampler {
			return Item{}, refuse("the stated sampler is %s, but the trainer %s uses %s", m.options.Sampler, trainer, cmp.Or(e.sampler, "none"))
		}
		executed, by = e.sampler, "the bundled trainer "+trainer+", which the study names; nobody has checked that the workers ran it"
	}
	isSampled := len(accounted) > 0
	switch {
	case !isSampled && !slices.Contains(mechanisms(m.privacy), dpFTRL):
		return known(name, "none: the mechanism draws no lots"), nil
	case !isSampled && e == nil:
		return asked(name, "Nothing is sampled. Who ensures that no record takes part more often, or at a smaller distance of steps, than is accounted?"), nil
	case executed == "" && e == nil:
		return Item{}, refuse("the sampler of the trainer is unknown: the study names no bundled trainer. State it with --sampler %s, if the trainer uses it", accounted[0])
	case isSampled && executed != accounted[0]:
		return Item{}, refuse("ε is accounted for %s lots, but the trainer draws %s lots", accounted[0], executed)
	case e != nil && e.adjacency != m.privacy.GetAdjacency():
		return Item{}, refuse("ε is accounted under %s adjacency, but the trainer %s adds noise for %s", enum.Name(m.privacy.GetAdjacency()), trainer, enum.Name(e.adjacency))
	case !isSampled:
		return known(name, "none: every epoch takes the records in the same lots and order (%s)", by), nil
	default:
		return known(name, "accounted: %s; executed: %s (%s)", accounted[0], executed, by), nil
	}
}

// parts calls visit for the mechanisms that make up a mechanism.
func parts(spec *dparetov1.PrivacySpec, visit func(*dparetov1.PrivacySpec)) {
	switch {
	case spec.GetRepeatedSelection() != nil:
		parts(spec.GetRepeatedSelection().GetBase(), visit)
	case spec.GetComposition() != nil:
		for _, p := range spec.GetComposition().GetParts() {
			parts(p.GetMechanism(), visit)
		}
	default:
		visit(spec)
	}
}

// mechanisms returns the names of the mechanisms that make up a mechanism.
func mechanisms(spec *dparetov1.PrivacySpec) []string {
	var names []string
	parts(spec, func(part *dparetov1.PrivacySpec) {
		_, name := mechanismOf(part)
		names = append(names, name)
	})
	return names
}

// samplings returns the different samplers of a mechanism, sorted.
func samplings(spec *dparetov1.PrivacySpec) []string {
	found := make(map[string]bool)
	parts(spec, func(part *dparetov1.PrivacySpec) {
		sgd, allocation := part.GetDpSgd(), part.GetRandomAllocation()
		switch {
		case allocation.GetAllocation() == dparetov1.Allocation_ALLOCATION_SAME:
			found[samplerAllocationOnce] = true
		case allocation != nil:
			found[samplerAllocation] = true
		case sgd.GetPhysicalBatchSize() != "":
			found[samplerTruncated] = true
		case sgd.GetBands() != "":
			found[samplerBanded] = true
		case sgd != nil:
			found[enum.Name(sgd.GetSampling())] = true
		}
	})
	return slices.Sorted(maps.Keys(found))
}

// users finds the most records of a user, an expression: all parts of a mechanism are for users, or none.
func (m *maker) users() error {
	var all []string
	parts(m.privacy, func(part *dparetov1.PrivacySpec) { all = append(all, part.GetDpSgd().GetRecordsPerUser()) })
	if all = slices.Compact(all); len(all) > 1 {
		return refuse("the parts of the mechanism protect different units: some users, some records")
	}
	m.perUser = strings.Join(all, "")
	return nil
}

// countRecordsPerUser replaces the expression of the most records of a user by its value.
func (m *maker) countRecordsPerUser(evaluate *evaluator) error {
	if m.perUser == "" {
		return nil
	}
	var err error
	if m.perUser, err = evaluate.number(m.perUser); err != nil {
		return refuse("the number of records of a user cannot be computed: %v", err)
	}
	return nil
}

// unitName returns "record" or "user".
func (m *maker) unitName() string {
	if m.perUser == "" {
		return "record"
	}
	return "user"
}

// protected returns who is protected, for a claim: nothing for records.
func (m *maker) protected() string {
	if m.perUser == "" {
		return ""
	}
	return " for users with at most " + m.perUser + " records each"
}

// configuration is a measured state of a trial.
type configuration struct {
	trial      *dparetov1.Trial
	step       int64 // 0 for the end of the run
	planned    int64 // step at which the run was to end, 0 without a checkpoint parameter
	parameters map[string]*dparetov1.Value
}

// choose returns the configuration to state.
func (m *maker) choose(ctx context.Context, metric string) (*configuration, error) {
	c := new(configuration)
	name := fmt.Sprintf("%s/trials/%d", m.study.GetName(), m.options.Trial)
	switch {
	case m.options.Trial > 0:
	case m.options.Epsilon > 0:
		resp, err := m.Fronts.QueryFront(ctx, &dparetov1.QueryFrontRequest{Name: m.study.GetName(), Bounds: map[string]float64{metric: m.options.Epsilon}, MeasuredOnly: true})
		if err != nil {
			return nil, err
		}
		if resp.GetConstantPoint() != "" {
			return nil, refuse("with ε at most %g the best result needs no run: %s", m.options.Epsilon, show.ConstantPoint(m.study.GetSpec(), resp.GetConstantPoint()))
		}
		if !resp.GetReachable() || len(resp.GetTrials()) == 0 {
			return nil, refuse("no measured trial has ε of at most %g", m.options.Epsilon)
		}
		name, c.step, c.parameters = resp.GetTrials()[0], resp.GetStep(), resp.GetParameters()
	default:
		return nil, refuse("say which ε or which trial")
	}
	resp, err := m.Studies.GetTrial(ctx, &dparetov1.GetTrialRequest{Name: name})
	if err != nil {
		return nil, err
	}
	if c.trial = resp.GetTrial(); c.trial.GetState() != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED {
		return nil, refuse("trial %d is %s: only one that succeeded can be stated", c.trial.GetNumber(), enum.Name(c.trial.GetState()))
	}
	checkpoint := m.study.GetSpec().GetCheckpointParameter()
	c.planned = c.trial.GetParameters()[checkpoint].GetIntValue()
	if checkpoint != "" && c.step == 0 {
		c.step = c.trial.GetFinalMeasurement().GetStep()
	}
	if c.parameters == nil {
		c.parameters = maps.Clone(c.trial.GetParameters())
		if checkpoint != "" && c.step > 0 {
			c.parameters[checkpoint] = &dparetov1.Value{Kind: &dparetov1.Value_IntValue{IntValue: c.step}}
		}
	}
	return c, nil
}

// refused are warnings about a guarantee with which it should not be signed.
var refused = []string{"LARGE_DELTA", "VACUOUS", "BOUNDS_CONTRADICT"}

// check refuses a guarantee that cannot be stated.
func (m *maker) check(g *dparetov1.PrivacyGuarantee) error {
	if math.IsInf(g.GetEpsilon(), 0) || math.IsNaN(g.GetEpsilon()) {
		return refuse("no bound on ε is known")
	}
	for _, w := range g.GetWarnings() {
		if slices.Contains(refused, w.GetCode()) {
			return refuse("%s", w.GetMessage())
		}
	}
	if m.options.Epsilon > 0 && g.GetEpsilon() > m.options.Epsilon {
		return refuse("ε is %s, above %g", show.NumberUp(g.GetEpsilon()), m.options.Epsilon)
	}
	return nil
}

// ordinary states the model of one trial. It does not cover the search.
func (m *maker) ordinary(ctx context.Context, metric string, sampler Item) error {
	c, err := m.choose(ctx, metric)
	if err != nil {
		return err
	}
	for _, w := range c.trial.GetWarnings() {
		if w.GetCode() == "REPORT_DIFFERS" {
			return refuse("the worker computed another ε: %s", w.GetMessage())
		}
	}
	tradeoff, err := m.Privacy.ComputeTradeoff(ctx, &dparetov1.ComputeTradeoffRequest{Privacy: m.privacy, Parameters: c.parameters, FalsePositiveRates: []float64{falsePositives}})
	if err != nil {
		return err
	}
	computed, err := m.Privacy.ComputeEpsilon(ctx, &dparetov1.ComputeEpsilonRequest{Privacy: m.privacy, Parameters: c.parameters})
	if err != nil {
		return err
	}
	g := computed.GetGuarantees()[0]
	if err := m.check(g); err != nil {
		return err
	}
	evaluate, err := newEvaluator(c.parameters)
	if err != nil {
		return err
	}
	if err := m.countRecordsPerUser(evaluate); err != nil {
		return err
	}
	if m.s.Recompute, err = evaluate.recompute(m.privacy); err != nil {
		return refuse("ε could not be computed again: %v", err)
	}
	if m.privacy.GetComposition() == nil {
		flags, err := evaluate.flags(m.privacy)
		if err != nil {
			return err
		}
		m.records = find(flags, "dataset-size")
	}

	m.s.Trial = c.trial.GetName()
	m.s.Guarantee = guaranteeOf(g)
	for _, p := range tradeoff.GetPoints() {
		m.s.Guarantee.Attack = min(m.s.Guarantee.Attack, p.GetTruePositiveRate())
	}
	m.s.Seeded = show.IsSeeded(c.trial.GetWarnings())
	state, within := "", ""
	if c.step > 0 {
		state = fmt.Sprintf(" at %s %d", m.study.GetSpec().GetCheckpointParameter(), c.step)
		if c.step < c.planned {
			within = ", nor of this state within its run"
		}
	}
	m.s.Claim = fmt.Sprintf("Publishing the model of trial %d of %s%s is differentially private%s with %s. This does not cover the choice of the trial among the runs of the study%s.",
		c.trial.GetNumber(), m.study.GetName(), state, m.protected(), guaranteeText(g), within)
	if m.s.Seeded {
		m.s.Claim = fmt.Sprintf("The model of trial %d of %s has no ε against anybody who knows its seed, and must not be published. A fresh run of its configuration%s, with secret randomness, is differentially private%s with %s. This does not cover the choice of the configuration among the runs of the study.",
			c.trial.GetNumber(), m.study.GetName(), state, m.protected(), guaranteeText(g))
	}
	m.unit(g)
	m.s.section("What is released",
		known("Released", "the model of one run with %s", configurationText(m.study.GetSpec(), c.parameters)),
		known("Not released", "measured values, such as errors on test records: they have no noise, and the test records have no protection"),
		asked("To whom", "Who receives the model, and may they pass it on?"))
	if err := m.search(ctx, c, evaluate); err != nil {
		return err
	}
	m.accounting(g, sampler, c.trial)
	m.attack()
	m.s.section("How to compute it again", known("Command", "%s", m.s.Recompute))
	m.s.assume(g.GetAssumptions())
	return nil
}

// published states all that a study with private_mode or random_stopping publishes.
func (m *maker) published(ctx context.Context, sampler Item) error {
	if m.options.Trial > 0 {
		return refuse("the guarantee of this study covers everything that it publishes, not trial %d alone", m.options.Trial)
	}
	p := m.study.GetPublication()
	if p.GetTrain() == nil {
		return refuse("the study has no guarantee yet: it is %s", enum.Name(m.study.GetState()))
	}
	releases, err := m.Releases.ListReleases(ctx, &dparetov1.ListReleasesRequest{Parent: m.study.GetName()})
	if err != nil {
		return err
	}
	if len(releases.GetReleases()) == 0 {
		return refuse("nothing of this study was released yet: its numbers are not public (dpareto release)")
	}
	for _, g := range []*dparetov1.PrivacyGuarantee{p.GetTrain(), p.GetTest()} {
		if g != nil {
			if err := m.check(g); err != nil {
				return err
			}
		}
	}
	// One claim holds for all runs only if the number is the same in all, that is, without parameters.
	constant, err := newEvaluator(nil)
	if err != nil {
		return err
	}
	if err := m.countRecordsPerUser(constant); err != nil {
		return err
	}
	last := releases.GetReleases()[len(releases.GetReleases())-1]
	m.s.Guarantee, m.s.IncludesTuning = guaranteeOf(p.GetTrain()), true
	m.s.Claim = fmt.Sprintf("Everything that %s has published and will ever publish, including release %s and the models of its runs that it released, is differentially private for the training records%s with %s. The search is included.",
		m.study.GetName(), id(last.GetName()), strings.Replace(m.protected(), " for", " of", 1), guaranteeText(p.GetTrain()))
	tests := known("Test records", "not protected: the study declares no test set")
	if g := p.GetTest(); g != nil {
		test := guaranteeOf(g)
		m.s.Test = &test
		tests = known("Test records", "all results together: %s", guaranteeText(g))
	}
	m.unit(p.GetTrain())
	m.s.section("What is released",
		known("Released", "release %s: %s, %s", id(last.GetName()), last.GetMechanism(), show.Count(int64(len(last.GetPoints())), "point")),
		tests,
		known("Noise in measured values", "standard deviation %s", show.Number(p.GetNoiseStandardDeviation())),
		known("Not covered", "%s", strings.Join(p.GetNotCovered(), "; ")),
		asked("To whom", "Who receives the results, and may they pass them on?"))
	rule := "private_mode: a budget for all runs was declared before the first one, and the server refuses a run that would exceed it"
	if m.study.GetSpec().GetRandomStopping() != nil {
		rule = "random_stopping: the number of runs is random and secret, and only the best is shown"
	}
	m.s.section("What the search cost",
		known("Tuning", "included"),
		known("Rule", "%s", rule))
	m.accounting(p.GetTrain(), sampler, nil)
	m.attack()
	m.s.section("How to check it", known("Command", "dpareto study get %s: the server charged the ledgers before the first run, and keeps the charges (dpareto ledger charges %s)",
		id(m.study.GetName()), id(m.study.GetSpec().GetTrainLedger())))
	m.s.assume(p.GetTrain().GetAssumptions(), p.GetTest().GetAssumptions(), p.GetAssumptions())
	return nil
}

// unit says who is protected.
func (m *maker) unit(g *dparetov1.PrivacyGuarantee) {
	meaning := map[dparetov1.Adjacency]string{
		dparetov1.Adjacency_ADJACENCY_ADD_REMOVE:  "one data set has one record more than the other",
		dparetov1.Adjacency_ADJACENCY_REPLACE_ONE: "the data sets have the same size and differ in one record",
	}[g.GetAdjacency()]
	size := asked("δ against 1/n", "How many training records are there? δ = "+show.Plain(g.GetDelta())+" must be well below 1/n.")
	switch {
	case g.GetDelta() == 0:
		size = known("δ against 1/n", "δ is 0: the guarantee is pure")
	case m.records != "":
		size = known("δ against 1/n", "δ = %s; there are n = %s training records, and δ is below 1/n", show.Plain(g.GetDelta()), m.records)
	}
	unit := known("Unit of privacy", "one training record")
	question := "How many training records can one person have? With k of them ε is at most k times as large, and δ is at most (e^(kε) − 1)/(e^ε − 1) times as large."
	if m.study.GetSpec().GetTrainer().GetSettings()["schema"] != "" {
		question += " With a group in the schema, dpareto data check prints the largest k of the file."
	}
	person := asked("Records of a person", question)
	if m.perUser != "" {
		meaning = "the data sets differ in all records of one user"
		unit = known("Unit of privacy", "one user: all of at most %s training records", m.perUser)
		person = asked("Records of a person", "Who keeps a user below "+m.perUser+" records, and is a user a person?")
	}
	m.s.section("Who is protected", unit, person,
		known("Adjacency", "%s: %s", show.AdjacencyText(enum.Name(g.GetAdjacency()), g.GetAssumptions()), meaning),
		known("ε", "%s, an upper bound", show.NumberUp(g.GetEpsilon())),
		size)
}

// search states the cost of the whole search, and the cost that it could have had.
func (m *maker) search(ctx context.Context, c *configuration, evaluate *evaluator) error {
	items := []Item{known("Tuning", "NOT included: the trial was chosen among the results of all runs, and the choice depends on the data")}
	if c.step < c.planned && !m.s.Seeded {
		whole := maps.Clone(c.parameters)
		checkpoint := m.study.GetSpec().GetCheckpointParameter()
		whole[checkpoint] = &dparetov1.Value{Kind: &dparetov1.Value_IntValue{IntValue: c.planned}}
		computed, err := m.Privacy.ComputeEpsilon(ctx, &dparetov1.ComputeEpsilonRequest{Privacy: m.privacy, Parameters: whole})
		if err != nil {
			return err
		}
		items = append(items, known("Choice of the state", "NOT included: results decided where to stop in a run of up to %s %d; all of its states together: %s",
			checkpoint, c.planned, guaranteeText(computed.GetGuarantees()[0])))
	}
	ledger, err := m.Privacy.GetPrivacyLedger(ctx, &dparetov1.GetPrivacyLedgerRequest{Name: m.study.GetName()})
	if err != nil {
		return err
	}
	runs, g := ledger.GetRuns(), ledger.GetComposed()
	if math.IsInf(g.GetEpsilon(), 1) {
		items = append(items, known("All runs together", "%s, no bound on ε is known", show.Count(runs, "run")))
	} else {
		items = append(items, known("All runs together", "%s: %s, if everything of them is shown", show.Count(runs, "run"), guaranteeText(g)))
	}
	if ledger.GetAdaptive() && !math.IsInf(g.GetEpsilon(), 1) {
		items = append(items, known("Kind of bound", "ex post: results influenced later runs, so it bounds the privacy loss so far and was no promise before the first run"))
	}
	planned := proto.CloneOf(m.privacy)
	planned.Accountant, planned.Conversion = dparetov1.Accountant_ACCOUNTANT_UNSPECIFIED, dparetov1.Conversion_CONVERSION_UNSPECIFIED
	if runs > 1 && m.options.Price {
		resp, err := m.Privacy.PriceSearch(ctx, &dparetov1.PriceSearchRequest{Privacy: planned, Parameters: c.parameters, Runs: min(runs, mostRuns), Portfolios: []int64{2}})
		switch {
		case status.Code(err) == codes.InvalidArgument: // a pure δ, or a mechanism that is no candidate of a search
			items = append(items, known("A planned search", "has no price: %s", status.Convert(err).Message()))
		case err != nil:
			return err
		}
		items = append(items, prices(resp.GetWays(), runs)...)
	}
	if runs > 1 && m.privacy.GetComposition() == nil {
		flags, err := evaluate.flags(planned)
		if err != nil {
			return err
		}
		items = append(items, known("All ways to search", "%s", line(fmt.Sprintf("dpareto privacy search --runs %d", min(runs, mostRuns)), append(flags, outer(planned)...))))
	}
	m.s.section("What the search cost", items...)
	return nil
}

// mostRuns is the largest number of runs that PriceSearch takes.
const mostRuns = 1_000_000

// prices returns the cheapest ways to search with as many runs, whether or not results may decide what is run.
func prices(ways []*dparetov1.SearchPrice, runs int64) []Item {
	var items []Item
	for _, adaptive := range []bool{false, true} {
		var best *dparetov1.SearchPrice
		for _, w := range ways {
			if w.GetAdaptive() == adaptive && w.GetMeanRuns() >= float64(runs)/2 && (best == nil || w.GetTraining().GetEpsilon() < best.GetTraining().GetEpsilon()) {
				best = w
			}
		}
		if best == nil {
			continue
		}
		kind := "configurations fixed or drawn beforehand"
		if adaptive {
			kind = "configurations chosen by earlier results"
		}
		items = append(items, known("A planned search", "of as many runs, with %s, by %q, which releases %s: %s", kind, best.GetWay(), best.GetReleased(), guaranteeText(best.GetTraining())))
	}
	return items
}

// accounting states the accounted and the executed mechanism. The trial is nil for a study that shows none.
func (m *maker) accounting(g *dparetov1.PrivacyGuarantee, sampler Item, trial *dparetov1.Trial) {
	lower := ""
	if g.EpsilonLower != nil {
		lower = ", the true ε is at least " + show.NumberDown(g.GetEpsilonLower())
	}
	_, name := mechanismOf(m.privacy)
	randomness := known("Randomness", "the workers reported no seed; nobody has checked how they drew")
	switch {
	case m.s.Seeded:
		randomness = known("Randomness", "from a SEED: anyone with the seed can remove the noise of this trial; no ε holds for its weights against them")
	case trial == nil:
		randomness = known("Randomness", "the server refuses runs that report a seed; nobody has checked how the others drew")
	}
	floating := asked("Floating point", "How does the trainer draw its noise? Sums and noise in floating point can leak more than ε says (Mironov 2012).")
	switch {
	case m.study.GetSpec().GetTrainer().GetName() == "objective-perturbation":
		floating = known("Floating point", "not covered: the model is a minimiser in floating point, whose digits can leak more than ε says (docs/reference/trainers.md)")
	case m.executed() != nil:
		floating = known("Floating point", "the bundled trainer sums whole numbers and draws their noise exactly (docs/reference/trainers.md)")
	}
	m.s.section("What was accounted and executed",
		known("Mechanism", "%s", name),
		sampler,
		known("Accountant", "%s, an upper bound%s", show.AccountantText(g), lower),
		randomness, floating)
}

// falsePositives is the rate at which attacks are stated.
const falsePositives = 0.01

// attack returns the largest true positive rate of a membership test under an (ε, δ) guarantee, at a false
// positive rate (Dong, Roth and Su 2022, Proposition 3).
func attack(epsilon, delta, rate float64) float64 {
	return max(rate, min(1, math.Exp(epsilon)*rate+delta, 1-math.Exp(-epsilon)*(1-rate-delta)))
}

// attack states the abilities of an attacker.
func (m *maker) attack() {
	m.s.section("What an attacker can do",
		known("Membership", "somebody who knows all other %ss, and wrongly claims at most 1 %% of the %[1]ss that are not in the data, finds at most %[2]s %% of those that are; by guessing 1 %%",
			m.unitName(), show.NumberUp(100*m.s.Guarantee.Attack)),
		known("Not prevented", "conclusions from the data about everybody, whether or not they are in it"))
}

// data says what only a person knows about the data.
func (m *maker) data() {
	settings := m.study.GetSpec().GetTrainer().GetSettings()
	var items []Item
	if digest := settings["schema_digest"]; digest != "" {
		items = append(items,
			known("Pre-processing", "of the files by the schema %s, of digest %s: it states columns, ranges, categories and the split as public knowledge, "+
				"and the trainer refuses rows and schemas of another digest (data: %s)", settings["schema"], digest, settings["data_digest"]),
			asked("Public knowledge", "Was anything in the schema chosen, or in the files changed, by looking at protected rows? That is not covered."))
	} else {
		items = append(items, asked("Pre-processing", "Was anything chosen by looking at the data: features, scales, outliers, balancing? That is not covered."))
	}
	items = append(items,
		asked("Other uses", "Which other releases used the same records? Their ε add up with this one."),
		asked("Collection and access", "Who collected the records and for what, and who can read them, the workers and the results of the runs?"))
	if t := m.study.GetSpec().GetTrainer(); t.GetName() != "" {
		words := []string{t.GetName()}
		for _, key := range slices.Sorted(maps.Keys(t.GetSettings())) {
			words = append(words, key+" "+t.GetSettings()[key])
		}
		items = append([]Item{known("Trainer", "%s", strings.Join(words, ", "))}, items...)
	}
	if show.IsGenerated(m.study.GetSpec()) {
		items = append([]Item{known("Data", "generated: no real person is in it")}, items...)
	}
	m.s.section("Data", items...)
}

// versions says what made the statement.
func (m *maker) versions(info *dparetov1.GetServerInfoResponse) {
	m.s.section("Versions",
		known("Server", "dpareto %s, %s", info.GetVersion(), info.GetGoVersion()),
		known("Study", "uid %s, revision %d", m.study.GetUid(), m.study.GetRevision()),
		known("Made", "%s", m.s.Made.Format("2006-01-02 15:04:05 UTC")),
		asked("Signature", "Name, office and date of the person who answers for this statement."))
}

// configurationText returns a configuration in the order of the spec.
func configurationText(spec *dparetov1.StudySpec, values map[string]*dparetov1.Value) string {
	var parts []string
	for _, p := range spec.GetParameters() {
		v := values[p.GetId()]
		switch kind := v.GetKind().(type) {
		case *dparetov1.Value_IntValue:
			parts = append(parts, fmt.Sprintf("%s %d", p.GetId(), kind.IntValue))
		case *dparetov1.Value_DoubleValue:
			parts = append(parts, p.GetId()+" "+show.Plain(kind.DoubleValue))
		case *dparetov1.Value_StringValue:
			parts = append(parts, p.GetId()+" "+kind.StringValue)
		}
	}
	return strings.Join(parts, ", ")
}
