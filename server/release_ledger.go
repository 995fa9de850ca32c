package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/auth"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/store"
)

// maxCharges bounds the charges of a ledger: each reading of its budget adds them up.
const maxCharges = 10_000

// charge is what something costs a ledger.
type charge struct {
	guarantee *dparetov1.PrivacyGuarantee
	resource  string // name of the release or of the study
	studyUID  string // empty for what belongs to no study
	reason    string
	records   int64 // number of records that the guarantee takes the dataset to have, 0 if it does not matter
	at        time.Time
}

// key tells the charge from the others of a ledger.
func (c *charge) key() store.ChargeKey {
	return store.ChargeKey{Resource: c.resource, StudyUID: c.studyUID}
}

// chargeLedger writes a charge to a ledger, given by its name. The request's field that
// names it is for errors: FAILED_PRECONDITION where the ledger does not exist or has other
// records or another adjacency, RESOURCE_EXHAUSTED where the charge exceeds what is left.
// What is charged already, by resource and uid of the study, is not charged again.
//
// What it charges for must be written in the same transaction, and shown to nobody before
// that is durable.
func chargeLedger(tx *store.Tx, ledger, field string, c charge) error {
	open, err := openLedger(&tx.ReadTx, ledger, field, c.guarantee.GetAdjacency(), c.records)
	if err != nil {
		return err
	}
	return open.chargeOnce(tx, c)
}

// ledgerBudget is a ledger with what is left of it.
type ledgerBudget struct {
	id      string
	field   string // of the request, for errors
	ledger  *dparetov1.Ledger
	account *store.Account
}

// openLedger opens the ledger that a field of a request names, if it is one of so many
// records (0: of any number) with an adjacency (UNSPECIFIED: with any).
func openLedger(tx *store.ReadTx, ledger, field string, adjacency dparetov1.Adjacency, records int64) (*ledgerBudget, error) {
	id, record, err := checkLedger(tx, ledger, field, adjacency, records)
	if err != nil {
		return nil, err
	}
	a, err := tx.Account(id, record)
	if err != nil {
		return nil, err
	}
	return &ledgerBudget{id: id, field: field, ledger: record.GetLedger(), account: a}, nil
}

// check returns nil if a guarantee fits into what is left, and otherwise the error for it.
// It spends it from the account in memory.
func (l *ledgerBudget) check(g *dparetov1.PrivacyGuarantee) error {
	refuse := func(format string, args ...any) error {
		return status.Errorf(codes.ResourceExhausted, "%s: %s", l.field, fmt.Sprintf(format, args...))
	}
	if math.IsInf(g.GetEpsilon(), 1) {
		return refuse("an infinite ε fits into no budget")
	}
	epsilon, delta := l.account.Filter.Remaining()
	fits, err := l.account.Spend(g)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", l.ledger.GetName(), err)
	case !fits:
		return refuse("ε = %g with δ = %g does not fit into what is left of %s: ε up to %.6g and δ up to %.3g (declared: ε = %g and δ = %g, of which half is for the composition)",
			g.GetEpsilon(), g.GetDelta(), l.ledger.GetName(), roundedDown(epsilon, 6), roundedDown(delta, 3), l.ledger.GetEpsilon(), l.ledger.GetDelta())
	case l.account.Last >= maxCharges:
		return refuse("%s has %d charges, the largest number", l.ledger.GetName(), maxCharges)
	default:
		return nil
	}
}

// chargeOnce writes a charge unless it was written before.
func (l *ledgerBudget) chargeOnce(tx *store.Tx, c charge) error {
	paid := l.account.Charges[c.key()]
	if paid == nil {
		return l.charge(tx, c)
	}
	if paid.GetEpsilon() < c.guarantee.GetEpsilon() || paid.GetDelta() < c.guarantee.GetDelta() {
		return status.Errorf(codes.FailedPrecondition, "%s: %s was charged to %s with less than ε = %g and δ = %g",
			l.field, c.resource, l.ledger.GetName(), c.guarantee.GetEpsilon(), c.guarantee.GetDelta())
	}
	return nil
}

// charge writes a charge to a ledger that was opened in the same transaction.
func (l *ledgerBudget) charge(tx *store.Tx, c charge) error {
	if err := l.check(c.guarantee); err != nil {
		return err
	}
	l.account.Last++
	l.account.Charges[c.key()] = c.guarantee
	return tx.PutCharge(l.id, l.account.Last, &storev1.ChargeRecord{Charge: &dparetov1.Charge{
		Name:       chargeName(l.id, l.account.Last),
		Guarantee:  c.guarantee,
		Resource:   c.resource,
		StudyUid:   c.studyUID,
		Reason:     c.reason,
		CreateTime: timestamppb.New(c.at),
	}})
}

// roundedDown returns a number of so many digits that is not above x >= 0, so that what is
// said to be left does fit.
func roundedDown(x float64, digits int) float64 {
	rounded := func(x float64) float64 {
		y, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'e', digits-1, 64), 64) // it is a number
		return y
	}
	if y := rounded(x); y <= x {
		return y
	}
	return rounded(x - math.Pow(10, math.Floor(math.Log10(x))-float64(digits-1)))
}

// checkLedger is openLedger without its account.
func checkLedger(tx *store.ReadTx, ledger, field string, adjacency dparetov1.Adjacency, records int64) (string, *storev1.LedgerRecord, error) {
	id, err := parseLedgerName(field, ledger)
	if err != nil {
		return "", nil, err
	}
	record, err := tx.Ledger(id)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil, status.Errorf(codes.FailedPrecondition, "%s: %s does not exist: create it first, by CreateLedger", field, ledger)
	}
	if err != nil {
		return "", nil, err
	}
	if has := record.GetLedger().GetAdjacency(); has != adjacency && adjacency != dparetov1.Adjacency_ADJACENCY_UNSPECIFIED {
		return "", nil, status.Errorf(codes.FailedPrecondition, "%s: %s is kept under %v, not %v", field, ledger, has, adjacency)
	}
	if has := record.GetLedger().GetRecords(); records != 0 && has != records {
		return "", nil, status.Errorf(codes.FailedPrecondition, "%s: %s is of %d records, not %d", field, ledger, has, records)
	}
	return id, record, nil
}

// checkLedgers refuses a spec that names ledgers that do not exist or are not of its data.
func checkLedgers(tx *store.ReadTx, spec *dparetov1.StudySpec) error {
	if name := spec.GetTestLedger(); name != "" {
		records := max(spec.GetPrivateMode().GetTestSetSize(), spec.GetRandomStopping().GetTestSetSize())
		_, record, err := checkLedger(tx, name, testLedgerField, dparetov1.Adjacency_ADJACENCY_REPLACE_ONE, records)
		if err != nil {
			return err
		}
		if err := checkSampleSizes(spec, record.GetLedger()); err != nil {
			return err
		}
	}
	if name := spec.GetTrainLedger(); name != "" {
		if !isPublication(spec) {
			return invalid.Field(trainLedgerField, "is only for studies with private_mode or random_stopping")
		}
		if name == spec.GetTestLedger() { // which has one charge for the study
			return invalid.Field(trainLedgerField, "must be another than test_ledger: the training and the test records are not the same")
		}
		_, _, err := checkLedger(tx, name, trainLedgerField, dparetov1.Adjacency_ADJACENCY_UNSPECIFIED, 0)
		return err
	}
	return nil
}

// checkSampleSizes refuses a test ledger that nothing could ever be charged to: every
// objective that is measured is said to be so on another number of records. To find that
// out when all trials have been run is late.
func checkSampleSizes(spec *dparetov1.StudySpec, ledger *dparetov1.Ledger) error {
	if isPublication(spec) {
		return nil // they say test_set_size
	}
	var err error
	for i, m := range spec.GetMetrics() {
		if m.GetRole() != dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE || m.GetReported() == nil {
			continue
		}
		n := m.GetReported().GetSampleSize()
		if n == 0 || n == float64(ledger.GetRecords()) {
			return nil
		}
		err = status.Errorf(codes.FailedPrecondition, "%s: %s is of %d records, but study.spec.metrics[%d].reported.sample_size is %g",
			testLedgerField, ledger.GetName(), ledger.GetRecords(), i, n)
	}
	return err
}

// The fields of a spec that name ledgers.
const (
	testLedgerField  = "study.spec.test_ledger"
	trainLedgerField = "study.spec.train_ledger"
)

// isPublication reports whether all that a study ever publishes is paid when it is created.
func isPublication(spec *dparetov1.StudySpec) bool {
	return spec.GetPrivateMode() != nil || spec.GetRandomStopping() != nil
}

// chargeStudy charges all that a study will publish to the ledgers that its spec names,
// unless it was charged before. Only studies whose publication is paid at once have such
// charges.
func chargeStudy(tx *store.Tx, study *dparetov1.Study, at time.Time) error {
	if !isPublication(study.GetSpec()) {
		return nil
	}
	for _, l := range []struct {
		ledger, field, reason string
		guarantee             *dparetov1.PrivacyGuarantee
	}{
		{study.GetSpec().GetTestLedger(), testLedgerField, "the test budget of the study", study.GetPublication().GetTest()},
		{study.GetSpec().GetTrainLedger(), trainLedgerField, "the training budget of the study", study.GetPublication().GetTrain()},
	} {
		if l.ledger == "" {
			continue
		}
		if l.guarantee == nil {
			return invalid.Field(l.field, "must be empty: the study protects no such records")
		}
		err := chargeLedger(tx, l.ledger, l.field, charge{
			guarantee: l.guarantee, resource: study.GetName(), studyUID: study.GetUid(), reason: l.reason, at: at,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ledgerScopes returns the scopes of the ledgers that a spec names.
func ledgerScopes(spec *dparetov1.StudySpec) (scopes []store.Scope) {
	for _, name := range []string{spec.GetTestLedger(), spec.GetTrainLedger()} {
		if id, err := parseLedgerName("", name); err == nil {
			scopes = append(scopes, store.LedgerScope(id))
		}
	}
	return scopes
}

// checkNamesLedgers refuses callers who may not give a study ledgers to spend from: those who
// do not administer the whole server. What the study names already they may leave.
func checkNamesLedgers(ctx context.Context, before, after *dparetov1.StudySpec) error {
	for _, l := range []struct{ field, before, after string }{
		{testLedgerField, before.GetTestLedger(), after.GetTestLedger()},
		{trainLedgerField, before.GetTrainLedger(), after.GetTrainLedger()},
	} {
		if l.after != "" && l.after != l.before && auth.FromContext(ctx).Role < auth.Admin {
			return status.Errorf(codes.PermissionDenied, "%s: this takes the role %s on the whole server", l.field, auth.Admin)
		}
	}
	return nil
}

// CreateLedger implements ReleaseService.
func (s *releaseService) CreateLedger(ctx context.Context, req *dparetov1.CreateLedgerRequest) (*dparetov1.CreateLedgerResponse, error) {
	id := req.GetLedgerId()
	if err := validateLedger(id, req.GetLedger()); err != nil {
		return nil, err
	}
	resp := new(dparetov1.CreateLedgerResponse)
	m, err := newMutation(req, resp)
	if err != nil {
		return nil, err
	}
	declared := &dparetov1.Ledger{
		Name:        ledgerName(id),
		Description: req.GetLedger().GetDescription(),
		Records:     req.GetLedger().GetRecords(),
		Epsilon:     req.GetLedger().GetEpsilon(),
		Delta:       req.GetLedger().GetDelta(),
		Adjacency:   req.GetLedger().GetAdjacency(),
	}
	err = s.update(ctx, m, store.LedgerScope(id), nil, func(tx *store.Tx) error {
		record, err := tx.Ledger(id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			if err := tx.CheckWhole(store.LedgerScope(id)); err != nil {
				return err // a ledger is there that cannot be found
			}
			record = &storev1.LedgerRecord{Ledger: proto.CloneOf(declared)}
			record.Ledger.Uid, record.Ledger.CreateTime = newToken(), timestamppb.New(s.now())
			if err := tx.PutLedger(id, record); err != nil {
				return err
			}
		case err != nil:
			return err
		default:
			existing := proto.CloneOf(record.GetLedger())
			existing.Uid, existing.CreateTime = "", nil
			if paths := differences(existing, declared); len(paths) > 0 {
				return status.Errorf(codes.AlreadyExists, "%s exists and is another; fields that differ: %s", ledgerName(id), strings.Join(paths, ", "))
			}
		}
		resp.Ledger, err = presentLedger(&tx.ReadTx, id, record)
		return err
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// validateLedger checks a new ledger.
func validateLedger(id string, l *dparetov1.Ledger) error {
	var fields invalid.Fields
	if !studyID.MatchString(id) {
		fields.Addf("ledger_id", "must be %s, is %.200q", studyIDRule, id)
	}
	if name := l.GetName(); name != "" && name != ledgerName(id) {
		fields.Addf("ledger.name", "must be empty or %q, is %.200q", ledgerName(id), name)
	}
	if n := len([]rune(l.GetDescription())); n > maxText {
		fields.Addf("ledger.description", "must have at most %d characters, has %d", maxText, n)
	}
	if l.GetRecords() < 1 {
		fields.Addf("ledger.records", "must be at least 1, is %d", l.GetRecords())
	}
	checkPositive("ledger.epsilon", l.GetEpsilon(), &fields)
	if !(l.GetDelta() > 0 && l.GetDelta() < 1) {
		fields.Addf("ledger.delta", "must be in (0, 1), is %g", l.GetDelta())
	}
	switch l.GetAdjacency() {
	case dparetov1.Adjacency_ADJACENCY_ADD_REMOVE, dparetov1.Adjacency_ADJACENCY_REPLACE_ONE:
	default:
		fields.Addf("ledger.adjacency", "must be set, is %v", l.GetAdjacency())
	}
	return fields.Err()
}

// checkPositive records that a number is not positive and finite.
func checkPositive(field string, x float64, fields *invalid.Fields) {
	if !(x > 0) || math.IsInf(x, 1) {
		fields.Addf(field, "must be positive and finite, is %g", x)
	}
}

// presentLedger returns a ledger as clients see it.
func presentLedger(tx *store.ReadTx, id string, record *storev1.LedgerRecord) (*dparetov1.Ledger, error) {
	a, err := tx.Account(id, record)
	if err != nil {
		return nil, err
	}
	l := record.GetLedger()
	spent := a.Filter.Spent()
	l.Spent = &dparetov1.PrivacyGuarantee{
		Epsilon: spent.Epsilon, Delta: spent.Delta, Adjacency: l.GetAdjacency(),
		Accountant:  dparetov1.Accountant_ACCOUNTANT_ADAPTIVE_COMPOSITION,
		Steps:       spent.Steps,
		Assumptions: spent.Assumptions,
	}
	l.Charges = a.Last
	l.RemainingEpsilon, _ = a.Filter.Remaining()
	return l, nil
}

// findLedger returns a ledger's record, or NOT_FOUND.
func findLedger(tx *store.ReadTx, id string) (*storev1.LedgerRecord, error) {
	record, err := tx.Ledger(id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, status.Errorf(codes.NotFound, "ledger %s does not exist", ledgerName(id))
	}
	return record, err
}

// GetLedger implements ReleaseService.
func (s *releaseService) GetLedger(ctx context.Context, req *dparetov1.GetLedgerRequest) (*dparetov1.GetLedgerResponse, error) {
	id, err := parseLedgerName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	resp := new(dparetov1.GetLedgerResponse)
	err = s.store.View(ctx, func(tx *store.ReadTx) error {
		record, err := findLedger(tx, id)
		if err != nil {
			return err
		}
		resp.Ledger, err = presentLedger(tx, id, record)
		return err
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// ListLedgers implements ReleaseService.
func (s *releaseService) ListLedgers(ctx context.Context, req *dparetov1.ListLedgersRequest) (*dparetov1.ListLedgersResponse, error) {
	q, err := newQuery(req.GetPageSize(), req.GetPageToken(), "ledgers")
	if err != nil {
		return nil, err
	}
	ledgers := page[*dparetov1.Ledger]{query: q}
	err = s.store.View(ctx, func(tx *store.ReadTx) error {
		return tx.Ledgers(q.position, func(record *storev1.LedgerRecord) (bool, error) {
			id := strings.TrimPrefix(record.GetLedger().GetName(), ledgerName(""))
			if !ledgers.add(id, true, record.GetLedger()) {
				return false, nil
			}
			_, err := presentLedger(tx, id, record)
			return true, errors.Join(err, ctx.Err())
		})
	})
	if err != nil {
		return nil, err
	}
	return &dparetov1.ListLedgersResponse{Ledgers: ledgers.resources, NextPageToken: ledgers.next}, nil
}

// ListCharges implements ReleaseService.
func (s *releaseService) ListCharges(ctx context.Context, req *dparetov1.ListChargesRequest) (*dparetov1.ListChargesResponse, error) {
	id, err := parseLedgerName("parent", req.GetParent())
	if err != nil {
		return nil, err
	}
	q, err := newQuery(req.GetPageSize(), req.GetPageToken(), "charges", req.GetParent())
	if err != nil {
		return nil, err
	}
	charges := page[*dparetov1.Charge]{query: q}
	err = s.store.View(ctx, func(tx *store.ReadTx) error {
		if _, err := findLedger(tx, id); err != nil {
			return err
		}
		return tx.Charges(id, q.number(), func(number int64, record *storev1.ChargeRecord) (bool, error) {
			return charges.add(numberKey(number), true, record.GetCharge()), ctx.Err()
		})
	})
	if err != nil {
		return nil, err
	}
	return &dparetov1.ListChargesResponse{Charges: charges.resources, NextPageToken: charges.next}, nil
}
