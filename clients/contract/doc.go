// Package contract holds scenarios that every client runs against a real server, so that
// clients cannot drift apart: scenarios.yaml is the table, README.md explains its steps. The
// tests here run it through the Go client and as JSON over HTTP; clients/python runs it
// through the Python client.
package contract
