// Package release publishes results: the best configuration or the front of a study, and choices
// among candidates.
//
//   - release.go: requests, SelectPrivately, and what is written together with its charge
//   - fixed.go: studies whose design was fixed in advance, and when they are
//   - best.go: ReleaseBest; front.go: ReleaseFront
package release
