// Package privacy computes differential-privacy guarantees: which (ε, δ) a
// mechanism costs, alone, composed, or after every epoch of a training run.
//
// # Types
//
//   - A [Mechanism] is a value: its kind, its parameters, its adjacency. It
//     yields what it can: a pure-DP ε ([PureMechanism]), a curve of Rényi
//     divergences ([RenyiMechanism]), a μ of Gaussian DP
//     ([GaussianDPMechanism]), a dominating pair.
//   - A [Composition] is a Mechanism made of mechanisms, each with a count.
//   - An [Accountant] turns a Mechanism into a [Curve] and says which mechanisms
//     it cannot account, and why. Accountants are interchangeable: [Exact], [PLD],
//     [RDP], [GDP], [Pure].
//   - A [Curve] answers for any number of steps and any δ. Building it does the
//     expensive part once; it may be kept and shared between goroutines.
//   - An [Interpolant] is ε as a smooth function of the parameters of DP-SGD, to compare
//     configurations in a search; it is not for reported values.
//   - A [Guarantee] is a result. ε never travels without its δ, adjacency,
//     accountant, assumptions and warnings.
//
// One value, a whole trajectory, and the noise for a target:
//
//	m := privacy.FixedSizeGaussian{DatasetSize: 30956, BatchSize: 128, NoiseMultiplier: 1}
//	perEpoch, err := privacy.StepsPerEpoch(m.DatasetSize, m.BatchSize)
//	...
//	g, err := privacy.Epsilon(privacy.Exact{}, m, 10*perEpoch, 1e-5)
//	gs, err := privacy.Trajectory(privacy.Exact{}, m, []int64{perEpoch, 2 * perEpoch}, 1e-5)
//	sigma, g, err := privacy.CalibrateNoise(privacy.Exact{}, func(noise float64) privacy.Mechanism {
//		return privacy.FixedSizeGaussian{DatasetSize: 30956, BatchSize: 128, NoiseMultiplier: noise}
//	}, 10*perEpoch, 1, 1e-5)
//
// # Which accountant
//
// Use [Exact] for anything that it accepts: everything but the exponential mechanism, selections of package
// tuning and mechanisms known by a Rényi divergence alone, for which there is [RDP]. [Tightest] takes the best.
// RDP{Conversion: Classic} reproduces the numbers of Avent et al. (2020), which are about
// three times larger on their runs. [GDP] is exact for Gaussian noise alone, [Pure] for δ = 0.
//
// # Units
//
// ε and δ are dimensionless; logarithms are natural. A noise multiplier is the
// standard deviation of the noise divided by the sensitivity under the stated
// adjacency. For the average of m clipped gradients of norm at most L that
// sensitivity is 2L/m when one record is replaced and L/m when one record is
// added or removed; the two numbers describe the same noise and differ by 2.
//
// # Rooms
//
// This package is the API. It imports its numerics and nothing else of the module:
//
//   - internal/composition finds ε from dominating pairs, by internal/inversion (contours, with internal/nufft)
//     and internal/convolution (grids). The pairs are in internal/pld.
//   - internal/gaussian, internal/orders, internal/moments, internal/quadrature and internal/logexp are what the
//     names say; meter counts operations.
//
// On top of it stand packages tuning (selections and subsets), adaptive (budgets for choices that depend on
// outputs) and slots, with internal/profile and internal/runs between them; package correlated has matrices of
// correlated noise; package price compares searches; and
// noise, selection, stopping and transcript sample releases without floating-point leaks.
//
// # Adding a mechanism
//
// In this package a new sampler is one file: a type with the methods of [Mechanism] and of [PairMechanism].
// docs/how-to/extend.md lists the entries that it needs elsewhere. [Exact], [PLD] and [Tightest], trade-offs,
// calibration and tuning on subsets then account it. If no pair of internal/pld fits, losses
// with atoms take pld.NewAtoms, as discrete noise would; a density is a Pair in a file of its
// own beside the others. Optional methods add accountants: RenyiCurve ([RenyiMechanism]) for [RDP], slots and repeated selection, GaussianMu
// ([GaussianDPMechanism]) for [GDP], PureEpsilon for [Pure], Curves ([CurvesMechanism]) for bounds of its own, and
// Records ([SizedMechanism]) if it is stated for a number of records. A mechanism with much code is a package
// beside this one, as tuning is.
//
// # Caveats
//
// Every ε is an upper bound for ideal real-valued noise; sampling noise in floating point can
// leak more (Mironov, 2012). The packages noise, selection and stopping below this one sample
// releases without that leak. A guarantee covers one release. Choosing a configuration by
// looking at results that depend on the data costs privacy that it does not include: package price
// compares what that costs.
package privacy
