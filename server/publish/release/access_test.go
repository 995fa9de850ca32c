package release_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/limit"
	"github.com/dpareto/dpareto/server/servertest"
)

// Those who have some studies read and make their releases. Ledgers, and what else was
// charged to them, are for those who have the whole server; so is to give a study a ledger to
// spend from. The ids of requests are their callers' own.
func TestWhoMayRelease(t *testing.T) {
	g := servertest.Guard(t, limit.Limits{})
	admin, owner, limited, viewer := g.As("admin"), g.As("owner"), g.As("limited"), g.As("viewer")
	releases := g.Releases()
	_, err := releases.CreateLedger(admin, &dparetov1.CreateLedgerRequest{LedgerId: "l", Ledger: &dparetov1.Ledger{
		Records: servertest.TestRecords, Epsilon: 10, Delta: 1e-5, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
	}})
	require.NoError(t, err)
	create := func(id, ledger string) error {
		_, err := g.Studies.CreateStudy(owner, &dparetov1.CreateStudyRequest{StudyId: id, Study: &dparetov1.Study{Spec: servertest.FixedSpec(2, ledger)}})
		return err
	}
	servertest.WantCode(t, create("a-1", "ledgers/l"), codes.PermissionDenied, "study.spec.test_ledger: requires the role admin on the whole server")
	require.NoError(t, create("a-1", ""))
	name := &dparetov1.UpdateStudyRequest{Study: &dparetov1.Study{Name: "studies/a-1", Spec: servertest.FixedSpec(2, "ledgers/l")}}
	name.UpdateMask = &fieldmaskpb.FieldMask{Paths: []string{"spec.test_ledger"}}
	_, err = g.Studies.UpdateStudy(owner, name)
	servertest.WantCode(t, err, codes.PermissionDenied, "study.spec.test_ledger")
	require.NoError(t, require.ErrOf(g.Studies.UpdateStudy(admin, name)))
	name.Study.Description, name.UpdateMask.Paths = "mine", []string{"*"}
	if _, err := g.Studies.UpdateStudy(owner, name); err != nil { // what it names already may stay
		t.Error(err)
	}
	for range 2 {
		resp, err := g.Studies.SuggestTrials(owner, &dparetov1.SuggestTrialsRequest{Parent: "studies/a-1", WorkerId: "w"})
		require.NoError(t, err)
		require.NoError(t, require.ErrOf(g.Studies.CompleteTrial(owner, servertest.Completion(resp.GetTrials()[0], 0.25))))
	}
	best := &dparetov1.ReleaseBestRequest{Name: "studies/a-1", Metric: "error", Epsilon: 1, RequestId: "same"}
	_, err = releases.ReleaseBest(limited, best)
	servertest.WantCode(t, err, codes.PermissionDenied, "studies/a-1")
	mine, err := releases.ReleaseBest(owner, best)
	require.NoError(t, err)
	other, err := releases.ReleaseBest(admin, best)
	if err != nil || other.GetRelease().GetName() == mine.GetRelease().GetName() {
		t.Errorf("the id of another caller gave %v, %v", other.GetRelease().GetName(), err)
	}
	require.NoError(t, require.ErrOf(releases.SelectPrivately(admin, &dparetov1.SelectPrivatelyRequest{Utilities: []float64{0.7654321, 0.1}, Sensitivity: 1, Epsilon: 1, Ledger: "ledgers/l"})))
	for who, can := range map[string][2]bool{"limited": {true, false}, "owner": {true, false}, "viewer": {true, true}} {
		ctx := g.As(who)
		check := func(what string, err error, want bool) {
			t.Helper()
			if code := status.Code(err); want && code != codes.OK || !want && code != codes.PermissionDenied {
				t.Errorf("%s, %s: %v", who, what, err)
			}
		}
		_, err := releases.GetRelease(ctx, &dparetov1.GetReleaseRequest{Name: "studies/a-1/releases/1"})
		check("release", err, can[0])
		_, err = releases.ListReleases(ctx, &dparetov1.ListReleasesRequest{Parent: "studies/a-1"})
		check("releases", err, can[0])
		_, err = releases.GetRelease(ctx, &dparetov1.GetReleaseRequest{Name: "ledgers/l/releases/1"})
		check("selection", err, can[1])
		_, err = releases.ListReleases(ctx, &dparetov1.ListReleasesRequest{Parent: "ledgers/l"})
		check("selections", err, can[1])
		_, err = releases.GetLedger(ctx, &dparetov1.GetLedgerRequest{Name: "ledgers/l"})
		check("ledger", err, can[1])
		_, err = releases.ListLedgers(ctx, &dparetov1.ListLedgersRequest{})
		check("ledgers", err, can[1])
		_, err = releases.ListCharges(ctx, &dparetov1.ListChargesRequest{Parent: "ledgers/l"})
		check("charges", err, can[1])
		_, err = releases.SelectPrivately(ctx, &dparetov1.SelectPrivatelyRequest{Utilities: []float64{1}, Sensitivity: 1, Epsilon: 1, Ledger: "ledgers/l"})
		check("select", err, false)
	}
	_, err = releases.ReleaseFront(viewer, &dparetov1.ReleaseFrontRequest{Name: "studies/a-1", Epsilon: 1, Delta: 1e-6})
	servertest.WantCode(t, err, codes.PermissionDenied, "studies/a-1")
	if audited := g.Audit.String(); strings.Contains(audited, "0.7654") || !strings.Contains(audited, "SelectPrivately") || !strings.Contains(audited, "ReleaseBest") {
		t.Errorf("audit log:\n%s", audited)
	}
}
