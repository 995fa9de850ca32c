package statement_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/internal/command"
)

// The command that a statement gives computes the ε that it states, to the last digit.
func TestRecompute(t *testing.T) {
	clitest.RunStudy(t, "sgd", "--trainer dp-sgd --set generated=true --set train_rows=200 --set epochs=2 --trials 2", 1)
	var s struct {
		Claim     string `json:"claim"`
		Seeded    bool   `json:"seeded"`
		Guarantee struct {
			Epsilon float64 `json:"epsilon"`
		} `json:"guarantee"`
		Recompute string `json:"recompute"`
	}
	if err := json.Unmarshal([]byte(clitest.Succeed(t, "statement sgd --trial 1 --price=false --output json")), &s); err != nil {
		t.Fatal(err)
	}
	rest, ok := strings.CutPrefix(s.Recompute, "dpareto ")
	if !ok {
		t.Fatalf("command %q", s.Recompute)
	}
	var computed struct {
		Epsilon float64 `json:"epsilon"`
	}
	if err := json.Unmarshal([]byte(clitest.Succeed(t, rest+" --output json")), &computed); err != nil {
		t.Fatal(err)
	}
	if computed.Epsilon != s.Guarantee.Epsilon || s.Guarantee.Epsilon <= 0 {
		t.Errorf("stated ε %v, computed again %v", s.Guarantee.Epsilon, computed.Epsilon)
	}
	// RunStudy gives the agent a seed.
	if !s.Seeded || !strings.Contains(s.Claim, "has no ε against anybody who knows its seed, and must not be published") {
		t.Errorf("claim %q", s.Claim)
	}
	if html := clitest.Succeed(t, "statement sgd --trial 1 --price=false --output html"); !strings.HasPrefix(html, "<!doctype html>") {
		t.Error(html)
	}
	for line, code := range map[string]int{
		"statement sgd --epsilon 1e9": command.ExitFailure, "statement sgd": command.ExitFailure, "statement sgd --trial 1 --sampler poisson": command.ExitFailure,
		"statement sgd --epsilon -1": command.ExitUsage, "statement sgd --trial 0": command.ExitUsage, "statement sgd --trial 1 --output csv": command.ExitUsage,
		"statement other --epsilon 1": command.ExitNotFound, "statement sgd --trial 99": command.ExitNotFound,
	} {
		clitest.Fail(t, code, line)
	}
}
