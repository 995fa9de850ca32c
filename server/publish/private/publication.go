package private

import (
	"fmt"
	"slices"
	"strings"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/transcript"
	"github.com/dpareto/dpareto/server/spec"
)

// privatePublication returns the guarantee of publishing the results of a study with private_mode.
func privatePublication(record *storev1.StudyRecord, compiled *spec.Study) (*dparetov1.Publication, error) {
	mode, terms := compiled.Spec.GetPrivateMode(), record.GetPrivateMode()
	_, function := compiled.Metrics.Mechanism("")
	test := func(epsilon float64) *dparetov1.PrivacyGuarantee {
		return &dparetov1.PrivacyGuarantee{
			Epsilon: epsilon, Delta: mode.GetDelta(),
			Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE, Accountant: dparetov1.Accountant_ACCOUNTANT_GDP, Steps: terms.GetValues(),
		}
	}
	train := func(epsilon float64) *dparetov1.PrivacyGuarantee {
		g := &dparetov1.PrivacyGuarantee{Epsilon: epsilon, Delta: mode.GetDelta(), Adjacency: function.Adjacency()}
		switch {
		case slotsOf(compiled) != nil:
			g.Accountant = dparetov1.Accountant_ACCOUNTANT_EXACT
		case terms.GetMaxHandOuts() > 0:
			g.Accountant = dparetov1.Accountant_ACCOUNTANT_GDP
		default:
			g.Accountant, g.Conversion, g.Order = dparetov1.Accountant_ACCOUNTANT_RDP, dparetov1.Conversion_CONVERSION_IMPROVED, terms.GetOrder()
		}
		return g
	}
	declared := mode.GetTrainEpsilon()
	if slots := slotsOf(compiled); slots != nil {
		declared = slots.Price().Epsilon
	}
	spentTest, err := transcript.TestEpsilon(mode.GetTestSetSize(), terms.GetValues(), terms.GetNoiseStandardDeviation(), mode.GetDelta())
	if err != nil {
		return nil, err
	}
	spentTrain, err := trainSpent(compiled, terms)
	if err != nil {
		return nil, err
	}
	order := terms.GetOrder()
	if terms.GetMaxHandOuts() > 0 {
		order = 0 // only the search uses it
	}
	p := &dparetov1.Publication{
		Train:                  train(declared),
		Test:                   test(mode.GetTestEpsilon()),
		NoiseStandardDeviation: terms.GetNoiseStandardDeviation(),
		Spent: &dparetov1.PrivateModeOdometers{
			Values: terms.GetValues(), MaxValues: terms.GetMaxValues(),
			Test:  test(spentTest),
			Train: train(spentTrain),
			Order: order, TrainBudget: terms.GetTrainBudget(), ShardCosts: terms.GetShardCosts(), TypicalCost: terms.GetTypicalCost(),
			Slots: slotUse(compiled, terms), Checkpoints: checkpoints(record, compiled),
		},
		Assumptions: privateAssumptions(compiled),
		NotCovered: []string{
			"when results arrive, how long runs and responses take, how busy the server is, and which runs fail, stop responding or are infeasible",
			"names, labels, notes and descriptions, whose authors may have seen raw values",
			"other studies and releases on the same records: their total cost is the sum in test_ledger and train_ledger, as far as it was charged there",
			"copies: a study that continues from a backup or an export, next to the original or instead of it, spends again what the original has spent since, and no ledger is charged for it",
		},
	}
	statePublicSize(p, function.PublicSize())
	return p, nil
}

// privateAssumptions returns the assumptions of the guarantee of a study with private_mode.
func privateAssumptions(compiled *spec.Study) []*dparetov1.Assumption {
	mode := compiled.Spec.GetPrivateMode()
	metric, function := compiled.Metrics.Mechanism("")
	all := []privacy.Assumption{
		privacy.PremiseScores.Assume(fmt.Sprintf("every reported metric is an average over %d test records of a number in [0, 1] for each", mode.GetTestSetSize())),
		privacy.PremiseDisjoint.Assume("no person is in both the training and the test records; both were separated without looking at them"),
		privacy.PremiseTheorem.Assume(fmt.Sprintf("every run is the mechanism described by metric %s, at no more than its planned length; each hand-out of a trial is %d such runs", metric, compiled.Replicates())),
		privacy.PremiseIndependence.Assume("runs have independent randomness, and only the reports to this study leave the workers: no models, losses or raw values"),
		privacy.PremiseServerNoise.Assume("the server draws its noise from the entropy of the operating system"),
	}
	if compiled.Points.Checkpoints() {
		all = append(all, privacy.PremiseTheorem.Assume("all intermediate states of a run are covered by the guarantee of the whole run, as in DP-SGD"))
	}
	if n := shards(compiled); n > 1 {
		all = append(all, privacy.PremiseDisjoint.Assume(fmt.Sprintf("every training record is in one of %d shards, cut without looking at the records, and every run trains only on its trial's shard", n)))
		if function.Adjacency() == dparetov1.Adjacency_ADJACENCY_ADD_REMOVE {
			// A cut by position and count would move all other records, and change every shard.
			all = append(all, privacy.PremiseDisjoint.Assume("adding or removing a record leaves every other record in its shard: a hash of each record decides its shard, or a removed record leaves its place empty"))
		}
	}
	if len(compiled.Spec.GetConstantPoints()) > 0 { // which need constant_points_are_public
		all = append(all, privacy.PremisePublicData.Assume("the values of the constant points come from public data only"))
	}
	if mode.GetPriorStudiesArePublic() && len(compiled.Spec.GetPriorStudies()) > 0 {
		all = append(all, privacy.PremisePublicData.Assume("the prior studies hold public data only"))
	}
	if names := compiled.PublicDatasets(); len(names) > 0 {
		all = append(all, privacy.PremisePublicData.Assume(fmt.Sprintf("the data of the runs that the engine begins with (%s) are public", strings.Join(names, ", "))))
	}
	return show.Assumptions(all)
}

// trainSpent returns ε of the shard that has spent most: of several with slots, the largest.
func trainSpent(compiled *spec.Study, terms *storev1.PrivateModeRecord) (float64, error) {
	slots := slotsOf(compiled)
	if slots == nil {
		return filterEpsilon(compiled, terms, slices.Max(terms.GetShardCosts()))
	}
	most := 0.0
	for shard := range terms.GetShardCosts() {
		g, err := slots.Spent(usedOf(terms, shard))
		if err != nil {
			return 0, err
		}
		most = max(most, g.Epsilon)
	}
	return most, nil
}

// slotUse returns the use of each kind of slot.
func slotUse(compiled *spec.Study, terms *storev1.PrivateModeRecord) []*dparetov1.SlotUse {
	var all []*dparetov1.SlotUse
	for k, slot := range compiled.Spec.GetPrivateMode().GetSlots() {
		use := &dparetov1.SlotUse{Slot: slot}
		for shard := range terms.GetShardCosts() {
			use.Used = append(use.Used, usedOf(terms, shard)[k])
		}
		all = append(all, use)
	}
	return all
}

// assume adds assumptions to a publication.
func assume(p *dparetov1.Publication, assumptions ...privacy.Assumption) {
	p.Assumptions = show.JoinAssumptions(p.GetAssumptions(), show.Assumptions(assumptions))
}

// statePublicSize adds to a publication, and to the guarantee that is charged to ledgers, that the
// number of training records is public, if the mechanism of a run assumes it.
func statePublicSize(p *dparetov1.Publication, isPublic bool) {
	if isPublic {
		public := show.Assumptions([]privacy.Assumption{privacy.PublicSizeAssumption})
		p.Assumptions = show.JoinAssumptions(p.GetAssumptions(), public)
		p.Train.Assumptions = show.JoinAssumptions(p.GetTrain().GetAssumptions(), public)
	}
}
