package store

import (
	"encoding/binary"
	"strings"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// ledgerID returns the id in the name of a ledger.
func ledgerID(name string) string { return strings.TrimPrefix(name, "ledgers/") }

// parentOf returns what a key with a number holds between its prefix and the number.
func parentOf(key, prefix string) string {
	parent := strings.TrimPrefix(key, prefix)
	return parent[:max(0, len(parent)-9)]
}

// checkReleases checks that every release was charged to the ledger that it names, for no
// less than it guarantees, and that the index of requests agrees with the releases.
func checkReleases(tx *ReadTx, charged map[string]map[ChargeKey]*dparetov1.PrivacyGuarantee, faultf func(string, ...any)) error {
	requests := make(map[string]int64)
	err := tx.r.Scan(releasePrefix, "", func(key string, value []byte) (bool, error) {
		parent := parentOf(key, releasePrefix)
		record := new(storev1.ReleaseRecord)
		if err := unmarshal(key, value, record); err != nil {
			faultf("%w", err)
			return true, nil
		}
		number, err := numberOf(key, releasePrefix+parent+"/")
		if err != nil {
			faultf("%w", err)
			return true, nil
		}
		if record.GetRequestId() != "" {
			requests[repeatKey(parent, record.GetCaller(), record.GetRequestId())] = number
		}
		uid, exists, err := parentUID(tx, parent)
		if err != nil || !exists {
			if err == nil && !strings.HasPrefix(parent, "studies/") {
				faultf("%q belongs to no ledger", key)
			}
			return err == nil, err
		}
		release := record.GetRelease()
		if release.GetLedger() == "" {
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
	err = tx.r.Scan(repeatPrefix, "", func(key string, value []byte) (bool, error) {
		if number, ok := requests[key]; !ok || len(value) != 8 || int64(binary.BigEndian.Uint64(value)) != number {
			faultf("index of requests for releases has %q, which no release has", key)
		}
		delete(requests, key)
		return true, nil
	})
	for key := range requests {
		faultf("index of requests for releases lacks %q", key)
	}
	return err
}

// parentUID returns the uid of the study that releases are of, "" for those of a ledger.
// Those of a study that is being imported or deleted have no parent.
func parentUID(tx *ReadTx, parent string) (uid string, exists bool, err error) {
	id, isStudy := strings.CutPrefix(parent, "studies/")
	if !isStudy {
		value, err := tx.r.Get(ledgerPrefix + ledgerID(parent))
		return "", value != nil, err
	}
	importing, err := tx.Importing(id)
	if err != nil || importing {
		return "", false, err
	}
	value, err := tx.r.Get(studyPrefix + id)
	if err != nil || value == nil {
		return "", false, err // Check reports it
	}
	record := new(storev1.StudyRecord)
	err = unmarshal(studyPrefix+id, value, record)
	return record.GetStudy().GetUid(), true, err
}
