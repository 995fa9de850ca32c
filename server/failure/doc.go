// Package failure maps errors that are no gRPC status yet (of the store, of contexts, panics) to
// statuses, so that they look the same to clients wherever they happen.
package failure
