package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// Check reads the whole store and returns every violated invariant. First come damaged, lost or
// stale records. If there are none, it looks for trials without a study, indexes, counts, numbers,
// measurements or attempts that disagree with the trials, charges beyond their ledger's budget, and
// releases that were not charged.
func (s *Store) Check(ctx context.Context) []error {
	var faults []error
	faultf := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	err := s.View(ctx, func(tx *ReadTx) error {
		verified := make(map[Scope]bool)
		verify := func(scope Scope) (bool, error) {
			if !verified[scope] {
				_, damage := tx.Verify(scope)
				faults = append(faults, damage...)
			}
			verified[scope] = true
			return len(faults) < maxFaults, ctx.Err()
		}
		err := tx.Scopes("", verify)
		if err == nil { // scopes that have lost their total
			err = scopesFrom(tx.r, "", "", verify)
		}
		if err != nil || len(faults) > 0 {
			return err // other checks would only repeat these faults
		}
		if err := checkScopes(ctx, tx, faultf); err != nil {
			return err
		}
		return checkLedgers(tx, faultf)
	})
	if err != nil {
		faultf("check: %w", err)
	}
	return faults
}

// checkScopes checks that every record in a scope is of a known kind, and that the study or ledger
// exists.
func checkScopes(ctx context.Context, tx *ReadTx, faultf func(string, ...any)) error {
	return scopesFrom(tx.r, "", "", func(scope Scope) (bool, error) {
		unknown := make(map[kind]int)
		err := tx.r.Scan(string(scope)+separator, "", func(key string, _ []byte) (bool, error) {
			if _, k, _ := split(key); !slices.Contains(kinds[:], k) {
				unknown[k]++
			}
			return true, ctx.Err()
		})
		for k, n := range unknown {
			faultf("%q has %d records of an unknown kind, %q", scope, n, k)
		}
		switch {
		case err != nil:
		case strings.HasPrefix(string(scope), string(StudyScope(""))):
			err = checkStudyScope(ctx, tx, scope, faultf)
		case strings.HasPrefix(string(scope), string(LedgerScope(""))):
			err = checkLedgerScope(ctx, tx, scope, faultf)
		}
		return err == nil, err
	})
}

// checkStudyScope checks a study's records, and that the study exists. A study that is being
// imported has trials before it exists.
func checkStudyScope(ctx context.Context, tx *ReadTx, scope Scope, faultf func(string, ...any)) error {
	id := studyOf(scope)
	if err := checkDeleted(tx, scope, faultf); err != nil {
		return err
	}
	record, err := tx.Study(id)
	if err == nil {
		checkStudy(tx, id, record, faultf)
		return nil
	}
	importing, markErr := tx.Importing(id)
	if !errors.Is(err, ErrNotFound) || markErr != nil {
		return errors.Join(err, markErr)
	}
	if importing {
		return nil
	}
	return checkNone(ctx, tx, scope, studyKinds, "study", faultf)
}

// checkLedgerScope reports records of a ledger that does not exist.
func checkLedgerScope(ctx context.Context, tx *ReadTx, scope Scope, faultf func(string, ...any)) error {
	ledger, err := tx.r.Get(keyOf(scope, ledgerKind))
	if err != nil || ledger != nil {
		return err
	}
	return checkNone(ctx, tx, scope, []kind{chargeKind, releaseKind, repeatKind}, "ledger", faultf)
}

// checkNone checks that a scope has no records of some kinds, whose owner does not exist.
func checkNone(ctx context.Context, tx *ReadTx, scope Scope, kinds []kind, owner string, faultf func(string, ...any)) error {
	for _, k := range kinds {
		err := scan(tx.r, scope, k, "", func(key string, _ []byte) (bool, error) {
			faultf("%s belongs to no %s", describe(key), owner)
			return true, ctx.Err()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// checkDeleted checks that the records of deleted trials can be read, and that no live trial has the
// same number.
func checkDeleted(tx *ReadTx, scope Scope, faultf func(string, ...any)) error {
	return scan(tx.r, scope, deletedKind, "", func(key string, value []byte) (bool, error) {
		record := new(storev1.TrialRecord)
		if err := unmarshal(key, value, record); err != nil {
			faultf("%w", err)
		}
		_, _, name := split(key)
		live, err := tx.r.Get(named(scope, trialKind, name))
		if live != nil {
			faultf("%s is of a trial that still exists", describe(key))
		}
		return true, err
	})
}

// checkStudy checks the trials, indexes and counts of a study.
func checkStudy(tx *ReadTx, id string, record *storev1.StudyRecord, faultf func(string, ...any)) {
	open := make(map[int64]*storev1.OpenTrialRecord)
	err := tx.OpenTrials(id, func(number int64, entry *storev1.OpenTrialRecord) (bool, error) {
		open[number] = entry
		return true, nil
	})
	if err != nil {
		faultf("study %s: index of open trials: %w", id, err)
	}
	revisions := checkRevisions(tx, id, record, faultf)
	parts := countParts(tx, id, faultf)
	counts := new(dparetov1.TrialCounts)
	err = records(tx.r, StudyScope(id), trialKind, 0, func(_ string, trial *storev1.TrialRecord) (bool, error) {
		parts.check(trial)
		number := trial.GetTrial().GetNumber()
		if number >= record.GetNextTrialNumber() {
			faultf("study %s: trial %d is not below the next number %d", id, number, record.GetNextTrialNumber())
		}
		if want := openEntry(trial); !proto.Equal(open[number], want) && (open[number] != nil || want != nil) {
			faultf("study %s: trial %d: index says %v, trial says %v", id, number, open[number], want)
		}
		delete(open, number)
		revisions.checkTrial(trial.GetTrial(), false)
		if state := trial.GetTrial().GetState(); state == dparetov1.TrialState_TRIAL_STATE_UNSPECIFIED {
			faultf("study %s: trial %d has no state", id, number)
		} else {
			AddToCounts(counts, state, 1)
		}
		return true, nil
	})
	if err != nil {
		faultf("study %s: trials: %w", id, err)
	}
	parts.checkRest(tx)
	revisions.checkRest()
	for number := range open {
		faultf("study %s: index names trial %d, which does not exist", id, number)
	}
	if !proto.Equal(counts, record.GetStudy().GetTrialCounts()) {
		faultf("study %s: counts are %v, trials say %v", id, record.GetStudy().GetTrialCounts(), counts)
	}
}
