package private

import (
	"log/slog"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/server/study"
)

// Only studies with private_mode or random_stopping have a policy: others are ordinary, also those
// that charge what they release to a ledger.
func TestPolicies(t *testing.T) {
	policies := Policies(noise.Seeded(1), slog.New(slog.DiscardHandler))
	for name, tt := range map[string]struct {
		spec *dparetov1.StudySpec
		want study.Traits
	}{
		"private_mode":    {&dparetov1.StudySpec{PrivateMode: new(dparetov1.PrivateModeSpec)}, study.Traits{OneByOne: true, Prepaid: true, NoReasons: true}},
		"random_stopping": {&dparetov1.StudySpec{RandomStopping: new(dparetov1.RandomStoppingSpec)}, study.Traits{Hidden: true, OwnDraws: true, Prepared: true, Prepaid: true}},
	} {
		if policy := policies(nil, tt.spec); policy == nil || policy.Traits() != tt.want {
			t.Errorf("%s has policy %T, want one with traits %+v", name, policy, tt.want)
		}
	}
	for name, ordinary := range map[string]*dparetov1.StudySpec{
		"ordinary": {}, "with ledgers": {TestLedger: "ledgers/test", TrainLedger: "ledgers/train"},
	} {
		if policy := policies(nil, ordinary); policy != nil {
			t.Errorf("a study %s has policy %T", name, policy)
		}
	}
}
