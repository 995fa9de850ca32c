package main

import (
	"os"
	"testing"
)

func TestAssemblyIsCurrent(t *testing.T) {
	committed, err := os.ReadFile("../kernels_amd64.s")
	if err != nil {
		t.Fatal(err)
	}
	if string(committed) != assembly() {
		t.Error("kernels_amd64.s differs from what this program prints: run go generate in the folder above")
	}
}
