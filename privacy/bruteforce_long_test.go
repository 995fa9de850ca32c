//go:build long

package privacy

// bruteForceMechanisms is the number of random mechanisms that the location bound is checked on, some minutes.
const bruteForceMechanisms = 100_000
