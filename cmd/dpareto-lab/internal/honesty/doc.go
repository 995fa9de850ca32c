// Package honesty measures whether what a study reports is true: the hypervolume of its front, its 90 % intervals,
// and recommendations with a confidence. Studies are drawn from recorded runs of real DP training, with several
// metrics and transforms, and everything reported is compared with fresh runs of the same training. Some runs
// diverge.
package honesty
