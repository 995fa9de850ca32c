// Package runs has the profiles of a number of runs of any mechanism, by the most precise accountant, for
// packages tuning, slots and adaptive. It imports package privacy.
package runs
