// Package servertest is for tests of the assembled server, which lie in the packages that do the work.
//
//   - fixture.go: Fixture, a server on a store, which can be stopped and started again
//   - callers.go: Guarded, a server that knows its callers
//   - calls.go: the calls that most tests make; watch.go: their streams; export.go: exported records
//   - specs.go: studies, configurations and results
//   - memory.go: a store that keeps nothing
package servertest
