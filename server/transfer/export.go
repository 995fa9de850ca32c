package transfer

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/proto"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/failure"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
)

// ExportStudy implements AdminService. It writes the records to disk first: a slow client must not
// keep a snapshot of the store open, and a large study must not fill the memory.
func (t *Transfer) ExportStudy(req *dparetov1.ExportStudyRequest, stream grpc.ServerStreamingServer[dparetov1.ExportStudyResponse]) (err error) {
	id, err := resource.ParseStudyName("name", req.GetName())
	if err != nil {
		return err
	}
	file, err := t.store.Scratch()
	if err != nil {
		return failure.Status(err)
	}
	defer func() {
		if closed := file.Close(); err == nil {
			err = closed
		}
		err = failure.Status(err)
	}()
	buffered := bufio.NewWriter(file)
	err = t.store.View(stream.Context(), func(tx *store.ReadTx) error {
		return exportStudy(stream.Context(), tx, id, func(record *dparetov1.ExportedRecord) error {
			if _, err := protodelim.MarshalTo(buffered, record); err != nil {
				return store.Unwritable(err)
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	if err := buffered.Flush(); err != nil {
		return store.Unwritable(err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	reader := bufio.NewReader(file)
	for {
		record := new(dparetov1.ExportedRecord)
		err := protodelim.UnmarshalOptions{MaxSize: -1}.UnmarshalFrom(reader, record)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.Send(&dparetov1.ExportStudyResponse{Record: record}); err != nil {
			return err
		}
	}
}

// exportStudy passes the records of a study to fn in the order of the contract.
func exportStudy(ctx context.Context, tx *store.ReadTx, id string, fn func(*dparetov1.ExportedRecord) error) error {
	study, err := study.FindStudy(tx, id)
	if err != nil {
		return err
	}
	if err := fn(exportedStudy(study)); err != nil {
		return err
	}
	trials := func(deleted bool) func(*storev1.TrialRecord) (bool, error) {
		return func(record *storev1.TrialRecord) (bool, error) {
			if err := ctx.Err(); err != nil {
				return false, err
			}
			if err := tx.JoinAttempts(id, record); err != nil {
				return false, err
			}
			return true, fn(exportedTrial(record, deleted))
		}
	}
	if err := tx.Trials(id, 0, trials(false)); err != nil {
		return err
	}
	if err := tx.DeletedTrials(id, trials(true)); err != nil {
		return err
	}
	return tx.Releases(resource.StudyName(id), 0, func(_ int64, record *storev1.ReleaseRecord) (bool, error) {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		return true, fn(exportedRelease(record))
	})
}

// exportedStudy converts a stored study to its exported form.
func exportedStudy(r *storev1.StudyRecord) *dparetov1.ExportedRecord {
	study := &dparetov1.ExportedStudy{
		Study:           r.GetStudy(),
		NextTrialNumber: r.GetNextTrialNumber(),
		CompletedTrials: r.GetCompletedTrials(),
		OwnRevision:     r.GetOwnRevision(),
	}
	if stopping := r.GetRandomStopping(); stopping != nil {
		study.RandomStopping = &dparetov1.ExportedRandomStopping{
			Trials: stopping.GetTrials(), Listed: stopping.GetListed(), Paid: stopping.GetPaid(), SubsetKey: stopping.GetSubsetKey(),
		}
	}
	if p := r.GetPrivateMode(); p != nil {
		study.PrivateMode = &dparetov1.ExportedPrivateMode{
			Order: p.GetOrder(), TrainBudget: p.GetTrainBudget(), ShardCosts: p.GetShardCosts(), LeastCost: p.GetLeastCost(),
			MaxValues: p.GetMaxValues(), NoiseStandardDeviation: p.GetNoiseStandardDeviation(), Values: p.GetValues(), ReservedValues: p.GetReservedValues(),
			StartedTrials: p.GetStartedTrials(), Exhausted: p.GetExhausted(), MaxHandOuts: p.GetMaxHandOuts(), TypicalCost: p.GetTypicalCost(),
			SlotsUsed: p.GetSlotsUsed(),
		}
	}
	if stagnation := r.GetStagnation(); stagnation != nil {
		study.Stagnation = &dparetov1.ExportedStagnation{Trials: stagnation.GetTrials(), Hypervolume: stagnation.GetHypervolume()}
		for _, p := range stagnation.GetFront() {
			study.Stagnation.Front = append(study.Stagnation.Front, &dparetov1.ExportedPoint{Costs: p.GetCosts()})
		}
	}
	return &dparetov1.ExportedRecord{Record: &dparetov1.ExportedRecord_Study{Study: study}}
}

// studyRecord is the inverse of exportedStudy.
func studyRecord(study *dparetov1.ExportedStudy) *storev1.StudyRecord {
	r := &storev1.StudyRecord{
		Study:           study.GetStudy(),
		NextTrialNumber: study.GetNextTrialNumber(),
		CompletedTrials: study.GetCompletedTrials(),
		OwnRevision:     study.GetOwnRevision(),
	}
	if stagnation := study.GetStagnation(); stagnation != nil {
		r.Stagnation = &storev1.Stagnation{Trials: stagnation.GetTrials(), Hypervolume: stagnation.GetHypervolume()}
		for _, p := range stagnation.GetFront() {
			r.Stagnation.Front = append(r.Stagnation.Front, &storev1.FrontCosts{Costs: p.GetCosts()})
		}
	}
	return r
}

// exportedTrial converts a stored trial to its exported form.
func exportedTrial(r *storev1.TrialRecord, deleted bool) *dparetov1.ExportedRecord {
	var paid *dparetov1.ExportedPrivateTrial
	if p := r.GetPrivateMode(); p != nil {
		paid = &dparetov1.ExportedPrivateTrial{Values: p.GetValues(), ReservedValues: p.GetReservedValues(), Checkpoints: p.GetCheckpoints(), LastCheckpoint: p.GetLastCheckpoint()}
		for _, c := range p.GetCharges() {
			paid.Charges = append(paid.Charges, &dparetov1.ExportedTrainingCharge{Shard: c.GetShard(), Cost: c.GetCost(), Slot: c.GetSlot()})
		}
	}
	return &dparetov1.ExportedRecord{Record: &dparetov1.ExportedRecord_Trial{Trial: &dparetov1.ExportedTrial{
		Trial:            r.GetTrial(),
		Deleted:          deleted,
		LeaseTokens:      r.GetLeaseTokens(),
		CompletionToken:  r.GetCompletionToken(),
		CompletionDigest: r.GetCompletionDigest(),
		CompletionOrder:  r.GetCompletionOrder(),
		Releases:         r.GetReleases(),
		StopRequested:    r.GetStopRequested(),
		ChangeTime:       r.GetChangeTime(),
		PrivateMode:      paid,
	}}}
}

// trialRecord is the inverse of exportedTrial.
func trialRecord(trial *dparetov1.ExportedTrial) *storev1.TrialRecord {
	return &storev1.TrialRecord{
		Trial:            trial.GetTrial(),
		LeaseTokens:      trial.GetLeaseTokens(),
		CompletionToken:  trial.GetCompletionToken(),
		CompletionDigest: trial.GetCompletionDigest(),
		CompletionOrder:  trial.GetCompletionOrder(),
		Releases:         trial.GetReleases(),
		StopRequested:    trial.GetStopRequested(),
		ChangeTime:       trial.GetChangeTime(),
	}
}

// exportedRelease converts a stored release to its exported form.
func exportedRelease(r *storev1.ReleaseRecord) *dparetov1.ExportedRecord {
	return &dparetov1.ExportedRecord{Record: &dparetov1.ExportedRecord_Release{Release: &dparetov1.ExportedRelease{
		Release:       r.GetRelease(),
		Caller:        r.GetCaller(),
		RequestId:     r.GetRequestId(),
		RequestType:   r.GetRequestType(),
		RequestDigest: r.GetRequestDigest(),
	}}}
}

// releaseRecord is the inverse of exportedRelease.
func releaseRecord(r *dparetov1.ExportedRelease) *storev1.ReleaseRecord {
	return &storev1.ReleaseRecord{
		Release:       r.GetRelease(),
		Caller:        r.GetCaller(),
		RequestId:     r.GetRequestId(),
		RequestType:   r.GetRequestType(),
		RequestDigest: r.GetRequestDigest(),
	}
}

// recordDigest hashes a stream of records.
type recordDigest struct{ hash hash.Hash }

func newRecordDigest() recordDigest { return recordDigest{sha256.New()} }

func (d recordDigest) add(record *dparetov1.ExportedRecord) error {
	_, err := protodelim.MarshalOptions{MarshalOptions: proto.MarshalOptions{Deterministic: true}}.MarshalTo(d.hash, record)
	return err
}

func (d recordDigest) sum() string { return string(d.hash.Sum(nil)) }
