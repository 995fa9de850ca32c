package ledger

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/auth"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/store"
)

// IsPrepaid reports whether all that a study ever publishes is paid before its first trial.
func IsPrepaid(spec *dparetov1.StudySpec) bool {
	return spec.GetPrivateMode() != nil || spec.GetRandomStopping() != nil
}

// SpecChecks implements study.Ledgers. Its zero value is ready to use.
type SpecChecks struct{}

// Check implements study.Ledgers: the ledgers must exist and cover the study's data.
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
		if !IsPrepaid(asked) {
			return invalid.Field(trainField, "is allowed only with private_mode or random_stopping")
		}
		if name == asked.GetTestLedger() { // a ledger holds one charge for each study
			return invalid.Field(trainField, "must differ from test_ledger: training and test records are not the same")
		}
		_, _, err := Check(tx, name, trainField, dparetov1.Adjacency_ADJACENCY_UNSPECIFIED, 0)
		return err
	}
	return nil
}

// checkSampleSizes refuses a test ledger that no release could ever be charged to, because every
// measured objective declares another number of records. Failing only after all trials have run
// would be too late.
func checkSampleSizes(asked *dparetov1.StudySpec, ledger *dparetov1.Ledger) error {
	if IsPrepaid(asked) {
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
		err = status.Errorf(codes.FailedPrecondition, "%s: %s has %d records, but study.spec.metrics[%d].reported.sample_size is %g",
			TestField, ledger.GetName(), ledger.GetRecords(), i, n)
	}
	return err
}

// Fields of a spec that name ledgers.
const (
	TestField  = "study.spec.test_ledger"
	trainField = "study.spec.train_ledger"
)

// ChargeStudy charges everything that a prepaid study will publish to the ledgers in its spec, unless
// that was charged before.
func ChargeStudy(tx *store.Tx, study *dparetov1.Study, at time.Time) error {
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
			return invalid.Field(l.field, "must be empty: the study does not protect these records")
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

// CheckCaller implements study.Ledgers: only admins of the whole server may add a ledger to a spec.
// Ledgers already in the spec may stay.
func (SpecChecks) CheckCaller(ctx context.Context, before, after *dparetov1.StudySpec) error {
	for _, l := range []struct{ field, before, after string }{
		{TestField, before.GetTestLedger(), after.GetTestLedger()},
		{trainField, before.GetTrainLedger(), after.GetTrainLedger()},
	} {
		if l.after != "" && l.after != l.before && auth.FromContext(ctx).Role < auth.Admin {
			return status.Errorf(codes.PermissionDenied, "%s: requires the role %s on the whole server", l.field, auth.Admin)
		}
	}
	return nil
}
