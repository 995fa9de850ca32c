// Package selection chooses the best of several candidates privately: only the name of
// one candidate is released, and it may not be the best.
//
// A candidate has a utility, larger being better, computed from the data that is
// protected. The choice is pure ε-DP (account it as a [privacy.Selection]) when
//
//   - the candidates, their order and their number were fixed before the data were
//     seen, by a grid, a sequence, or a search that used public or other data alone;
//   - every utility changes by at most the stated sensitivity Δ between neighbouring
//     data sets, and Δ does not depend on the data. The guarantee is for the adjacency
//     that Δ is stated for: the number of right answers on m records has Δ = 1 when one
//     record is replaced, or added or removed; the accuracy has Δ = 1/m, and that when one
//     record is replaced only, since m is not public otherwise. Prefer the number, which
//     is exact: a quotient and 1/m are rounded, by 1e-16, which is 1e-16·m of Δ and of ε.
//
// The guarantee protects the records from which the utilities are computed, commonly the
// validation records. It does not cover the models behind the candidates, which saw the
// training records, nor the utility of the chosen candidate, whose release costs extra.
//
// # Which method
//
// [PermuteAndFlip] is the one to start with: whatever the utilities, it loses no more in
// expectation than [Exponential] (McKenna and Sheldon, "Permute-and-flip: a new mechanism for
// differentially private selection", NeurIPS 2020). Exponential is worth considering when
// choices are many, since each is accounted as ε²/8-zero-concentrated DP. [NoisyMax] is the
// textbook's. The expected loss of the first two is at most (2Δ/ε)·log n whatever the
// utilities ([ExpectedLossBound]).
//
// # Exactness
//
// Choices have exactly the probabilities of the formulas, given uniform bits: floats are
// rational numbers, and events of probability e^−γ with a rational γ are drawn as in
// package noise. NoisyMax adds discrete noise on a grid, calibrated so that its ε is
// exact.
//
// How long a choice takes depends on the utilities. Do not let an observer time it, and
// do not report an error that depends on them: make a utility of every outcome,
// failures included, before the choice.
package selection
