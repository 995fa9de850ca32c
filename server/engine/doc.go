// Package engine creates trials from the suggestions of designers. Suggestions are computed from a
// snapshot, outside of transactions, one batch at a time per study, so that a slow model delays
// neither other studies nor the results of this one.
//
// Files:
//
//   - queue.go: SuggestTrials, the demands that wait, and the trials that are created for them
//   - condition.go: demands with conditions; draw.go: designs so quick that they need no queue
//   - designer.go: which designer an algorithm is; engine.go: how a policy changes that
//   - history.go, prior.go: what a model learns from; knowledge.go: how much of that is kept
//   - prepare.go: the suggestion for the next demand, made ahead
//   - stopping.go: runs that are stopped early
//   - phase.go: how long the phases of a suggestion take
package engine
