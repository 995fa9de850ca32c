//go:build long

package main

import "testing"

// The server is killed often enough to meet it in every moment of a commit.
func TestKilledOften(t *testing.T) { killUnderLoad(t, 60, 32, 150) }

// Nor does a release, a charge or a private study meet a moment that hurts it.
func TestKilledOftenWhileReleasing(t *testing.T) { killWhileReleasing(t, 60) }
