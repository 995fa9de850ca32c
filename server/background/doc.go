// Package background runs work that outlives the call that asks for it: fits, early stopping,
// maintenance.
package background
