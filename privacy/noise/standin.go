// Package noise draws noise from the entropy of the operating system.
package noise

// Source is where noise comes from.
type Source struct{}

// System returns the entropy of the operating system.
func System() *Source { return new(Source) }
