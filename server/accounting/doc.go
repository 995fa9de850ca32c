// Package accounting gives privacy specs their meaning. [Compile] compiles a PrivacySpec, whose
// fields are expressions, to a [Function], which builds the mechanism for values of the
// variables and has package privacy account it. A [Ledger] adds up the cost of many runs.
//
// [Service] answers the calls of PrivacyService that need no study. It has no state, so
// that it also serves programs without a server.
//
// # From noise_multiplier to ε
//
// Compile (function.go) and the compiler (mechanism.go) turn noise_multiplier into an
// expression.Number and check what does not depend on its value. Package spec then asks for
// two kinds of ε.
//
// The ε of a trial is exact:
//
//  1. Guarantee (function.go) has the mechanism evaluate its expressions by CEL, in
//     dpSGD.evaluate (mechanism.go). This yields a mechanism of package privacy and a number of
//     steps.
//  2. The mechanism's [privacy.Curve] comes from an earlier call or from the accountant.
//  3. The curve gives ε for the steps and δ, which message puts into a PrivacyGuarantee.
//
// The ε of the search is approximate:
//
//  1. Search (search.go) turns the expressions into Go functions of the coordinates
//     (expression/native.go).
//  2. A [privacy.Interpolant] interpolates between values of the same accountant, which it
//     computes when they are first needed.
//
// # What is kept
//
// Each level saves what the level above it cannot. Times are of one ε of DP-SGD with lots of a
// fixed size by the default accountant (BenchmarkGuarantee and BenchmarkSearch here,
// BenchmarkCompute in package spec):
//
//   - A study keeps the answers at its latest 256 configurations: 3 µs instead of 1.6 ms. By
//     ACCOUNTANT_PLD it would be 150 ms, within a transaction.
//   - A Function keeps the curves of 32 mechanisms: 1.6 ms instead of 2.6 ms at another step
//     of a run, and 1.0 ms instead of 3.3 ms for Poisson sampled lots. By ACCOUNTANT_PLD it
//     is 0.2 s instead of 1.1 s.
//   - An Interpolant keeps its nodes: 0.5 µs at a point between them. With CEL instead of Go
//     functions it would be 4 µs.
package accounting
