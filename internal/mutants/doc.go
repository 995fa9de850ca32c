// Mutants measures how much the tests of a package notice. It draws small faults (a boundary moved, a
// condition negated, a statement left out) by a seed, and runs for each the tests that reach its line.
// A mutant that no test kills needs a test, or a reason in reasons.txt why it does no harm:
//
//	make mutants PACKAGE=privacy SEED=1 COUNT=300
//
// All mutants of a sample are compiled at once: every function with mutants gets a copy for each of
// them, and the environment variable MUTANT chooses which copy runs. So a mutant costs its tests and
// no build. Results are appended to a file as they come; a run that is repeated goes on after them.
//
// Constants and variables of packages, generated code and String methods are not mutated.
package main
