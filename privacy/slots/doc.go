// Package slots accounts accesses that are chosen one after another from earlier outputs, each of which takes a
// slot that was declared beforehand and whose dominating pair dominates it. Besides package privacy and its
// numerics it imports nothing of the module.
package slots
