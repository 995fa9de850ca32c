// Package spec gives a study's spec its meaning. [Compile] validates a StudySpec, naming every
// violated field, and returns a [Study]: the optimisation problem for package suggest, the
// computed metrics, the checks of what workers report, and the conversions between messages
// and points of the search space. The packages suggest and privacy know no messages.
//
// Files compile*.go and problem.go run once for a spec; the others answer for the study.
//
// # From noise_multiplier to ε
//
// A study file says noise_multiplier: "noise", an expression over the study's parameters, in
// the PrivacySpec of a computed metric. When the study is compiled:
//
//  1. compile_parameters.go makes the parameter noise a coordinate of the space.
//  2. compile_metrics.go has package accounting compile the PrivacySpec. The result is the
//     metric's function (guarantee in computed.go).
//  3. problem.go gives the function to designers twice: as Known, the exact ε, and as Search,
//     a cheap approximation. From here on there are two routes.
//  4. compile_probe.go computes the exact ε at a few points, to find expressions that fail.
//
// The ε of a trial is exact:
//
//  1. points.go turns the trial's parameters into a point, and the point into variables.
//  2. computed.go (Compute) passes the variables to [accounting.Function.Guarantee]. memo.go
//     keeps the latest answers: the server computes before a transaction and asks again in it.
//  3. measurements.go puts the ε of every step into the trial's measurements.
//
// The ε of the search is approximate. Designers evaluate Search at thousands of points:
// computed.go passes the coordinates to the functions of [accounting.Function.Search], past
// variables and memo. Conditions (conditions.go) check the approximation first, then Known.
//
// Package accounting continues both routes.
package spec
