//go:build long

package examples

import (
	"strings"
	"testing"
)

// Figures 1 and 3 on made-up examples: the grid has a front, which the search's fronts do not
// surpass before its own run.
func TestLogistic(t *testing.T) {
	figures, text := run(t, &Experiment{Figures: []int{1, 3}, Quick: true, Seed: 1, Generated: true})
	if len(figures) != 2 || figures[0].Name != "figure1" || figures[1].Name != "figure3" {
		t.Errorf("figures %+v", figures)
	}
	for _, want := range []string{"figure1_epsilon", "figure1_error", "figure1_front", "figure1_configurations", "figure3_next", "figure3_fronts"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}
