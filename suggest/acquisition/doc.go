// Package acquisition measures how much a configuration with an uncertain
// outcome is expected to push a Pareto front outwards: probability of
// improvement, hypervolume improvement, their product HVPoI, and expected
// hypervolume improvement, in closed form and for any number of objectives, and
// how likely an outcome is to meet a constraint.
//
// Criteria whose names begin with Log are logarithms. They stay finite where the
// criterion underflows, so that an optimiser finds its way from there. [LogEHVI],
// [LogTrajectoryEHVI] and [LogFeasible] come with derivatives.
//
// The outcome of each objective is a [Distribution], independent of the others, and all
// objectives are minimised. A Gaussian process often models a transform of an
// objective (the logarithm of a privacy loss, the logit of an error), while
// hypervolume is wanted in the objective's own unit. So distributions describe the
// *untransformed* objective (log-normal, logit-normal) and fronts are in own
// units: the probability of improvement is the same in either, the hypervolume
// is not.
package acquisition
