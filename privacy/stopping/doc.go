// Package stopping has the distributions of the number K of candidates in private tuning by
// random search (Liu and Talwar, "Private selection from private candidates", STOC 2019;
// Papernot and Steinke, "Hyperparameter tuning with Rényi differential privacy", ICLR
// 2022): draw K, train and score K candidates, each drawn independently from the same
// distribution, and release the best by its score, with that score.
//
// If one candidate with its score is private, so is the best, at a price that does not depend
// on how many were tried: [Distribution.Mechanism] returns a selection of package tuning, such as
// [tuning.RepeatedSelection], to account for it, and [Distribution.ContainsTop] says what the
// price buys. The guarantee covers everything that candidate and score depend on, training and
// validation records alike, under the adjacency of the base.
//
// It rests on these conditions:
//
//   - K is drawn afresh, from [noise.System], and stays secret, as do the other
//     candidates and their scores. So do their traces: how long the search took, what it
//     cost, how many checkpoints it left.
//   - Candidates are independent. Nothing that depends on another candidate, such as a
//     suggestion from earlier scores, is covered.
//   - The distribution is fixed in advance. K must not be drawn again because it is too large, unless it is
//     accounted as [Capped], nor the search be stopped before K candidates, nor be extended.
//   - The score is the released one, private itself, and ties are broken without looking
//     at data.
package stopping
