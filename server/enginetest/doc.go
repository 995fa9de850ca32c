// Package enginetest is for tests. It has studies, trials and an engine over a temporary store,
// without the services around them.
//
//   - service.go: Service, the parts connected over a store with hooks
//   - runs.go: a study of training runs, and what workers do in it
//   - many.go: Run, a run written many times, for benchmarks
package enginetest
