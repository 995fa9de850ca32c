package main

import (
	"os"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
)

func TestAssemblyIsCurrent(t *testing.T) {
	committed, err := os.ReadFile("../kernels_amd64.s")
	require.NoError(t, err)
	if string(committed) != assembly() {
		t.Error("kernels_amd64.s differs from what this program prints: run go generate in the folder above")
	}
}
