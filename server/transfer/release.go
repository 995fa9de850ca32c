package transfer

import (
	"fmt"
	"math"
	"strings"
	"time"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/publish/ledger"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
)

// release checks a release of an import, and records its charge.
func (i *studyImport) release(exported *dparetov1.ExportedRelease) error {
	const path = "record.release.release"
	claimed := exported.GetRelease()
	parent, number, err := resource.ParseReleaseName(path+".name", claimed.GetName())
	if err != nil {
		return err
	}
	var fields invalid.Fields
	if parent != resource.StudyName(i.id) {
		fields.Addf(path+".name", "must be a release of %s, is %.200q", resource.StudyName(i.id), claimed.GetName())
	}
	if number <= i.released || number > maxNumber {
		fields.Addf(path+".name", "must have a number above the previous release's, %d, is %d", i.released, number)
	}
	i.released = number
	if r := claimed.GetStudyRevision(); r < 1 || r > i.record.GetStudy().GetRevision() {
		fields.Addf(path+".study_revision", "must be in [1, %d], up to the study's revision, is %d", i.record.GetStudy().GetRevision(), r)
	}
	checkTime(path+".create_time", claimed.GetCreateTime(), true, &fields)
	checkWarnings(path+".warnings", claimed.GetWarnings(), &fields)
	i.checkCost(path, claimed, &fields)
	i.checkReleaseRequest(exported, &fields)
	return fields.Err()
}

// checkCost checks the guarantee of a release, and that a release with a cost names the ledger it
// was charged to.
func (i *studyImport) checkCost(path string, release *dparetov1.Release, fields *invalid.Fields) {
	asked, g := i.record.GetStudy().GetSpec(), release.GetGuarantee()
	if e, d := g.GetEpsilon(), g.GetDelta(); !(e >= 0) || math.IsInf(e, 1) && release.GetLedger() != "" || !(d >= 0 && d < 1) {
		fields.Addf(path+".guarantee", "must have epsilon >= 0 and delta in [0, 1), has %g and %g", e, d)
		return
	}
	switch name := release.GetLedger(); {
	case name == "" && g.GetEpsilon()+g.GetDelta() > 0:
		fields.Addf(path+".ledger", "must be set: the release has a privacy cost")
	case name == "":
	case g.GetAdjacency() != dparetov1.Adjacency_ADJACENCY_REPLACE_ONE:
		fields.Addf(path+".guarantee.adjacency", "must be ADJACENCY_REPLACE_ONE, is %v", g.GetAdjacency())
	case name != asked.GetTestLedger():
		fields.Addf(path+".ledger", "must be the test_ledger of the study, %q, is %.200q", asked.GetTestLedger(), name)
	default:
		i.charges = append(i.charges, ledger.Charge{
			Guarantee: g, Resource: release.GetName(), StudyUID: i.record.GetStudy().GetUid(),
			Reason: "imported: " + release.GetMechanism(),
		})
	}
}

// checkReleaseRequest checks the stored request of a release.
func (i *studyImport) checkReleaseRequest(exported *dparetov1.ExportedRelease, fields *invalid.Fields) {
	id, digest := exported.GetRequestId(), exported.GetRequestDigest()
	if n := len([]rune(id)); n > study.MaxRequestID {
		fields.Addf("record.release.request_id", "must have at most %d characters, has %d", study.MaxRequestID, n)
	}
	if n := len(digest); id != "" && n != digestBytes || id == "" && n+len(exported.GetCaller())+len(exported.GetRequestType()) > 0 {
		fields.Addf("record.release.request_digest", "must have %d bytes with a request_id; without, caller, type and digest must be empty", digestBytes)
	}
	if caller := exported.GetCaller(); len(caller) > study.MaxWorkerID || strings.ContainsRune(caller, 0) {
		fields.Addf("record.release.caller", "must have at most %d bytes, none of them 0", study.MaxWorkerID)
	}
	key := fmt.Sprintf("%q %q", exported.GetCaller(), id)
	if id != "" && i.requests[key] {
		fields.Addf("record.release.request_id", "is also the request_id of another release")
	}
	i.requests[key] = true
}

// charge charges the releases of the study to its test ledger, unless they were charged before.
func (i *studyImport) charge(tx *store.Tx, now time.Time) error {
	if len(i.charges) == 0 {
		return nil
	}
	open, err := ledger.Open(&tx.ReadTx, i.record.GetStudy().GetSpec().GetTestLedger(), ledger.TestField, dparetov1.Adjacency_ADJACENCY_REPLACE_ONE, 0)
	if err != nil {
		return err
	}
	for _, c := range i.charges {
		c.At = now
		if err := open.ChargeOnce(tx, c); err != nil {
			return err
		}
	}
	return nil
}
