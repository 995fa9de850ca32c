package server

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dpareto/dpareto/server/invalid"
)

// studyID is the form of a study's id (AIP-122, so that it fits DNS labels and URLs).
var studyID = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)

const studyIDRule = "a lower-case letter followed by at most 62 lower-case letters, digits and hyphens, not ending in a hyphen"

// studyName returns the resource name of a study.
func studyName(study string) string { return "studies/" + study }

// trialName returns the resource name of a trial.
func trialName(study string, number int64) string {
	return fmt.Sprintf("studies/%s/trials/%d", study, number)
}

// parseStudyName returns the id in the resource name that a field holds.
func parseStudyName(field, name string) (string, error) {
	study, ok := strings.CutPrefix(name, "studies/")
	if !ok || !studyID.MatchString(study) {
		return "", invalid.Field(field, "must have the form studies/{study}, is %.200q", name)
	}
	return study, nil
}

// parseTrialName returns the study's id and the number in the resource name that a
// field holds.
func parseTrialName(field, name string) (study string, number int64, err error) {
	prefix, digits, ok := strings.Cut(name, "/trials/")
	study, hasPrefix := strings.CutPrefix(prefix, "studies/")
	if ok && hasPrefix && studyID.MatchString(study) {
		n, err := strconv.ParseInt(digits, 10, 64)
		if err == nil && n > 0 && strconv.FormatInt(n, 10) == digits {
			return study, n, nil
		}
	}
	return "", 0, invalid.Field(field, "must have the form studies/{study}/trials/{number}, is %.200q", name)
}

// ledgerName returns the resource name of a ledger.
func ledgerName(ledger string) string { return "ledgers/" + ledger }

// chargeName returns the resource name of a charge.
func chargeName(ledger string, number int64) string {
	return fmt.Sprintf("ledgers/%s/charges/%d", ledger, number)
}

// parseLedgerName returns the id in the resource name that a field holds.
func parseLedgerName(field, name string) (string, error) {
	ledger, ok := strings.CutPrefix(name, "ledgers/")
	if !ok || !studyID.MatchString(ledger) {
		return "", invalid.Field(field, "must have the form ledgers/{ledger}, is %.200q", name)
	}
	return ledger, nil
}

// studyNotFound is the error of a study that does not exist.
func studyNotFound(study string) error {
	return status.Errorf(codes.NotFound, "study %s does not exist", studyName(study))
}

// trialNotFound is the error of a trial that does not exist.
func trialNotFound(study string, number int64) error {
	return status.Errorf(codes.NotFound, "trial %s does not exist", trialName(study, number))
}
