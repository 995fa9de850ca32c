// Package contract holds scenarios that every client runs against a real server, so that
// clients cannot drift apart. README.md explains the table, scenarios.yaml. The tests
// here run it through the Go client and as JSON over HTTP; the tests of clients/python
// run it through the Python client.
package contract
