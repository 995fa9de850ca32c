// Package intercept has what every call passes through, in the order of Guard.ServerOptions.
//
//   - recover.go: panics become errors
//   - observe.go: counts, logs, traces
//   - guard.go: who calls, whether they may, how many calls at a time, and for how long
//   - unimplemented.go: fields that this version does not know
//   - audit.go: the audit log
//   - secrets.go: hidden studies do not answer
package intercept
