package ledger

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/auth"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
)

// SpecChecks implements study.Ledgers.
type SpecChecks struct{}

// Check implements study.Ledgers: the ledgers exist, and are of the study's data.
func (SpecChecks) Check(tx *store.ReadTx, asked *dparetov1.StudySpec) error {
	if name := asked.GetTestLedger(); name != "" {
		records := max(asked.GetPrivateMode().GetTestSetSize(), asked.GetRandomStopping().GetTestSetSize())
		_, record, err := Check(tx, name, TestField, dparetov1.Adjacency_ADJACENCY_REPLACE_ONE, records)
		if err != nil {
			return err
		}
		if err := checkSampleSizes(asked, record.GetLedger()); err != nil {
			return err
		}
	}
	if name := asked.GetTrainLedger(); name != "" {
		if !spec.IsPublication(asked) {
			return invalid.Field(trainField, "is only for studies with private_mode or random_stopping")
		}
		if name == asked.GetTestLedger() { // which has one charge for the study
			return invalid.Field(trainField, "must be another than test_ledger: the training and the test records are not the same")
		}
		_, _, err := Check(tx, name, trainField, dparetov1.Adjacency_ADJACENCY_UNSPECIFIED, 0)
		return err
	}
	return nil
}

// checkSampleSizes refuses a test ledger that nothing could ever be charged to: every
// objective that is measured is said to be so on another number of records. To find that
// out when all trials have been run is late.
func checkSampleSizes(asked *dparetov1.StudySpec, ledger *dparetov1.Ledger) error {
	if spec.IsPublication(asked) {
		return nil // they say test_set_size
	}
	var err error
	for i, m := range asked.GetMetrics() {
		if m.GetRole() != dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE || m.GetReported() == nil {
			continue
		}
		n := m.GetReported().GetSampleSize()
		if n == 0 || n == float64(ledger.GetRecords()) {
			return nil
		}
		err = status.Errorf(codes.FailedPrecondition, "%s: %s is of %d records, but study.spec.metrics[%d].reported.sample_size is %g",
			TestField, ledger.GetName(), ledger.GetRecords(), i, n)
	}
	return err
}

// The fields of a spec that name ledgers.
const (
	TestField  = "study.spec.test_ledger"
	trainField = "study.spec.train_ledger"
)

// ChargeStudy charges all that a study will publish to the ledgers that its spec names,
// unless it was charged before. Only studies whose publication is paid at once have such
// charges.
func ChargeStudy(tx *store.Tx, study *dparetov1.Study, at time.Time) error {
	if !spec.IsPublication(study.GetSpec()) {
		return nil
	}
	for _, l := range []struct {
		ledger, field, reason string
		guarantee             *dparetov1.PrivacyGuarantee
	}{
		{study.GetSpec().GetTestLedger(), TestField, "the test budget of the study", study.GetPublication().GetTest()},
		{study.GetSpec().GetTrainLedger(), trainField, "the training budget of the study", study.GetPublication().GetTrain()},
	} {
		if l.ledger == "" {
			continue
		}
		if l.guarantee == nil {
			return invalid.Field(l.field, "must be empty: the study protects no such records")
		}
		err := chargeLedger(tx, l.ledger, l.field, Charge{
			Guarantee: l.guarantee, Resource: study.GetName(), StudyUID: study.GetUid(), Reason: l.reason, At: at,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// CheckCaller implements study.Ledgers: only who administers the whole server may give a study
// ledgers to spend from. Ledgers that the study names already may stay.
func (SpecChecks) CheckCaller(ctx context.Context, before, after *dparetov1.StudySpec) error {
	for _, l := range []struct{ field, before, after string }{
		{TestField, before.GetTestLedger(), after.GetTestLedger()},
		{trainField, before.GetTrainLedger(), after.GetTrainLedger()},
	} {
		if l.after != "" && l.after != l.before && auth.FromContext(ctx).Role < auth.Admin {
			return status.Errorf(codes.PermissionDenied, "%s: this takes the role %s on the whole server", l.field, auth.Admin)
		}
	}
	return nil
}
