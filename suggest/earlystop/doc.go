// Package earlystop finds, by a model, the runs that can add nothing more to the front, so
// that they can be stopped early. See [IsFutile].
package earlystop
