// Package engine creates trials from the suggestions of designers. Suggestions are computed from a
// snapshot, outside of transactions, one batch at a time per study, so that a slow model delays
// neither other studies nor the results of this one.
//
// Files:
//
//   - suggest.go: SuggestTrials; draw.go: designs so quick that they need no queue
//   - queue.go: the demands that wait; condition.go: those with conditions
//   - pass.go: one batch of demands, from its snapshot to its trials; provenance.go: how they were made
//   - design.go: the call of a designer, and the fallback when it fails
//   - designer.go: which designer an algorithm is; engine.go: how a policy changes that
//   - snapshot.go, prior.go: what a designer learns from
//   - prepare.go: the suggestion for the next demand, made ahead
//   - stopping.go: runs that are stopped early
//   - phase.go: how long the phases of a suggestion take
package engine
