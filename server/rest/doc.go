// Package rest serves the contract as JSON over HTTP.
//
// It translates requests into calls of a connection to the gRPC server, so that whatever guards
// that server (authentication, limits, the audit log) also guards this one. Which URL leads to
// which method is written in gateway.yaml; docs/reference/rest.md explains the form of requests,
// answers and errors.
package rest
