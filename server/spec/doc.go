// Package spec gives a study's spec its meaning. Compile validates a StudySpec,
// naming every violated field, and yields a Study: the optimisation problem for
// package suggest, the functions behind the computed metrics, and the conversions
// between messages and points of the search space.
//
// The packages suggest and privacy know nothing of messages.
package spec
