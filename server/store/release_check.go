package store

import (
	"encoding/binary"
	"errors"
	"strings"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// ledgerID returns the id in a ledger's name.
func ledgerID(name string) string { return strings.TrimPrefix(name, "ledgers/") }

// checkReleases checks that every release was charged at least its guarantee to the ledger it names,
// and that the index of requests agrees with the releases.
func checkReleases(tx *ReadTx, charged map[string]map[ChargeKey]*dparetov1.PrivacyGuarantee, faultf func(string, ...any)) error {
	return scopesFrom(tx.r, "", "", func(scope Scope) (bool, error) {
		uid, exists, err := parentUID(tx, scope)
		if err == nil {
			err = checkReleasesOf(tx, scope, uid, exists, charged, faultf)
		}
		return err == nil, err
	})
}

// checkReleasesOf checks the releases of a study or ledger, which may not exist.
func checkReleasesOf(tx *ReadTx, scope Scope, uid string, exists bool, charged map[string]map[ChargeKey]*dparetov1.PrivacyGuarantee, faultf func(string, ...any)) error {
	requests := make(map[string]int64)
	err := scan(tx.r, scope, releaseKind, "", func(key string, value []byte) (bool, error) {
		record := new(storev1.ReleaseRecord)
		if err := unmarshal(key, value, record); err != nil {
			faultf("%w", err)
			return true, nil
		}
		number, err := numberOf(key)
		if err != nil {
			faultf("%w", err)
			return true, nil
		}
		if record.GetRequestId() != "" {
			requests[repeatKey(string(scope), record.GetCaller(), record.GetRequestId())] = number
		}
		release := record.GetRelease()
		if !exists || release.GetLedger() == "" {
			return true, nil
		}
		paid := charged[release.GetLedger()][ChargeKey{release.GetName(), uid}]
		if g := release.GetGuarantee(); paid == nil || paid.GetEpsilon() < g.GetEpsilon() || paid.GetDelta() < g.GetDelta() {
			faultf("%s is not charged to %s", release.GetName(), release.GetLedger())
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	err = scan(tx.r, scope, repeatKind, "", func(key string, value []byte) (bool, error) {
		if number, ok := requests[key]; !ok || len(value) != 8 || int64(binary.BigEndian.Uint64(value)) != number {
			faultf("index of requests for releases has %s, but no release does", describe(key))
		}
		delete(requests, key)
		return true, nil
	})
	for key := range requests {
		faultf("index of requests for releases lacks %s", describe(key))
	}
	return err
}

// parentUID returns the uid of the study with a scope, "" for a ledger, and whether the study or
// ledger exists. Studies that are being imported or deleted do not.
func parentUID(tx *ReadTx, scope Scope) (uid string, exists bool, err error) {
	id, isStudy := strings.CutPrefix(string(scope), string(StudyScope("")))
	if !isStudy {
		value, err := tx.r.Get(keyOf(scope, ledgerKind))
		return "", value != nil, err
	}
	record, err := tx.Study(id)
	if errors.Is(err, ErrNotFound) {
		return "", false, nil
	}
	return record.GetStudy().GetUid(), err == nil, err
}
