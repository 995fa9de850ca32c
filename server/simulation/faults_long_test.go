//go:build long

package simulation

import "testing"

// Histories find every fault.
func TestFaultsAreFound(t *testing.T) {
	for i := range faults {
		t.Run(faults[i].name, faults[i].find)
	}
}
