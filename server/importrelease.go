package server

import (
	"fmt"
	"math"
	"strings"
	"time"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
)

// release checks a release of an import, and notes what it was charged for.
func (i *studyImport) release(exported *dparetov1.ExportedRelease) error {
	const path = "record.release.release"
	release := exported.GetRelease()
	parent, number, err := parseReleaseName(path+".name", release.GetName())
	if err != nil {
		return err
	}
	var fields invalid.Fields
	if parent != studyName(i.id) {
		fields.Addf(path+".name", "must be of %s, is %.200q", studyName(i.id), release.GetName())
	}
	if number <= i.released || number > maxNumber {
		fields.Addf(path+".name", "must have a number above that of the release before, %d, is %d", i.released, number)
	}
	i.released = number
	if r := release.GetStudyRevision(); r < 0 || r == 0 && !i.compiled.IsSearch() || r > i.record.GetStudy().GetRevision() {
		fields.Addf(path+".study_revision", "must be in [1, %d], that of the study, is %d", i.record.GetStudy().GetRevision(), r)
	}
	checkTime(path+".create_time", release.GetCreateTime(), true, &fields)
	checkWarnings(path+".warnings", release.GetWarnings(), &fields)
	i.checkCost(path, release, &fields)
	i.checkReleaseRequest(exported, &fields)
	return fields.Err()
}

// checkCost checks what a release guarantees, and that it is charged where it costs
// something.
func (i *studyImport) checkCost(path string, release *dparetov1.Release, fields *invalid.Fields) {
	asked, g := i.record.GetStudy().GetSpec(), release.GetGuarantee()
	if e, d := g.GetEpsilon(), g.GetDelta(); !(e >= 0) || math.IsInf(e, 1) && release.GetLedger() != "" || !(d >= 0 && d < 1) {
		fields.Addf(path+".guarantee", "must have epsilon >= 0 and delta in [0, 1), has %g and %g", e, d)
		return
	}
	switch ledger := release.GetLedger(); {
	case ledger == "" && g.GetEpsilon()+g.GetDelta() > 0 && !spec.IsPublication(asked):
		fields.Addf(path+".ledger", "must be set: the release costs something")
	case ledger == "":
	case g.GetAdjacency() != dparetov1.Adjacency_ADJACENCY_REPLACE_ONE:
		fields.Addf(path+".guarantee.adjacency", "must be ADJACENCY_REPLACE_ONE, is %v", g.GetAdjacency())
	case ledger != asked.GetTestLedger():
		fields.Addf(path+".ledger", "must be the test_ledger of the study, %q, is %.200q", asked.GetTestLedger(), ledger)
	default:
		i.charges = append(i.charges, charge{
			guarantee: g, resource: release.GetName(), studyUID: i.record.GetStudy().GetUid(),
			reason: "imported: " + release.GetMechanism(),
		})
	}
}

// checkReleaseRequest checks what is kept of the request for a release.
func (i *studyImport) checkReleaseRequest(exported *dparetov1.ExportedRelease, fields *invalid.Fields) {
	id, digest := exported.GetRequestId(), exported.GetRequestDigest()
	if n := len([]rune(id)); n > maxRequestID {
		fields.Addf("record.release.request_id", "must have at most %d characters, has %d", maxRequestID, n)
	}
	if n := len(digest); id != "" && n != digestBytes || id == "" && n+len(exported.GetCaller())+len(exported.GetRequestType()) > 0 {
		fields.Addf("record.release.request_digest", "must have %d bytes where there is a request_id, and caller, type and digest be empty elsewhere", digestBytes)
	}
	if caller := exported.GetCaller(); len(caller) > maxWorkerID || strings.ContainsRune(caller, 0) {
		fields.Addf("record.release.caller", "must have at most %d bytes, none of them 0", maxWorkerID)
	}
	key := fmt.Sprintf("%q %q", exported.GetCaller(), id)
	if id != "" && i.requests[key] {
		fields.Addf("record.release.request_id", "is that of another release")
	}
	i.requests[key] = true
}

// charge charges what the releases, and the study itself, cost to the ledgers that it names,
// unless it was charged before.
func (i *studyImport) charge(tx *store.Tx, studies *Studies, now time.Time) error {
	if err := studies.Policy(i.compiled.Spec).Pay(tx, i.record, i.compiled, now); err != nil {
		return err
	}
	if len(i.charges) == 0 {
		return nil
	}
	open, err := openLedger(&tx.ReadTx, i.record.GetStudy().GetSpec().GetTestLedger(), testLedgerField, dparetov1.Adjacency_ADJACENCY_REPLACE_ONE, 0)
	if err != nil {
		return err
	}
	for _, c := range i.charges {
		c.at = now
		if err := open.chargeOnce(tx, c); err != nil {
			return err
		}
	}
	return nil
}
