package resource

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dpareto/dpareto/server/invalid"
)

// id matches the ids of studies and ledgers. They fit DNS labels and URLs (AIP-122).
var id = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)

// IsID reports whether a study or ledger may have an id.
func IsID(s string) bool { return id.MatchString(s) }

// IDRule describes the ids of studies and ledgers in words, for errors.
const IDRule = "a lower-case letter followed by at most 62 lower-case letters, digits and hyphens, not ending in a hyphen"

// StudyName returns the resource name of a study.
func StudyName(study string) string { return "studies/" + study }

// StudyID returns the id of the study that a resource is or belongs to, "" for any other name.
func StudyID(name string) string { return idAfter("studies/", name) }

// LedgerID returns the id of the ledger that a resource is or belongs to, "" for any other name.
func LedgerID(name string) string { return idAfter("ledgers/", name) }

func idAfter(prefix, name string) string {
	rest, ok := strings.CutPrefix(name, prefix)
	found, _, _ := strings.Cut(rest, "/")
	if !ok || !IsID(found) {
		return ""
	}
	return found
}

// TrialName returns the resource name of a trial.
func TrialName(study string, number int64) string {
	return fmt.Sprintf("studies/%s/trials/%d", study, number)
}

// ParseStudyName returns the id in a study's resource name. field is for the error.
func ParseStudyName(field, name string) (string, error) {
	study, ok := strings.CutPrefix(name, "studies/")
	if !ok || !IsID(study) {
		return "", invalid.Field(field, "must have the form studies/{study}, is %.200q", name)
	}
	return study, nil
}

// ParseTrialName returns the study's id and the number in a trial's resource name. field is for the
// error.
func ParseTrialName(field, name string) (study string, number int64, err error) {
	prefix, digits, ok := strings.Cut(name, "/trials/")
	study, hasPrefix := strings.CutPrefix(prefix, "studies/")
	if ok && hasPrefix && IsID(study) {
		n, err := strconv.ParseInt(digits, 10, 64)
		if err == nil && n > 0 && strconv.FormatInt(n, 10) == digits {
			return study, n, nil
		}
	}
	return "", 0, invalid.Field(field, "must have the form studies/{study}/trials/{number}, is %.200q", name)
}

// LedgerName returns the resource name of a ledger.
func LedgerName(ledger string) string { return "ledgers/" + ledger }

// ChargeName returns the resource name of a charge.
func ChargeName(ledger string, number int64) string {
	return fmt.Sprintf("ledgers/%s/charges/%d", ledger, number)
}

// ParseLedgerName returns the id in a ledger's resource name. field is for the error.
func ParseLedgerName(field, name string) (string, error) {
	ledger, ok := strings.CutPrefix(name, "ledgers/")
	if !ok || !IsID(ledger) {
		return "", invalid.Field(field, "must have the form ledgers/{ledger}, is %.200q", name)
	}
	return ledger, nil
}

// StudyNotFound returns the error that a study does not exist.
func StudyNotFound(study string) error {
	return status.Errorf(codes.NotFound, "study %s does not exist", StudyName(study))
}

// TrialNotFound returns the error that a trial does not exist.
func TrialNotFound(study string, number int64) error {
	return status.Errorf(codes.NotFound, "trial %s does not exist", TrialName(study, number))
}

// ReleaseName returns the resource name of a release of a study or ledger.
func ReleaseName(parent string, number int64) string {
	return parent + "/releases/" + strconv.FormatInt(number, 10)
}

// ParseParentName checks and returns the resource name of a study or ledger. field is for the error.
func ParseParentName(field, name string) (string, error) {
	if _, err := ParseStudyName(field, name); err == nil {
		return name, nil
	}
	if _, err := ParseLedgerName(field, name); err == nil {
		return name, nil
	}
	return "", invalid.Field(field, "must have the form studies/{study} or ledgers/{ledger}, is %.200q", name)
}

// ParseReleaseName returns the parent and the number in a release's resource name. field is for the
// error.
func ParseReleaseName(field, name string) (parent string, number int64, err error) {
	parent, digits, _ := strings.Cut(name, "/releases/")
	number, err = strconv.ParseInt(digits, 10, 64)
	if _, bad := ParseParentName(field, parent); bad == nil && err == nil && number > 0 && strconv.FormatInt(number, 10) == digits {
		return parent, number, nil
	}
	return "", 0, invalid.Field(field, "must have the form studies/{study}/releases/{number} or ledgers/{ledger}/releases/{number}, is %.200q", name)
}
