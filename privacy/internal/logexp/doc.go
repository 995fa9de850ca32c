// Package logexp has sums and differences of exponentials and logarithms that do not cancel or overflow.
package logexp
