// Package server implements the gRPC services of package dpareto.v1. services.go says which package
// answers which call; server.go connects the packages. Their order, and where to find what, is in
// docs/explanation/architecture.md.
package server
