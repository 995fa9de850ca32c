// Package server implements the gRPC services of package dpareto.v1: it keeps studies
// and trials in a store, hands trials to workers under leases, asks a designer for
// new ones, and reads off fronts.
//
// Everything that matters is in the store, and an answered mutation is on disk.
// Compiled specs and posterior fronts are cached in memory and can be thrown away at
// any moment. Suggestions are computed outside of transactions, one
// batch at a time per study, so that a slow model delays neither other studies nor
// the results of this one.
//
// Where what is:
//
//   - the way of a call: interceptor.go, access.go, observe.go, auditing.go, requests.go
//     (answers that are remembered), unimplemented.go
//   - studies: study.go, update.go, list.go, watch.go, fields.go (what can be filtered by)
//   - trials and their leases: trial.go, stopping.go, stagnation.go, quota.go
//   - suggestions: suggest.go, condition.go, draw.go, prepare.go, designer.go, compute.go
//     (what takes long, before a transaction), and package yield
//   - what a model learns from: history.go, prior.go, cache.go
//   - the answer: front*.go, query.go, predict.go
//   - privacy: ledger.go, design.go, reaccount.go, private.go (noisy values and their budgets),
//     and package accounting
//   - publishing: release.go (requests, and what is written together), release_ledger.go
//     (budgets), release_fixed.go (what can be released of a fixed design), release_best.go,
//     release_front.go
//   - studies that show nothing but their best trial: randomstopping.go, secrets.go (what
//     they do not answer)
//   - operation: admin.go, backup.go, export.go, import*.go, health.go, maintenance.go,
//     collector.go, phase.go, totals.go
package server
