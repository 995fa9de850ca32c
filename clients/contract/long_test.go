//go:build long

package contract_test

import "testing"

// The server can be killed before every step of every scenario.

func TestGoClientBetweenRestarts(t *testing.T) {
	runScenarios(t, true, func(t *testing.T, s *server) client {
		t.Helper()
		return newGoClient(t, s, make(map[string]bool))
	})
}

func TestRESTBetweenRestarts(t *testing.T) { runScenarios(t, true, newRESTClient) }
