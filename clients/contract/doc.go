// Package contract holds scenarios that every client runs against a real server, so that
// clients cannot drift apart: scenarios.yaml is the table, and README.md explains it. The
// tests here run it through the Go client and as JSON over HTTP; those of clients/python run
// it through the Python client.
package contract
