// Package adaptive accounts mechanisms that are chosen one after another, each possibly from the outputs of the
// earlier ones, parameters included: [GaussianBudget] for a budget in Gaussian DP, [ApproximateFilter] for one in
// (ε, δ), and [Odometer] without a budget. Besides package privacy and its numerics it imports nothing of the
// module.
package adaptive
