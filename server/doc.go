// Package server implements the gRPC services of package dpareto.v1. There is one thin file per
// service, an index of where each call is implemented; server.go connects the parts.
//
// Imports between the packages below run one way:
//
//	server
//	transfer
//	publish/release
//	front, publish/private, publish/ledger, publish/spending
//	engine
//	study
//	spec
//	accounting
//	expression
//
// Beside them stand store (which all of them use), intercept (what every call passes through),
// auth, audit, limit, metrics, and small leaves such as resource, page, invalid and failure.
package server
