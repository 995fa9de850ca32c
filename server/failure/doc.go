// Package failure maps errors to gRPC statuses. It is the only place that does, so that an error
// of the store or a panic looks the same to clients wherever it happens.
package failure
