// Package study changes studies and trials: their states, budgets, leases and revisions. Every
// change of a study goes through Studies.Change, one transaction that loads the study, lets a
// function decide, and writes the study back.
//
// Files:
//
//   - precompute.go: what a call computes before its transaction; change.go: Change, the transaction
//     of a study; request.go: answers that are remembered by request id; events.go: what observers are told once a change is durable
//   - policy.go: what a study may spend, keep and show. Ordinary studies have the policy Ordinary,
//     others one of package publish/private
//   - study.go, update.go, watch.go: calls about studies
//   - trial.go: calls about trials; report.go: measurements and completion; lease.go: leases, who
//     gets which trial, renewal; time.go: by which clock they end; budget.go: how many trials may still
//     be created, and why no more
//   - stagnation.go: when the front has stopped growing; reaccount.go: a new accountant for the
//     runs so far
//   - cache.go: compiled specs, and what other packages derive from studies; remains.go: what
//     imports and deletions leave behind
package study
