// Package designers has every designer by name. Each is a package below:
//
//   - engine: "default", which the server takes unless a study asks for another, and its
//     relatives "ehvi" and "ehvi_exact"
//   - dpareto: "dpareto", Algorithm 2 of Avent et al. (PoPETs 2020)
//   - nsga2: "nsga2", a genetic algorithm
//   - random, quasirandom, grid: "random", "quasi_random" and "grid", without a model
//
// # A new designer
//
// A designer is a folder here with a constructor that returns a [suggest.Designer], and one
// line in the registry of designers.go. Its Suggest begins with [suggest.Validate]; draws
// configurations by the functions of suggest/internal/sample, so that every draw follows
// from the request's seed and number; asks [suggest.Problem.Allows] before it suggests one;
// and returns [suggest.ErrExhausted] when it finds no more. A designer with a model fits
// it by [model.Fit] and leaves the order of initial design, model and fallback to
// designers/internal/modelbased.
//
// The tests of this package run every registered designer through what all must do. To
// offer a designer as an algorithm of the server takes a value of the enum Algorithm in the
// contract, ALGORITHM_ and the name in capitals, and the entries that docs/how-to/extend.md lists.
package designers
