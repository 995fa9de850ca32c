package study

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/specchange"
	"github.com/dpareto/dpareto/server/store"
)

// maxPast bounds the studies that a ledger remembers. One is enough for a warning.
const maxPast = 100

// testLedgerScope returns the scope of the ledger that remembers a study, "" if none does.
func testLedgerScope(s *Studies, asked *dparetov1.StudySpec) store.Scope {
	id, err := resource.ParseLedgerName("", asked.GetTestLedger())
	if err != nil || s.Policy(asked).Traits().Prepaid { // what these show is paid for
		return ""
	}
	return store.LedgerScope(id)
}

// noteStudy notes a study that had trials on its test ledger, before it is deleted. The ledger of a study
// never changes.
func noteStudy(s *Studies, tx *store.Tx, id string, record *storev1.StudyRecord) error {
	asked := record.GetStudy().GetSpec()
	if testLedgerScope(s, asked) == "" {
		return nil
	}
	first, err := FirstTrial(&tx.ReadTx, id)
	if err != nil || first.IsZero() {
		return err
	}
	name, err := resource.ParseLedgerName("", asked.GetTestLedger())
	if err != nil {
		return err
	}
	ledger, err := tx.Ledger(name)
	if errors.Is(err, store.ErrNotFound) {
		return nil // damage must not keep a study from being deleted
	}
	if err != nil {
		return err
	}
	digest, err := specchange.DesignDigest(asked)
	if err != nil {
		return err
	}
	uid := record.GetStudy().GetUid()
	past := slices.DeleteFunc(ledger.GetPast(), func(p *storev1.PastStudy) bool { return p.GetUid() == uid })
	past = append(past, &storev1.PastStudy{
		Study: resource.StudyName(id), Uid: uid, FirstTrial: timestamppb.New(first), DesignDigest: digest,
	})
	slices.SortStableFunc(past, func(a, b *storev1.PastStudy) int {
		return cmp.Or(a.GetFirstTrial().AsTime().Compare(b.GetFirstTrial().AsTime()), cmp.Compare(a.GetUid(), b.GetUid()))
	})
	ledger.Past = past[:min(len(past), maxPast)]
	return tx.PutLedger(name, ledger)
}

// FirstTrial returns when the first trial of a study was created, deleted or not, or 0 if it had none.
func FirstTrial(tx *store.ReadTx, id string) (first time.Time, err error) {
	see := func(t *storev1.TrialRecord) (bool, error) {
		if created := t.GetTrial().GetCreateTime().AsTime(); first.IsZero() || created.Before(first) {
			first = created
		}
		return false, nil // they are in order
	}
	err = errors.Join(tx.Trials(id, 0, see), tx.DeletedTrials(id, see))
	return first, err
}
