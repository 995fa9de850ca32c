//go:build long

package simulation

import (
	"os/exec"
	"regexp"
	"testing"
)

// Histories find every fault.
func TestFaultsAreFound(t *testing.T) {
	for i := range faults {
		t.Run(faults[i].name, faults[i].find)
	}
}

// find runs histories of a server with a fault, and returns the first that tells of it.
func (f *fault) find(t *testing.T) {
	t.Helper()
	test := exec.CommandContext(t.Context(), "go", "test", "-overlay", f.overlay(t, t.TempDir()), "-run", "^TestHistories$", ".",
		"-args", "-histories", "300", "-faulty", "20")
	out, err := test.CombinedOutput()
	found := regexp.MustCompile(`(seed \d+): ` + f.invariant + ": (.*)").FindSubmatch(out)
	switch {
	case found != nil:
		t.Logf("found by %s: %s", found[1], found[2])
	case err == nil:
		t.Error("not found in 300 histories")
	default:
		t.Errorf("not found by %q, but: %v\n%s", f.invariant, err, out)
	}
}
