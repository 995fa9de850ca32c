// Package specchange says what clients may change in a study's spec, and how two specs differ. It
// compares messages, and reads neither the store nor what a spec means.
//
// Files:
//
//   - mask.go: update masks, for any message; change.go: changes that trials so far rule out
//   - difference.go: the fields in which two messages differ; design.go: those that change which
//     trials a study will have
//   - prior.go: whether the trials of one study mean the same in another
package specchange
