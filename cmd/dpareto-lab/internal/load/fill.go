package load

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"

	"google.golang.org/protobuf/proto"

	dpareto "github.com/dpareto/dpareto/clients/go"
	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/bolt"
)

// fillBatch is the number of trials in one transaction.
const fillBatch = 5000

// Fill fills the empty store in a file with studies and, divided equally among them, trials.
// Its records copy the ones that a server made of one trial, with other numbers and
// parameters. Progress is called with the number of trials so far.
func Fill(ctx context.Context, storeFile string, studies, trials int, progress func(int)) (err error) {
	db, err := bolt.Open(storeFile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	records, err := store.New(ctx, db)
	if err != nil {
		return err
	}
	study, trial, err := template(ctx, records)
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range studies {
		share := trials*(i+1)/studies - trials*i/studies
		if err := fillStudy(ctx, records, i, share, study, trial, random); err != nil {
			return fmt.Errorf("%s: %w", studyID(i), err)
		}
		progress(trials * (i + 1) / studies)
	}
	return nil
}

// template lets a server make a study with one completed trial, and returns their records.
func template(ctx context.Context, records *store.Store) (study *storev1.StudyRecord, trial *storev1.TrialRecord, err error) {
	srv := server.New(server.Options{Store: records})
	defer srv.Close()
	g := srv.GRPC()
	defer g.Stop()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	go func() { _ = g.Serve(listener) }() // it ends with Stop
	client, err := dpareto.Dial(listener.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	message, err := newStudy(dparetov1.Algorithm_ALGORITHM_RANDOM)
	if err != nil {
		return nil, nil, err
	}
	handle, err := client.CreateStudy(ctx, studyID(0), message)
	if err != nil {
		return nil, nil, err
	}
	if _, err := pair(ctx, handle, "worker-0"); err != nil {
		return nil, nil, err
	}
	err = records.View(ctx, func(tx *store.ReadTx) error {
		if study, err = tx.Study(studyID(0)); err != nil {
			return err
		}
		trial, err = tx.Trial(studyID(0), 1)
		return err
	})
	return study, trial, err
}

// fillStudy writes a study with trials.
func fillStudy(ctx context.Context, records *store.Store, i, trials int, study *storev1.StudyRecord, trial *storev1.TrialRecord, random *rand.Rand) error {
	id := studyID(i)
	study = proto.CloneOf(study)
	study.Study.Name = "studies/" + id
	study.Study.Uid = uid(random)
	base := study.GetStudy().GetRevision()
	write := func(from, to int64) error {
		return records.Update(ctx, store.In(store.StudyScope(id)), func(tx *store.Tx) error {
			// The study comes first, and again with every batch: its counts go with its trials.
			study.NextTrialNumber = to
			study.CompletedTrials = to - 1
			study.Study.TrialCounts = &dparetov1.TrialCounts{Succeeded: to - 1}
			study.Study.Revision = base + to
			if err := tx.PutStudy(id, study); err != nil {
				return err
			}
			for number := from; number < to; number++ {
				record := proto.CloneOf(trial)
				vary(record, id, number, base, random)
				if err := tx.PutTrial(id, record); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for from := int64(1); ; from += fillBatch {
		to := min(from+fillBatch, int64(trials)+1)
		if err := write(from, to); err != nil {
			return err
		}
		if to > int64(trials) {
			return nil
		}
	}
}

// vary makes a copy of a trial a different trial.
func vary(record *storev1.TrialRecord, id string, number, base int64, random *rand.Rand) {
	trial := record.GetTrial()
	trial.Name = fmt.Sprintf("studies/%s/trials/%d", id, number)
	trial.Number = number
	trial.Revision = base + number
	trial.Parameters["noise_scale"] = &dparetov1.Value{Kind: &dparetov1.Value_DoubleValue{DoubleValue: 0.01 + random.Float64()}}
	record.CompletionOrder = number
	record.LeaseTokens = []string{uid(random)}
	record.CompletionToken = record.GetLeaseTokens()[0]
}

// uid returns 128 random bits.
func uid(random *rand.Rand) string {
	var b [16]byte
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return hex.EncodeToString(b[:])
}
