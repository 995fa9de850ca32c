package view

import (
	"fmt"
	"strings"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/builtin"
)

// Trainers lists the built-in trainers with their settings, for help texts. A setting that an earlier trainer
// has too is only named.
func Trainers() string {
	var b strings.Builder
	shown := make(map[trainer.Setting]bool)
	for _, d := range builtin.Registry().Definitions() {
		fmt.Fprintf(&b, "  %s: %s\n", d.Name, d.Summary)
		var again []string
		for _, s := range d.Settings {
			if shown[s] {
				again = append(again, s.Name)
				continue
			}
			shown[s] = true
			fallback := ""
			if s.Default != "" {
				fallback = " (default " + s.Default + ")"
			}
			fmt.Fprintf(&b, "      %s%s: %s\n", s.Name, fallback, s.Usage)
		}
		if len(again) > 0 {
			fmt.Fprintf(&b, "      as above: %s\n", strings.Join(again, ", "))
		}
	}
	return b.String()
}

// TrainerNames names the built-in trainers, for help texts.
func TrainerNames() string {
	var names []string
	for _, d := range builtin.Registry().Definitions() {
		names = append(names, d.Name)
	}
	return strings.Join(names, ", ")
}
