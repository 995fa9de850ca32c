package view

import (
	"fmt"
	"strings"

	"github.com/dpareto/dpareto/clients/go/trainer/builtin"
)

// Trainers lists the built-in trainers with their settings, for help texts.
func Trainers() string {
	var b strings.Builder
	for _, d := range builtin.Registry().Definitions() {
		fmt.Fprintf(&b, "  %s: %s\n", d.Name, d.Summary)
		for _, s := range d.Settings {
			fallback := ""
			if s.Default != "" {
				fallback = " (default " + s.Default + ")"
			}
			fmt.Fprintf(&b, "      %s%s: %s\n", s.Name, fallback, s.Usage)
		}
	}
	return b.String()
}
