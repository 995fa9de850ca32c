// Package publish holds the commands dpareto ledger and dpareto release: accounts of what
// publications cost, and publications with a privacy guarantee.
package publish
