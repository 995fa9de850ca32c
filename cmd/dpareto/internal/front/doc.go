// Package front holds the commands dpareto front and dpareto recommend: they show and draw
// the front of a study, measure it again, and choose a configuration from it.
package front
