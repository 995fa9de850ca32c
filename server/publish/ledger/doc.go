// Package ledger keeps budgets of privacy loss for sets of records, which releases and studies are
// charged to: budget.go charges, checks.go checks the ledgers that a spec names, ledgers.go
// implements the calls about ledgers.
package ledger
