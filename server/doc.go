// Package server implements the gRPC services of package dpareto.v1: it keeps studies
// and trials in a store, hands trials to workers under leases, asks a designer for
// new ones, and reads off fronts.
//
// Everything that matters is in the store, and an answered mutation is on disk.
// Compiled specs and posterior fronts are cached in memory and can be thrown away at
// any moment. Suggestions are computed outside of transactions, one
// batch at a time per study, so that a slow model delays neither other studies nor
// the results of this one.
package server
