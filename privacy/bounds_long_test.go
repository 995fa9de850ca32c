//go:build long

package privacy

const boundsPoints = 10000
