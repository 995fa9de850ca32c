package private

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/privacy/tuning"
	"github.com/dpareto/dpareto/server/accounting"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest/space"
)

// A study with a subset_share tunes on a secret subset of the training records, and then trains once
// on all (Koskela and Kulkarni, "Practical differentially private hyperparameter tuning with
// subsampling", 2023). The whole tuning is one mechanism A on the subset, whose output is the best
// candidate: it is amplified as a whole, and then composed with the final run. So all candidates
// have the same subset. Amplifying each candidate by itself would need a fresh subset for each.
//
// The subset is drawn as a key. Only hand-outs of candidates hold it; the trials in the store do not.
//
// The final run touches all training records, and its cost is composed once. So it is handed out
// once, like every trial of these studies: if it fails, is lost or given back, nothing is released.

// finalAlgorithm is the algorithm in the provenance of a final run.
const finalAlgorithm = "final run"

// subsetKeySize is the number of bytes of the key of a training subset.
const subsetKeySize = 32

// finalRun is the run on all training records that follows a tuning on a secret subset.
type finalRun struct {
	// study is the study in the final run: its privacy metrics are for all training records, and its
	// parameters need not meet the constraints of candidates.
	study *spec.Study
	// subsetSize is the number of records that candidates see, of datasetSize.
	subsetSize, datasetSize int64
	// part is the mechanism of the final run with the number of its runs, the same whatever the
	// tuning finds.
	part privacy.Part

	values map[string]*dparetov1.Value
}

// finalOf returns the final run of a study, nil if it has none.
func finalOf(compiled *spec.Study) *finalRun {
	final, _ := compiled.Terms.(*finalRun)
	return final
}

// subsetSize returns the number of records in a subset of a share of n.
func subsetSize(share float64, n int64) int64 { return int64(math.Round(share * float64(n))) }

// point returns the configuration of the final run after a tuning that chose best.
func (f *finalRun) point(best space.Point) (space.Point, error) {
	values := f.study.Points.Values(best)
	maps.Copy(values, f.values)
	return f.study.Points.Parse("trial.parameters", values)
}

// drawSubset draws the key of a study's training subset, nil if it has none.
func drawSubset(entropy *noise.Source, compiled *spec.Study) []byte {
	if finalOf(compiled) == nil {
		return nil
	}
	var key []byte
	for len(key) < subsetKeySize {
		key = binary.LittleEndian.AppendUint64(key, entropy.Uint64())
	}
	return key
}

// isFinalRun reports whether a number belongs to the final run of a study: all candidates come before
// it.
func isFinalRun(record *storev1.StudyRecord, number int64) bool {
	return record.GetStudy().GetSpec().GetRandomStopping().GetFinalRun() != nil && number > record.GetRandomStopping().GetTrials()
}

// compiledFor returns the compiled spec of one of a study's trials: the final run has its own.
func compiledFor(record *storev1.StudyRecord, compiled *spec.Study, number int64) *spec.Study {
	if isFinalRun(record, number) {
		return finalOf(compiled).study
	}
	return compiled
}

// AddWorkerSecrets implements study.Policy: it tells the worker of a candidate the training subset.
func (randomStopping) AddWorkerSecrets(c *study.Change, trial *dparetov1.Trial) {
	if final := finalOf(c.Compiled); final != nil && !isFinalRun(c.Study, trial.GetNumber()) {
		trial.TrainingSubset = &dparetov1.TrainingSubset{
			Key: c.Study.GetRandomStopping().GetSubsetKey(), Size: final.subsetSize, Of: final.datasetSize,
		}
	}
}

// AfterTrialEnds implements study.Policy: once all candidates have ended it queues the final run of the best.
// There is none if no candidate succeeded.
func (randomStopping) AfterTrialEnds(c *study.Change) error {
	final := finalOf(c.Compiled)
	if final == nil || c.Study.GetNextTrialNumber() != c.Study.GetRandomStopping().GetTrials()+1 || !isRun(c.Study) {
		return nil
	}
	chosen, err := best(context.Background(), &c.Tx.ReadTx, c.ID, c.Compiled)
	if err != nil || chosen == nil {
		return err
	}
	point, err := study.PointOf(c.Compiled, chosen.runs[0])
	if err != nil {
		return err
	}
	if point, err = final.point(point); err != nil {
		return err
	}
	_, err = c.CreateAs(final.study, point, dparetov1.TrialOrigin_TRIAL_ORIGIN_SUGGESTED, func(record *storev1.TrialRecord) error {
		record.Trial.Provenance = &dparetov1.Provenance{Algorithm: finalAlgorithm, StudyRevision: c.Study.GetStudy().GetRevision()}
		return nil
	})
	return err
}

// finalTrial returns the final run of a study, nil if there is none or it did not succeed.
func finalTrial(tx *store.ReadTx, id string, record *storev1.StudyRecord) (*dparetov1.Trial, error) {
	found, err := tx.Trial(id, record.GetRandomStopping().GetTrials()+1)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil || found.GetTrial().GetState() != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED {
		return nil, err
	}
	return found.GetTrial(), nil
}

// thenFinalRun returns the mechanism of a search, amplified as a whole by its subset, and of the final
// run: the search itself if there is no final run.
func thenFinalRun(search privacy.Mechanism, final *finalRun) privacy.Mechanism {
	if final == nil {
		return search
	}
	amplified := tuning.SubsetSampled{Base: search, SubsetSize: final.subsetSize, DatasetSize: final.datasetSize}
	return privacy.Composition{{Mechanism: amplified, Count: 1}, final.part}
}

// thenScored returns the mechanism of a choice by noisy scores on test records, and of the score of the
// final run. Composition needs a pair of distributions, which only SubsetSampled derives from a selection's
// profile; a share of 1 changes nothing.
func thenScored(choice, score privacy.Mechanism) privacy.Mechanism {
	all := tuning.SubsetSampled{Base: choice, SubsetSize: 1, DatasetSize: 1}
	return privacy.Composition{{Mechanism: all, Count: 1}, {Mechanism: score, Count: 1}}
}

// stateFinalRun adds to a publication the cost of a final run, and the assumptions of its guarantee.
func stateFinalRun(p *dparetov1.Publication, compiled *spec.Study, delta float64) error {
	final := finalOf(compiled)
	if final == nil {
		return nil
	}
	g, err := privacy.Epsilon(privacy.Tightest{}, final.part.Mechanism, final.part.Count, delta)
	if err != nil {
		return err
	}
	p.FinalRun = accounting.Message(g, p.GetTrain().GetAdjacency())
	assume(p,
		privacy.PremiseSecrecy.Assume(fmt.Sprintf("candidates are trained on the subset of %d of %d training records that the server drew, and on no others; which records are in it stays with the workers", final.subsetSize, final.datasetSize)),
		privacy.PremiseFixedInAdvance.Assume("the final run is made once, with fresh randomness: the result of the tuning decides only settings that its mechanism does not depend on"))
	return nil
}
