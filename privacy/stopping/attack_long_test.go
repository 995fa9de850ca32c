//go:build long

package stopping

// attackedSearches is the number of random searches of each kind that are attacked, some minutes.
const attackedSearches = 10_000
