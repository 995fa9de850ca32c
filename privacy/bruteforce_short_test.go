//go:build !long

package privacy

// bruteForceMechanisms is the number of random mechanisms that the location bound is checked on.
const bruteForceMechanisms = 100
