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
// ε passes these caches, and no others. Each saves what the others cannot:
//
//   - The metrics of a study's latest 256 configurations (memo.go in package spec). They carry ε from the pool
//     into the transaction that stores it, which would hold up every other change for milliseconds, or for a
//     second by ACCOUNTANT_PLD.
//   - The curves of the latest 32 mechanisms of a [Function]. Reports of one run ask for many lengths of one
//     mechanism: 1.6 ms instead of 2.6 ms each for DP-SGD with lots of a fixed size, 1.0 ms instead of 3.3 ms
//     for Poisson sampled ones, 0.2 s instead of 1.1 s by ACCOUNTANT_PLD.
//   - The latest 4,096 costs of a Function, for studies with a bound on hand-outs. They carry tens of
//     milliseconds each into the transaction that charges them.
//   - The latest 32 interpolants of the process, a megabyte each, shared by studies with the same accounting.
//     Filling one takes seconds, more than all else that a study of thirty trials asks of a server
//     (BenchmarkFirst in package engine).
//   - Within a [privacy.Interpolant], without a bound, since the grid has one: values at nodes, curves of
//     which the nodes along one axis share each, and the 64 nodes around a cell. A search asks for thousands of
//     points between the same nodes: 0.5 µs each.
//
// A walk through a study of 300 trials by the default accountant, one SuggestTrials, the reports of a run of
// 40 epochs, CompleteTrial and GetFront, takes 0.47 s of processor time. Without the curves of a Function it takes
// 16 % more, without the curves of an interpolant 9 %, without nodes 18 %, and without cells minutes. It takes no
// more without the other three, which serve transactions and other studies.
//
// BenchmarkGuarantee and BenchmarkSearch here, and BenchmarkCompute in package spec, measure the parts.
package accounting
